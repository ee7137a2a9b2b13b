// One stage of a training: steps that change a few vectors, each with its own Adam. Reports its progress, stops when
// asked, and continues from the record's checkpoint, if there is one.
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

// A vector that a stage changes.
struct TrainedVector {
  std::vector<float>* values = nullptr;
  Adam* adam = nullptr;  // may be null
};

struct Stage {
  std::string name;
  std::uint64_t seed = 1;
  std::int64_t steps = 0;
  TrainingRecord* record = nullptr;  // may be null
  base::Monitor* monitor = nullptr;
  base::Team* team = nullptr;  // whose ranks take every step together; null: one process alone
  int threads = 1;             // that a step may use, on each rank
};

// Calls step(k) for k = 0, 1, .., which returns its loss. It must depend only on k and on the vectors. Throws Stopped
// when the monitor asks for it, after writing a checkpoint, and Failure if ranks of the team found different ones.
void run(const Stage& stage, std::span<const TrainedVector> changing, const std::function<float(std::int64_t)>& step);

}  // namespace graft::meta
