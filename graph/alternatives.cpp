#include "graph/alternatives.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace graft::graph {
namespace {

constexpr std::size_t most_states = 4096;
constexpr double no_answer_seconds = 3600;  // of a kernel whose time is not known

// The plan with these calls, which name the buffers and kernels of the open one, and with no others.
Plan closed(const OpenPlan& open, std::vector<Plan::Call> calls) {
  Plan plan;
  plan.inputs = open.plan.inputs;
  plan.outputs = open.plan.outputs;
  const std::vector<Plan::Buffer>& all = open.plan.buffers;
  std::vector<int> buffers(all.size(), -1), kernels(open.plan.kernels.size(), -1);
  const auto use = [&](int buffer) { buffers[std::size_t(buffer)] = buffers[whole_of(open.plan, buffer)] = 0; };
  for (std::size_t b = 0; b < all.size(); ++b)
    if (all[b].number >= 0) use(int(b));
  for (const Plan::Call& call : calls) {
    std::for_each(call.operands.begin(), call.operands.end(), use);
    use(call.result);
  }
  for (std::size_t b = 0; b < all.size(); ++b) {
    if (buffers[b] < 0) continue;
    buffers[b] = int(plan.buffers.size());
    Plan::Buffer& own = plan.buffers.emplace_back(all[b]);
    if (const auto constant = open.constants.find(int(b)); constant != open.constants.end()) {
      const auto& [from, layout] = constant->second;
      own.known =
          known(own.type, own.shape, codegen::packed(layout, own.shape, all[std::size_t(from)].known->elements()));
    }
  }
  for (Plan::Buffer& buffer : plan.buffers)
    if (buffer.part_of >= 0) buffer.part_of = buffers[std::size_t(buffer.part_of)];
  for (Plan::Call& call : calls) {
    for (int& operand : call.operands) operand = buffers[std::size_t(operand)];
    call.result = buffers[std::size_t(call.result)];
    int& kernel = kernels[std::size_t(call.kernel)];
    if (kernel < 0) {
      kernel = int(plan.kernels.size());
      plan.kernels.push_back(open.plan.kernels[std::size_t(call.kernel)]);
      plan.kernels.back().label = call.label;
    }
    call.kernel = kernel;
    ++plan.kernels[std::size_t(kernel)].calls;
  }
  plan.calls = std::move(calls);
  return plan;
}

// The copy of the largest value, into another way of storing it or out of it. There are copies.
const std::pair<const int, OpenPlan::Copy>& largest_copy(const OpenPlan& open, bool is_into) {
  const auto bytes = [&](const auto& copy) {
    return copy.second.is_into == is_into ? open.plan.buffers[std::size_t(copy.first)].bytes() : -1;
  };
  return *std::max_element(open.copies.begin(), open.copies.end(),
                           [&](const auto& a, const auto& b) { return bytes(a) < bytes(b); });
}

// Dynamic programming over the calls: two states differ in how the values are stored that later calls use.
class Chooser {
 public:
  Chooser(const OpenPlan& open, std::span<const double> seconds)
      : open_(open), seconds_(seconds.begin(), seconds.end()), calls_(all_calls(open.steps)) {
    const auto bytes = [&](int buffer) { return double(open.plan.buffers[std::size_t(buffer)].bytes()); };
    for (const bool is_into : {true, false}) {
      if (open.copies.empty()) break;
      const auto& [largest, known] = largest_copy(open, is_into);
      for (const auto& [buffer, copy] : open.copies)
        if (copy.is_into == is_into && !std::isfinite(seconds[std::size_t(copy.kernel)]))
          seconds_[std::size_t(copy.kernel)] = seconds_[std::size_t(known.kernel)] * bytes(buffer) / bytes(largest);
    }
    std::set<int> written;
    for (const Plan::Call* const call : calls_) written.insert(call->result);
    std::map<std::size_t, std::vector<int>> alike;  // by the whole, what is written of it in either way
    for (const auto& [buffer, copy] : open.copies) {
      const std::size_t whole = whole_of(open.plan, buffer);
      value_[buffer] = std::min(whole, whole_of(open.plan, copy.from));
      if (written.contains(buffer) || written.contains(copy.from)) alike[whole].push_back(buffer);
    }
    const auto begin = [&](int buffer) { return open.plan.buffers[std::size_t(buffer)].offset; };
    const auto end = [&](int buffer) { return begin(buffer) + open.plan.buffers[std::size_t(buffer)].bytes(); };
    for (const auto& [buffer, copy] : open.copies)
      for (const int piece : alike[whole_of(open.plan, buffer)])
        if (begin(piece) < end(buffer) && begin(buffer) < end(piece)) pieces_[buffer].push_back(piece);
    for (std::size_t c = 0; c < calls_.size(); ++c) {
      const auto use = [&](int buffer) {
        if (open.copies.contains(buffer)) last_[value_[buffer]] = int(c);
      };
      std::for_each(calls_[c]->operands.begin(), calls_[c]->operands.end(), use);
      use(calls_[c]->result);
    }
  }

  Plan best() {
    std::vector<State> states(1);
    run(open_.steps, states);
    std::vector<Plan::Call> calls;
    for (int at = states.front().done; at >= 0; at = done_[std::size_t(at)].before) {
      const Done& done = done_[std::size_t(at)];
      const Plan::Call& call = *calls_[std::size_t(done.call)];
      if (done.copied < 0) {
        calls.push_back(call);
        continue;
      }
      const OpenPlan::Copy& copy = open_.copies.at(done.copied);
      const std::string& how = open_.plan.kernels[std::size_t(copy.kernel)].label;
      calls.push_back({copy.kernel, {copy.from}, done.copied, {}, fmt::format("{}: {}", call.label, how)});
    }
    std::reverse(calls.begin(), calls.end());
    return closed(open_, std::move(calls));
  }

 private:
  struct State {
    std::set<int> made;  // buffers that may be copied, or are copied
    double seconds = 0;
    int done = -1;  // the last one
  };
  // A call, or a copy to a buffer before it.
  struct Done {
    int before = -1, call = -1, copied = -1;
  };

  void run(const std::vector<Step>& steps, std::vector<State>& states) {
    for (const Step& step : steps) {
      if (step.alternatives.empty()) {
        for (State& state : states) call(step.call, state);
        ++next_;
      }
      std::vector<State> all;
      for (const std::vector<Step>& alternative : step.alternatives) {
        std::vector<State> own = states;
        run(alternative, own);
        std::move(own.begin(), own.end(), std::back_inserter(all));
      }
      states = different(step.alternatives.empty() ? std::move(states) : std::move(all));
    }
  }

  void call(const Plan::Call& call, State& state) {
    for (const int operand : call.operands) need(operand, state);
    add(call.kernel, -1, state);
    if (open_.copies.contains(call.result)) state.made.insert(call.result);
  }

  // Copies what is not there: all of it, or the pieces that are missing.
  void need(int buffer, State& state) {
    const auto copy = open_.copies.find(buffer);
    if (copy == open_.copies.end() || state.made.contains(buffer)) return;
    std::vector<int> missing = pieces_[buffer];
    const std::size_t pieces = missing.size();
    std::erase_if(missing, [&](int piece) { return state.made.contains(piece); });
    if (missing.size() == pieces) missing = {buffer};
    for (const int piece : missing) {
      add(open_.copies.at(piece).kernel, piece, state);
      state.made.insert(piece);
    }
  }

  void add(int kernel, int copied, State& state) {
    state.seconds += std::min(seconds_[std::size_t(kernel)], no_answer_seconds);
    done_.push_back({state.done, next_, copied});
    state.done = int(done_.size()) - 1;
  }

  // The best of those in which the values that are still used are stored alike.
  std::vector<State> different(std::vector<State> states) {
    for (State& state : states) std::erase_if(state.made, [&](int buffer) { return last_[value_[buffer]] < next_; });
    std::stable_sort(states.begin(), states.end(),
                     [](const State& a, const State& b) { return a.seconds < b.seconds; });
    std::vector<State> kept;
    std::set<std::set<int>> seen;
    for (State& state : states)
      if (kept.size() < most_states && seen.insert(state.made).second) kept.push_back(std::move(state));
    return kept;
  }

  const OpenPlan& open_;
  std::vector<double> seconds_;  // by kernel
  const std::vector<const Plan::Call*> calls_;
  std::map<int, std::size_t> value_;        // by buffer that may be copied: a number for all that have parts of a value
  std::map<int, std::vector<int>> pieces_;  // by the same: what is written of it
  std::map<std::size_t, int> last_;         // call that uses a value
  std::vector<Done> done_;
  int next_ = 0;  // call
};

// Alternatives that differ in how the operands of one call are stored.
bool are_forms(const Step& step) {
  return std::all_of(step.alternatives.begin(), step.alternatives.end(),
                     [](const std::vector<Step>& steps) { return steps.size() == 1; });
}

bool are_known(const std::vector<Step>& steps, const std::vector<bool>& known) {
  return std::all_of(steps.begin(), steps.end(), [&](const Step& step) {
    if (step.alternatives.empty()) return bool(known[std::size_t(step.call.kernel)]);
    return std::any_of(step.alternatives.begin(), step.alternatives.end(),
                       [&](const std::vector<Step>& each) { return are_known(each, known); });
  });
}

// Whether a choice is left.
bool add_candidates(const std::vector<Step>& steps, const std::vector<bool>& known, std::vector<bool>& wanted) {
  bool is_left = false;
  for (const Step& step : steps) {
    if (step.alternatives.empty()) wanted[std::size_t(step.call.kernel)] = true;
    const std::size_t others = are_forms(step) ? 1 : 0;  // forms but the first are always needed
    bool is_any_known = false;
    for (std::size_t a = others; a < step.alternatives.size(); ++a)
      is_any_known |= are_known(step.alternatives[a], known);
    std::size_t left = 0;
    for (std::size_t a = 0; a < step.alternatives.size(); ++a) {
      if (is_any_known && !are_known(step.alternatives[a], known) && (others == 0 || a == 0)) continue;
      is_left |= add_candidates(step.alternatives[a], known, wanted) || ++left > 1;
    }
  }
  return is_left;
}

void add_calls(const std::vector<Step>& steps, std::size_t most_alternatives, std::vector<const Plan::Call*>& calls) {
  for (const Step& step : steps) {
    if (step.alternatives.empty()) calls.push_back(&step.call);
    for (std::size_t a = 0; a < std::min(step.alternatives.size(), most_alternatives); ++a)
      add_calls(step.alternatives[a], most_alternatives, calls);
  }
}

}  // namespace

Plan first_choice(const OpenPlan& open) {
  std::vector<const Plan::Call*> all;
  add_calls(open.steps, 1, all);
  std::vector<Plan::Call> calls;
  for (const Plan::Call* const call : all) calls.push_back(*call);
  return closed(open, std::move(calls));
}

Plan best_choice(const OpenPlan& open, std::span<const double> seconds) {
  return Chooser(open, seconds).best();
}

bool has_alternatives(const OpenPlan& open) {
  return std::any_of(open.steps.begin(), open.steps.end(), [](const Step& step) { return !step.alternatives.empty(); });
}

std::size_t fusions(const OpenPlan& open) {
  return std::size_t(
      std::count_if(open.steps.begin(), open.steps.end(), [](const Step& step) { return !are_forms(step); }));
}

std::vector<bool> candidates(const OpenPlan& open, const std::vector<bool>& known) {
  std::vector<bool> wanted(open.plan.kernels.size());
  if (add_candidates(open.steps, known, wanted) && !open.copies.empty())
    for (const bool is_into : {true, false}) wanted[std::size_t(largest_copy(open, is_into).second.kernel)] = true;
  return wanted;
}

std::vector<const Plan::Call*> all_calls(const std::vector<Step>& steps) {
  std::vector<const Plan::Call*> calls;
  add_calls(steps, std::size_t(-1), calls);
  return calls;
}

}  // namespace graft::graph
