#include "graph/layouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
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

Shape in_blocks_shape(const Shape& shape, std::int64_t block) {
  Shape stored = shape;
  stored[1] /= block;
  stored.push_back(block);
  return stored;
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
std::vector<bool> channels_of_convolutions(const Plan& plan) {
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
  for (const Plan::Call& call : plan.calls)
    if (convolves(call))
      for (const std::size_t buffer : buffers_of(call)) found[buffer] = true;
  for (bool changed = true; changed;) {
    changed = false;
    for (const Plan::Call& call : plan.calls) {
      const std::vector<std::size_t> all = buffers_of(call);
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
std::vector<std::int64_t> blocks_of(const Plan& plan, const codegen::Target& target) {
  const std::int64_t lanes = target.lanes(4);
  std::vector<std::int64_t> blocks(plan.buffers.size());
  if (lanes < fewest_channels || plan.calls.size() > most_calls) return blocks;
  const std::vector<bool> is_of_convolution = channels_of_convolutions(plan);
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

Forms::Form given_form(const Plan& plan, const Plan::Call& call) {
  return {plan.kernels[std::size_t(call.kernel)].workload, std::vector<bool>(call.operands.size() + 1),
          std::vector<Layout>(call.operands.size())};
}

class FormMaker {
 public:
  FormMaker(const Plan& plan, const codegen::Target& target, const std::vector<std::int64_t>& blocks)
      : plan_(plan), target_(target), blocks_(blocks) {}

  std::vector<Forms::Form> forms_of(const Plan::Call& call) {
    const Workload& own = plan_.kernels[std::size_t(call.kernel)].workload;
    const std::size_t operands = call.operands.size();
    std::vector<Forms::Form> forms = {given_form(plan_, call)};
    if (plan_.kernels[std::size_t(call.kernel)].foreign) return forms;
    const std::vector<int> tensors = tensors_of(own.computation(), operands);
    std::vector<bool> all(operands + 1);
    for (std::size_t o = 0; o <= operands; ++o) all[o] = tensors[o] >= 0 && blocks_[std::size_t(buffer(call, o))] > 0;
    if (std::find(all.begin(), all.end(), true) == all.end()) return forms;
    // Everything, or one side alone where this has no form.
    std::vector<bool> reads = all, writes(operands + 1);
    reads.back() = false;
    writes.back() = all.back();
    for (const std::vector<bool>& wanted : {all, writes, reads}) {
      const bool is_new =
          std::none_of(forms.begin(), forms.end(), [&](const Forms::Form& form) { return form.in_blocks == wanted; });
      if (!is_new) continue;
      if (auto form = made(call, tensors, wanted)) {
        forms.push_back(std::move(*form));
        if (wanted == all) break;
      }
    }
    return forms;
  }

 private:
  static int buffer(const Plan::Call& call, std::size_t operand) {
    return operand < call.operands.size() ? call.operands[operand] : call.result;
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
      const Plan::Buffer& own = plan_.buffers[std::size_t(buffer(call, o))];
      if (wanted[o]
              ? own.shape != result.shape || blocks_[std::size_t(buffer(call, o))] != blocks_[std::size_t(call.result)]
              : elements_of(own.shape) > 1)
        return false;
    }
    const auto& loads = computation.stages[0].value.loads;
    return std::all_of(loads.begin(), loads.end(), [&](const codegen::Access& access) {
      return access.gathered.empty() && access.index.size() <= 1 &&
             (access.index.empty() || access.index[0].is_constant() || access.index[0] == codegen::Affine::variable(0));
    });
  }

  std::optional<Forms::Form> made(const Plan::Call& call, const std::vector<int>& tensors,
                                  const std::vector<bool>& wanted) {
    const Workload& own = plan_.kernels[std::size_t(call.kernel)].workload;
    const Computation& computation = own.computation();
    if (is_in_any_order(call, computation, tensors, wanted))
      return Forms::Form{own, wanted, std::vector<Layout>(call.operands.size())};
    std::map<std::string, Layout> layouts;
    std::string key = std::to_string(call.kernel);
    for (std::size_t o = 0; o < wanted.size(); ++o) {
      if (!wanted[o]) continue;
      const Plan::Buffer& value = plan_.buffers[std::size_t(buffer(call, o))];
      const codegen::Tensor& tensor = computation.tensors[std::size_t(tensors[o])];
      const auto layout = layout_of(value.shape, blocks_[std::size_t(buffer(call, o))], tensor.shape);
      if (!layout) return std::nullopt;
      layouts[tensor.name] = *layout;
      key += fmt::format(";{} {}", tensor.name, codegen::to_text(*layout));
    }
    const auto [known, is_new] = made_.try_emplace(key);
    if (is_new) known->second = stored(computation, layouts, call.operands.size());
    if (!known->second) return std::nullopt;
    Forms::Form form = *known->second;
    form.in_blocks = wanted;
    return form;
  }

  std::optional<Forms::Form> stored(const Computation& computation, const std::map<std::string, Layout>& layouts,
                                    std::size_t operands) const {
    const base::Result<codegen::Stored> stored = codegen::stored_as(computation, layouts);
    if (!stored) return std::nullopt;
    Workload workload = codegen::parse_workload(codegen::to_text(stored->computation));
    if (!codegen::schedules_together(workload.padded(), target_)) return std::nullopt;
    Forms::Form form{std::move(workload), {}, std::vector<Layout>(operands)};
    for (const codegen::Tensor& tensor : stored->computation.tensors) {
      const auto layout = stored->layouts.find(tensor.name);
      if (tensor.role == Role::constant && layout != stored->layouts.end())
        form.constants[std::size_t(operand_of(tensor))] = layout->second;
    }
    return form;
  }

  const Plan& plan_;
  const codegen::Target& target_;
  const std::vector<std::int64_t>& blocks_;
  std::map<std::string, std::optional<Forms::Form>> made_;  // by kernel and layouts
};

// What a call needs otherwise than it is stored.
double bytes_copied(const Plan& plan, const Plan::Call& call, const Forms::Form& form, const Forms& forms,
                    const InBlocks& in_blocks) {
  double bytes = 0;
  for (std::size_t o = 0; o < form.in_blocks.size(); ++o) {
    const int buffer = o < call.operands.size() ? call.operands[o] : call.result;
    if (forms.block[std::size_t(buffer)] > 0 && form.in_blocks[o] != in_blocks[std::size_t(buffer)])
      bytes += 2 * double(plan.buffers[std::size_t(buffer)].bytes());
  }
  return bytes;
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

class LaidOut {
 public:
  LaidOut(const Plan& plan, const Forms& forms, const InBlocks& in_blocks)
      : plan_(plan), forms_(forms), in_blocks_(in_blocks), calls_(made_) {}

  Plan made() {
    made_.inputs = plan_.inputs;
    made_.outputs = plan_.outputs;
    made_.buffers = plan_.buffers;
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b)
      if (in_blocks_[b]) made_.buffers[b].shape = in_blocks_shape(plan_.buffers[b].shape, forms_.block[b]);
    for (std::size_t c = 0; c < plan_.calls.size(); ++c) add(c);
    return std::move(made_);
  }

 private:
  bool is_right(int buffer, bool in_blocks) const {
    return forms_.block[std::size_t(buffer)] == 0 || in_blocks_[std::size_t(buffer)] == in_blocks;
  }

  // A buffer with the elements of a value that is stored in the other way.
  int other(int buffer) {
    Plan::Buffer other = plan_.buffers[std::size_t(buffer)];
    if (!in_blocks_[std::size_t(buffer)]) other.shape = in_blocks_shape(other.shape, forms_.block[std::size_t(buffer)]);
    other.part_of = -1;
    other.offset = 0;
    other.where = Plan::Buffer::Where::arena;
    other.number = -1;
    made_.buffers.push_back(std::move(other));
    return int(made_.buffers.size()) - 1;
  }
  void copy(int from, int to, int buffer, bool into_blocks, const std::string& label) {
    const std::int64_t block = forms_.block[std::size_t(buffer)];
    calls_.add({-1, {from}, to, {}, fmt::format("{}: {} blocks of {}", label, into_blocks ? "into" : "out of", block)},
               copy_workload(plan_.buffers[std::size_t(buffer)], block, into_blocks));
  }

  static const Shape& stored_shape_of(const Forms::Form& form, std::size_t operand) {
    const Computation& computation = form.workload.computation();
    const std::vector<int> tensors = tensors_of(computation, form.constants.size());
    return computation.tensors[std::size_t(tensors[operand])].shape;
  }

  void add(std::size_t number) {
    const Forms::Form& form = form_of(plan_, forms_, number, in_blocks_);
    Plan::Call call = plan_.calls[number];
    for (std::size_t o = 0; o < call.operands.size(); ++o) {
      int& operand = call.operands[o];
      if (const Layout& layout = form.constants[o]; !layout.is_plain()) {
        const auto [place, is_new] = constants_.try_emplace({operand, codegen::to_text(layout)}, -1);
        if (is_new) {
          Plan::Buffer constant = plan_.buffers[std::size_t(operand)];
          constant.shape = stored_shape_of(form, o);
          constant.known =
              known(constant.type, constant.shape, codegen::packed(layout, constant.shape, constant.known->elements()));
          place->second = int(made_.buffers.size());
          made_.buffers.push_back(std::move(constant));
        }
        operand = place->second;
      } else if (!is_right(operand, form.in_blocks[o])) {
        const auto [known, is_new] = others_.try_emplace(operand, -1);
        if (is_new) {
          known->second = other(operand);
          copy(operand, known->second, operand, form.in_blocks[o], call.label);
        }
        operand = known->second;
      }
    }
    const int result = call.result;
    const std::string label = call.label;
    const bool is_copied = !is_right(result, form.in_blocks.back());
    if (is_copied) others_[result] = call.result = other(result);
    const int computed = call.result;
    calls_.add(std::move(call), form.workload, plan_.kernels[std::size_t(plan_.calls[number].kernel)].foreign);
    if (is_copied) copy(computed, result, result, in_blocks_[std::size_t(result)], label);
  }

  const Plan& plan_;
  const Forms& forms_;
  const InBlocks& in_blocks_;
  Plan made_;
  Calls calls_;
  std::map<std::pair<int, std::string>, int> constants_;  // by buffer and layout
  std::map<int, int> others_;                             // copies, by buffer
};

}  // namespace

bool Forms::any() const {
  return std::any_of(calls.begin(), calls.end(), [](const std::vector<Form>& forms) { return forms.size() > 1; });
}

Forms forms_of(const Plan& plan, const codegen::Target& target) {
  Forms forms;
  forms.block = blocks_of(plan, target);
  FormMaker maker(plan, target, forms.block);
  for (const Plan::Call& call : plan.calls) forms.calls.push_back(maker.forms_of(call));
  return forms;
}

Forms given_forms(const Plan& plan) {
  Forms forms;
  forms.block.assign(plan.buffers.size(), 0);
  for (const Plan::Call& call : plan.calls) forms.calls.push_back({given_form(plan, call)});
  return forms;
}

const Forms::Form& form_of(const Plan& plan, const Forms& forms, std::size_t call, const InBlocks& in_blocks) {
  const std::vector<Forms::Form>& all = forms.calls[call];
  const auto bytes = [&](const Forms::Form& form) {
    return bytes_copied(plan, plan.calls[call], form, forms, in_blocks);
  };
  return *std::min_element(all.begin(), all.end(),
                           [&](const Forms::Form& a, const Forms::Form& b) { return bytes(a) < bytes(b); });
}

InBlocks best_layouts(const Plan& plan, const Forms& forms, const std::function<double(const Workload&)>& seconds,
                      double bytes_per_second) {
  // Calls in their order; the values that live between them are a state's choice.
  struct State {
    InBlocks in_blocks;
    double seconds = 0;
  };
  const auto choice_of = [&](int buffer) {
    return forms.block[std::size_t(buffer)] > 0 ? int(whole_of(plan, buffer)) : -1;
  };
  const auto touched = [&](const Plan::Call& call) {
    std::vector<int> wholes;
    for (std::size_t o = 0; o <= call.operands.size(); ++o) {
      const int whole = choice_of(o < call.operands.size() ? call.operands[o] : call.result);
      if (whole >= 0 && std::find(wholes.begin(), wholes.end(), whole) == wholes.end()) wholes.push_back(whole);
    }
    return wholes;
  };
  std::vector<int> last(plan.buffers.size(), -1);
  for (std::size_t c = 0; c < plan.calls.size(); ++c)
    for (const int whole : touched(plan.calls[c])) last[std::size_t(whole)] = int(c);
  std::map<std::uint64_t, double> known;
  const auto time_of = [&](const Workload& workload) {
    const auto [found, is_new] = known.try_emplace(workload.key(), 0);
    if (is_new) found->second = seconds(workload);
    return found->second;
  };
  std::vector<std::vector<double>> times;  // by call and form
  for (const std::vector<Forms::Form>& call : forms.calls) {
    times.emplace_back();
    for (const Forms::Form& form : call) times.back().push_back(call.size() > 1 ? time_of(form.workload) : 0);
    if (std::none_of(times.back().begin(), times.back().end(), [](double time) { return std::isfinite(time); }))
      times.back().assign(call.size(), 0);
  }
  std::vector<State> states = {{InBlocks(plan.buffers.size()), 0}};
  std::vector<int> living;
  std::map<int, std::vector<std::size_t>> alike;  // buffers, by whole
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) alike[int(whole_of(plan, int(b)))].push_back(b);
  for (std::size_t c = 0; c < plan.calls.size(); ++c) {
    for (const int whole : touched(plan.calls[c])) {
      if (std::find(living.begin(), living.end(), whole) != living.end()) continue;
      living.push_back(whole);
      for (std::size_t s = 0, count = states.size(); s < count; ++s) {
        states.push_back(states[s]);
        for (const std::size_t b : alike[whole]) states.back().in_blocks[b] = true;
      }
    }
    for (State& state : states) {
      const Forms::Form& form = form_of(plan, forms, c, state.in_blocks);
      state.seconds += times[c][std::size_t(&form - forms.calls[c].data())] +
                       bytes_copied(plan, plan.calls[c], form, forms, state.in_blocks) / bytes_per_second;
    }
    std::erase_if(living, [&](int whole) { return last[std::size_t(whole)] <= int(c); });
    std::stable_sort(states.begin(), states.end(),
                     [](const State& a, const State& b) { return a.seconds < b.seconds; });
    std::vector<State> kept;
    std::map<std::vector<bool>, bool> seen;
    for (State& state : states) {
      std::vector<bool> choice;
      for (const int whole : living) choice.push_back(state.in_blocks[std::size_t(whole)]);
      if (kept.size() < most_states && seen.emplace(std::move(choice), true).second) kept.push_back(std::move(state));
    }
    states = std::move(kept);
  }
  return states.front().in_blocks;
}

double seconds_of(const Plan& plan, const Forms& forms, const InBlocks& in_blocks,
                  const std::function<double(const Workload&)>& seconds, double bytes_per_second) {
  double sum = 0;
  for (std::size_t c = 0; c < plan.calls.size(); ++c) {
    const Forms::Form& form = form_of(plan, forms, c, in_blocks);
    sum += seconds(form.workload) + bytes_copied(plan, plan.calls[c], form, forms, in_blocks) / bytes_per_second;
  }
  return sum;
}

Plan laid_out(const Plan& plan, const Forms& forms, const InBlocks& in_blocks) {
  return LaidOut(plan, forms, in_blocks).made();
}

}  // namespace graft::graph
