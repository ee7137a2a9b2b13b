// The hidden layers of one network that was trained on all sources (gradient/platform_heads.h), as features of programs
// that matter for speed on any of them, and its own prediction, the mean of the sources' heads.
#pragma once

#include <cstdint>
#include <vector>

#include "base/arrays.h"
#include "base/monitor.h"
#include "meta/learner.h"
#include "meta/network.h"
#include "meta/normalisation.h"
#include "meta/task_set.h"

namespace graft::meta {

struct Trunk {
  Normalisation normalisation;
  NetworkShape shape;
  std::vector<float> theta;

  std::int64_t width() const;  // of all hidden layers together
  // programs x width: the outputs of the hidden layers.
  base::Matrix of(const features::Encoded& programs) const;
  // What each of these counts in the network's score; 0 but for the last layer.
  std::vector<float> head() const;
};

// Layers of 256 and 128, trained in the usual number of steps (heads_steps) divided by `share`. The tasks' platforms
// are trusted alike. `name` distinguishes trainings.
Trunk train_trunk(const TaskSet& tasks, const LearnerSettings& settings, const std::string& name, std::int64_t share,
                  base::Monitor& monitor);

void put(const Trunk& trunk, base::Arrays& arrays);
Trunk trunk_from(const base::Arrays& arrays);  // UserError if arrays are missing or inconsistent

}  // namespace graft::meta
