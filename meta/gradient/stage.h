// One stage of a training: steps that change a few vectors, each by an Adam of its own. Reports its progress, stops
// when asked, and goes on from the record's checkpoint, if there is one.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/monitor.h"
#include "base/team.h"
#include "meta/gradient/adam.h"
#include "meta/training_record.h"

namespace graft::meta {

// What a stage changes.
struct Changing {
  std::vector<float>* values = nullptr;
  Adam* adam = nullptr;  // may be null
};

struct Stage {
  std::string name;
  std::uint64_t seed = 1;
  std::int64_t steps = 0;
  TrainingRecord* record = nullptr;  // may be null
  base::Monitor* monitor = nullptr;
  base::Team* team = nullptr;  // whose ranks take every step together; null: taken alone
  int threads = 1;             // that a step may use, on each rank
};

// step(k) for k = 0, 1, ..: gives its loss. It must depend on k and on what is changing alone. Throws Stopped when
// the monitor asks for it, with a checkpoint left behind, and Failure when ranks of the team found different ones.
void run(const Stage& stage, std::span<const Changing> changing, const std::function<float(std::int64_t)>& step);

}  // namespace graft::meta
