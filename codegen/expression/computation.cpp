#include "codegen/expression/computation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "base/error.h"
#include "base/memory.h"
#include "codegen/expression/check.h"

namespace graft::codegen {

namespace {

// Bounds that keep every product of extents and every index inside 64 bits, far above what can be run.
constexpr std::int64_t extent_limit = std::numeric_limits<std::int32_t>::max();
constexpr double elements_limit = 0x1p40, iterations_limit = 0x1p56, index_limit = 0x1p60;
constexpr std::size_t literal_limit = 4096;  // elements

std::optional<std::string> extents_problem(const std::vector<std::int64_t>& extents, double limit) {
  double product = 1;
  for (std::int64_t extent : extents) {
    if (extent < 1) return fmt::format("extent {} must be at least 1", extent);
    if (extent > extent_limit) return fmt::format("extent {} must be at most {}", extent, extent_limit);
    product *= double(extent);
  }
  if (product > limit) return fmt::format("{:.3g} elements are too many", product);
  return std::nullopt;
}

std::optional<std::string> literal_problem(const Tensor& tensor) {
  if (tensor.role != Role::temporary) return fmt::format("a literal cannot be an {}", name_of(tensor.role));
  if (tensor.values.size() > literal_limit) return fmt::format("a literal has at most {} elements", literal_limit);
  if (std::int64_t(tensor.values.size()) != tensor.elements())
    return fmt::format("has {} elements, got {} numbers", tensor.elements(), tensor.values.size());
  for (const double value : tensor.values) {
    if (!std::isfinite(value)) return "an element of a literal must be finite";
    if (is_floating(tensor.dtype)) continue;
    if (value != std::round(value) || kept(value, tensor.dtype) != value)
      return fmt::format("{} is not a number of type {}", value, name_of(tensor.dtype));
  }
  return std::nullopt;
}

// Whether the forms over the first `axes` axes reach every element of the shape exactly once. They do if no axis
// is in two forms and each form counts like digits: coefficients 1, n, n*m, ... for axes of extents n, m, ...
bool reaches_all_once(const Stage& stage, int axes, const std::vector<std::int64_t>& shape) {
  std::set<int> seen;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const Affine& form = stage.index[d];
    std::map<std::int64_t, std::int64_t> digits;  // extent by coefficient
    for (const Term& term : form.terms) {
      if (term.variable < 0 || term.variable >= axes || !seen.insert(term.variable).second) return false;
      const std::int64_t extent = stage.axes[std::size_t(term.variable)].extent;
      if (extent > 1 && !digits.emplace(term.coefficient, extent).second) return false;
    }
    std::int64_t next = 1;
    for (const auto& [coefficient, extent] : digits) {
      if (coefficient != next) return false;
      next *= extent;
    }
    if (form.constant != 0 || next != shape[d]) return false;
  }
  for (int a = 0; a < axes; ++a)
    if (!seen.contains(a) && stage.axes[std::size_t(a)].extent > 1) return false;
  return true;
}

std::vector<Interval> ranges_of(const Stage& stage) {
  std::vector<Interval> ranges;
  for (const Axis& axis : stage.axes) ranges.push_back({0, axis.extent - 1});
  return ranges;
}

std::string outside_of(const Tensor& tensor, std::size_t dimension, const Interval& runs) {
  return fmt::format("index {} of {} runs through {}..{}, outside of 0..{}; use pad(...) for zeros outside", dimension,
                     tensor.name, runs.low, runs.high, tensor.shape[dimension] - 1);
}

std::optional<std::string> access_problem(const Computation& computation, const Stage& stage, const Access& access) {
  const Tensor& tensor = computation.tensors[std::size_t(access.tensor)];
  if (access.index.size() != tensor.shape.size())
    return fmt::format("{} has {} dimensions, got {} indices", tensor.name, tensor.shape.size(), access.index.size());
  const std::vector<Interval> ranges = ranges_of(stage);
  for (std::size_t g = 0; g < access.gathered.size(); ++g) {
    const int d = access.gathered[g];
    if (d < 0 || std::size_t(d) >= access.index.size() || (g > 0 && d <= access.gathered[g - 1]) ||
        access.index[std::size_t(d)] != Affine(0) || access.padded)
      return fmt::format("{} is indexed by values in a form that is not known", tensor.name);
  }
  for (std::size_t d = 0; d < access.index.size(); ++d) {
    const Affine& form = access.index[d];
    double size = std::abs(double(form.constant));
    for (const Term& term : form.terms) {
      if (term.variable < 0 || term.variable >= int(stage.axes.size())) return "an index names no axis";
      size += std::abs(double(term.coefficient)) * double(stage.axes[std::size_t(term.variable)].extent);
    }
    if (size > index_limit) return fmt::format("index {} of {} is too large", d, tensor.name);
    const Interval runs = range(form, ranges);
    if (!access.padded && (runs.low < 0 || runs.high >= tensor.shape[d])) return outside_of(tensor, d, runs);
  }
  return std::nullopt;
}

// A number in an expression in place of a value of that type.
std::optional<std::string> number_problem(double number, DType type) {
  if (is_floating(type)) return std::nullopt;
  if (number != std::round(number)) return fmt::format("{} is not an integer, as {} is", number, name_of(type));
  if (number < lowest(type) || number > highest(type)) return fmt::format("{} does not fit {}", number, name_of(type));
  return std::nullopt;
}

std::optional<std::string> value_problem(const Computation& computation, const Stage& stage, DType type,
                                         const std::set<int>& known) {
  const Value& value = stage.value;
  if (value.nodes.empty()) return "has no value";
  if (auto problem = nodes_problem(value)) return problem;
  for (const Access& access : value.loads) {
    if (access.tensor < 0 || access.tensor >= int(computation.tensors.size())) return "a load names no tensor";
    const Tensor& tensor = computation.tensors[std::size_t(access.tensor)];
    if (!known.contains(access.tensor)) return fmt::format("reads {} before it is written", tensor.name);
    if (auto problem = access_problem(computation, stage, access)) return problem;
    if (auto problem = number_problem(access.outside, tensor.dtype)) return problem;
  }
  for (const Affine& form : value.positions)
    for (const Term& term : form.terms)
      if (term.variable < 0 || term.variable >= int(stage.axes.size())) return "a position names no axis";
  const std::vector<NodeType> types = types_of(computation, stage);
  if (auto problem = types_problem(value, types)) return problem;
  const std::vector<Interval> ranges = ranges_of(stage);
  for (std::size_t n = 0; n < value.nodes.size(); ++n) {
    const ValueNode& node = value.nodes[n];
    if (node.op == Op::constant) {
      if (std::isnan(node.number)) return "a constant must be a number";
      if (auto problem = number_problem(node.number, types[n].result)) return problem;
    }
    if (node.op != Op::load) continue;
    // An index that is known to leave its tensor is a mistake, as it is in a form; one from memory is not known.
    const Access& access = value.loads[std::size_t(node.load)];
    const int operands[] = {node.a, node.b, node.c};
    for (std::size_t g = 0; g < access.gathered.size(); ++g) {
      const Tensor& tensor = computation.tensors[std::size_t(access.tensor)];
      const std::size_t d = std::size_t(access.gathered[g]);
      const std::optional<Interval> runs = integers_of(value, operands[g], ranges);
      if (runs && (runs->low < 0 || runs->high >= tensor.shape[d])) return outside_of(tensor, d, *runs);
    }
  }
  const DType result = types.back().result;
  if (stage.combine == Combine::none) return std::nullopt;
  if (!is_extreme(stage.combine) && computed_in(type) != type)
    return fmt::format("{} into {}; write a stage of type {}, and convert it in the next one",
                       stage.combine == Combine::sum ? "sums" : "products", name_of(type), name_of(computed_in(type)));
  if (is_floating(result) && !is_floating(type))
    return fmt::format("reduces values of type {} into {}; write a stage of type {}, and convert it in the next one",
                       name_of(result), name_of(type), name_of(result));
  if (is_extreme(stage.combine) && widest(result, type) != computed_in(type))
    return fmt::format("'{}' of values of type {} into {}; write a stage of type {}, and convert it in the next one",
                       name_of(stage.combine), name_of(result), name_of(type), name_of(result));
  return std::nullopt;
}

std::optional<std::string> stage_problem(const Computation& computation, const Stage& stage,
                                         const std::set<int>& known) {
  const Tensor& tensor = computation.tensors[std::size_t(stage.tensor)];
  if (tensor.role == Role::input || tensor.role == Role::constant)
    return fmt::format("an {} cannot be written", tensor.role == Role::input ? "input" : "operand known before run");
  if (tensor.is_literal()) return "a literal cannot be written";
  if (known.contains(stage.tensor)) return "is written twice";
  const std::size_t spatial = std::size_t(computation.spatial_axes(stage));
  if (!stage.index.empty() && (stage.index.size() != tensor.shape.size() || stage.axes.size() < spatial ||
                               !reaches_all_once(stage, int(spatial), tensor.shape)))
    return "its axes do not reach every element once";
  if (stage.axes.size() < spatial) return fmt::format("has {} dimensions, got {} axes", spatial, stage.axes.size());
  std::vector<std::int64_t> extents;
  std::set<std::string> names;
  for (std::size_t a = 0; a < stage.axes.size(); ++a) {
    const Axis& axis = stage.axes[a];
    if (!names.insert(axis.name).second) return fmt::format("axis {} appears twice", axis.name);
    if (axis.extent < 1) return fmt::format("axis {}: extent {} must be at least 1", axis.name, axis.extent);
    if (a < spatial && stage.index.empty() && axis.extent != tensor.shape[a])
      return fmt::format("axis {} runs through {} elements of a dimension of {}", axis.name, axis.extent,
                         tensor.shape[a]);
    extents.push_back(axis.extent);
  }
  if (auto problem = extents_problem(extents, iterations_limit)) return problem;
  const bool reduces = stage.axes.size() > spatial;
  if (stage.combine == Combine::none && reduces)
    return fmt::format("axis {} is not on the left of '='; to reduce over it write '+=', '*=', 'max=' or 'min='",
                       stage.axes[spatial].name);
  if (stage.combine != Combine::none && !reduces)
    return fmt::format("'{}' has no axis to reduce over; write '='", name_of(stage.combine));
  return value_problem(computation, stage, tensor.dtype, known);
}

}  // namespace

std::string_view name_of(Role role) {
  switch (role) {
    case Role::input:
      return "input";
    case Role::constant:
      return "constant";
    case Role::output:
      return "output";
    case Role::temporary:
      return "temporary";
  }
  return "";
}

std::string_view name_of(Combine combine) {
  switch (combine) {
    case Combine::none:
      return "=";
    case Combine::sum:
      return "+=";
    case Combine::max:
      return "max=";
    case Combine::min:
      return "min=";
    case Combine::product:
      return "*=";
  }
  return "";
}

double identity_of(Combine combine) {
  switch (combine) {
    case Combine::none:
    case Combine::sum:
      return 0;
    case Combine::max:
      return -std::numeric_limits<double>::infinity();
    case Combine::min:
      return std::numeric_limits<double>::infinity();
    case Combine::product:
      return 1;
  }
  return 0;
}

bool is_extreme(Combine combine) {
  return combine == Combine::max || combine == Combine::min;
}

std::int64_t Tensor::elements() const {
  std::int64_t product = 1;
  for (std::int64_t extent : shape) product *= extent;
  return product;
}

int Computation::tensor_named(std::string_view name) const {
  for (std::size_t t = 0; t < tensors.size(); ++t)
    if (tensors[t].name == name) return int(t);
  return -1;
}

int Computation::stage_writing(int tensor) const {
  for (std::size_t s = 0; s < stages.size(); ++s)
    if (stages[s].tensor == tensor) return int(s);
  return -1;
}

int Computation::spatial_axes(const Stage& stage) const {
  if (stage.index.empty()) return int(tensors[std::size_t(stage.tensor)].shape.size());
  int last = -1;
  for (const Affine& form : stage.index)
    for (const Term& term : form.terms) last = std::max(last, term.variable);
  return last + 1;
}

std::vector<Affine> element_of(const Computation& computation, const Stage& stage) {
  if (!stage.index.empty()) return stage.index;
  std::vector<Affine> index;
  for (int a = 0; a < computation.spatial_axes(stage); ++a) index.push_back(Affine::variable(a));
  return index;
}

std::vector<NodeType> types_of(const Computation& computation, const Stage& stage) {
  const auto type_of = [&](int tensor) { return computation.tensors[std::size_t(tensor)].dtype; };
  return types_of(stage.value, type_of(stage.tensor), [&](const Access& access) { return type_of(access.tensor); });
}

Value as_stored(const Computation& computation, int tensor, Value value) {
  const auto dtype_of = [&](int t) { return computation.tensors[std::size_t(t)].dtype; };
  const DType target = dtype_of(tensor);
  const std::vector<NodeType> types =
      types_of(value, target, [&](const Access& access) { return dtype_of(access.tensor); });
  // The type that a node has by itself; nothing for what is made of constants alone.
  std::vector<bool> constant;
  for (const ValueNode& node : value.nodes) {
    bool all = node.op != Op::load && node.op != Op::position && !converts_to(node.op);
    for (const int operand : {node.a, node.b, node.c}) all = all && (operand < 0 || constant[std::size_t(operand)]);
    constant.push_back(all);
  }
  const std::function<Value(int)> written = [&](int n) {
    const ValueNode& node = value.nodes[std::size_t(n)];
    if (operands_of(node.op) == 0) return part_of(value, n);
    std::vector<Value> operands;
    std::optional<DType> own;
    std::size_t first = 0;  // operand that has a type
    for (const int operand : {node.a, node.b, node.c}) {
      if (operand < 0) break;
      const bool is_condition = node.op == Op::select && operands.empty();
      if (!is_condition && !constant[std::size_t(operand)]) {
        const DType type = types[std::size_t(operand)].result;
        if (!own) first = operands.size();
        own = own ? widest(*own, type) : type;
      }
      operands.push_back(written(operand));
    }
    const DType works = types[std::size_t(n)].operands;
    if (own && *own != works && !converts_to(node.op) && !is_comparison(node.op))
      operands[first] = Value::apply(cast_to(works), std::move(operands[first]));
    if (operands.size() == 1) return Value::apply(node.op, std::move(operands[0]));
    if (operands.size() == 2) return Value::apply(node.op, std::move(operands[0]), std::move(operands[1]));
    return Value::apply(node.op, std::move(operands[0]), std::move(operands[1]), std::move(operands[2]));
  };
  const bool plain = std::all_of(types.begin(), types.end(), [&](const NodeType& type) {
    return type == NodeType{target, target};
  });
  const bool number = constant.back() && !is_floating(target);
  const DType result = types.back().result;
  if (!plain) value = written(int(value.nodes.size()) - 1);
  return result != target || number ? Value::apply(cast_to(target), std::move(value)) : value;
}

std::int64_t stride_along(const Computation& computation, const Access& access, int axis) {
  const Tensor& tensor = computation.tensors[std::size_t(access.tensor)];
  std::int64_t stride = 0, size = 1;
  for (std::size_t d = tensor.shape.size(); d-- > 0;) {
    stride += access.index[d].coefficient(axis) * size;
    size *= tensor.shape[d];
  }
  return stride;
}

std::optional<Problem> problem_of(const Computation& computation) {
  std::set<std::string> names;
  std::set<int> known;  // tensors that may be read
  bool writes_output = false;
  for (std::size_t t = 0; t < computation.tensors.size(); ++t) {
    const Tensor& tensor = computation.tensors[t];
    if (!names.insert(tensor.name).second) return Problem{int(t), "appears twice"};
    if (auto problem = extents_problem(tensor.shape, elements_limit)) return Problem{int(t), *problem};
    if (tensor.is_literal()) {
      if (auto problem = literal_problem(tensor)) return Problem{int(t), *problem};
    }
    if (tensor.role == Role::input || tensor.role == Role::constant || tensor.is_literal()) known.insert(int(t));
    if (tensor.role == Role::output) writes_output = true;
  }
  for (const Stage& stage : computation.stages) {
    if (stage.tensor < 0 || stage.tensor >= int(computation.tensors.size()))
      return Problem{-1, "a stage writes no tensor"};
    if (auto problem = stage_problem(computation, stage, known)) return Problem{stage.tensor, *problem};
    known.insert(stage.tensor);
  }
  for (std::size_t t = 0; t < computation.tensors.size(); ++t)
    if (!known.contains(int(t))) return Problem{int(t), "is never written"};
  if (!writes_output) return Problem{-1, "there is no output; write 'output' before the stage that computes it"};
  return std::nullopt;
}

Computation checked(Computation computation, std::string_view place) {
  if (const auto problem = problem_of(computation)) {
    if (problem->tensor < 0) throw base::UserError(place, problem->text);
    const std::string& name = computation.tensors[std::size_t(problem->tensor)].name;
    throw base::UserError(place, fmt::format("{}: {}", name, problem->text));
  }
  return computation;
}

std::int64_t flops(const Computation& computation) {
  std::int64_t total = 0;
  for (const Stage& stage : computation.stages) {
    const ArithmeticCounts counts = arithmetic(stage.value);
    std::int64_t operations = counts.add + counts.mul + counts.div + counts.compare + counts.special +
                              (stage.combine == Combine::none ? 0 : 1);
    for (const Axis& axis : stage.axes) operations = base::capped_product(operations, axis.extent);
    total = base::capped_sum(total, operations);
  }
  return total;
}

}  // namespace graft::codegen
