#include "graph/layouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "codegen/expression/parse.h"
#include "codegen/schedule/rules.h"
#include "codegen/schedule/stored.h"
#include "graph/operators.h"

namespace graft::graph {
namespace {

using codegen::Computation;
using codegen::Layout;
using codegen::Role;
using codegen::Workload;

constexpr std::int64_t fewest_channels = 4;  // side by side
constexpr std::size_t most_states = 4096, most_calls = 4096, most_dimensions = 8;

std::int64_t product(std::span<const std::int64_t> extents) {
  return std::accumulate(extents.begin(), extents.end(), std::int64_t(1), std::multiplies<>());
}
std::int64_t elements_of_a_channel(const Shape& shape) {
  return product(std::span(shape).subspan(2));
}

// Channels in blocks, [N,C,...] as [N,C/b,...,b], of an operand that has these elements in another shape. Nothing if
// its dimensions divide or join the channels.
std::optional<Layout> layout_of(const Shape& value, std::int64_t block, const Shape& operand) {
  for (std::size_t d = 0; d < operand.size(); ++d) {
    if (operand[d] != value[1] || product(std::span(operand).first(d)) != value[0] ||
        product(std::span(operand).subspan(d + 1)) != elements_of_a_channel(value))
      continue;
    Layout layout;
    for (std::size_t e = 0; e < operand.size(); ++e) layout.parts.push_back({int(e), 0, e == d ? block : 1});
    layout.parts.push_back({int(d), block, 1});
    return layout;
  }
  return std::nullopt;
}

// The tensors of a kernel's computation, by operand of its calls, then the result's; -1: it does not read the operand.
std::vector<int> tensors_of(const Computation& computation, std::size_t operands) {
  std::vector<int> tensors(operands + 1, -1);
  for (std::size_t t = 0; t < computation.tensors.size(); ++t) {
    const codegen::Tensor& tensor = computation.tensors[t];
    if (tensor.role == Role::output) tensors.back() = int(t);
    if (tensor.role != Role::input && tensor.role != Role::constant) continue;
    if (const int number = operand_of(tensor); number >= 0) tensors[std::size_t(number)] = int(t);
  }
  return tensors;
}

// For each buffer that is not a part: whether a convolution reads or writes its channels, or calls between it and a
// convolution keep them: values that only products touch, as those of a transformer after one, gain nothing in blocks.
std::vector<bool> channels_of_convolutions(const Plan& plan, const std::vector<const Plan::Call*>& calls) {
  std::vector<bool> found(plan.buffers.size());
  const auto convolves = [&](const Plan::Call& call) {
    const auto& tensors = plan.kernels[std::size_t(call.kernel)].workload.computation().tensors;
    return std::any_of(tensors.begin(), tensors.end(), [](const codegen::Tensor& tensor) {
      return tensor.role == Role::constant && tensor.shape.size() > 2;
    });
  };
  const auto buffers_of = [&](const Plan::Call& call) {
    std::vector<std::size_t> all = {whole_of(plan, call.result)};
    for (const int operand : call.operands) all.push_back(whole_of(plan, operand));
    return all;
  };
  // [N,C,...]: values of which this is the same are of the same channels, if one is.
  const auto channels = [&](std::size_t buffer) {
    const Shape& shape = plan.buffers[buffer].shape;
    return shape.size() < 3 ? Shape() : Shape{shape[0], shape[1], std::int64_t(shape.size())};
  };
  for (const Plan::Call* const call : calls)
    if (convolves(*call))
      for (const std::size_t buffer : buffers_of(*call)) found[buffer] = true;
  for (bool changed = true; changed;) {
    changed = false;
    for (const Plan::Call* const call : calls) {
      const std::vector<std::size_t> all = buffers_of(*call);
      for (const std::size_t from : all) {
        if (!found[from] || channels(from).empty()) continue;
        for (const std::size_t to : all)
          if (!found[to] && channels(to) == channels(from)) changed = found[to] = true;
      }
    }
  }
  return found;
}

// By buffer: channels side by side.
std::vector<std::int64_t> blocks_of(const OpenPlan& open, const codegen::Target& target) {
  const Plan& plan = open.plan;
  const std::int64_t lanes = target.lanes(4);
  const std::vector<const Plan::Call*> calls = all_calls(open.steps);
  std::vector<std::int64_t> blocks(plan.buffers.size());
  if (lanes < fewest_channels || calls.size() > most_calls) return blocks;
  const std::vector<bool> is_of_convolution = channels_of_convolutions(plan, calls);
  for (std::size_t w = 0; w < plan.buffers.size(); ++w) {
    const Plan::Buffer& whole = plan.buffers[w];
    if (!is_of_convolution[w] || whole.part_of >= 0 || whole.where != Plan::Buffer::Where::arena ||
        whole.shape.size() < 3 || whole.shape.size() > most_dimensions)
      continue;
    const std::int64_t elements = elements_of_a_channel(whole.shape);
    if (elements < 2) continue;  // blocks would not change the order
    std::int64_t channels = whole.shape[1];
    std::vector<std::size_t> alike = {w};
    for (std::size_t p = 0; p < plan.buffers.size(); ++p) {
      const Plan::Buffer& part = plan.buffers[p];
      if (part.part_of != int(w)) continue;
      alike.push_back(p);
      const std::int64_t channel_bytes = elements * codegen::bytes_of(part.type);
      const bool is_channels = whole.shape[0] == 1 && part.shape.size() == whole.shape.size() && part.shape[0] == 1 &&
                               std::equal(part.shape.begin() + 2, part.shape.end(), whole.shape.begin() + 2) &&
                               part.offset % channel_bytes == 0;
      channels = is_channels ? std::gcd(std::gcd(channels, part.shape[1]), part.offset / channel_bytes) : 1;
    }
    for (std::int64_t block = lanes; block >= std::max(lanes / 2, fewest_channels); block /= 2) {
      if (channels % block != 0) continue;
      for (const std::size_t b : alike) blocks[b] = block;
      break;
    }
  }
  return blocks;
}

// The buffer of an operand, or of the result after them.
int buffer_of(const Plan::Call& call, std::size_t operand) {
  return operand < call.operands.size() ? call.operands[operand] : call.result;
}

// [N,C,S] as [N,C/b,S,b], or the reverse.
Workload copy_workload(const Plan::Buffer& value, std::int64_t block, bool into_blocks) {
  const auto type = codegen::name_of(value.type);
  const std::int64_t n = value.shape[0], blocks = value.shape[1] / block, s = elements_of_a_channel(value.shape);
  if (into_blocks)
    return codegen::parse_workload(fmt::format(
        "input x0[{0},{1},{2}] : {3}; output y[n,o,s,k] : {3} = x0[n,{4}*o + k,s] where n={0}, o={5}, s={2}, k={4}", n,
        value.shape[1], s, type, block, blocks));
  return codegen::parse_workload(fmt::format(
      "input x0[{0},{1},{2},{3}] : {4}; output y[n,{3}*o + k,s] : {4} = x0[n,o,s,k] where n={0}, o={1}, k={3}, s={2}",
      n, blocks, s, block, type));
}

class FormMaker {
 public:
  FormMaker(OpenPlan& open, const codegen::Target& target)
      : open_(open), plan_(open.plan), target_(target), blocks_(blocks_of(open, target)), kernels_(open.plan) {}

  void make() {
    add_to(open_.steps);
    open_.kernels_of_calls = plan_.kernels.size();
    for (const auto& [buffer, blocked] : in_blocks_) {
      const std::int64_t block = blocks_[std::size_t(buffer)];
      const Plan::Buffer& value = plan_.buffers[std::size_t(buffer)];
      const int into = kernels_.number(copy_workload(value, block, true), fmt::format("into blocks of {}", block));
      const int out = kernels_.number(copy_workload(value, block, false), fmt::format("out of blocks of {}", block));
      open_.copies[blocked] = {buffer, into, true};
      open_.copies[buffer] = {blocked, out, false};
    }
  }

 private:
  void add_to(std::vector<Step>& steps) {
    for (Step& step : steps) {
      for (std::vector<Step>& alternative : step.alternatives) add_to(alternative);
      if (!step.alternatives.empty()) continue;
      const std::vector<Plan::Call> others = others_of(step.call);
      if (others.empty()) continue;
      step.alternatives.push_back({{std::move(step.call), {}}});
      for (const Plan::Call& other : others) step.alternatives.push_back({{other, {}}});
    }
  }

  // The call in other forms.
  std::vector<Plan::Call> others_of(const Plan::Call& call) {
    const Plan::Kernel& own = plan_.kernels[std::size_t(call.kernel)];
    const std::size_t operands = call.operands.size();
    if (own.foreign) return {};
    const std::vector<int> tensors = tensors_of(own.workload.computation(), operands);
    std::vector<bool> all(operands + 1);
    for (std::size_t o = 0; o <= operands; ++o)
      all[o] = tensors[o] >= 0 && blocks_[std::size_t(buffer_of(call, o))] > 0;
    // Everything, or one side alone where this has no form.
    std::vector<bool> reads = all, writes(operands + 1);
    reads.back() = false;
    writes.back() = all.back();
    std::vector<Plan::Call> others;
    std::set<std::vector<bool>> seen = {std::vector<bool>(operands + 1)};
    for (const std::vector<bool>& wanted : {all, writes, reads}) {
      if (!seen.insert(wanted).second) continue;
      if (auto form = made(call, tensors, wanted)) {
        others.push_back(std::move(*form));
        if (wanted == all) break;
      }
    }
    return others;
  }

  // The buffer that has a value in blocks. A whole and its parts have one together.
  int in_blocks(int buffer) {
    if (const auto known = in_blocks_.find(buffer); known != in_blocks_.end()) return known->second;
    const int whole = int(whole_of(plan_, buffer)), count = int(plan_.buffers.size());
    for (int b = 0; b < count; ++b) {
      if (int(whole_of(plan_, b)) != whole) continue;
      in_blocks_[b] = int(plan_.buffers.size());
      Plan::Buffer blocked = plan_.buffers[std::size_t(b)];
      if (blocked.part_of >= 0) blocked.part_of = in_blocks_.at(whole);
      blocked.shape[1] /= blocks_[std::size_t(b)];
      blocked.shape.push_back(blocks_[std::size_t(b)]);
      plan_.buffers.push_back(std::move(blocked));
    }
    return in_blocks_.at(buffer);
  }

  // A constant in the layout of a kernel's tensor.
  int stored_constant(int constant, const Layout& layout, const codegen::Tensor& tensor) {
    const auto [place, is_new] =
        constants_.try_emplace({constant, codegen::to_text(layout)}, int(plan_.buffers.size()));
    if (is_new) {
      Plan::Buffer made = plan_.buffers[std::size_t(constant)];
      made.shape = tensor.shape;
      made.known = nullptr;
      plan_.buffers.push_back(std::move(made));
      open_.constants[place->second] = {constant, layout};
    }
    return place->second;
  }

  // Element by element on tensors of one dimension: right for any order that all have.
  bool is_in_any_order(const Plan::Call& call, const Computation& computation, const std::vector<int>& tensors,
                       const std::vector<bool>& wanted) const {
    if (computation.stages.size() != 1 || computation.stages[0].axes.size() != 1 ||
        !computation.stages[0].index.empty())
      return false;
    const Plan::Buffer& result = plan_.buffers[std::size_t(call.result)];
    for (std::size_t o = 0; o < wanted.size(); ++o) {
      if (tensors[o] < 0) continue;
      const Plan::Buffer& own = plan_.buffers[std::size_t(buffer_of(call, o))];
      if (wanted[o] ? own.shape != result.shape ||
                          blocks_[std::size_t(buffer_of(call, o))] != blocks_[std::size_t(call.result)]
                    : elements_of(own.shape) > 1)
        return false;
    }
    const auto& loads = computation.stages[0].value.loads;
    return std::all_of(loads.begin(), loads.end(), [&](const codegen::Access& access) {
      return access.gathered.empty() && access.index.size() <= 1 &&
             (access.index.empty() || access.index[0].is_constant() || access.index[0] == codegen::Affine::variable(0));
    });
  }

  std::optional<Plan::Call> made(const Plan::Call& call, const std::vector<int>& tensors,
                                 const std::vector<bool>& wanted) {
    const Computation& computation = plan_.kernels[std::size_t(call.kernel)].workload.computation();
    Plan::Call form = call;
    if (!is_in_any_order(call, computation, tensors, wanted)) {
      const std::optional<Form>& stored = stored_form(call, computation, tensors, wanted);
      if (!stored) return std::nullopt;
      take(*stored, form);
    }
    for (std::size_t o = 0; o < wanted.size(); ++o)
      if (wanted[o]) (o < form.operands.size() ? form.operands[o] : form.result) = in_blocks(buffer_of(call, o));
    return form;
  }

  struct Form {
    int kernel = -1;
    codegen::Stored stored;
  };
  const std::optional<Form>& stored_form(const Plan::Call& call, const Computation& computation,
                                         const std::vector<int>& tensors, const std::vector<bool>& wanted) {
    static const std::optional<Form> none;
    std::map<std::string, Layout> layouts;
    std::string key = std::to_string(call.kernel);
    for (std::size_t o = 0; o < wanted.size(); ++o) {
      if (!wanted[o]) continue;
      const int buffer = buffer_of(call, o);
      const codegen::Tensor& tensor = computation.tensors[std::size_t(tensors[o])];
      const auto layout =
          layout_of(plan_.buffers[std::size_t(buffer)].shape, blocks_[std::size_t(buffer)], tensor.shape);
      if (!layout) return none;
      layouts[tensor.name] = *layout;
      key += fmt::format(";{} {}", tensor.name, codegen::to_text(*layout));
    }
    const auto [known, is_new] = made_.try_emplace(key);
    if (!is_new) return known->second;
    base::Result<codegen::Stored> stored = codegen::stored_as(computation, layouts);
    if (!stored) return known->second;
    const Workload workload = codegen::parse_workload(codegen::to_text(stored->computation));
    if (codegen::schedules_together(workload.padded(), target_))
      known->second = Form{kernels_.number(workload, call.label), std::move(stored).value()};
    return known->second;
  }

  void take(const Form& form, Plan::Call& call) {
    call.kernel = form.kernel;
    for (const codegen::Tensor& tensor : form.stored.computation.tensors) {
      const auto layout = form.stored.layouts.find(tensor.name);
      if (tensor.role != Role::constant || layout == form.stored.layouts.end()) continue;
      int& operand = call.operands[std::size_t(operand_of(tensor))];
      operand = stored_constant(operand, layout->second, tensor);
    }
  }

  OpenPlan& open_;
  Plan& plan_;
  const codegen::Target& target_;
  const std::vector<std::int64_t> blocks_;  // by buffer of the plan as it is given
  Kernels kernels_;
  std::map<std::string, std::optional<Form>> made_;       // by kernel and layouts
  std::map<int, int> in_blocks_;                          // by buffer
  std::map<std::pair<int, std::string>, int> constants_;  // by constant and layout
};

}  // namespace

void add_layouts(OpenPlan& open, const codegen::Target& target) {
  FormMaker(open, target).make();
}

}  // namespace graft::graph
