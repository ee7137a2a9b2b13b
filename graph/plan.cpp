#include "graph/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/text.h"
#include "codegen/expression/parse.h"
#include "graph/alternatives.h"
#include "graph/fuse.h"

namespace graft::graph {
namespace {

class Planner {
 public:
  Planner(const Graph& graph, Groups groups)
      : graph_(graph), groups_(std::move(groups)), buffer_(groups_.values.size(), -1) {}

  OpenPlan made() {
    for (const int input : graph_.inputs) plan_.inputs.push_back(tensor_of(input));
    for (const int output : graph_.outputs) plan_.outputs.push_back(tensor_of(output));
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i)
      buffer_of(graph_.inputs[i], Plan::Buffer::Where::input, int(i));
    // An output's elements are computed in its memory.
    std::vector<std::size_t> copied;
    for (std::size_t o = 0; o < graph_.outputs.size(); ++o) {
      const Groups::Source& source = groups_.source[std::size_t(graph_.outputs[o])];
      const Value& own = groups_.values[std::size_t(source.value)];
      const bool is_computed =
          own.origin == Value::Origin::computed && source.offset == 0 &&
          elements_of(*own.shape) == elements_of(*graph_.values[std::size_t(graph_.outputs[o])].shape);
      if (is_computed && buffer_[std::size_t(source.value)] < 0)
        buffer_of(source.value, Plan::Buffer::Where::output, int(o));
      else
        copied.push_back(o);
    }
    for (const std::vector<std::vector<int>>& place : groups_.places) {
      Step& step = open_.steps.emplace_back();
      for (const std::vector<int>& groups : place) {
        std::vector<Step>& steps = step.alternatives.emplace_back();
        for (const int group : groups) steps.push_back({call_of(groups_.groups[std::size_t(group)]), {}});
      }
      if (place.size() == 1) step = Step{std::move(step.alternatives.front().front().call), {}};
    }
    for (const std::size_t o : copied) {
      const int output = graph_.outputs[o], from = place_of_view(output);
      Plan::Buffer to = plan_.buffers[std::size_t(from)];
      to.part_of = -1;
      to.offset = 0;
      to.where = Plan::Buffer::Where::output;
      to.number = int(o);
      to.value = output;
      to.known = nullptr;
      if (elements_of(to.shape) == 0) {  // nothing to copy
        plan_.buffers.push_back(std::move(to));
        continue;
      }
      Plan::Call call;
      call.operands = {from};
      call.result = int(plan_.buffers.size());
      call.label = fmt::format("output {}", in_quotes(graph_.values[std::size_t(output)].name));
      const auto type = codegen::name_of(to.type);
      const std::int64_t elements = std::max<std::int64_t>(elements_of(to.shape), 1);
      const std::string role =
          plan_.buffers[std::size_t(from)].where == Plan::Buffer::Where::constant ? "constant" : "input";
      plan_.buffers.push_back(std::move(to));
      call.kernel =
          kernels_.number(codegen::parse_workload(fmt::format(
                              "{0} x0[{1}] : {2}; output y[i0] : {2} = x0[i0] where i0={1}", role, elements, type)),
                          call.label);
      open_.steps.push_back({std::move(call), {}});
    }
    open_.kernels_of_calls = plan_.kernels.size();
    return std::move(open_);
  }

 private:
  Plan::Call call_of(const Group& group) {
    Plan::Call call;
    for (const int operand : group.operands) call.operands.push_back(place(operand));
    call.result = place(group.result);
    call.nodes = group.nodes;
    call.label = label_of(group.nodes);
    for (const int node : group.nodes) call.layers.push_back(layer_of(graph_.nodes[std::size_t(node)]));
    call.kernel = kernels_.number(workload_of(group), call.label, group.foreign);
    return call;
  }

  Plan::Tensor tensor_of(int value) const {
    const Value& own = graph_.values[std::size_t(value)];
    return {own.name, *own.type, *own.shape, own.declared};
  }

  int buffer_of(int value, Plan::Buffer::Where where, int number) {
    const Value& own = groups_.values[std::size_t(value)];
    buffer_[std::size_t(value)] = int(plan_.buffers.size());
    Plan::Buffer buffer;
    buffer.where = where;
    buffer.number = number;
    buffer.value = std::size_t(value) < graph_.values.size() ? value : -1;
    buffer.type = *own.type;
    buffer.shape = *own.shape;
    buffer.known = own.known;
    plan_.buffers.push_back(std::move(buffer));
    return buffer_[std::size_t(value)];
  }
  // The buffer of a value, which is made if it is not known yet.
  int place(int value) {
    if (buffer_[std::size_t(value)] >= 0) return buffer_[std::size_t(value)];
    const Groups::Source& source = groups_.source[std::size_t(value)];
    if (source.value == value) {
      const bool is_known = groups_.values[std::size_t(value)].known != nullptr;
      return buffer_of(value, is_known ? Plan::Buffer::Where::constant : Plan::Buffer::Where::arena, -1);
    }
    const int whole = place(source.value);
    const int part = buffer_of(value, plan_.buffers[std::size_t(whole)].where, -1);
    plan_.buffers[std::size_t(part)].part_of = whole;
    plan_.buffers[std::size_t(part)].offset = source.offset;
    return part;
  }
  // The same for a view: all of a value in another shape is where the value is.
  int place_of_view(int value) {
    const Groups::Source& source = groups_.source[std::size_t(value)];
    const Shape &own = *groups_.values[std::size_t(value)].shape,
                &whole = *groups_.values[std::size_t(source.value)].shape;
    return source.offset == 0 && elements_of(own) == elements_of(whole) ? place(source.value) : place(value);
  }

  // Equal groups, such as the steps of a loop, are read once.
  const codegen::Workload& workload_of(const Group& group) {
    std::string text = codegen::to_text(group.computation);
    const auto found = workloads_.find(text);
    if (found != workloads_.end()) return found->second;
    codegen::Workload workload = codegen::parse_workload(text);
    return workloads_.emplace(std::move(text), std::move(workload)).first->second;
  }

  // For people: of a foreign function its name.
  static std::string operation_of(const Node& node) {
    const auto function = node.attributes.find("function");
    const bool is_foreign = node.operation == "graft.Foreign" && function != node.attributes.end();
    return is_foreign ? std::get<std::string>(function->second) : node.operation;
  }
  static std::string layer_of(const Node& node) {
    return node.name.empty() ? operation_of(node) : fmt::format("{} ({})", node.name, operation_of(node));
  }
  // The name of the first node that has one, and the operators.
  std::string label_of(const std::vector<int>& nodes) const {
    std::vector<std::string> operations;
    std::string name;
    for (const int number : nodes) {
      const Node& node = graph_.nodes[std::size_t(number)];
      if (name.empty()) name = node.name;
      if (operations.empty() || operations.back() != operation_of(node)) operations.push_back(operation_of(node));
    }
    const std::string what = fmt::format("{}", fmt::join(operations, ", "));
    return name.empty() ? fmt::format("node {} ({})", nodes.front(), what) : fmt::format("{} ({})", name, what);
  }

  const Graph& graph_;
  Groups groups_;
  std::vector<int> buffer_;                             // by value
  std::map<std::string, codegen::Workload> workloads_;  // by text
  OpenPlan open_;
  Plan& plan_ = open_.plan;
  Kernels kernels_{plan_};
};

}  // namespace

Kernels::Kernels(Plan& plan) : plan_(plan) {
  for (const Plan::Kernel& kernel : plan.kernels)
    if (!kernel.foreign) numbers_.emplace(kernel.workload.key(), int(&kernel - plan.kernels.data()));
}

int Kernels::number(const codegen::Workload& workload, const std::string& label,
                    const std::shared_ptr<const codegen::Foreign>& foreign) {
  const int next = int(plan_.kernels.size());
  int number = next;
  if (foreign) {
    const auto same = std::find_if(plan_.kernels.begin(), plan_.kernels.end(), [&](const Plan::Kernel& kernel) {
      return kernel.foreign != nullptr && *kernel.foreign == *foreign;
    });
    number = int(same - plan_.kernels.begin());
  } else {
    number = numbers_.emplace(workload.key(), next).first->second;
  }
  if (number == next) plan_.kernels.push_back({workload, 0, label, foreign});
  return number;
}

std::vector<int> overwritten_inputs(const Plan& plan) {
  std::vector<int> inputs(plan.outputs.size(), -1), reads(plan.inputs.size());
  const auto whole = [&](int buffer) -> const Plan::Buffer& { return plan.buffers[whole_of(plan, buffer)]; };
  for (const Plan::Call& call : plan.calls)
    for (const int operand : call.operands)
      if (whole(operand).where == Plan::Buffer::Where::input) ++reads[std::size_t(whole(operand).number)];
  for (const Plan::Call& call : plan.calls) {
    const auto& foreign = plan.kernels[std::size_t(call.kernel)].foreign;
    if (foreign == nullptr || !codegen::may_overwrite_first(*foreign)) continue;
    const Plan::Buffer &from = whole(call.operands.front()), &to = whole(call.result);
    const bool is_alone = from.where == Plan::Buffer::Where::input && to.where == Plan::Buffer::Where::output &&
                          reads[std::size_t(from.number)] == 1 && from.bytes() == to.bytes();
    if (is_alone) inputs[std::size_t(to.number)] = from.number;
  }
  return inputs;
}

std::size_t whole_of(const Plan& plan, int buffer) {
  const int whole = plan.buffers[std::size_t(buffer)].part_of;
  return std::size_t(whole >= 0 ? whole : buffer);
}

std::int64_t Plan::Buffer::bytes() const {
  return elements_of(shape) * codegen::bytes_of(type);
}

OpenPlan open_plan(const Graph& graph, const codegen::Target& target, std::string_view place, codegen::DType storage) {
  return Planner(graph, grouped(graph, target, place, storage)).made();
}

ArenaUse arena_use(const Plan& plan, std::span<const std::int64_t> scratch_bytes_by_kernel) {
  ArenaUse use;
  use.lifetime_of_buffer.assign(plan.buffers.size(), -1);
  use.scratch_of_call.assign(plan.calls.size(), -1);
  for (int c = 0; c < int(plan.calls.size()); ++c) {
    const Plan::Call& call = plan.calls[std::size_t(c)];
    const std::size_t result = whole_of(plan, call.result);
    if (plan.buffers[result].where == Plan::Buffer::Where::arena && use.lifetime_of_buffer[result] < 0) {
      use.lifetime_of_buffer[result] = int(use.lifetimes.size());
      use.lifetimes.push_back({plan.buffers[result].bytes(), c, c});
    }
    const auto lives = [&](int buffer) {
      const int lifetime = use.lifetime_of_buffer[whole_of(plan, buffer)];
      if (lifetime >= 0) use.lifetimes[std::size_t(lifetime)].last = c;
    };
    lives(call.result);
    for (const int operand : call.operands) lives(operand);
  }
  for (int c = 0; c < int(plan.calls.size()); ++c) {
    const std::int64_t bytes = scratch_bytes_by_kernel[std::size_t(plan.calls[std::size_t(c)].kernel)];
    if (bytes == 0) continue;
    use.scratch_of_call[std::size_t(c)] = int(use.lifetimes.size());
    use.lifetimes.push_back({bytes, c, c});
  }
  return use;
}

}  // namespace graft::graph
