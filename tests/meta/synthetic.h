// Task sets without datasets: platforms whose times are known functions of the features. Every platform has its own mix
// of the same few hidden costs plus a little of its own, as hardware does.
#pragma once

#include <cstdint>
#include <string>

#include "meta/task_set.h"

namespace graft::meta::synthetic {

struct Settings {
  int platforms = 4, workloads = 3, rows = 80, features = 12;
  double noise = 0.02;
  std::uint64_t seed = 1;
  bool trees = false;  // a program is a root over two nodes, each with half of the features and the rest 0
};

// Platforms are called "p0", "p1", ...; the encoding is a made-up one with `features` columns that lives as long as the
// program.
TaskSet make(const Settings& settings);

}  // namespace graft::meta::synthetic
