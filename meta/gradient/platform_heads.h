// One network for several platforms: hidden layers that all share, and a linear head for each. A platform's labels are
// in units of its own spread, and a head explains only its own platform's programs; so the hidden layers learn what
// speed depends on anywhere, and only the heads how much on each platform.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "meta/gradient/training.h"

namespace graft::meta {

// The groups with each platform's labels scaled to the platforms' mean spread (of labels centred by group), so that one
// whose programs differ by factors does not outweigh one where they differ by per cents.
std::vector<PreparedGroup> in_equal_units(std::span<const PreparedGroup> groups);

struct HeadsSettings {
  PooledSettings batches{.loss = Loss::squared};
  double hidden = 0.2;    // share of the inputs that are replaced by their mean in each step, drawn for each program
  double average = 0.99;  // the result is a running mean of the parameters, of about 1 / (1 - average) steps
};

// The number of steps for so much data: each program is seen about 170 times, in 100 to 4000 steps.
std::int64_t heads_steps(std::span<const PreparedGroup> groups);

// The parameters of a network of `shape` (one output) with the shared hidden layers and the mean of the heads, trained
// on groups in equal units. The same for any number of threads and ranks. stage.steps is
// ignored.
std::vector<float> train_platform_heads(const NetworkShape& shape, std::uint64_t seed,
                                        std::span<const PreparedGroup> groups, const HeadsSettings& settings,
                                        Stage stage);

}  // namespace graft::meta
