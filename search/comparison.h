// Compares searches by users' criteria: the speed of the best program after a number of trials, and the number
// of trials until the speed is near the fastest one known.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/interval.h"
#include "datasets/trial.h"

namespace graft::search {

// The share of the fastest known speed that a search without an ok trial counts as: means of logarithms stay finite.
constexpr double least_speed = 0.01;

// One search of one workload on one platform.
struct Searched {
  std::string method;  // searches of one method differ by workload, platform and seed
  std::string workload, platform;
  std::int64_t seed = 0;
  std::vector<double> best_seconds;  // after each trial, the fastest so far; infinity before the first ok one
};
// `retimed`, if given: seconds by candidate (codegen::hash) from a new measurement, infinity for failures. On
// a machine with varying speed a search gets lucky and unlucky times; its result is then, as in `graft tune`,
// the fastest by new times of the few that are the fastest by its own. UserError unless all trials are of one workload.
constexpr std::size_t finalist_count = 4;
using Retimed = std::unordered_map<std::uint64_t, double>;
Searched searched(std::string method, std::string platform, std::int64_t seed,
                  const std::vector<datasets::Trial>& trials, const Retimed* retimed = nullptr);

// The distinct candidates that were among the few fastest when they were measured: all that `searched` looks up
// in `retimed`.
std::vector<codegen::Candidate> finalists(const std::vector<datasets::Trial>& trials);

struct MethodSearched {
  std::string method;
  std::int64_t searches = 0;
  // By position in `counts`: the fastest known time of the workload on its platform over the best after that many
  // trials (1: none is faster), geometric mean; and how much slower that best is than the one of `against` in the same
  // searches (0: equal, 0.03: 3 % slower), geometric mean of pairs.
  std::vector<base::Interval> speed, slower;
  // Trials until one has `near` of the fastest known speed, geometric mean; a search that never did counts as one trial
  // more than it had. `times_fewer`: the trials of `against` over these, geometric mean of pairs.
  base::Interval trials_to_near, times_fewer;
  std::int64_t never = 0;  // searches that did not reach it
};

// Intervals (95 %, seeded bootstrap_mean) are over searches. `counts`: at least one, rising from 1. UserError if two
// searches are the same (method, workload, platform, seed), a method lacks one that another has or is missing, or a
// search has fewer trials than `counts` requires.
std::vector<MethodSearched> compare_searches(const std::vector<Searched>& searches,
                                             const std::vector<std::int64_t>& counts, const std::string& against,
                                             double near, std::uint64_t seed);

}  // namespace graft::search
