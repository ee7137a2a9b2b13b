#include "codegen/schedule/restructure.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "codegen/schedule/relayout.h"
#include "codegen/schedule/stages.h"
#include "codegen/schedule/winograd.h"

namespace graft::codegen {
namespace {

// Values that are read twice and absorbed again and again double each time.
constexpr std::size_t most_operations = 4096;

// Text of the failure, empty if it applied.
std::string absorb(Computation& computation, const Step& step) {
  const int consumer = stage_named(computation, step.stage), producer = stage_named(computation, step.subject);
  if (consumer < 0) return fmt::format("there is no stage {}", step.stage);
  if (producer < 0) return fmt::format("there is no stage {}", step.subject);
  const Stage& source = computation.stages[std::size_t(producer)];
  const int tensor = source.tensor;
  if (source.combine != Combine::none) return fmt::format("{} is a reduction", step.subject);
  if (!source.index.empty()) return fmt::format("{} is stored in another order than it is computed", step.subject);
  if (computation.tensors[std::size_t(tensor)].role != Role::temporary) {
    return fmt::format("{} is an output", step.subject);
  }
  const auto type_of = [&](int t) { return computed_in(computation.tensors[std::size_t(t)].dtype); };
  if (type_of(tensor) != type_of(computation.stages[std::size_t(consumer)].tensor)) {
    return fmt::format("{} is of another type", step.subject);
  }
  bool reads = false;
  for (std::size_t s = 0; s < computation.stages.size(); ++s) {
    for (const Access& access : computation.stages[s].value.loads) {
      if (access.tensor != tensor) continue;
      if (int(s) != consumer) return fmt::format("{} is read elsewhere, too", step.subject);
      if (access.padded) return fmt::format("{} is read beyond its shape", step.subject);
      if (!access.gathered.empty()) return fmt::format("{} is read at indices that are values", step.subject);
      reads = true;
    }
  }
  if (!reads) return fmt::format("{} does not read {}", step.stage, step.subject);
  Value& value = computation.stages[std::size_t(consumer)].value;
  const auto reading = std::count_if(value.nodes.begin(), value.nodes.end(), [&](const ValueNode& node) {
    return node.op == Op::load && value.loads[std::size_t(node.load)].tensor == tensor;
  });
  if (value.nodes.size() + std::size_t(reading) * source.value.nodes.size() > most_operations)
    return fmt::format("makes a value of more than {} operations", most_operations);
  const Value made = as_stored(computation, tensor, source.value);
  value = replace_loads(value, [&](const Access& read) {
    return read.tensor == tensor ? std::optional(substitute(made, read.index)) : std::nullopt;
  });
  remove_stage(computation, producer);
  return "";
}

// Text of the failure, empty if it applied.
std::string rfactor(Computation& computation, const Step& step) {
  const int number = stage_named(computation, step.stage);
  if (number < 0) return fmt::format("there is no stage {}", step.stage);
  const Stage stage = computation.stages[std::size_t(number)];
  const Tensor tensor = computation.tensors[std::size_t(stage.tensor)];
  const int spatial = computation.spatial_axes(stage);
  const auto found = std::find_if(stage.axes.begin() + spatial, stage.axes.end(),
                                  [&](const Axis& axis) { return axis.name == step.subject; });
  if (found == stage.axes.end()) return fmt::format("{} does not reduce over {}", step.stage, step.subject);
  const int reduced = int(found - stage.axes.begin());
  const std::int64_t factor = step.sizes[0];
  if (found->extent % factor != 0) return fmt::format("{} does not divide {}", factor, found->extent);

  // S.rf: the spatial axes, l_i, then the other reduced axes and l_o in l's place.
  Stage parts;
  std::vector<Affine> by;  // old axes in terms of new ones
  std::vector<std::int64_t> shape;
  for (int a = 0; a < spatial; ++a) {
    parts.axes.push_back(stage.axes[std::size_t(a)]);
    shape.push_back(parts.axes.back().extent);
    by.push_back(Affine::variable(a));
  }
  const Axis inner{fresh_axis(found->name + "_i", stage.axes), factor};
  parts.axes.push_back(inner);
  shape.push_back(factor);
  for (int a = spatial; a < int(stage.axes.size()); ++a) {
    Axis axis = stage.axes[std::size_t(a)];
    Affine form;
    if (a == reduced) {
      axis = {fresh_axis(axis.name + "_o", stage.axes), axis.extent / factor};
      form = Affine::variable(spatial);
    }
    if (axis.extent > 1 || a != reduced) {
      form += Affine::variable(int(parts.axes.size()), a == reduced ? factor : 1);
      parts.axes.push_back(std::move(axis));
    }
    by.push_back(std::move(form));
  }
  parts.combine = int(parts.axes.size()) > spatial + 1 ? stage.combine : Combine::none;
  parts.value = substitute(stage.value, by);
  parts.tensor = add_temporary(computation, tensor.name + ".rf", tensor.dtype, std::move(shape));

  Stage whole;
  whole.tensor = stage.tensor;
  whole.axes.assign(stage.axes.begin(), stage.axes.begin() + spatial);
  whole.axes.push_back(inner);
  whole.combine = stage.combine;
  whole.index = stage.index;
  Access access{parts.tensor, {}, false};
  for (int a = 0; a <= spatial; ++a) access.index.push_back(Affine::variable(a));
  whole.value = Value::load(std::move(access));
  replace_stage(computation, number, {std::move(parts), std::move(whole)});
  return "";
}

// Text of the failure, empty if it applied.
std::string copy(Computation& computation, const Step& step) {
  const int number = stage_named(computation, step.stage), tensor = computation.tensor_named(step.subject);
  if (number < 0) return fmt::format("there is no stage {}", step.stage);
  Stage stage = computation.stages[std::size_t(number)];
  for (std::size_t i = 0; i < step.loops.size(); ++i) {
    const int spatial = computation.spatial_axes(stage);
    const auto found = std::find_if(stage.axes.begin(), stage.axes.begin() + spatial,
                                    [&](const Axis& axis) { return axis.name == step.loops[i]; });
    if (found == stage.axes.begin() + spatial) return fmt::format("{} has no axis {}", step.stage, step.loops[i]);
    if (found->extent % step.sizes[i] != 0) return fmt::format("{} does not divide {}", step.sizes[i], found->extent);
    const std::int64_t blocks = found->extent / step.sizes[i];
    split_axis(computation, stage, int(found - stage.axes.begin()), {{step.sizes[i], 1}, {blocks, step.sizes[i]}});
  }
  const Access* read = nullptr;
  for (const Access& access : stage.value.loads) {
    if (access.tensor != tensor) continue;
    if (read != nullptr && !(*read == access)) return fmt::format("{} is read in more than one way", step.subject);
    read = &access;
  }
  if (tensor < 0 || read == nullptr) return fmt::format("{} does not read {}", step.stage, step.subject);
  if (read->padded) return fmt::format("{} is read beyond its shape", step.subject);
  if (!read->gathered.empty()) return fmt::format("{} is read at indices that are values", step.subject);

  // Dimensions of the copy: the outer axes, then the dimensions of the elements that one block reads.
  Stage copies;
  std::vector<int> outer;  // axes of the stage
  std::vector<Interval> ranges;
  for (const Axis& axis : stage.axes) {
    const bool is_outer = std::find(step.loops.begin(), step.loops.end(), axis.name) != step.loops.end();
    ranges.push_back({0, is_outer ? 0 : axis.extent - 1});
    if (!is_outer) continue;
    outer.push_back(int(&axis - stage.axes.data()));
    copies.axes.push_back(axis);
  }
  Access from{tensor, {}, false}, to{-1, {}, false};
  for (std::size_t d = 0; d < outer.size(); ++d) to.index.push_back(Affine::variable(outer[d]));
  for (std::size_t d = 0; d < read->index.size(); ++d) {
    const Interval touched = range(read->index[d], ranges);
    Affine source = Affine::variable(int(copies.axes.size())) + Affine(touched.low);
    Affine within = read->index[d] + Affine(-touched.low);
    for (std::size_t o = 0; o < outer.size(); ++o) {
      const std::int64_t moves = read->index[d].coefficient(outer[o]);
      source += Affine::variable(int(o), moves);
      within += Affine::variable(outer[o], -moves);
    }
    from.index.push_back(std::move(source));
    to.index.push_back(std::move(within));
    copies.axes.push_back({fresh_axis(fmt::format("d{}", d), copies.axes), touched.width()});
  }
  std::vector<std::int64_t> shape;
  for (const Axis& axis : copies.axes) shape.push_back(axis.extent);
  const Tensor& source = computation.tensors[std::size_t(tensor)];
  copies.tensor = to.tensor =
      add_temporary(computation, fmt::format("{}.{}", step.stage, step.subject), source.dtype, std::move(shape));
  copies.value = Value::load(std::move(from));
  stage.value = map_accesses(
      std::move(stage.value), [&](Access access) { return access.tensor == tensor ? to : access; },
      [](const Affine& form) { return form; });
  replace_stage(computation, number, {std::move(copies), std::move(stage)});
  return "";
}

// The value of a node, with what `instead` gives in place of nodes below it.
Value rebuilt(const Value& value, int number, const std::function<std::optional<Value>(const ValueNode&)>& instead) {
  const ValueNode& node = value.nodes[std::size_t(number)];
  if (std::optional<Value> other = instead(node)) return *std::move(other);
  const auto operand = [&](int position) { return rebuilt(value, position, instead); };
  if (node.op == Op::load) return part_of(value, number);
  switch (operands_of(node.op)) {
    case 1:
      return Value::apply(node.op, operand(node.a));
    case 2:
      return Value::apply(node.op, operand(node.a), operand(node.b));
    case 3:
      return Value::apply(node.op, operand(node.a), operand(node.b), operand(node.c));
    default:
      return part_of(value, number);
  }
}

// Text of the failure, empty if it applied.
std::string reciprocal(Computation& computation, const Step& step) {
  const int number = stage_named(computation, step.stage);
  if (number < 0) return fmt::format("there is no stage {}", step.stage);
  Stage stage = computation.stages[std::size_t(number)];
  const DType type = computed_in(computation.tensors[std::size_t(stage.tensor)].dtype);
  for (const NodeType& node : types_of(computation, stage)) {
    if (computed_in(node.result) != type) return fmt::format("{} computes in several types", step.stage);
  }
  if (!is_floating(type)) return fmt::format("{} holds integers", step.stage);
  const auto found =
      std::find_if(stage.axes.begin(), stage.axes.end(), [&](const Axis& axis) { return axis.name == step.subject; });
  if (found == stage.axes.end()) return fmt::format("{} has no axis {}", step.stage, step.subject);
  const int along = int(found - stage.axes.begin());
  const auto moves = [](const Access& access, int axis) {
    return std::any_of(access.index.begin(), access.index.end(),
                       [&](const Affine& form) { return form.coefficient(axis) != 0; });
  };

  std::vector<Stage> stages;
  std::vector<std::pair<Value, Access>> known;  // divisors, and where their reciprocals are
  const auto reciprocal_of = [&](const Value& divisor) {
    for (const auto& [other, access] : known) {
      if (other == divisor) return access;
    }
    Stage inverse;
    std::vector<Affine> by(stage.axes.size());  // old axes in terms of new ones
    std::vector<std::int64_t> shape;
    Access access{-1, {}, false};
    for (int a = 0; a < int(stage.axes.size()); ++a) {
      if (std::none_of(divisor.loads.begin(), divisor.loads.end(), [&](const Access& l) { return moves(l, a); }))
        continue;
      by[std::size_t(a)] = Affine::variable(int(inverse.axes.size()));
      access.index.push_back(Affine::variable(a));
      inverse.axes.push_back(stage.axes[std::size_t(a)]);
      shape.push_back(stage.axes[std::size_t(a)].extent);
    }
    inverse.value = Value::apply(Op::div, Value::constant(1), substitute(divisor, by));
    inverse.tensor = access.tensor = add_temporary(computation, step.stage + ".reciprocal", type, std::move(shape));
    stages.push_back(std::move(inverse));
    known.emplace_back(divisor, access);
    return access;
  };
  const Value value = stage.value;
  const std::function<std::optional<Value>(const ValueNode&)> multiplied =
      [&](const ValueNode& node) -> std::optional<Value> {
    if (node.op != Op::div) return std::nullopt;
    const Value divisor = part_of(value, node.b);
    const bool stays = divisor.positions.empty() &&
                       std::none_of(divisor.loads.begin(), divisor.loads.end(), [&](const Access& access) {
                         return access.padded || !access.gathered.empty() || moves(access, along);
                       });
    if (!stays || divisor.loads.empty()) return std::nullopt;
    return Value::apply(Op::mul, rebuilt(value, node.a, multiplied), Value::load(reciprocal_of(divisor)));
  };
  stage.value = rebuilt(value, int(value.nodes.size()) - 1, multiplied);
  if (stages.empty()) return fmt::format("{} divides by nothing that stays along {}", step.stage, step.subject);
  stages.push_back(std::move(stage));
  replace_stage(computation, number, std::move(stages));
  return "";
}

// Text of the failure, empty if it applied.
std::string unsign(Computation& computation, const Step& step) {
  constexpr double half = 128;
  const int number = stage_named(computation, step.stage), tensor = computation.tensor_named(step.subject);
  if (number < 0) return fmt::format("there is no stage {}", step.stage);
  Stage stage = computation.stages[std::size_t(number)];
  const auto reads = [&](const Access& access) { return access.tensor == tensor; };
  if (tensor < 0 || std::none_of(stage.value.loads.begin(), stage.value.loads.end(), reads))
    return fmt::format("{} does not read {}", step.stage, step.subject);
  const DType type = computation.tensors[std::size_t(stage.tensor)].dtype;
  if (computation.tensors[std::size_t(tensor)].dtype != DType::i8) return fmt::format("{} is not i8", step.subject);
  const bool is_product = stage.value.nodes.size() == 3 && stage.value.root().op == Op::mul &&
                          stage.value.nodes[0].op == Op::load && stage.value.nodes[1].op == Op::load;
  if (!is_product || stage.combine != Combine::sum || is_floating(type) || bytes_of(type) < 4 || !stage.index.empty())
    return fmt::format("{} is not a sum of products in i32", step.stage);
  const std::size_t own = reads(stage.value.loads[0]) ? 0 : 1;
  const Access read = stage.value.loads[own], other = stage.value.loads[1 - own];
  if (read.padded || other.padded || !read.gathered.empty() || !other.gathered.empty() || other.tensor == tensor)
    return fmt::format("{} is not two loads within their shapes", step.stage);

  Stage shifted;  // the tensor, 128 more
  const std::vector<std::int64_t> shape = computation.tensors[std::size_t(tensor)].shape;
  Access element{tensor, {}, false};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    shifted.axes.push_back({fmt::format("d{}", d), shape[d]});
    element.index.push_back(Affine::variable(int(d)));
  }
  shifted.tensor = add_temporary(computation, fmt::format("{}.{}", step.stage, step.subject), DType::u8, shape);
  shifted.value = Value::apply(
      Op::cast_u8, Value::apply(Op::add, Value::apply(Op::cast_i32, Value::load(element)), Value::constant(half)));

  Stage sums;  // of the other operand, over all that the stage sums over
  std::vector<Affine> by(stage.axes.size());
  std::vector<std::int64_t> kept;
  const int spatial = computation.spatial_axes(stage);
  std::vector<int> places;  // axes of the stage
  for (int axis = 0; axis < int(stage.axes.size()); ++axis) {
    const bool moves = std::any_of(other.index.begin(), other.index.end(),
                                   [&](const Affine& form) { return form.coefficient(axis) != 0; });
    if (axis < spatial && !moves) continue;
    by[std::size_t(axis)] = Affine::variable(int(sums.axes.size()));
    sums.axes.push_back(stage.axes[std::size_t(axis)]);
    if (axis >= spatial) continue;
    kept.push_back(stage.axes[std::size_t(axis)].extent);
    places.push_back(axis);
  }
  sums.combine = Combine::sum;
  sums.value = substitute(Value::load(other), by);
  sums.tensor = add_temporary(computation, step.stage + ".offset", type, kept);

  Access now = read;
  now.tensor = shifted.tensor;
  stage.value = own == 0 ? Value::apply(Op::mul, Value::load(now), Value::load(other))
                         : Value::apply(Op::mul, Value::load(other), Value::load(now));
  // What the stage has is that much too large.
  const auto right = [&](const Access& whole) {
    Access offset{sums.tensor, {}, false};
    for (const int axis : places) offset.index.push_back(whole.index[std::size_t(axis)]);
    return Value::apply(Op::sub, Value::load(whole),
                        Value::apply(Op::mul, Value::constant(half), Value::load(std::move(offset))));
  };
  const int result = stage.tensor;
  if (computation.tensors[std::size_t(result)].role == Role::temporary) {
    for (Stage& reader : computation.stages)
      for (const Access& access : reader.value.loads)
        if (access.tensor == result && (access.padded || !access.gathered.empty()))
          return fmt::format("{} is read beyond its shape, or at indices that are values", step.stage);
    for (Stage& reader : computation.stages)
      reader.value = replace_loads(reader.value, [&](const Access& access) {
        return access.tensor == result ? std::optional(right(access)) : std::nullopt;
      });
    replace_stage(computation, number, {std::move(shifted), std::move(sums), std::move(stage)});
    return "";
  }
  Stage whole;
  whole.axes.assign(stage.axes.begin(), stage.axes.begin() + spatial);
  whole.tensor = result;
  stage.tensor = add_temporary(computation, step.stage + ".sum", type, computation.tensors[std::size_t(result)].shape);
  Access sum{stage.tensor, {}, false};
  for (int axis = 0; axis < spatial; ++axis) sum.index.push_back(Affine::variable(axis));
  whole.value = right(sum);
  replace_stage(computation, number, {std::move(shifted), std::move(sums), std::move(stage), std::move(whole)});
  return "";
}

}  // namespace

bool is_restructuring(StepKind kind) {
  return kind == StepKind::absorb || kind == StepKind::rfactor || kind == StepKind::winograd ||
         kind == StepKind::layout || kind == StepKind::block || kind == StepKind::copy ||
         kind == StepKind::reciprocal || kind == StepKind::unsign;
}

base::Result<Restructured> restructured(const Computation& computation, const Schedule& schedule) {
  Restructured result{computation};
  for (const Step& step : schedule) {
    std::string failure;
    if (step.kind == StepKind::absorb) failure = absorb(result.computation, step);
    if (step.kind == StepKind::layout || step.kind == StepKind::block) failure = relayout(result.computation, step);
    if (step.kind == StepKind::copy) failure = copy(result.computation, step);
    if (step.kind == StepKind::reciprocal) failure = reciprocal(result.computation, step);
    if (step.kind == StepKind::unsign) failure = unsign(result.computation, step);
    if (step.kind == StepKind::rfactor) failure = rfactor(result.computation, step);
    if (step.kind == StepKind::winograd) {
      const base::Result<double> factor = winograd(result.computation, step);
      if (factor)
        result.amplification *= *factor;
      else
        failure = factor.reason().text;
    }
    if (!failure.empty()) return base::Reason{fmt::format("{}: {}", to_text(step), failure)};
  }
  return result;
}

}  // namespace graft::codegen
