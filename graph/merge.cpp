#include "graph/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

namespace graft::graph {
namespace {

using codegen::Access;
using codegen::Affine;
using codegen::Combine;
using codegen::Computation;
using codegen::Op;
using codegen::Role;
using codegen::Stage;
using codegen::Tensor;
using codegen::Value;

constexpr std::size_t most_nodes = 160;  // of a stage's value
constexpr std::int64_t cheap = 2;        // operations that may be done twice instead of storing what they give
constexpr std::int64_t special = 10;     // operations that one division or exponential is worth

std::int64_t points_of(const Stage& stage) {
  std::int64_t points = 1;
  for (const codegen::Axis& axis : stage.axes) points *= axis.extent;
  return points;
}

std::vector<std::int64_t> strides_of(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

// The element of a tensor of shape `from` that the forms name, in the same elements as shape `to`. Dimensions are
// gone through in runs of equal numbers of elements: several of `from` become one by a form, but one becomes
// several only if it is constant there.
std::optional<std::vector<Affine>> in_shape(const std::vector<Affine>& index, const std::vector<std::int64_t>& from,
                                            const std::vector<std::int64_t>& to) {
  std::vector<Affine> result;
  std::size_t f = 0, t = 0;
  while (f < from.size() || t < to.size()) {
    std::int64_t of_from = 1, of_to = 1;
    Affine form;
    std::size_t begin = t;
    const auto take_from = [&] {
      form = form * from[f];
      form += index[f];
      of_from *= from[f++];
    };
    // One dimension of each, and more of the smaller side until both have the same elements.
    if (f < from.size()) take_from();
    if (t < to.size()) of_to *= to[t++];
    while (of_from != of_to) {
      if (of_from < of_to && f < from.size())
        take_from();
      else if (of_to < of_from && t < to.size())
        of_to *= to[t++];
      else
        return std::nullopt;
    }
    if (t - begin == 1) {
      result.push_back(form);
      continue;
    }
    std::vector<std::size_t> wide;
    for (std::size_t d = begin; d < t; ++d)
      if (to[d] > 1) wide.push_back(d);
    if (wide.size() > 1 && !form.is_constant()) return std::nullopt;
    std::int64_t rest = form.constant;
    const std::vector<std::int64_t> strides =
        strides_of({to.begin() + std::ptrdiff_t(begin), to.begin() + std::ptrdiff_t(t)});
    for (std::size_t d = begin; d < t; ++d) {
      if (form.is_constant()) {
        result.emplace_back(rest / strides[d - begin]);
        rest %= strides[d - begin];
      } else {
        result.push_back(to[d] > 1 ? form : Affine(0));
      }
    }
  }
  return result;
}

bool is_plain(const Access& access) {
  return !access.padded && access.gathered.empty();
}

// Writes what a temporary's stage computes into its readers, which read it plainly.
void write_into_readers(Computation& computation, int tensor) {
  const int writer = computation.stage_writing(tensor);
  const Value value = codegen::as_stored(computation, tensor, computation.stages[std::size_t(writer)].value);
  computation.stages.erase(computation.stages.begin() + writer);
  for (Stage& reader : computation.stages) {
    reader.value = codegen::replace_loads(reader.value, [&](const Access& access) -> std::optional<Value> {
      if (access.tensor != tensor) return std::nullopt;
      return codegen::substitute(value, std::span<const Affine>(access.index));
    });
  }
}

// The same, if that is worth it.
void inline_stage(Computation& computation, int tensor) {
  const int writer = computation.stage_writing(tensor);
  const Stage& stage = computation.stages[std::size_t(writer)];
  if (stage.combine != Combine::none || !stage.index.empty()) return;
  const std::int64_t elements = computation.tensors[std::size_t(tensor)].elements();
  std::int64_t reads = 0;
  bool reuses = false;
  for (const Stage& reader : computation.stages) {
    std::size_t nodes = reader.value.nodes.size(), here = 0;
    for (const Access& access : reader.value.loads) {
      if (access.tensor != tensor) continue;
      if (!is_plain(access)) return;
      nodes += stage.value.nodes.size();
      ++here;
    }
    if (nodes > most_nodes) return;
    reads += points_of(reader) * std::int64_t(here);
    reuses = reuses || (here > 0 && computation.is_reduction(reader) && points_of(reader) > elements);
  }
  const codegen::ArithmeticCounts counts = codegen::arithmetic(stage.value);
  const std::int64_t cost = counts.add + counts.mul + counts.compare + special * (counts.div + counts.special);
  const bool is_copy = cost == 0 && std::all_of(stage.value.loads.begin(), stage.value.loads.end(), is_plain);
  if (reuses || !(is_copy || reads <= elements || (cost <= cheap && reads <= 2 * elements))) return;
  write_into_readers(computation, tensor);
}

// The stage that reads a tensor, once and plainly, if there is no other one; else -1.
int only_reader(const Computation& computation, int tensor) {
  int reader = -1;
  for (std::size_t s = 0; s < computation.stages.size(); ++s) {
    for (const Access& access : computation.stages[s].value.loads) {
      if (access.tensor != tensor) continue;
      if (reader >= 0 || !is_plain(access)) return -1;
      reader = int(s);
    }
  }
  return reader;
}

const Access& access_to(const Stage& stage, int tensor) {
  return *std::find_if(stage.value.loads.begin(), stage.value.loads.end(),
                       [&](const Access& access) { return access.tensor == tensor; });
}

// Writes what a temporary's stage reduces in the order in which its only reader, a copy, has it.
void reduce_in_order_of_copy(Computation& computation, int tensor) {
  const int writer = computation.stage_writing(tensor), reader = only_reader(computation, tensor);
  if (reader < 0) return;
  const Stage& sum = computation.stages[std::size_t(writer)];
  const Stage& copy = computation.stages[std::size_t(reader)];
  const auto type_of = [&](const Stage& stage) { return computation.tensors[std::size_t(stage.tensor)].dtype; };
  if (sum.combine == Combine::none || !sum.index.empty() || copy.combine != Combine::none || !copy.index.empty() ||
      copy.value.nodes.size() != 1 || type_of(sum) != type_of(copy))
    return;
  const std::vector<Affine>& read = access_to(copy, tensor).index;
  const std::size_t rank = read.size();
  std::vector<Affine> by(sum.axes.size(), Affine(0));
  std::vector<codegen::Axis> axes = copy.axes;
  std::vector<bool> is_read(axes.size());
  int innermost = -1;
  for (std::size_t d = 0; d < rank; ++d) {
    if (sum.axes[d].extent == 1) continue;
    if (read[d].terms.size() != 1) return;
    innermost = read[d].terms[0].variable;
    const codegen::Axis& axis = copy.axes[std::size_t(innermost)];
    if (!(read[d] == Affine::variable(innermost)) || axis.extent != sum.axes[d].extent ||
        is_read[std::size_t(innermost)])
      return;
    is_read[std::size_t(innermost)] = true;
    by[d] = read[d];
  }
  for (std::size_t a = 0; a < axes.size(); ++a)
    if (axes[a].extent > 1 && (!is_read[a] || int(a) > innermost)) return;
  for (std::size_t a = rank; a < sum.axes.size(); ++a) {
    by[a] = Affine::variable(int(axes.size()));
    axes.push_back(sum.axes[a]);
    const auto is_used = [&] {
      return std::any_of(axes.begin(), axes.end() - 1,
                         [&](const codegen::Axis& axis) { return axis.name == axes.back().name; });
    };
    while (is_used()) axes.back().name += '_';
  }
  Stage made = sum;
  made.tensor = copy.tensor;
  made.axes = std::move(axes);
  made.value = codegen::substitute(sum.value, by);
  computation.stages[std::size_t(reader)] = std::move(made);
  computation.stages.erase(computation.stages.begin() + writer);
}

// Leaves out dimensions of one element of temporaries along which the output has more: those that a reduction kept, so
// that what is computed once for each row has the rows' dimensions.
void leave_out_kept_dimensions(Computation& computation, const Tensor& output) {
  for (std::size_t t = 0; t < computation.tensors.size(); ++t) {
    Tensor& tensor = computation.tensors[t];
    const int writer = computation.stage_writing(int(t));
    if (tensor.role != Role::temporary || writer < 0 || tensor.shape.size() != output.shape.size()) continue;
    Stage& stage = computation.stages[std::size_t(writer)];
    if (!stage.index.empty()) continue;
    std::vector<bool> goes(stage.axes.size());
    std::vector<Affine> by;
    int kept = 0;
    for (std::size_t d = 0; d < goes.size(); ++d) {
      goes[d] = d < tensor.shape.size() && tensor.shape[d] == 1 && output.shape[d] > 1;
      by.push_back(goes[d] ? Affine(0) : Affine::variable(kept++));
    }
    if (kept == int(goes.size())) continue;
    const auto without = [&](auto& all) {
      std::size_t d = 0;
      std::erase_if(all, [&](const auto&) { return d < goes.size() && goes[d++]; });
    };
    bool is_read_plainly = true;
    for (const Stage& reader : computation.stages)
      for (const Access& access : reader.value.loads)
        is_read_plainly = is_read_plainly && (access.tensor != int(t) || is_plain(access));
    if (!is_read_plainly) continue;
    stage.value = codegen::substitute(stage.value, by);
    without(stage.axes);
    without(tensor.shape);
    for (Stage& reader : computation.stages)
      for (Access& access : reader.value.loads)
        if (access.tensor == int(t)) without(access.index);
  }
}

}  // namespace

int Part::output() const {
  for (std::size_t t = 0; t < computation.tensors.size(); ++t)
    if (computation.tensors[t].role == Role::output) return int(t);
  return -1;
}

std::optional<Part> merged(const Part& first, const Part& second) {
  Part result = first;
  Computation& all = result.computation;
  const int between = first.output(), value = first.values[std::size_t(between)];
  all.tensors[std::size_t(between)].role = Role::temporary;
  result.values[std::size_t(between)] = -1;
  const std::vector<std::int64_t> given = all.tensors[std::size_t(between)].shape;

  std::vector<int> number(second.computation.tensors.size());
  for (std::size_t t = 0; t < number.size(); ++t) {
    const Tensor& tensor = second.computation.tensors[t];
    if (second.values[t] == value) {
      number[t] = between;
      continue;
    }
    for (std::size_t known = 0; known < first.values.size() && second.values[t] >= 0; ++known) {
      const Tensor& other = first.computation.tensors[known];
      if (first.values[known] == second.values[t] && other.shape == tensor.shape && other.role == tensor.role)
        number[t] = int(known) + 1;
    }
    if (number[t] > 0) {
      --number[t];
      continue;
    }
    number[t] = int(all.tensors.size());
    all.tensors.push_back(tensor);
    all.tensors.back().name = fmt::format("{}.{}", tensor.name, number[t]);  // until they are renamed
    result.values.push_back(second.values[t]);
  }
  for (const Stage& stage : second.computation.stages) {
    Stage copy = stage;
    copy.tensor = number[std::size_t(stage.tensor)];
    for (Access& access : copy.value.loads) {
      const std::vector<std::int64_t>& seen = second.computation.tensors[std::size_t(access.tensor)].shape;
      access.tensor = number[std::size_t(access.tensor)];
      if (access.tensor != between || seen == given) continue;
      if (!is_plain(access)) return std::nullopt;
      auto index = in_shape(access.index, seen, given);
      if (!index) return std::nullopt;
      access.index = std::move(*index);
    }
    all.stages.push_back(std::move(copy));
  }
  leave_out_kept_dimensions(all, all.tensors[std::size_t(result.output())]);
  inline_stage(all, between);
  if (all.stage_writing(between) >= 0) reduce_in_order_of_copy(all, between);
  return renamed(result);
}

Part without_copies(Part part) {
  Computation& all = part.computation;
  for (std::size_t s = 0; s < all.stages.size();) {
    const int tensor = all.stages[s].tensor;
    const Stage& stage = all.stages[s];
    const bool is_copy = stage.combine == Combine::none && stage.index.empty() && stage.value.nodes.size() == 1 &&
                         stage.value.loads.size() == 1 && is_plain(stage.value.loads.front()) &&
                         part.values[std::size_t(stage.value.loads.front().tensor)] >= 0;
    bool is_read_plainly = all.tensors[std::size_t(tensor)].role == Role::temporary;
    for (const Stage& reader : all.stages)
      for (const Access& access : reader.value.loads)
        is_read_plainly = is_read_plainly && (access.tensor != tensor || is_plain(access));
    if (is_copy && is_read_plainly)
      write_into_readers(all, tensor);
    else
      ++s;
  }
  return renamed(part);
}

Part divided_last(Part part) {
  Computation& all = part.computation;
  for (std::size_t s = 0; s < all.stages.size(); ++s) {
    const Stage& quotient = all.stages[s];
    const Value& value = quotient.value;
    if (quotient.combine != Combine::none || !quotient.index.empty() || value.nodes.size() != 3 ||
        value.root().op != Op::div || value.nodes[0].op != Op::load || value.nodes[1].op != Op::load)
      continue;
    const Access &dividend = value.loads[std::size_t(value.nodes[std::size_t(value.root().a)].load)],
                 &divisor = value.loads[std::size_t(value.nodes[std::size_t(value.root().b)].load)];
    const int exponential = all.stage_writing(dividend.tensor), total = all.stage_writing(divisor.tensor);
    const int reader = only_reader(all, quotient.tensor);
    if (exponential < 0 || total < 0 || reader < 0 || !is_plain(dividend) || !is_plain(divisor)) continue;
    const Stage &e = all.stages[std::size_t(exponential)], &sum = all.stages[std::size_t(total)];
    const bool subtracts_largest = e.value.root().op == Op::exp &&
                                   std::any_of(e.value.loads.begin(), e.value.loads.end(), [&](const Access& load) {
                                     const int writer = all.stage_writing(load.tensor);
                                     return writer >= 0 && all.stages[std::size_t(writer)].combine == Combine::max;
                                   });
    const bool adds_dividends =
        sum.combine == Combine::sum && sum.value.nodes.size() == 1 && sum.value.loads.front().tensor == dividend.tensor;
    Stage& product = all.stages[std::size_t(reader)];
    const int spatial = all.spatial_axes(product);
    if (!subtracts_largest || !adds_dividends || product.combine != Combine::sum || !product.index.empty() ||
        !codegen::is_product(product.value))
      continue;
    const std::vector<Affine> read = access_to(product, quotient.tensor).index;
    Access own_divisor = divisor, own_dividend = dividend;
    bool stays = true;
    for (Affine& form : own_divisor.index) {
      form = codegen::substitute(form, read);
      for (const codegen::Term& term : form.terms) stays = stays && term.variable < spatial;
    }
    if (!stays) continue;
    for (Affine& form : own_dividend.index) form = codegen::substitute(form, read);
    const int divided = quotient.tensor;
    product.value = codegen::replace_loads(product.value, [&](const Access& access) {
      return access.tensor == divided ? std::optional(Value::load(own_dividend)) : std::nullopt;
    });
    Stage last;
    last.tensor = product.tensor;
    last.axes.assign(product.axes.begin(), product.axes.begin() + spatial);
    Access undivided{int(all.tensors.size()), {}, false};
    for (int a = 0; a < spatial; ++a) undivided.index.push_back(Affine::variable(a));
    last.value = Value::apply(Op::div, Value::load(undivided), Value::load(own_divisor));
    Tensor temporary = all.tensors[std::size_t(product.tensor)];
    temporary.role = Role::temporary;
    temporary.name += ".undivided";
    product.tensor = undivided.tensor;
    all.tensors.push_back(std::move(temporary));
    part.values.push_back(-1);
    all.stages.insert(all.stages.begin() + reader + 1, std::move(last));
    all.stages.erase(all.stages.begin() + std::ptrdiff_t(s));
    return renamed(part);
  }
  return part;
}

std::vector<Part> stages_of(const Part& part, const std::function<int(int tensor)>& value_of) {
  std::vector<Part> parts;
  for (const Stage& stage : part.computation.stages) {
    Part one;
    std::vector<int> number(part.computation.tensors.size(), -1);
    const auto take = [&](int tensor, Role role) {
      if (number[std::size_t(tensor)] >= 0) return;
      number[std::size_t(tensor)] = int(one.values.size());
      Tensor copy = part.computation.tensors[std::size_t(tensor)];
      const bool is_within = copy.role == Role::temporary && !copy.is_literal();
      if (is_within || role == Role::output) copy.role = role;
      one.computation.tensors.push_back(std::move(copy));
      one.values.push_back(is_within ? value_of(tensor) : part.values[std::size_t(tensor)]);
    };
    for (const Access& access : stage.value.loads) take(access.tensor, Role::input);
    take(stage.tensor, Role::output);
    Stage copy = stage;
    copy.tensor = number[std::size_t(stage.tensor)];
    for (Access& access : copy.value.loads) access.tensor = number[std::size_t(access.tensor)];
    one.computation.stages.push_back(std::move(copy));
    parts.push_back(renamed(one));
  }
  return parts;
}

std::optional<Sliced> sliced(const Part& part, int tensor) {
  const Tensor& whole = part.computation.tensors[std::size_t(tensor)];
  std::optional<std::vector<std::int64_t>> constants;
  for (const Stage& stage : part.computation.stages) {
    for (const Access& access : stage.value.loads) {
      if (access.tensor != tensor) continue;
      if (!is_plain(access)) return std::nullopt;
      std::vector<std::int64_t> own;
      for (std::size_t d = 0; d + 1 < access.index.size() && access.index[d].is_constant(); ++d)
        own.push_back(access.index[d].constant);
      if (!constants) constants = own;
      const auto end = std::mismatch(constants->begin(), constants->end(), own.begin(), own.end()).first;
      constants->erase(end, constants->end());
    }
  }
  if (!constants || constants->empty()) return std::nullopt;
  const std::size_t count = constants->size();
  const std::vector<std::int64_t> strides = strides_of(whole.shape);
  Sliced result{part, 0};
  bool is_whole = true;
  for (std::size_t d = 0; d < count; ++d) {
    result.first += (*constants)[d] * strides[d];
    is_whole = is_whole && whole.shape[d] == 1;
  }
  if (is_whole) return std::nullopt;
  Tensor& slice = result.part.computation.tensors[std::size_t(tensor)];
  slice.shape.erase(slice.shape.begin(), slice.shape.begin() + std::ptrdiff_t(count));
  for (Stage& stage : result.part.computation.stages)
    for (Access& access : stage.value.loads)
      if (access.tensor == tensor)
        access.index.erase(access.index.begin(), access.index.begin() + std::ptrdiff_t(count));
  return result;
}

Part renamed(const Part& part) {
  Part result;
  std::vector<int> number(part.computation.tensors.size(), -1);
  int operands = 0, temporaries = 0;
  const auto take = [&](int tensor) {
    if (number[std::size_t(tensor)] >= 0) return;
    Tensor copy = part.computation.tensors[std::size_t(tensor)];
    number[std::size_t(tensor)] = int(result.computation.tensors.size());
    const bool is_operand = copy.role == Role::input || copy.role == Role::constant;
    copy.name = copy.role == Role::output ? "y"
                : is_operand              ? fmt::format("x{}", operands++)
                                          : fmt::format("t{}", temporaries++);
    result.computation.tensors.push_back(std::move(copy));
    result.values.push_back(part.values[std::size_t(tensor)]);
  };
  for (const Stage& stage : part.computation.stages)
    for (const Access& access : stage.value.loads)
      if (part.values[std::size_t(access.tensor)] >= 0) take(access.tensor);
  for (const Stage& stage : part.computation.stages)
    for (const Access& access : stage.value.loads)
      if (part.computation.tensors[std::size_t(access.tensor)].is_literal()) take(access.tensor);
  for (const Stage& stage : part.computation.stages) take(stage.tensor);
  result.computation.stages = part.computation.stages;
  for (Stage& stage : result.computation.stages) {
    stage.tensor = number[std::size_t(stage.tensor)];
    for (Access& access : stage.value.loads) access.tensor = number[std::size_t(access.tensor)];
  }
  return result;
}

Part flattened(Part part) {
  Computation& all = part.computation;
  if (all.stages.size() != 1) return part;
  Stage& stage = all.stages.front();
  if (stage.combine != Combine::none || !stage.index.empty() || !stage.value.positions.empty() ||
      !std::all_of(stage.value.loads.begin(), stage.value.loads.end(), is_plain))
    return part;
  // Elements by their number in memory.
  const auto flat = [&](int tensor, const std::vector<Affine>& index) {
    const std::vector<std::int64_t> strides = strides_of(all.tensors[std::size_t(tensor)].shape);
    Affine form;
    for (std::size_t d = 0; d < index.size(); ++d) form.add(index[d], strides[d]);
    return form;
  };
  std::vector<Affine> forms;
  for (const Access& access : stage.value.loads) forms.push_back(flat(access.tensor, access.index));
  // From the last axis to the first: an axis is merged with the next inner one if every form visits the two as one
  // continuous run.
  struct Run {
    std::vector<int> axes;  // the last one first
    std::int64_t extent = 1;
  };
  std::vector<Run> runs;
  for (int axis = int(stage.axes.size()); axis-- > 0;) {
    const std::int64_t extent = stage.axes[std::size_t(axis)].extent;
    if (extent == 1) continue;
    const auto continues = [&](const Affine& form) {
      return form.coefficient(axis) == form.coefficient(runs.back().axes.front()) * runs.back().extent;
    };
    if (runs.empty() || !std::all_of(forms.begin(), forms.end(), continues)) runs.emplace_back();
    runs.back().axes.push_back(axis);
    runs.back().extent *= extent;
  }
  if (runs.empty()) runs.emplace_back();
  std::reverse(runs.begin(), runs.end());
  if (runs.size() == stage.axes.size()) return part;

  Part made = part;
  Stage& line = made.computation.stages.front();
  line.axes.clear();
  std::vector<std::int64_t> shape;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    line.axes.push_back({fmt::format("i{}", r), runs[r].extent});
    shape.push_back(runs[r].extent);
  }
  made.computation.tensors[std::size_t(line.tensor)].shape = shape;
  // A tensor's dimensions are the runs along which it is gone through; all of its accesses must agree.
  std::vector<bool> is_set(made.computation.tensors.size());
  for (std::size_t a = 0; a < forms.size(); ++a) {
    Access& access = line.value.loads[a];
    std::vector<std::int64_t> own;
    access.index.clear();
    std::int64_t elements = 1;
    for (std::size_t r = runs.size(); r-- > 0;) {
      const std::int64_t stride = runs[r].axes.empty() ? 0 : forms[a].coefficient(runs[r].axes.front());
      if (stride == 0) continue;
      if (stride != elements) return part;
      own.insert(own.begin(), runs[r].extent);
      access.index.insert(access.index.begin(), Affine::variable(int(r)));
      elements *= runs[r].extent;
    }
    Tensor& tensor = made.computation.tensors[std::size_t(access.tensor)];
    if (own.empty()) {
      own.push_back(tensor.elements());
      access.index.emplace_back(forms[a].constant);
      elements = tensor.elements();
    } else if (forms[a].constant != 0) {
      return part;
    }
    if (elements != tensor.elements()) return part;
    if (is_set[std::size_t(access.tensor)] && tensor.shape != own) return part;
    is_set[std::size_t(access.tensor)] = true;
    tensor.shape = std::move(own);
  }
  return made;
}

}  // namespace graft::graph
