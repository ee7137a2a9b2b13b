#include "codegen/expression/evaluator.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/memory.h"
#include "codegen/expression/extreme.h"
#include "codegen/expression/functions.h"

namespace graft::codegen {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// How many times eps(dtype) times its magnitude an element may be off, by the rule for results.
constexpr double allowed_roundings = 4;

double epsilon_of(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 0x1p-10;
    case DType::bf16:
      return 0x1p-7;
    case DType::f32:
      return double(std::numeric_limits<float>::epsilon());
    default:
      return std::numeric_limits<double>::epsilon();
  }
}

bool is_storage_alone(DType type) {
  return computed_in(type) != type;
}

// The depth of a number of type `from` as one of type `to`. Of a type of storage alone it is 1: magnitudes say how far
// a number may be off (see to_storage).
std::int64_t converted_depth(std::int64_t depth, DType from, DType to) {
  if (from == to || !is_floating(to)) return depth;
  if (is_storage_alone(to)) return 1;
  const double scale = is_floating(from) ? epsilon_of(from) / epsilon_of(to) : 0;
  return std::int64_t(std::ceil(double(depth) * scale)) + 1;
}

// An exact operand adds nothing, whatever the derivative; nor does one that the result does not depend on.
double scaled(double magnitude, double derivative) {
  return magnitude == 0 || derivative == 0 ? 0 : magnitude * derivative;
}

// Integers of 64 bits are doubles here, and those beyond 2^53 are rounded.
constexpr double exact_integers = 0x1p53;
double rounding_of(double integer) {
  return std::abs(integer) < exact_integers ? 0 : std::abs(integer) / exact_integers;
}

// Infinities come from padding, and are exact.
double size_of(double value, DType type) {
  if (std::isinf(value)) return 0;
  return is_floating(type) ? std::abs(value) : rounding_of(value);
}

// An integer type's range, and kept().
struct Range {
  explicit Range(DType of) : type(of), low(lowest(of)), high(highest(of)) {}
  bool has(double number) const { return number >= low && number <= high; }
  double keep(double number) const { return has(number) ? number : kept(number, type); }
  DType type;
  double low, high;
};

// How far an integer may be off that is off by `size` before it is kept in its type: what may wrap around to the other
// end may be anything.
double kept_size(double integer, double size, const Range& range) {
  return size > 0 && !(range.has(integer - size) && range.has(integer + size)) ? infinity : size;
}

// The magnitude of a partial sum whose terms have magnitudes of `size` together.
double size_of_sum(double sum, double size, const Range& range) {
  return is_floating(range.type) ? size : kept_size(sum, size + rounding_of(sum), range);
}

// The magnitude of a product of a and b that have magnitudes ma and mb, before it is kept in its type.
double size_of_product(double a, double ma, double b, double mb, bool floating) {
  return floating ? ma * mb : scaled(ma, std::abs(b)) + scaled(mb, std::abs(a)) + ma * mb;
}

// kept() of all numbers, which as a rule are within the range already.
void keep(double* numbers, std::size_t count, DType type) {
  if (is_floating(type)) return;
  const Range range(type);
  bool all = true;
  for (std::size_t i = 0; i < count; ++i) all &= range.has(numbers[i]);
  for (std::size_t i = 0; i < count && !all; ++i) numbers[i] = range.keep(numbers[i]);
}

// of(lane) for each lane, in a loop of its own that compilers make vectors of.
template <class Of>
void fill(double* __restrict to, std::size_t lanes, Of of) {
  for (std::size_t l = 0; l < lanes; ++l) to[l] = of(l);
}

constexpr std::size_t most_lanes = 256;  // Evaluator::width
constexpr double zeros[most_lanes] = {};
const double* or_zeros(const double* magnitudes) {
  return magnitudes == nullptr ? zeros : magnitudes;
}

// convert(), for loops.
class Conversion {
 public:
  Conversion(DType from, DType to, bool saturate)
      : to_(to), from_floating_(is_floating(from)), saturate_(saturate), small_(bytes_of(to) <= 4) {}
  template <class Of>
  void fill(double* __restrict out, std::size_t lanes, Of of) const {
    const double low = to_.low, high = to_.high;
    const auto clamped = [=](double x) { return x < low ? low : x > high ? high : x; };
    if (from_floating_ && small_)
      for (std::size_t l = 0; l < lanes; ++l) out[l] = double(std::int32_t(clamped(of(l) == of(l) ? of(l) : 0)));
    else if (from_floating_)
      for (std::size_t l = 0; l < lanes; ++l) out[l] = clamped(quick::trunc(of(l) == of(l) ? of(l) : 0));
    else
      for (std::size_t l = 0; l < lanes; ++l) out[l] = saturate_ ? clamped(of(l)) : of(l);
    if (!from_floating_ && !saturate_) keep(out, lanes, to_.type);
  }

 private:
  Range to_;
  bool from_floating_, saturate_, small_;
};

double exact_product(double a, double b, DType type) {
  return with_element_of(type, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T>)
      return double(T(std::uint64_t(std::int64_t(a)) * std::uint64_t(std::int64_t(b))));
    else
      return a * b;
  });
}

// The magnitude with which a reduction starts: those of products of floating point are multiplied.
double start_of_sizes(Combine combine, DType type) {
  return combine == Combine::product && is_floating(type) ? 1 : 0;
}

// Multiplies a product of magnitude `size` by a number of this magnitude; nullptr: there are none.
void multiply(double& product, double& size, double number, const double* magnitude, const Range& range) {
  const bool floating = is_floating(range.type);
  if (magnitude != nullptr) size = size_of_product(product, size, number, *magnitude, floating);
  const double in_double = product * number;
  product = floating || std::abs(in_double) <= exact_integers ? in_double : exact_product(product, number, range.type);
  if (floating) return;
  product = range.keep(product);
  if (magnitude != nullptr) size = kept_size(product, size + rounding_of(product), range);
}

std::vector<std::int64_t> extents_of(const Stage& stage, const std::vector<std::size_t>& axes) {
  std::vector<std::int64_t> extents;
  for (const std::size_t a : axes) extents.push_back(stage.axes[a].extent);
  return extents;
}

std::vector<std::int64_t> chosen(const std::vector<std::int64_t>& along, const std::vector<std::size_t>& axes) {
  std::vector<std::int64_t> out;
  for (const std::size_t a : axes) out.push_back(along[a]);
  return out;
}

}  // namespace

double error_of(double magnitude, DType type, std::int64_t depth) {
  return allowed_roundings * epsilon_of(type) * double(depth) * magnitude;
}

double room_for(double size, DType type, std::int64_t depth) {
  return size / (allowed_roundings * epsilon_of(type) * double(std::max<std::int64_t>(1, depth)));
}

std::vector<std::int64_t> depths_of(const Computation& computation, const Stage& stage, const std::vector<Data>& data) {
  // Functions are polynomials of the emitter, accurate to a few units in the last place.
  constexpr std::int64_t special = 4;
  const std::vector<NodeType> types = types_of(computation, stage);
  std::vector<std::int64_t> depth;
  for (std::size_t n = 0; n < stage.value.nodes.size(); ++n) {
    const ValueNode& node = stage.value.nodes[n];
    const auto of = [&](int operand) {
      if (operand < 0 || is_comparison(stage.value.nodes[std::size_t(operand)].op)) return std::int64_t(0);
      return converted_depth(depth[std::size_t(operand)], types[std::size_t(operand)].result, types[n].operands);
    };
    const std::int64_t a = of(node.a), b = of(node.b);
    std::int64_t here = 0;
    switch (node.op) {
      case Op::constant:
      case Op::position:
        break;
      case Op::load:
        here = data[std::size_t(stage.value.loads[std::size_t(node.load)].tensor)].depth;
        break;
      case Op::add:
      case Op::sub:
        here = std::max(a, b) + 1;
        break;
      case Op::mul:
      case Op::div:
        here = a + b + 1;
        break;
      case Op::max:
      case Op::min:
        here = std::max(a, b);
        break;
      case Op::neg:
      case Op::abs:
      case Op::floor:
      case Op::round:
        here = a;
        break;
      case Op::exp:
      case Op::sqrt:
      case Op::rsqrt:
      case Op::log:
      case Op::tanh:
      case Op::sigmoid:
      case Op::erf:
      case Op::sin:
      case Op::cos:
        here = a + special;
        break;
      case Op::pow:
        here = std::max(a, b) + special;
        break;
      case Op::less:
      case Op::less_or_equal:
      case Op::greater:
      case Op::greater_or_equal:
      case Op::equal:
      case Op::not_equal:
        here = std::max(a, b);
        break;
      case Op::select:
        here = std::max({depth[std::size_t(node.a)], b, of(node.c)});
        break;
      case Op::modulo:
      case Op::shift_left:
      case Op::shift_right:
      case Op::bit_and:
      case Op::bit_or:
      case Op::bit_xor:
        break;
      case Op::cast_f32:
      case Op::cast_f64:
      case Op::cast_i32:
      case Op::cast_i8:
      case Op::cast_u8:
      case Op::cast_f16:
      case Op::cast_bf16:
      case Op::cast_i64:
      case Op::saturate_i32:
      case Op::saturate_i8:
      case Op::saturate_u8:
        here = converted_depth(depth[std::size_t(node.a)], types[n].operands, types[n].result);
        break;
    }
    depth.push_back(here);
  }
  return depth;
}

std::int64_t depth_of(const Computation& computation, const Stage& stage, const std::vector<Data>& data) {
  const std::int64_t of_value =
      converted_depth(depths_of(computation, stage, data).back(), types_of(computation, stage).back().result,
                      computation.tensors[std::size_t(stage.tensor)].dtype);
  std::int64_t terms = 1;
  for (std::size_t a = std::size_t(computation.spatial_axes(stage)); a < stage.axes.size(); ++a)
    terms *= is_extreme(stage.combine) ? 1 : stage.axes[a].extent;
  const std::int64_t of_values = stage.combine == Combine::product ? base::capped_product(of_value, terms) : of_value;
  return base::capped_sum(of_values, terms - 1);
}

Evaluator::Task Evaluator::task_of(const Computation& computation, const Stage& stage) {
  const Tensor& tensor = computation.tensors[std::size_t(stage.tensor)];
  Task task{.node = int(stage.value.nodes.size()) - 1,
            .type = tensor.dtype,
            .combine = stage.combine,
            .elements = {},
            .terms = {},
            .target = flat(element_of(computation, stage), tensor.shape, stage.axes.size())};
  const std::size_t spatial = std::size_t(computation.spatial_axes(stage));
  for (std::size_t a = 0; a < stage.axes.size(); ++a) (a < spatial ? task.elements : task.terms).push_back(a);
  return task;
}

Evaluator::Evaluator(const Computation& computation, const Stage& stage, const std::vector<Data>& data, Task task,
                     bool magnitudes)
    : stage_(stage),
      task_(std::move(task)),
      with_magnitudes_(magnitudes),
      types_(types_of(computation, stage)),
      depths_(depths_of(computation, stage, data)),
      of_elements_(extents_of(stage, task_.elements)),
      of_terms_(extents_of(stage, task_.terms)) {
  const std::size_t axes = stage.axes.size(), nodes = stage.value.nodes.size();
  std::vector<std::array<bool, 2>> loads_vary, positions_vary;
  for (const Access& access : stage.value.loads) {
    track_load(computation, access);
    loads_.back().data = &data[std::size_t(access.tensor)];
    std::array<bool, 2>& varies = loads_vary.emplace_back();
    for (const Affine& index : access.index)
      for (const std::size_t over : {0, 1})
        varies[over] = varies[over] || moves(form_of(index, axes), over == 0 ? task_.elements : task_.terms);
  }
  for (const Affine& position : stage.value.positions) {
    const Form form = form_of(position, axes);
    positions_.push_back(track(form));
    positions_vary.push_back({moves(form, task_.elements), moves(form, task_.terms)});
  }
  target_ = track(task_.target);
  of_elements_.join_axes();
  of_terms_.join_axes();
  needed_.resize(nodes), has_.resize(nodes), varies_.resize(nodes);
  needed_[std::size_t(task_.node)] = 1;
  for (std::size_t n = nodes; n-- > 0;) {
    const ValueNode& node = stage.value.nodes[n];
    for (const int operand : {node.a, node.b, node.c})
      if (operand >= 0 && needed_[n]) needed_[std::size_t(operand)] = 1;
  }
  for (std::size_t n = 0; n < nodes; ++n)
    mark_node(n, stage.value.nodes[n].op == Op::position ? positions_vary : loads_vary);
  has_result_ = has_magnitude_as(task_.node, task_.type);
  constexpr std::size_t places = 4;
  values_.resize(nodes * width), magnitudes_.resize(magnitudes ? nodes * width : 0), places_.resize(2 * places * width);
  sums_.resize(width), sizes_.resize(width);
}

std::size_t Evaluator::track(const Form& form) {
  of_terms_.track(0, chosen(form.along, task_.terms));
  return of_elements_.track(form.start, chosen(form.along, task_.elements));
}

bool Evaluator::moves(const Form& form, const std::vector<std::size_t>& axes) const {
  return std::any_of(axes.begin(), axes.end(),
                     [&](std::size_t a) { return form.along[a] != 0 && stage_.axes[a].extent > 1; });
}

void Evaluator::track_load(const Computation& computation, const Access& access) {
  const std::size_t axes = stage_.axes.size();
  const Tensor& tensor = computation.tensors[std::size_t(access.tensor)];
  const std::vector<std::int64_t> strides = strides_of(tensor.shape);
  Load load{.data = nullptr,
            .type = tensor.dtype,
            .offset = track(flat(access.index, tensor.shape, axes)),
            .dimensions = {},
            .gathered = {},
            .outside = access.outside};
  for (const int d : access.gathered) load.gathered.emplace_back(tensor.shape[std::size_t(d)], strides[std::size_t(d)]);
  for (std::size_t d = 0; access.padded && d < access.index.size(); ++d)
    load.dimensions.emplace_back(track(form_of(access.index[d], axes)), tensor.shape[d]);
  loads_.push_back(std::move(load));
}

void Evaluator::mark_node(std::size_t n, const std::vector<std::array<bool, 2>>& of_leaves) {
  const ValueNode& node = stage_.value.nodes[n];
  if (node.load >= 0) varies_[n] = of_leaves[std::size_t(node.load)];
  for (const int operand : {node.a, node.b, node.c})
    for (std::size_t over = 0; operand >= 0 && over < 2; ++over)
      varies_[n][over] = varies_[n][over] || varies_[std::size_t(operand)][over];
  has_[n] = with_magnitudes_ && has_magnitude(n);
}

// Whether a node's magnitude is not 0 for certain. Those of floating-point numbers never are.
bool Evaluator::has_magnitude(std::size_t n) const {
  const ValueNode& node = stage_.value.nodes[n];
  const DType type = types_[n].operands;
  const auto any_as = [&](DType to, std::initializer_list<int> operands) {
    return std::any_of(operands.begin(), operands.end(),
                       [&](int operand) { return operand >= 0 && has_magnitude_as(operand, to); });
  };
  const auto any = [&](std::initializer_list<int> operands) {
    return std::any_of(operands.begin(), operands.end(),
                       [&](int operand) { return operand >= 0 && has_[std::size_t(operand)]; });
  };
  if (node.op == Op::load) {
    const Load& from = loads_[std::size_t(node.load)];
    return is_floating(from.type) || from.type == DType::i64 || !from.data->magnitude.empty() ||
           any({node.a, node.b, node.c});
  }
  if (node.op == Op::constant) return is_floating(types_[n].result);
  if (node.op == Op::position) return false;
  if (converts_to(node.op)) return any_as(types_[n].result, {node.a});
  if (is_comparison(node.op)) return is_floating(type) ? depths_[n] > 0 : any_as(type, {node.a, node.b});
  if (node.op == Op::select) return any({node.a}) || any_as(type, {node.b, node.c});
  return type == DType::i64 || any_as(type, {node.a, node.b});
}

bool Evaluator::has_magnitude_as(int node, DType to) const {
  const DType from = types_[std::size_t(node)].result;
  const bool own = has_[std::size_t(node)] != 0;
  if (from == to || !with_magnitudes_) return own;
  if (is_floating(to)) return true;
  return own && (!is_floating(from) || depths_[std::size_t(node)] > 0);
}

// Lanes

std::int64_t Evaluator::at(std::size_t number, std::size_t run) const {
  return starts_[run * of_elements_.numbers() + number] + step_walk()[number];
}

void Evaluator::begin_lanes() {
  runs_.clear();
  starts_.clear();
  lanes_ = 0;
}

void Evaluator::add_lanes(Walk& walk, std::int64_t first, std::int64_t count) {
  walk.go_to(first);
  while (count > 0) {
    const std::int64_t here = std::min(count, walk.left_in_row());
    runs_.push_back({lanes_, std::size_t(here)});
    for (std::size_t n = 0; n < walk.numbers(); ++n) starts_.push_back(walk[n]);
    lanes_ += std::size_t(here);
    count -= here;
    walk.advance(here);
  }
}

// The part of a run whose points are inside of the tensor: all of it but where an access is padded.
std::pair<std::int64_t, std::int64_t> Evaluator::inside(const Load& load, std::size_t run) const {
  std::int64_t low = 0, high = std::int64_t(runs_[run].count);
  for (const auto& [number, extent] : load.dimensions) {
    const std::int64_t start = at(number, run), stride = lane_walk().stride(number);
    if (stride == 0) {
      if (start < 0 || start >= extent) high = 0;
      continue;
    }
    // start + stride * i is within 0 .. extent - 1 from one i to another.
    const std::int64_t before = stride > 0 ? -start : start - (extent - 1),
                       until = stride > 0 ? extent - 1 - start : start, step = std::abs(stride);
    if (before > 0) low = std::max(low, (before + step - 1) / step);
    high = std::min(high, until < 0 ? 0 : until / step + 1);
  }
  return {std::min(low, high), high};
}

void Evaluator::run(std::span<const std::int64_t> list, std::int64_t first, std::int64_t count, Results& out,
                    base::Monitor& monitor) {
  // Lanes are terms of one element where elements are few, or scattered.
  constexpr std::int64_t few_elements = 64, few_terms = 16;
  lanes_are_elements_ = of_terms_.points() < few_terms || (list.empty() && count >= few_elements);
  if (lanes_are_elements_)
    run_by_elements(list, first, first + count, out, monitor);
  else
    run_by_terms(list, first, first + count, out, monitor);
}

void Evaluator::ask(base::Monitor& monitor) {
  constexpr std::int64_t points_between_questions = 1 << 16;
  points_ += std::int64_t(lanes_);
  if (points_ < points_between_questions) return;
  points_ = 0;
  base::check_stop(monitor);
}

void Evaluator::run_by_elements(std::span<const std::int64_t> list, std::int64_t first, std::int64_t end, Results& out,
                                base::Monitor& monitor) {
  for (std::int64_t i = first; i < end;) {
    const std::int64_t begin = i;
    begin_lanes();
    while (i < end && lanes_ < width) {
      const std::int64_t room = std::min(end - i, std::int64_t(width - lanes_));
      std::int64_t together = list.empty() ? room : 1;
      while (together < room && list[std::size_t(i + together)] == list[std::size_t(i)] + together) ++together;
      add_lanes(of_elements_, list.empty() ? i : list[std::size_t(i)], together);
      i += together;
    }
    std::fill_n(sums_.begin(), lanes_, kept(identity_of(task_.combine), task_.type));
    std::fill_n(sizes_.begin(), lanes_, start_of_sizes(task_.combine, task_.type));
    of_terms_.go_to(0);
    for (std::int64_t term = 0; term < of_terms_.points(); ++term, of_terms_.advance()) {
      ask(monitor);
      combine(evaluated(term == 0));
    }
    const auto write = [&](const std::vector<double>& from, std::vector<double>& to) {
      if (!list.empty()) std::copy_n(from.begin(), lanes_, to.begin() + begin);
      const std::int64_t stride = of_elements_.stride(target_);
      for (std::size_t r = 0; r < runs_.size() && list.empty(); ++r)
        for (std::size_t l = 0; l < runs_[r].count; ++l)
          to[std::size_t(at(target_, r) + std::int64_t(l) * stride)] = from[runs_[r].first + l];
    };
    write(sums_, out.value);
    if (has_result_) write(sizes_, out.magnitude);
  }
}

void Evaluator::run_by_terms(std::span<const std::int64_t> list, std::int64_t first, std::int64_t end, Results& out,
                             base::Monitor& monitor) {
  const auto element = [&](std::int64_t i) { return list.empty() ? i : list[std::size_t(i)]; };
  std::vector<double> values(std::size_t(end - first), kept(identity_of(task_.combine), task_.type)),
      magnitudes(values.size(), start_of_sizes(task_.combine, task_.type));
  for (std::int64_t term = 0; term < of_terms_.points(); term += std::int64_t(width)) {
    begin_lanes();
    add_lanes(of_terms_, term, std::min(std::int64_t(width), of_terms_.points() - term));
    for (std::int64_t i = first; i < end; ++i) {
      of_elements_.go_to(element(i));
      ask(monitor);
      fold(evaluated(i == first), values[std::size_t(i - first)], magnitudes[std::size_t(i - first)]);
    }
  }
  for (std::int64_t i = first; i < end; ++i) {
    of_elements_.go_to(element(i));
    const std::size_t to = std::size_t(list.empty() ? of_elements_[target_] : i);
    out.value[to] = values[std::size_t(i - first)];
    if (has_result_) out.magnitude[to] = magnitudes[std::size_t(i - first)];
  }
}

// The task's numbers at the present step. `all`: the lanes are new, too.
Evaluator::Numbers Evaluator::evaluated(bool all) {
  const std::size_t over = lanes_are_elements_ ? 1 : 0;
  for (std::size_t n = 0; n < stage_.value.nodes.size(); ++n)
    if (needed_[n] && (all || varies_[n][over])) evaluate(n);
  constexpr std::size_t place = 3;
  return converted(task_.node, task_.type, false, place);
}

void Evaluator::combine(const Numbers& with) {
  double *sums = sums_.data(), *sizes = sizes_.data();
  const double *v = with.value, *m = with.magnitude;
  const Range range(task_.type);
  switch (task_.combine) {
    case Combine::none:
      std::copy_n(v, lanes_, sums);
      break;
    case Combine::sum:
      for (std::size_t l = 0; l < lanes_; ++l) sums[l] += v[l];
      keep(sums, lanes_, task_.type);
      break;
    case Combine::max:
      for (std::size_t l = 0; l < lanes_; ++l) sums[l] = maximum(sums[l], v[l]);
      break;
    case Combine::min:
      for (std::size_t l = 0; l < lanes_; ++l) sums[l] = minimum(sums[l], v[l]);
      break;
    case Combine::product:
      for (std::size_t l = 0; l < lanes_; ++l) multiply(sums[l], sizes[l], v[l], m == nullptr ? nullptr : &m[l], range);
      return;
  }
  if (m == nullptr) return;
  if (task_.combine == Combine::none)
    std::copy_n(m, lanes_, sizes);
  else if (task_.combine == Combine::sum)
    for (std::size_t l = 0; l < lanes_; ++l) sizes[l] = size_of_sum(sums[l], sizes[l] + m[l], range);
  else
    for (std::size_t l = 0; l < lanes_; ++l) sizes[l] = std::max(sizes[l], m[l]);
}

// In the order of the lanes, as one by one.
void Evaluator::fold(const Numbers& lanes, double& value, double& magnitude) const {
  const Range range(task_.type);
  const bool floating = is_floating(task_.type);
  const double* const m = lanes.magnitude;
  for (std::size_t l = 0; l < lanes_; ++l) {
    const double v = lanes.value[l];
    if (task_.combine == Combine::sum) {
      value = floating ? value + v : range.keep(value + v);
      if (m != nullptr) magnitude = size_of_sum(value, magnitude + m[l], range);
    } else if (task_.combine == Combine::product) {
      multiply(value, magnitude, v, m == nullptr ? nullptr : &m[l], range);
    } else {
      value = task_.combine == Combine::max ? maximum(value, v) : minimum(value, v);
      if (m != nullptr) magnitude = std::max(magnitude, m[l]);
    }
  }
}

void Evaluator::reads(std::int64_t element, base::Monitor& monitor, const See& see) {
  lanes_are_elements_ = false;
  of_elements_.go_to(element);
  for (std::int64_t term = 0; term < of_terms_.points(); term += std::int64_t(width)) {
    begin_lanes();
    add_lanes(of_terms_, term, std::min(std::int64_t(width), of_terms_.points() - term));
    ask(monitor);
    for (std::size_t l = 0; l < loads_.size(); ++l) {
      if (!loads_[l].gathered.empty()) continue;
      for (std::size_t r = 0; r < runs_.size(); ++r) {
        const auto [low, high] = inside(loads_[l], r);
        const std::int64_t stride = of_terms_.stride(loads_[l].offset);
        for (std::int64_t i = low; i < high; ++i) see(l, at(loads_[l].offset, r) + i * stride);
      }
    }
  }
}

// Nodes

// Values of a node at the present lanes, and for each a magnitude as Data has it, to first order, when every operation
// rounds once. Sums add magnitudes, products multiply them, functions scale them by their derivative. Where rounding
// may decide on which side of a step of floor, or on which branch of select a value comes out, the magnitude makes room
// for both.
void Evaluator::evaluate(std::size_t n) {
  const ValueNode& node = stage_.value.nodes[n];
  if (node.op == Op::load) {
    load(n);
  } else if (node.op == Op::constant) {
    std::fill_n(value_of(n), lanes_, node.number);
    if (has_[n]) std::fill_n(magnitude_of(n), lanes_, size_of(node.number, DType::f64));
  } else if (node.op == Op::position) {
    place(n);
  } else if (converts_to(node.op)) {
    copy(n, converted(node.a, types_[n].result, saturates(node.op), 0));
  } else if (is_comparison(node.op)) {
    compare(n);
  } else if (node.op == Op::select) {
    choose(n);
  } else if (is_floating(types_[n].operands)) {
    floating(n);
  } else {
    integer(n);
  }
}

Evaluator::Numbers Evaluator::own(int node) const {
  const std::size_t n = std::size_t(node);
  return {&values_[n * width], has_[n] ? &magnitudes_[n * width] : nullptr};
}

void Evaluator::copy(std::size_t n, const Numbers& from) {
  std::copy_n(from.value, lanes_, value_of(n));
  if (has_[n]) std::copy_n(or_zeros(from.magnitude), lanes_, magnitude_of(n));
}

void Evaluator::place(std::size_t n) {
  const std::size_t number = positions_[std::size_t(stage_.value.nodes[n].load)];
  const std::int64_t stride = lane_walk().stride(number);
  for (std::size_t r = 0; r < runs_.size(); ++r)
    for (std::size_t l = 0; l < runs_[r].count; ++l)
      value_of(n)[runs_[r].first + l] = double(at(number, r) + std::int64_t(l) * stride);
}

void Evaluator::load(std::size_t n) {
  const Load& from = loads_[std::size_t(stage_.value.nodes[n].load)];
  const std::int64_t stride = lane_walk().stride(from.offset);
  const bool sized = has_[n] && !from.data->magnitude.empty();
  for (std::size_t r = 0; r < runs_.size(); ++r) {
    const auto [low, high] = inside(from, r);
    const auto put = [&](double* to, const Elements& elements, double outside) {
      to += runs_[r].first;
      std::fill(to, to + low, outside);
      std::fill(to + high, to + runs_[r].count, outside);
      if (from.gathered.empty() && low < high)
        elements.read(at(from.offset, r) + low * stride, stride, std::span(to + low, std::size_t(high - low)));
    };
    put(value_of(n), from.data->value, from.outside);
    if (sized) put(magnitude_of(n), from.data->magnitude, size_of(from.outside, from.type));
    if (!from.gathered.empty()) gather(n, r, low, high);
  }
  if (has_[n] && !sized && from.gathered.empty()) {
    const double* const v = value_of(n);
    if (is_floating(from.type))
      fill(magnitude_of(n), lanes_, [=](std::size_t l) { return std::abs(v[l]) == infinity ? 0 : std::abs(v[l]); });
    else
      fill(magnitude_of(n), lanes_, [=](std::size_t l) { return rounding_of(v[l]); });
  }
}

// A part of a run, at indices that are values.
void Evaluator::gather(std::size_t n, std::size_t r, std::int64_t low, std::int64_t high) {
  const ValueNode& node = stage_.value.nodes[n];
  const Load& from = loads_[std::size_t(node.load)];
  const int operands[] = {node.a, node.b, node.c};
  const std::int64_t stride = lane_walk().stride(from.offset);
  for (std::int64_t i = 0; i < std::int64_t(runs_[r].count); ++i) {
    const std::size_t lane = runs_[r].first + std::size_t(i);
    if (i < low || i >= high) {
      if (has_[n]) magnitude_of(n)[lane] = size_of(from.outside, from.type);
      continue;
    }
    std::int64_t offset = at(from.offset, r) + i * stride;
    bool open = false;  // which element it is, by rounding
    for (std::size_t g = 0; g < from.gathered.size(); ++g) {
      const auto [extent, along] = from.gathered[g];
      const Numbers index = own(operands[g]);
      offset += along * std::int64_t(std::clamp(index.value[lane], 0.0, double(extent - 1)));
      open = open || (index.magnitude != nullptr && index.magnitude[lane] > 0);
    }
    const double value = from.data->value[std::size_t(offset)];
    value_of(n)[lane] = value;
    if (has_[n])
      magnitude_of(n)[lane] = open                           ? infinity
                              : from.data->magnitude.empty() ? size_of(value, from.type)
                                                             : from.data->magnitude[std::size_t(offset)];
  }
}

// A node's numbers in another type.
Evaluator::Numbers Evaluator::converted(int node, DType to, bool saturate, std::size_t place) {
  const Numbers from = own(node);
  const DType type = types_[std::size_t(node)].result;
  const std::int64_t depth = depths_[std::size_t(node)];
  if (type == to) return from;
  double* const value = &places_[2 * place * width];
  double* const magnitude = has_magnitude_as(node, to) ? value + width : nullptr;
  const double *const v = from.value, *const m = or_zeros(from.magnitude);
  const double unit = is_floating(type) ? error_of(1, type, depth) : 1, room = room_for(1, to, 1);
  if (is_storage_alone(to)) {
    // Rounded once more, to a coarser type: by its own size, not by that of the terms it is the sum of.
    const double most = largest(to);
    const auto stored = [=](std::size_t l) { return std::abs(v[l]) > most ? rounded_to(v[l], to) : v[l]; };
    fill(value, lanes_, stored);
    if (magnitude != nullptr)
      fill(magnitude, lanes_, [=](std::size_t l) {
        const double size = std::abs(stored(l));
        return size == infinity ? 0 : std::min(size, most) + room * (unit * m[l]);
      });
    return {value, magnitude};
  }
  if (is_floating(to)) {
    if (is_floating(type) || magnitude == nullptr) return from;
    fill(magnitude, lanes_, [=](std::size_t l) { return std::abs(v[l]) + (m[l] == 0 ? 0 : room * m[l]); });
    return {v, magnitude};
  }
  Conversion(type, to, saturate).fill(value, lanes_, [=](std::size_t l) { return v[l]; });
  if (magnitude == nullptr) return {value, nullptr};
  const Conversion ends(type, to, true);
  std::array<double, width> low, high;
  ends.fill(low.data(), lanes_, [=](std::size_t l) { return v[l] - unit * m[l]; });
  ends.fill(high.data(), lanes_, [=](std::size_t l) { return v[l] + unit * m[l]; });
  const Range range(to);
  const bool wraps = !saturate && !is_floating(type);
  fill(magnitude, lanes_, [&](std::size_t l) {
    const double size = unit * m[l];
    if (size == 0 || wraps) return kept_size(v[l], size, range);
    return std::max(std::abs(value[l] - low[l]), std::abs(high[l] - value[l]));
  });
  return {value, magnitude};
}

void Evaluator::compare(std::size_t n) {
  const ValueNode& node = stage_.value.nodes[n];
  const DType type = types_[n].operands;
  const Numbers a = converted(node.a, type, false, 0), b = converted(node.b, type, false, 1);
  // What the machine compares: a number that no operation has rounded yet is rounded to the type that holds it.
  const bool a_is_rounded = !is_floating(type) || depths_[std::size_t(node.a)] != 0,
             b_is_rounded = !is_floating(type) || depths_[std::size_t(node.b)] != 0;
  fill(value_of(n), lanes_, [=](std::size_t l) {
    return double(holds(node.op, a_is_rounded ? a.value[l] : rounded_to(a.value[l], type),
                        b_is_rounded ? b.value[l] : rounded_to(b.value[l], type)));
  });
  if (!has_[n]) return;
  // How far it is from being decided otherwise, as its select reads it.
  const double *const ma = or_zeros(a.magnitude), *const mb = or_zeros(b.magnitude);
  const double unit = is_floating(type) ? error_of(1, type, depths_[n]) : 1;
  const bool steps = !is_floating(type);
  fill(magnitude_of(n), lanes_, [=](std::size_t l) {
    const double errors = ma[l] + mb[l], apart = std::abs(a.value[l] - b.value[l]);
    return (steps ? errors > 0 && apart <= errors : apart < unit * errors) ? 1.0 : 0.0;
  });
}

void Evaluator::choose(std::size_t n) {
  const ValueNode& node = stage_.value.nodes[n];
  const DType type = types_[n].operands;
  const Numbers condition = own(node.a), b = converted(node.b, type, false, 1), c = converted(node.c, type, false, 2);
  fill(value_of(n), lanes_, [=](std::size_t l) { return condition.value[l] != 0 ? b.value[l] : c.value[l]; });
  if (!has_[n]) return;
  const double *const mb = or_zeros(b.magnitude), *const mc = or_zeros(c.magnitude),
                      *const open = or_zeros(condition.magnitude);
  const double room = is_floating(type) ? room_for(1, type, depths_[n]) : 1;
  fill(magnitude_of(n), lanes_, [=](std::size_t l) {
    const double apart = std::abs(b.value[l] - c.value[l]);
    if (open[l] != 0 && b.value[l] != c.value[l]) return std::max(mb[l], mc[l]) + room * apart;
    return condition.value[l] != 0 ? mb[l] : mc[l];
  });
}

void Evaluator::floating(std::size_t n) {
  const ValueNode& node = stage_.value.nodes[n];
  const DType type = types_[n].operands;
  const Numbers of_a = converted(node.a, type, false, 0),
                of_b = node.b < 0 ? Numbers{zeros, nullptr} : converted(node.b, type, false, 1);
  const double *const a = of_a.value, *const b = of_b.value, *const ma = or_zeros(of_a.magnitude),
                      *const mb = or_zeros(of_b.magnitude);
  double *const v = value_of(n), *const m = magnitude_of(n);
  const auto set = [&](auto value, auto magnitude) {
    fill(v, lanes_, value);
    if (m != nullptr) fill(m, lanes_, magnitude);
  };
  const auto sum = [=](std::size_t l) { return ma[l] + mb[l]; };
  const auto larger = [=](std::size_t l) { return std::max(ma[l], mb[l]); };
  const auto same = [=](std::size_t l) { return ma[l]; };
  // Where rounding decides between two whole numbers.
  const double error = error_of(1, type, depths_[n]), room = room_for(1, type, depths_[n]);
  switch (node.op) {
    case Op::add:
      return set([=](std::size_t l) { return a[l] + b[l]; }, sum);
    case Op::sub:
      return set([=](std::size_t l) { return a[l] - b[l]; }, sum);
    case Op::mul:
      return set([=](std::size_t l) { return a[l] * b[l]; }, [=](std::size_t l) { return ma[l] * mb[l]; });
    case Op::div:
      return set([=](std::size_t l) { return a[l] / b[l]; },
                 [=](std::size_t l) { return ma[l] * mb[l] / (b[l] * b[l]); });
    case Op::max:
      return set([=](std::size_t l) { return maximum(a[l], b[l]); }, larger);
    case Op::min:
      return set([=](std::size_t l) { return minimum(a[l], b[l]); }, larger);
    case Op::neg:
      return set([=](std::size_t l) { return -a[l]; }, same);
    case Op::abs:
      return set([=](std::size_t l) { return std::abs(a[l]); }, same);
    case Op::floor:
      return set([=](std::size_t l) { return quick::floor(a[l]); },
                 [=](std::size_t l) {
                   const bool open = std::abs(a[l] - quick::round(a[l])) < error * ma[l];
                   return std::abs(v[l]) + (open ? room : 0);
                 });
    case Op::round:
      return set([=](std::size_t l) { return quick::round(a[l]); },
                 [=](std::size_t l) {
                   const bool open = std::abs(a[l] - quick::floor(a[l]) - 0.5) < error * ma[l];
                   return std::abs(v[l]) + (open ? room : 0);
                 });
    case Op::sqrt:
      return set([=](std::size_t l) { return std::sqrt(a[l]); },
                 [=](std::size_t l) { return v[l] > 0 ? ma[l] / v[l] : std::sqrt(ma[l]); });
    case Op::rsqrt:
      return set([=](std::size_t l) { return 1 / std::sqrt(a[l]); },
                 [=](std::size_t l) { return v[l] * (1 + scaled(ma[l], 1 / a[l])); });
    default:
      return type == DType::f64 ? special<false>(node.op, of_a, of_b, v, m) : special<true>(node.op, of_a, of_b, v, m);
  }
}

// Functions; `fast`: less exact than double, far more than any other type.
template <bool fast>
void Evaluator::special(Op op, const Numbers& of_a, const Numbers& of_b, double* v, double* m) const {
  const double *const a = of_a.value, *const b = of_b.value, *const ma = or_zeros(of_a.magnitude),
                      *const mb = or_zeros(of_b.magnitude);
  const auto set = [&](auto value, auto magnitude) {
    fill(v, lanes_, value);
    if (m != nullptr) fill(m, lanes_, magnitude);
  };
  const auto exp = [](double x) { return fast ? quick::exp(x) : std::exp(x); };
  switch (op) {
    case Op::exp:
      return set([=](std::size_t l) { return exp(a[l]); }, [=](std::size_t l) { return v[l] * (1 + ma[l]); });
    case Op::log:
      return set([=](std::size_t l) { return std::log(a[l]); },
                 [=](std::size_t l) { return std::abs(v[l]) + scaled(ma[l], 1 / std::abs(a[l])); });
    case Op::pow:
      return set([=](std::size_t l) { return std::pow(a[l], b[l]); },
                 [=](std::size_t l) {
                   const double by_a = a[l] != 0 ? v[l] / a[l] : std::pow(a[l], b[l] - 1);
                   return std::abs(v[l]) + scaled(ma[l], std::abs(b[l] * by_a)) +
                          scaled(mb[l], v[l] == 0 ? 0 : std::abs(v[l] * std::log(std::abs(a[l]))));
                 });
    case Op::tanh:
      return set([=](std::size_t l) { return fast ? quick::tanh(a[l]) : std::tanh(a[l]); },
                 [=](std::size_t l) { return std::abs(v[l]) + ma[l] * (1 - v[l] * v[l]); });
    case Op::sigmoid:
      return set([=](std::size_t l) { return 1 / (1 + exp(-a[l])); },
                 [=](std::size_t l) { return v[l] + ma[l] * v[l] * (1 - v[l]); });
    case Op::sin:
      return set([=](std::size_t l) { return std::sin(a[l]); },
                 [=](std::size_t l) { return std::abs(v[l]) + scaled(ma[l], std::abs(std::cos(a[l]))); });
    case Op::cos:
      return set([=](std::size_t l) { return std::cos(a[l]); },
                 [=](std::size_t l) { return std::abs(v[l]) + scaled(ma[l], std::abs(std::sin(a[l]))); });
    case Op::erf:
      return set([=](std::size_t l) { return fast ? quick::erf(a[l]) : std::erf(a[l]); },
                 [=](std::size_t l) {
                   return std::abs(v[l]) + ma[l] * 2 * std::numbers::inv_sqrtpi * quick::exp(-a[l] * a[l]);
                 });
    default:
      assert(false);
  }
}

void Evaluator::integer(std::size_t n) {
  const ValueNode& node = stage_.value.nodes[n];
  const DType type = types_[n].operands;
  const Numbers of_a = converted(node.a, type, false, 0),
                of_b = node.b < 0 ? Numbers{zeros, nullptr} : converted(node.b, type, false, 1);
  const double *const a = of_a.value, *const b = of_b.value, *const ma = or_zeros(of_a.magnitude),
                      *const mb = or_zeros(of_b.magnitude);
  double *const v = value_of(n), *const m = magnitude_of(n);
  const auto set = [&](auto value, auto magnitude) {
    fill(v, lanes_, value);
    if (node.op == Op::mul) {
      // Exact, where a product in double rounds before it wraps around.
      for (std::size_t l = 0; l < lanes_; ++l)
        if (!(std::abs(v[l]) <= exact_integers)) v[l] = exact_product(a[l], b[l], type);
      keep(v, lanes_, type);
    }
    const Range range(type);
    if (m != nullptr) {
      fill(m, lanes_, [&](std::size_t l) { return kept_size(v[l], magnitude(l) + rounding_of(v[l]), range); });
    }
    keep(v, lanes_, type);
  };
  const auto sum = [=](std::size_t l) { return ma[l] + mb[l]; };
  const auto larger = [=](std::size_t l) { return std::max(ma[l], mb[l]); };
  const auto same = [=](std::size_t l) { return ma[l]; };
  const auto one_off = [=](std::size_t l) { return mb[l] > 0 ? infinity : ma[l] > 0 ? ma[l] + 1 : 0; };
  const auto unknown = [=](std::size_t l) { return ma[l] + mb[l] > 0 ? infinity : 0; };
  const auto power = [=](std::size_t l) { return std::exp2(shift_of(b[l], type)); };
  switch (node.op) {
    case Op::add:
      return set([=](std::size_t l) { return a[l] + b[l]; }, sum);
    case Op::sub:
      return set([=](std::size_t l) { return a[l] - b[l]; }, sum);
    case Op::mul:
      return set([=](std::size_t l) { return a[l] * b[l]; },
                 [=](std::size_t l) { return size_of_product(a[l], ma[l], b[l], mb[l], false); });
    case Op::div:
      return set([=](std::size_t l) { return integer_quotient(a[l], b[l]); }, one_off);
    case Op::modulo:
      return set([=](std::size_t l) { return integer_remainder(a[l], b[l]); }, unknown);
    case Op::shift_left:
      return set([=](std::size_t l) { return a[l] * power(l); },
                 [=](std::size_t l) { return mb[l] > 0 ? infinity : ma[l] * power(l); });
    case Op::shift_right:
      return set([=](std::size_t l) { return std::floor(a[l] / power(l)); }, one_off);
    case Op::bit_and:
      return set([=](std::size_t l) { return double(integer_of(a[l]) & integer_of(b[l])); }, unknown);
    case Op::bit_or:
      return set([=](std::size_t l) { return double(integer_of(a[l]) | integer_of(b[l])); }, unknown);
    case Op::bit_xor:
      return set([=](std::size_t l) { return double(integer_of(a[l]) ^ integer_of(b[l])); }, unknown);
    case Op::max:
      return set([=](std::size_t l) { return maximum(a[l], b[l]); }, larger);
    case Op::min:
      return set([=](std::size_t l) { return minimum(a[l], b[l]); }, larger);
    case Op::neg:
      return set([=](std::size_t l) { return -a[l]; }, same);
    case Op::abs:
      return set([=](std::size_t l) { return std::abs(a[l]); }, same);
    default:
      assert(false);
  }
}

}  // namespace graft::codegen
