// Learners that train a network through its own adaptation. Every published family is MAML with some switches turned.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "meta/gradient/inner_loop.h"
#include "meta/learner.h"
#include "meta/methods/setting.h"

namespace graft::meta {

enum class Adapts { all, head, context, code };  // code: a context that shifts all biases and the head
enum class LearnedRates {
  none,
  per_step_and_block,  // by their logarithm, so that they stay positive
  per_parameter,       // one set for all steps; may become negative
};

struct MetaSettings {
  OuterRule rule = OuterRule::second_order;
  Adapts adapts = Adapts::all;
  LearnedRates rates = LearnedRates::none;
  std::int64_t inner_steps = 10;
  double inner_rate = 0.1;  // at the start
  // The query's loss counts after every step at first, after the last step alone at the end; and the first part of the
  // outer steps goes without the second order (Antoniou et al. 2019, sections 4 and 5).
  bool anneals = false;
  // After a training with a head for each platform (heads_steps): features first, then how to adapt them.
  std::int64_t outer_steps = 250;
  double outer_rate = 3e-4;  // of Adam; for Reptile the share of the way; both decay to 0
  std::int64_t tasks_per_step = 4;
};

// What a learner's text may set of them, and they with that.
std::vector<MethodSetting> settings_of(const MetaSettings& usual);
MetaSettings with_values(MetaSettings settings, const MethodValues& values);

std::unique_ptr<Learner> make_meta_gradient_learner(const MetaSettings& settings);

}  // namespace graft::meta
