// How many steps, of which kind and at which rate, take a trained network to a new platform: chosen on source platforms
// that were left out of a shorter training, never on the platform that the model is made for.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "meta/gradient/training.h"

namespace graft::meta {

// The result of a training: parameters and the gradient steps (Adaptation::rates) that come before the descent, if any.
struct Trained {
  std::vector<float> theta;
  Rates<float> rates;
};

// Calls `train(groups without one platform, name of the trial)` for up to `folds` platforms, fine-tunes the result on
// draws of support from the platform left out, and returns for some numbers of shots the descent that ranked its other
// rows best (including 0 steps). With a single platform there is nothing to choose on: returns a default. The draws are
// divided among the threads and ranks of the settings; results do not depend on these.
std::vector<Adaptation::Descent> chosen_descents(
    const Network& network, std::span<const PreparedGroup> groups, Loss loss, bool head_only, std::size_t folds,
    const LearnerSettings& settings,
    const std::function<Trained(std::span<const PreparedGroup>, const std::string&)>& train);

}  // namespace graft::meta
