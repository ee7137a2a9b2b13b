#include "codegen/expression/reference.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>
#include <mutex>
#include <numbers>
#include <optional>
#include <utility>

#include "base/parallel.h"
#include "base/random.h"
#include "codegen/expression/inputs.h"

namespace graft::codegen {

namespace {

// The monitor of a whole evaluation, for its threads: reports the finished part of the work, if that takes seconds.
class Meter final : public base::Monitor {
 public:
  explicit Meter(base::Monitor& to) : to_(to) {}
  bool stop_requested() override {
    const std::lock_guard lock(mutex_);
    return to_.stop_requested();
  }
  void expect(double work) { total_ = work, done_ = 0, percent_ = 0; }
  void spent(double work) {
    constexpr double told = 0x1p30;
    const std::lock_guard lock(mutex_);
    done_ += work;
    const std::int64_t percent = std::int64_t(100 * std::min(1.0, done_ / total_));
    if (total_ < told || percent == percent_) return;
    percent_ = percent;
    to_.progress("expected results, in %", percent, 100);
  }

 private:
  base::Monitor& to_;
  std::mutex mutex_;
  double done_ = 0, total_ = 0;
  std::int64_t percent_ = 0;
};

// The values and error bounds of a tensor. Floating point: |error| <= depth * eps(dtype) * magnitude. Integers: the
// magnitude is the largest difference itself, not 0 only where rounding decides which integer comes out.
struct Data {
  Elements value;
  Elements magnitude;      // empty: |value|, of integers 0; of a sample where the value is
  std::int64_t depth = 0;  // roundings on the longest chain that leads to an element
};

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

// The error that a magnitude allows.
double error_of(double magnitude, DType type, std::int64_t depth) {
  return allowed_roundings * epsilon_of(type) * double(depth) * magnitude;
}
// The magnitude with which a result of that depth may be off by `size`. Later depths are no smaller.
double room_for(double size, DType type, std::int64_t depth) {
  return size / (allowed_roundings * epsilon_of(type) * double(std::max<std::int64_t>(1, depth)));
}

bool is_storage_alone(DType type) {
  return computed_in(type) != type;
}

// The depth of a number of type `from` as one of type `to`. Of a type of storage alone it is 1: magnitudes say how far
// a number may be off (see in_storage).
std::int64_t converted_depth(std::int64_t depth, DType from, DType to) {
  if (from == to || !is_floating(to)) return depth;
  if (is_storage_alone(to)) return 1;
  const double scale = is_floating(from) ? epsilon_of(from) / epsilon_of(to) : 0;
  return std::int64_t(std::ceil(double(depth) * scale)) + 1;
}

// For each node of a stage's value: roundings on the longest chain that leads to it, in units of eps of the node's
// type.
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

// Roundings on the longest chain that leads to an element of a stage's tensor.
std::int64_t depth_of(const Computation& computation, const Stage& stage, const std::vector<Data>& data) {
  const std::int64_t of_value =
      converted_depth(depths_of(computation, stage, data).back(), types_of(computation, stage).back().result,
                      computation.tensors[std::size_t(stage.tensor)].dtype);
  std::int64_t terms = 1;
  if (stage.combine == Combine::sum)
    for (std::size_t a = std::size_t(computation.spatial_axes(stage)); a < stage.axes.size(); ++a)
      terms *= stage.axes[a].extent;
  return of_value + terms - 1;
}

std::vector<std::int64_t> strides_of(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

// Steps through all points of a box, the last axis fastest, and keeps numbers that are affine in the point.
class Walk {
 public:
  explicit Walk(std::vector<std::int64_t> extents) : extents_(std::move(extents)), at_(extents_.size()) {
    for (std::int64_t extent : extents_) points_ *= extent;
  }
  // A number that starts at `start` and grows by strides[a] with axis a; returns its position.
  std::size_t track(std::int64_t start, std::vector<std::int64_t> strides) {
    assert(strides.size() == extents_.size());
    starts_.push_back(start);
    numbers_.push_back(start);
    strides_.push_back(std::move(strides));
    return numbers_.size() - 1;
  }
  std::int64_t operator[](std::size_t number) const { return numbers_[number]; }
  std::int64_t points() const { return points_; }
  // To the point of this number in the order of the steps.
  void go_to(std::int64_t point) {
    if (point == present_) return;
    present_ = point;
    numbers_ = starts_;
    for (std::size_t a = extents_.size(); a-- > 0;) {
      at_[a] = point % extents_[a];
      point /= extents_[a];
      for (std::size_t n = 0; n < numbers_.size(); ++n) numbers_[n] += strides_[n][a] * at_[a];
    }
  }
  // To the next point; from the last one back to the first.
  void advance() {
    if (++present_ == points_) present_ = 0;
    for (std::size_t a = extents_.size(); a-- > 0;) {
      const bool wraps = ++at_[a] == extents_[a];
      const std::int64_t step = wraps ? 1 - extents_[a] : 1;
      for (std::size_t n = 0; n < numbers_.size(); ++n) numbers_[n] += strides_[n][a] * step;
      if (!wraps) return;
      at_[a] = 0;
    }
  }

 private:
  std::vector<std::int64_t> extents_, at_, starts_, numbers_;
  std::int64_t points_ = 1, present_ = 0;
  std::vector<std::vector<std::int64_t>> strides_;
};

// The flat offset of an access: its constant, and its stride along each of `axes` axes.
std::pair<std::int64_t, std::vector<std::int64_t>> flat(const Access& access, const Tensor& tensor, std::size_t axes) {
  const std::vector<std::int64_t> strides = strides_of(tensor.shape);
  std::int64_t start = 0;
  std::vector<std::int64_t> along(axes, 0);
  for (std::size_t d = 0; d < strides.size(); ++d) {
    start += strides[d] * access.index[d].constant;
    for (const Term& term : access.index[d].terms) along[std::size_t(term.variable)] += strides[d] * term.coefficient;
  }
  return {start, along};
}

// Any stage, one node at a time.
class Interpreter {
 public:
  Interpreter(const Computation& computation, const Stage& stage, const std::vector<Data>& data)
      : stage_(stage),
        type_(computation.tensors[std::size_t(stage.tensor)].dtype),
        types_(types_of(computation, stage)),
        depths_(depths_of(computation, stage, data)),
        walk_(extents_of(stage)) {
    const std::size_t axes = stage.axes.size();
    for (const Access& access : stage.value.loads) {
      const Tensor& tensor = computation.tensors[std::size_t(access.tensor)];
      auto [start, along] = flat(access, tensor, axes);
      Load load{.data = &data[std::size_t(access.tensor)],
                .type = tensor.dtype,
                .offset = walk_.track(start, std::move(along)),
                .dimensions = {},
                .gathered = {},
                .outside = access.outside};
      const std::vector<std::int64_t> strides = strides_of(tensor.shape);
      for (const int d : access.gathered)
        load.gathered.emplace_back(tensor.shape[std::size_t(d)], strides[std::size_t(d)]);
      for (std::size_t d = 0; access.padded && d < access.index.size(); ++d) {
        std::vector<std::int64_t> coefficients(axes, 0);
        for (const Term& term : access.index[d].terms) coefficients[std::size_t(term.variable)] = term.coefficient;
        load.dimensions.push_back({walk_.track(access.index[d].constant, std::move(coefficients)), tensor.shape[d]});
      }
      loads_.push_back(std::move(load));
    }
    for (const Affine& form : stage.value.positions) {
      std::vector<std::int64_t> coefficients(axes, 0);
      for (const Term& term : form.terms) coefficients[std::size_t(term.variable)] = term.coefficient;
      positions_.push_back(walk_.track(form.constant, std::move(coefficients)));
    }
    const Access target{stage.tensor, element_of(computation, stage), false};
    auto [start, along] = flat(target, computation.tensors[std::size_t(stage.tensor)], axes);
    target_ = walk_.track(start, std::move(along));
    numbers_.resize(stage.value.nodes.size());
  }

  // The elements of these numbers, `count` from `first` on in the order of the stage's spatial axes.
  void run(std::int64_t first, std::int64_t count, std::int64_t elements, Data& out, Meter& meter) {
    const std::int64_t reduced = walk_.points() / elements;
    std::int64_t steps = 0;
    for (std::int64_t e = first; e < first + count; ++e) {
      walk_.go_to(e * reduced);
      const std::size_t at = std::size_t(walk_[target_]);
      double value = kept(identity_of(stage_.combine), type_), magnitude = 0;
      for (std::int64_t r = 0; r < reduced; ++r, walk_.advance()) {
        if (++steps % steps_between_questions == 0) base::check_stop(meter);
        evaluate();
        const auto [v, m] = converted(int(numbers_.size()) - 1, type_, false);
        switch (stage_.combine) {
          case Combine::none:
            value = v, magnitude = m;
            break;
          case Combine::sum:
            value = kept(value + v, type_), magnitude += m;
            break;
          case Combine::max:
            value = std::max(value, v), magnitude = std::max(magnitude, m);
            break;
          case Combine::min:
            value = std::min(value, v), magnitude = std::max(magnitude, m);
            break;
        }
      }
      out.value[at] = value;
      out.magnitude[at] = magnitude;
    }
  }

  // Calls see(load, offset) for everything that the element of this number reads inside of its tensor, other than at
  // indices that are values.
  template <class See>
  void reads(std::int64_t element, std::int64_t elements, Meter& meter, const See& see) {
    const std::int64_t reduced = walk_.points() / elements;
    walk_.go_to(element * reduced);
    for (std::int64_t r = 0; r < reduced; ++r, walk_.advance()) {
      if (r % steps_between_questions == 0) base::check_stop(meter);
      for (std::size_t l = 0; l < loads_.size(); ++l)
        if (loads_[l].gathered.empty() && is_inside(loads_[l])) see(l, walk_[loads_[l].offset]);
    }
  }

 private:
  static constexpr std::int64_t steps_between_questions = 1 << 14;

  struct Load {
    const Data* data;
    DType type;
    std::size_t offset;                                            // numbers of the walk
    std::vector<std::pair<std::size_t, std::int64_t>> dimensions;  // padded: index and extent of each dimension
    std::vector<std::pair<std::int64_t, std::int64_t>> gathered;   // extent and stride of each dimension gathered along
    double outside;
  };
  struct Number {
    double value = 0, magnitude = 0;
  };

  static std::vector<std::int64_t> extents_of(const Stage& stage) {
    std::vector<std::int64_t> extents;
    for (const Axis& axis : stage.axes) extents.push_back(axis.extent);
    return extents;
  }

  // Values of all nodes at the present point, and for each a magnitude as Data has it, to first order, when every
  // operation rounds once. Sums add magnitudes, products multiply them, functions scale them by their derivative. Where
  // rounding may decide on which side of a step of floor, or on which branch of select a value comes out, the magnitude
  // makes room for both.
  void evaluate() {
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      const ValueNode& node = stage_.value.nodes[i];
      const DType type = types_[i].operands;
      const auto operand = [&](int n) { return n < 0 ? Number() : converted(n, type, false); };
      Number& result = numbers_[i];
      if (node.op == Op::load) {
        result = load(node, loads_[std::size_t(node.load)]);
      } else if (node.op == Op::constant) {
        result = {node.number, is_floating(types_[i].result) ? std::abs(node.number) : 0};
      } else if (node.op == Op::position) {
        result = {double(walk_[positions_[std::size_t(node.load)]]), 0};
      } else if (converts_to(node.op)) {
        result = converted(node.a, types_[i].result, saturates(node.op));
      } else if (is_comparison(node.op)) {
        result = compared(node, type, depths_[i]);
      } else if (node.op == Op::select) {
        const Number condition = numbers_[std::size_t(node.a)], b = operand(node.b), c = operand(node.c);
        result = condition.value != 0 ? b : c;
        if (condition.magnitude != 0 && b.value != c.value)
          result.magnitude = std::max(b.magnitude, c.magnitude) +
                             (is_floating(type) ? room_for(std::abs(b.value - c.value), type, depths_[i])
                                                : std::abs(b.value - c.value));
      } else if (is_floating(type)) {
        result = floating(node.op, operand(node.a), operand(node.b), type, depths_[i]);
      } else {
        result = integer(node.op, operand(node.a), operand(node.b), type);
      }
    }
  }

  // A node's number in another type.
  Number converted(int n, DType to, bool saturate) const {
    const Number from = numbers_[std::size_t(n)];
    const DType type = types_[std::size_t(n)].result;
    if (type == to) return from;
    const std::int64_t depth = depths_[std::size_t(n)];
    if (is_floating(to)) {
      if (is_storage_alone(to)) return in_storage(from, type, depth, to);
      if (is_floating(type)) return from;
      return {from.value, std::abs(from.value) + (from.magnitude == 0 ? 0 : room_for(from.magnitude, to, 1))};
    }
    const double error = is_floating(type) ? error_of(from.magnitude, type, depth) : from.magnitude;
    Number result{convert(from.value, type, to, saturate), 0};
    if (error > 0) {
      const double low = convert(from.value - error, type, to, true),
                   high = convert(from.value + error, type, to, true);
      result.magnitude = std::max(std::abs(result.value - low), std::abs(high - result.value));
    }
    return result;
  }

  // A number that is rounded once more, to a coarser type: by its own size, not by that of the terms it is the sum of.
  static Number in_storage(const Number& from, DType type, std::int64_t depth, DType to) {
    const double before = is_floating(type) ? error_of(from.magnitude, type, depth) : from.magnitude;
    const double stored = rounded_to(from.value, to);
    if (std::isinf(stored)) return {stored, 0};
    if (std::abs(from.value) > largest(to)) return {stored, largest(to) + room_for(before, to, 1)};
    return {from.value, std::abs(from.value) + room_for(before, to, 1)};
  }

  Number compared(const ValueNode& node, DType type, std::int64_t depth) const {
    const Number a = converted(node.a, type, false), b = converted(node.b, type, false);
    // How far it is from being decided otherwise, as its select reads it.
    const double errors = a.magnitude + b.magnitude;
    const bool open = is_floating(type) ? std::abs(a.value - b.value) < error_of(errors, type, depth)
                                        : errors > 0 && std::abs(a.value - b.value) <= errors;
    return {double(holds(node.op, as_stored(a.value, node.a, type), as_stored(b.value, node.b, type))),
            open ? 1.0 : 0.0};
  }

  static Number floating(Op op, const Number& of_a, const Number& of_b, DType type, std::int64_t depth) {
    const double a = of_a.value, b = of_b.value, ma = of_a.magnitude, mb = of_b.magnitude;
    double v = a, m = ma;
    switch (op) {
      case Op::add:
        v = a + b, m = ma + mb;
        break;
      case Op::sub:
        v = a - b, m = ma + mb;
        break;
      case Op::mul:
        v = a * b, m = ma * mb;
        break;
      case Op::div:
        v = a / b, m = ma * mb / (b * b);
        break;
      case Op::max:
        v = std::max(a, b), m = std::max(ma, mb);
        break;
      case Op::min:
        v = std::min(a, b), m = std::max(ma, mb);
        break;
      case Op::neg:
        v = -a;
        break;
      case Op::exp:
        v = std::exp(a), m = v * (1 + ma);
        break;
      case Op::sqrt:
        v = std::sqrt(a), m = v > 0 ? ma / v : std::sqrt(ma);
        break;
      case Op::rsqrt:
        v = 1 / std::sqrt(a), m = v * (1 + scaled(ma, 1 / a));
        break;
      case Op::log:
        v = std::log(a), m = std::abs(v) + scaled(ma, 1 / std::abs(a));
        break;
      case Op::pow:
        v = std::pow(a, b);
        m = std::abs(v) + scaled(ma, std::abs(b * std::pow(a, b - 1))) +
            scaled(mb, v == 0 ? 0 : std::abs(v * std::log(std::abs(a))));
        break;
      case Op::tanh:
        v = std::tanh(a), m = std::abs(v) + ma * (1 - v * v);
        break;
      case Op::sigmoid:
        v = 1 / (1 + std::exp(-a)), m = v + ma * v * (1 - v);
        break;
      case Op::erf:
        v = std::erf(a), m = std::abs(v) + ma * 2 * std::numbers::inv_sqrtpi * std::exp(-a * a);
        break;
      case Op::abs:
        v = std::abs(a);
        break;
      case Op::floor:
        v = std::floor(a), m = std::abs(v);
        if (std::abs(a - std::round(a)) < error_of(ma, type, depth)) m += room_for(1, type, depth);
        break;
      case Op::round:
        v = std::nearbyint(a), m = std::abs(v);
        if (std::abs(a - std::floor(a) - 0.5) < error_of(ma, type, depth)) m += room_for(1, type, depth);
        break;
      default:
        assert(false);
    }
    return {v, m};
  }

  static Number integer(Op op, const Number& of_a, const Number& of_b, DType type) {
    const double a = of_a.value, b = of_b.value, ma = of_a.magnitude, mb = of_b.magnitude;
    constexpr double anything = std::numeric_limits<double>::infinity();
    double v = a, m = ma;
    switch (op) {
      case Op::add:
        v = a + b, m = ma + mb;
        break;
      case Op::sub:
        v = a - b, m = ma + mb;
        break;
      case Op::mul:
        // Exact, where a product in double would round before it wraps around.
        v = with_element_of(type, [&](auto zero) {
          using T = decltype(zero);
          if constexpr (std::is_integral_v<T>)
            return double(T(std::uint64_t(std::int64_t(a)) * std::uint64_t(std::int64_t(b))));
          else
            return a * b;
        });
        m = scaled(ma, std::abs(b)) + scaled(mb, std::abs(a)) + ma * mb;
        break;
      case Op::div:
        v = integer_quotient(a, b), m = mb > 0 ? anything : ma > 0 ? ma + 1 : 0;
        break;
      case Op::modulo:
        v = integer_remainder(a, b), m = ma + mb > 0 ? anything : 0;
        break;
      case Op::shift_left:
        v = a * std::exp2(shift_of(b, type)), m = mb > 0 ? anything : ma * std::exp2(shift_of(b, type));
        break;
      case Op::shift_right:
        v = std::floor(a / std::exp2(shift_of(b, type))), m = mb > 0 ? anything : ma > 0 ? ma + 1 : 0;
        break;
      case Op::max:
        v = std::max(a, b), m = std::max(ma, mb);
        break;
      case Op::min:
        v = std::min(a, b), m = std::max(ma, mb);
        break;
      case Op::neg:
        v = -a;
        break;
      case Op::abs:
        v = std::abs(a);
        break;
      default:
        assert(false);
    }
    // What may wrap around to the other end may be anything.
    if (m > 0 && (v - m < lowest(type) || v + m > highest(type))) m = anything;
    return {kept(v, type), m};
  }

  // An exact operand adds nothing, whatever the derivative.
  static double scaled(double magnitude, double derivative) { return magnitude == 0 ? 0 : magnitude * derivative; }
  // What the machine compares: a number that no operation has rounded yet is rounded to the type that holds it.
  double as_stored(double value, int node, DType type) const {
    return is_floating(type) && depths_[std::size_t(node)] == 0 ? rounded_to(value, type) : value;
  }

  Number load(const ValueNode& node, const Load& from) const {
    if (!is_inside(from)) return {from.outside, size_of(from.outside, from.type)};
    std::int64_t offset = walk_[from.offset];
    bool open = false;  // which element it is, by rounding
    const int operands[] = {node.a, node.b, node.c};
    for (std::size_t g = 0; g < from.gathered.size(); ++g) {
      const auto [extent, stride] = from.gathered[g];
      const Number index = numbers_[std::size_t(operands[g])];
      offset += stride * std::int64_t(std::clamp(index.value, 0.0, double(extent - 1)));
      open = open || index.magnitude > 0;
    }
    const double value = from.data->value[std::size_t(offset)];
    if (open) return {value, std::numeric_limits<double>::infinity()};
    return {value,
            from.data->magnitude.empty() ? size_of(value, from.type) : from.data->magnitude[std::size_t(offset)]};
  }

  bool is_inside(const Load& from) const {
    return std::all_of(from.dimensions.begin(), from.dimensions.end(), [&](const auto& dimension) {
      return walk_[dimension.first] >= 0 && walk_[dimension.first] < dimension.second;
    });
  }

  // Infinities come from padding, and are exact.
  static double size_of(double value, DType type) {
    return std::isinf(value) || !is_floating(type) ? 0 : std::abs(value);
  }

  const Stage& stage_;
  const DType type_;
  const std::vector<NodeType> types_;       // by node
  const std::vector<std::int64_t> depths_;  // by node
  Walk walk_;
  std::size_t target_ = 0;  // number of the walk: offset of the element
  std::vector<Load> loads_;
  std::vector<std::size_t> positions_;  // numbers of the walk
  std::vector<Number> numbers_;         // by node
};

// Sums of products of two loads as a blocked matrix product. One spatial axis that only one operand (B) has is the
// vector axis; the spatial axes that only the other operand (A) has make points; what is left is walked outside. A
// panel of B is copied, so that its lanes are adjacent for any stride in the tensor.
class ProductSum {
 public:
  // Nothing when the stage is of another form, or no axis belongs to one operand alone.
  static std::optional<ProductSum> match(const Computation& computation, const Stage& stage) {
    const Value& value = stage.value;
    if (stage.combine != Combine::sum || value.nodes.size() != 3 || value.loads.size() != 2 || !is_product(value) ||
        !stage.index.empty())
      return std::nullopt;
    for (const Access& access : value.loads)
      if (access.padded || !access.gathered.empty()) return std::nullopt;
    if (types_of(computation, stage).back().result != computation.tensors[std::size_t(stage.tensor)].dtype)
      return std::nullopt;
    ProductSum sum;
    const Tensor& tensor = computation.tensors[std::size_t(stage.tensor)];
    const std::size_t axes = stage.axes.size(), spatial = tensor.shape.size();
    Operand a = operand(computation, value.loads[0], axes), b = operand(computation, value.loads[1], axes);
    std::size_t lane = spatial;
    bool lane_in_a = false;
    for (std::size_t s = 0; s < spatial; ++s) {
      if (stage.axes[s].extent == 1 || (a.along[s] == 0) == (b.along[s] == 0)) continue;
      if (lane != spatial && stage.axes[s].extent <= stage.axes[lane].extent) continue;
      lane = s;
      lane_in_a = a.along[s] != 0;
    }
    if (lane == spatial) return std::nullopt;
    if (lane_in_a) std::swap(a, b);

    const std::vector<std::int64_t> out = strides_of(tensor.shape);
    std::vector<std::size_t> points, outer, reduced;
    for (std::size_t s = 0; s < axes; ++s) {
      if (s == lane) continue;
      (s >= spatial ? reduced : b.along[s] == 0 ? points : outer).push_back(s);
    }
    const auto walk = [&](const std::vector<std::size_t>& over, std::int64_t a0, std::int64_t b0) {
      std::vector<std::int64_t> extents, of_a, of_b, of_out;
      for (std::size_t s : over) {
        extents.push_back(stage.axes[s].extent);
        of_a.push_back(a.along[s]);
        of_b.push_back(b.along[s]);
        of_out.push_back(s < spatial ? out[s] : 0);
      }
      Walk made(std::move(extents));
      made.track(a0, std::move(of_a));
      made.track(b0, std::move(of_b));
      made.track(0, std::move(of_out));
      return made;
    };
    sum.points_ = walk(points, 0, 0);
    sum.outer_ = walk(outer, a.start, b.start);
    sum.reduced_ = walk(reduced, 0, 0);
    sum.lanes_ = stage.axes[lane].extent;
    sum.lane_of_b_ = b.along[lane];
    sum.lane_of_out_ = out[lane];
    sum.a_ = a.tensor;
    sum.b_ = b.tensor;
    sum.type_ = tensor.dtype;
    return sum;
  }

  void run(std::int64_t elements, const std::vector<Data>& data, Data& out, int threads, Meter& meter) const {
    const Data& a = data[std::size_t(a_)];
    const Data& b = data[std::size_t(b_)];
    std::vector<double> value(std::size_t(elements), 0), magnitude;
    if (!is_floating(type_)) {
      multiply<false>(a.value, b.value, value, magnitude, threads, meter);
      for (double& number : value) number = kept(number, type_);
      out.value = std::move(value);
      return;
    }
    magnitude.assign(std::size_t(elements), 0);
    if (a.magnitude.empty() && b.magnitude.empty()) {
      multiply<true>(a.value, b.value, value, magnitude, threads, meter);
    } else {
      std::vector<double> none;
      multiply<false>(a.value, b.value, value, none, threads, meter);
      multiply<false>(magnitude_of(a), magnitude_of(b), magnitude, none, threads, meter);
    }
    out.value = std::move(value);
    out.magnitude = std::move(magnitude);
  }

 private:
  struct Operand {
    int tensor;
    std::int64_t start;
    std::vector<std::int64_t> along;
  };
  static constexpr std::size_t width = 4;  // lanes of a panel; two points of them keep their sums in SSE registers
  static constexpr std::size_t depth = 256, block = 64;  // a panel stays in L1, the points of a block in L2

  static Operand operand(const Computation& computation, const Access& access, std::size_t axes) {
    auto [start, along] = flat(access, computation.tensors[std::size_t(access.tensor)], axes);
    return {access.tensor, start, std::move(along)};
  }

  static Elements magnitude_of(const Data& data) {
    std::vector<double> magnitude = (data.magnitude.empty() ? data.value : data.magnitude).numbers();
    for (double& m : magnitude) m = std::abs(m);
    return magnitude;
  }

  // A part of the product: some lanes and points at one place outside.
  struct Part {
    std::int64_t outer_a, outer_b, outer_out;
    std::int64_t lane, lane_end;
    std::size_t point, point_end;
  };
  struct Points {
    std::vector<std::int64_t> a, out;
  };

  // Every element is the work of one part, which adds up in one order: the same for any number of threads.
  template <bool with_magnitude>
  void multiply(const Elements& a, const Elements& b, std::vector<double>& out, std::vector<double>& magnitude,
                int threads, Meter& meter) const {
    constexpr std::int64_t lanes_each = 64, points_each = 1024;
    constexpr double work_each = 0x1p20;  // at least, of what a thread takes at a time
    Points points;
    Walk at = points_;
    for (std::int64_t p = at.points(); p-- > 0; at.advance()) {
      points.a.push_back(at[0]);
      points.out.push_back(at[2]);
    }
    const std::int64_t count = std::int64_t(points.a.size());
    const std::int64_t lane_parts = (lanes_ + lanes_each - 1) / lanes_each,
                       point_parts = (count + points_each - 1) / points_each,
                       parts = outer_.points() * lane_parts * point_parts;
    const double work =
        double(std::min(lanes_, lanes_each)) * double(std::min(count, points_each)) * double(reduced_.points());
    const std::int64_t each = std::max<std::int64_t>(1, std::int64_t(work_each / work));
    base::parallel_for((parts + each - 1) / each, threads, [&](std::int64_t chunk) {
      Walk outer = outer_;
      for (std::int64_t part = chunk * each; part < std::min(parts, (chunk + 1) * each); ++part) {
        outer.go_to(part / (lane_parts * point_parts));
        const std::int64_t lane = part / point_parts % lane_parts * lanes_each,
                           point = part % point_parts * points_each;
        multiply_part<with_magnitude>({outer[0], outer[1], outer[2], lane, std::min(lanes_, lane + lanes_each),
                                       std::size_t(point), std::size_t(std::min(count, point + points_each))},
                                      points, a, b, out, magnitude, meter);
      }
    });
  }

  template <bool with_magnitude>
  void multiply_part(const Part& part, const Points& points, const Elements& a, const Elements& b,
                     std::vector<double>& out, std::vector<double>& magnitude, Meter& meter) const {
    std::array<std::int64_t, depth> step_a, step_b;
    std::array<double, depth * width> panel;
    std::vector<double> rows(block * depth);  // of A, of the points of a block
    Walk reduced = reduced_;
    std::int64_t left = reduced.points();
    while (left > 0) {
      const std::size_t steps = std::size_t(std::min<std::int64_t>(left, depth));
      left -= std::int64_t(steps);
      for (std::size_t k = 0; k < steps; ++k, reduced.advance()) {
        step_a[k] = reduced[0];
        step_b[k] = reduced[1];
      }
      base::check_stop(meter);
      meter.spent(double(steps) * double(part.lane_end - part.lane) * double(part.point_end - part.point) /
                  (with_magnitude ? 1 : 2));
      for (std::size_t first = part.point; first < part.point_end; first += block) {
        const std::size_t last = std::min(first + block, part.point_end);
        for (std::size_t p = first; p < last; ++p)
          for (std::size_t k = 0; k < steps; ++k)
            rows[(p - first) * depth + k] = a[std::size_t(part.outer_a + points.a[p] + step_a[k])];
        for (std::int64_t lane = part.lane; lane < part.lane_end; lane += width) {
          const std::size_t used = std::size_t(std::min<std::int64_t>(width, part.lane_end - lane));
          for (std::size_t k = 0; k < steps; ++k)
            for (std::size_t l = 0; l < width; ++l)
              panel[k * width + l] =
                  l < used ? b[std::size_t(part.outer_b + step_b[k] + (lane + std::int64_t(l)) * lane_of_b_)] : 0;
          const auto add = [&](std::size_t point, const double* sums, std::vector<double>& to) {
            for (std::size_t l = 0; l < used; ++l)
              to[std::size_t(part.outer_out + points.out[point] + (lane + std::int64_t(l)) * lane_of_out_)] += sums[l];
          };
          for (std::size_t p = first; p < last; p += 2) {
            // An odd last point is computed twice and added once.
            const std::size_t q = std::min(p + 1, last - 1);
            double sums[2][width] = {}, sizes[2][width] = {};
            kernel<with_magnitude>(&rows[(p - first) * depth], &rows[(q - first) * depth], panel.data(), steps, sums,
                                   sizes);
            add(p, sums[0], out);
            if (q != p) add(q, sums[1], out);
            if constexpr (with_magnitude) {
              add(p, sizes[0], magnitude);
              if (q != p) add(q, sizes[1], magnitude);
            }
          }
        }
      }
    }
  }

  template <bool with_magnitude>
  static void kernel(const double* a0, const double* a1, const double* panel, std::size_t steps,
                     double (&sums)[2][width], double (&sizes)[2][width]) {
    double s0[width] = {}, s1[width] = {}, m0[width] = {}, m1[width] = {};
    for (std::size_t k = 0; k < steps; ++k) {
      const double x0 = a0[k], x1 = a1[k];
      for (std::size_t l = 0; l < width; ++l) {
        const double y0 = x0 * panel[k * width + l], y1 = x1 * panel[k * width + l];
        s0[l] += y0;
        s1[l] += y1;
        if constexpr (with_magnitude) {
          m0[l] += std::abs(y0);
          m1[l] += std::abs(y1);
        }
      }
    }
    for (std::size_t l = 0; l < width; ++l) {
      sums[0][l] = s0[l], sums[1][l] = s1[l];
      sizes[0][l] = m0[l], sizes[1][l] = m1[l];
    }
  }

  // Tracked numbers of each walk: offset in A, in B, in the output.
  Walk points_{{}}, outer_{{}}, reduced_{{}};
  std::int64_t lanes_ = 0, lane_of_b_ = 0, lane_of_out_ = 0;
  int a_ = 0, b_ = 0;
  DType type_ = DType::f32;
};

// Work of one point of a stage, and of all of it, in multiply-adds of ProductSum.
double point_work(const Stage& stage) {
  return 8 * double(stage.value.nodes.size());
}
double points_of(const Stage& stage) {
  double points = 1;
  for (const Axis& axis : stage.axes) points *= double(axis.extent);
  return points;
}
double work_of(const Computation& computation, const Stage& stage) {
  return points_of(stage) * (ProductSum::match(computation, stage) ? 1 : point_work(stage));
}

// The elements of a stage's tensor that are computed, by their numbers in the order of its spatial axes.
struct Wanted {
  bool all = true;
  std::vector<std::int64_t> elements;  // rising; of those that are not all
};
struct Plan {
  std::vector<Wanted> wanted;  // by stage
  double work = 0;
};

Plan complete_plan(const Computation& computation) {
  Plan plan{std::vector<Wanted>(computation.stages.size()), 0};
  for (const Stage& stage : computation.stages) plan.work += work_of(computation, stage);
  return plan;
}

// The ends of all axes together, and `count` points drawn by the seed; rising.
std::vector<std::int64_t> sample(const Tensor& tensor, std::uint64_t seed, std::int64_t count) {
  constexpr std::size_t most_ends = 1024;
  std::vector<std::int64_t> out{0};
  for (const std::int64_t extent : tensor.shape) {
    for (std::int64_t& offset : out) offset *= extent;
    const std::size_t before = out.size();
    if (extent == 1 || 2 * before > most_ends) continue;
    for (std::size_t i = 0; i < before; ++i) out.push_back(out[i] + extent - 1);
  }
  base::Stream stream(seed, "checked elements of " + tensor.name);
  for (std::int64_t i = 0; i < count; ++i) out.push_back(stream.below(tensor.elements()));
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// What `count` drawn elements of each output need. Given up, with the work so far, once that is more than `most`. Of a
// tensor of more than `most_elements` a part is computed even if all of it takes less work.
Plan sampled_plan(const Computation& computation, std::uint64_t seed, std::int64_t count, double most,
                  std::int64_t most_elements, Meter& meter) {
  Plan plan{std::vector<Wanted>(computation.stages.size()), 0};
  std::vector<std::vector<bool>> marks(computation.tensors.size());  // wanted elements of what stages read
  std::vector<char> all(computation.tensors.size(), 0);
  const std::vector<Data> nothing(computation.tensors.size());
  for (std::size_t s = computation.stages.size(); s-- > 0 && plan.work <= most;) {
    const Stage& stage = computation.stages[s];
    const std::size_t t = std::size_t(stage.tensor);
    const Tensor& tensor = computation.tensors[t];
    const std::int64_t elements = tensor.elements();
    Wanted& wanted = plan.wanted[s];
    wanted.all = all[t] != 0 || !stage.index.empty();  // with an index, elements are not numbered in their order
    if (tensor.role == Role::output) wanted.elements = sample(tensor, seed, count);
    if (!wanted.all && !marks[t].empty()) {
      for (const std::int64_t e : wanted.elements) marks[t][std::size_t(e)] = true;
      wanted.elements.clear();
      for (std::int64_t e = 0; e < elements; ++e) {
        if (marks[t][std::size_t(e)]) wanted.elements.push_back(e);
      }
    }
    std::vector<bool>().swap(marks[t]);
    const double own = double(wanted.elements.size()) * (points_of(stage) / double(elements)) * point_work(stage);
    const double whole = work_of(computation, stage);
    const bool many = elements > most_elements && std::int64_t(wanted.elements.size()) < elements / 2;
    if (wanted.all || (own >= whole && !many)) wanted = {};
    plan.work += wanted.all ? whole : own;

    std::vector<char> made(stage.value.loads.size());  // loads of what stages make
    for (std::size_t l = 0; l < made.size(); ++l) {
      const int from = stage.value.loads[l].tensor;
      made[l] = computation.stage_writing(from) >= 0 ? 1 : 0;
      if (!made[l]) continue;
      if (wanted.all || !stage.value.loads[l].gathered.empty()) all[std::size_t(from)] = 1;
      marks[std::size_t(from)].resize(std::size_t(computation.tensors[std::size_t(from)].elements()));
    }
    if (wanted.all || plan.work > most || std::find(made.begin(), made.end(), 1) == made.end()) continue;
    Interpreter interpreter(computation, stage, nothing);
    for (const std::int64_t e : wanted.elements) {
      interpreter.reads(e, elements, meter, [&](std::size_t load, std::int64_t offset) {
        if (made[load] != 0) marks[std::size_t(stage.value.loads[load].tensor)][std::size_t(offset)] = true;
      });
    }
  }
  return plan;
}

Plan plan_of(const Computation& computation, std::uint64_t seed, const ReferenceSettings& settings, Meter& meter) {
  constexpr std::int64_t least = 16;
  Plan plan = complete_plan(computation);
  const bool many = std::any_of(computation.tensors.begin(), computation.tensors.end(), [&](const Tensor& tensor) {
    return tensor.role == Role::output && tensor.elements() > settings.most_elements;
  });
  if (plan.work <= settings.most_work && !many) return plan;
  double dearest = 1;  // of an output's element, in its own stage
  for (const Stage& stage : computation.stages) {
    const Tensor& tensor = computation.tensors[std::size_t(stage.tensor)];
    if (tensor.role == Role::output)
      dearest = std::max(dearest, points_of(stage) / double(tensor.elements()) * point_work(stage));
  }
  std::int64_t count = std::max(least, std::int64_t(std::min(settings.sampled_work / dearest, 0x1p20)));
  for (;; count = std::max(least, count / 4)) {
    const double most = count == least ? std::numeric_limits<double>::infinity() : 2 * settings.sampled_work;
    Plan sampled = sampled_plan(computation, seed, count, most, settings.most_elements, meter);
    if (sampled.work <= most) return many || sampled.work < plan.work ? sampled : plan;
  }
}

Reference evaluated(const Computation& computation, std::vector<Elements> operands, const Plan& plan, int threads,
                    Meter& meter) {
  const std::size_t count = computation.tensors.size();
  assert(operands.size() == count);
  meter.expect(plan.work);
  std::vector<Data> data(count);
  for (std::size_t t = 0; t < count; ++t) {
    if (computation.stage_writing(int(t)) >= 0) continue;
    const Tensor& tensor = computation.tensors[t];
    data[t].value = tensor.is_literal() ? Elements(tensor.values) : std::move(operands[t]);
    assert(std::int64_t(data[t].value.size()) == tensor.elements());
    // A literal such as 1/3 is rounded once, to the type that holds it.
    if (tensor.is_literal() && is_floating(tensor.dtype)) {
      data[t].depth = std::any_of(tensor.values.begin(), tensor.values.end(),
                                  [&](double v) { return rounded_to(v, tensor.dtype) != v; });
    }
  }
  Reference result;
  for (std::size_t s = 0; s < computation.stages.size(); ++s) {
    const Stage& stage = computation.stages[s];
    const Wanted& wanted = plan.wanted[s];
    Data& out = data[std::size_t(stage.tensor)];
    const std::int64_t elements = computation.tensors[std::size_t(stage.tensor)].elements();
    const auto exact = [&](const Access& access) {
      return is_floating(computation.tensors[std::size_t(access.tensor)].dtype) ||
             data[std::size_t(access.tensor)].magnitude.empty();
    };
    const bool whole_sums = wanted.all && std::all_of(stage.value.loads.begin(), stage.value.loads.end(), exact);
    const auto product = whole_sums ? ProductSum::match(computation, stage) : std::nullopt;
    if (product) {
      product->run(elements, data, out, threads, meter);
    } else {
      constexpr double work_each = 0x1p20;  // of what a thread takes at a time
      const double work = points_of(stage) / double(elements) * point_work(stage);
      const std::int64_t own = wanted.all ? elements : std::int64_t(wanted.elements.size()),
                         each = std::max<std::int64_t>(1, std::int64_t(work_each / work));
      if (wanted.all || own == 0) {  // none: what no one reads
        out.value = out.magnitude = Elements(DType::f64, wanted.all ? elements : 0);
      } else {
        out.value = Elements(wanted.elements, elements, 0);
        out.magnitude = Elements(wanted.elements, elements, std::numeric_limits<double>::infinity());
      }
      const Interpreter whole(computation, stage, data);
      base::parallel_for((own + each - 1) / each, threads, [&](std::int64_t chunk) {
        Interpreter interpreter = whole;
        const std::int64_t first = chunk * each, last = std::min(own, first + each);
        base::check_stop(meter);
        if (wanted.all) interpreter.run(first, last - first, elements, out, meter);
        for (std::int64_t i = first; !wanted.all && i < last; ++i)
          interpreter.run(wanted.elements[std::size_t(i)], 1, elements, out, meter);
        meter.spent(double(last - first) * work);
      });
    }
    out.depth = depth_of(computation, stage, data);
    const Role role = computation.tensors[std::size_t(stage.tensor)].role;
    if (role == Role::output) {
      result.elements += elements;
      result.computed += wanted.all ? elements : std::int64_t(wanted.elements.size());
    }
    const auto is_zero = [](double m) { return m == 0; };
    if (!is_floating(computation.tensors[std::size_t(stage.tensor)].dtype) && wanted.all &&
        std::all_of(out.magnitude.begin(), out.magnitude.end(), is_zero))
      out.magnitude = {};
    // A copy of what comes from outside needs no magnitude of its own, and its readers are twice as fast without one.
    const Value& value = stage.value;
    if (stage.combine == Combine::none && value.nodes.size() == 1 && value.loads.size() == 1 &&
        data[std::size_t(value.loads[0].tensor)].magnitude.empty() && role == Role::temporary)
      out.magnitude = {};
  }
  result.tensors.resize(count);
  result.magnitude.resize(count);
  result.reduction_length.resize(count);
  for (std::size_t t = 0; t < count; ++t) {
    const Role role = computation.tensors[t].role;
    if (role == Role::temporary) continue;
    result.tensors[t] = std::move(data[t].value);
    if (role != Role::output) continue;
    result.magnitude[t] = std::move(data[t].magnitude);
    if (result.magnitude[t].empty()) result.magnitude[t] = Elements(DType::f64, std::int64_t(result.tensors[t].size()));
    result.reduction_length[t] = std::max<std::int64_t>(1, data[t].depth);
  }
  return result;
}

}  // namespace

Reference reference(const Computation& computation, std::uint64_t seed) {
  ReferenceSettings all;
  all.most_work = std::numeric_limits<double>::infinity();
  base::Monitor nobody;
  return reference(computation, seed, all, nobody);
}

Reference reference(const Computation& computation, std::uint64_t seed, const ReferenceSettings& settings,
                    base::Monitor& monitor) {
  Meter meter(monitor);
  const Plan plan = plan_of(computation, seed, settings, meter);
  std::optional<Plan> some;  // a few elements of every output
  const Undefined undefined = [&](std::vector<Elements>& operands) {
    constexpr std::int64_t drawn = 64;
    constexpr double any = std::numeric_limits<double>::infinity();
    if (!some) some = sampled_plan(computation, seed, drawn, any, settings.most_elements, meter);
    Reference found = evaluated(computation, std::move(operands), *some, settings.threads, meter);
    std::int64_t count = 0;
    for (std::size_t t = 0; t < found.tensors.size(); ++t) {
      if (computation.tensors[t].role != Role::output) continue;
      const Elements& values = found.tensors[t];
      const auto look = [&](std::size_t e) {
        count += std::abs(values[e]) <= largest(computation.tensors[t].dtype) ? 0 : 1;
      };
      for (const std::int64_t e : values.sample()) look(std::size_t(e));
      for (std::size_t e = 0; !values.is_sample() && e < values.size(); ++e) look(e);
    }
    operands = std::move(found.tensors);
    return count;
  };
  return evaluated(computation, made_inputs(computation, seed, settings.seen, undefined, meter), plan, settings.threads,
                   meter);
}

Reference reference(const Computation& computation, std::vector<Elements> operands) {
  base::Monitor nobody;
  Meter meter(nobody);
  return evaluated(computation, std::move(operands), complete_plan(computation), 1, meter);
}

double tolerance(DType dtype, std::int64_t reduction_length, double magnitude) {
  if (std::isinf(magnitude)) return magnitude;
  if (!is_floating(dtype)) return magnitude;
  // Subnormal numbers may be lost, but for those of f16, which are as exact as its least normal ones.
  const double least = dtype == DType::f64   ? std::numeric_limits<double>::min()
                       : dtype == DType::f16 ? 0x1p-24
                                             : double(std::numeric_limits<float>::min());
  return std::max(least, error_of(magnitude, dtype, reduction_length));
}

}  // namespace graft::codegen
