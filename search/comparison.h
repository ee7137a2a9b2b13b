// Searches held against each other by what people ask of them: how fast the best program is after so many trials, and
// how many trials it takes to come near the fastest one known.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/statistics.h"
#include "datasets/trial.h"

namespace graft::search {

// One search of one workload on one platform.
struct Searched {
  std::string method;  // searches of one method differ by workload, platform and seed
  std::string workload, platform;
  std::int64_t seed = 0;
  std::vector<double> best_seconds;  // after each trial, the fastest so far; infinity before the first ok one
};
Searched searched(std::string method, std::string platform, std::int64_t seed,
                  const std::vector<datasets::Trial>& trials);  // UserError unless all are of one workload

struct MethodSearched {
  std::string method;
  std::int64_t searches = 0;
  // By place in `counts`: the fastest known time of the workload on its platform over the best after so many trials (1:
  // none is faster), geometric mean; and how much slower that best is than the one of `against` in the same searches
  // (0: equal, 0.03: 3 % slower), geometric mean of pairs.
  std::vector<base::Interval> speed, slower;
  // Trials until one has `near` of the fastest known speed, geometric mean; a search that never did counts with one
  // trial more than it had. `times_fewer`: those of `against` over these, geometric mean of pairs.
  base::Interval trials_to_near, times_fewer;
  std::int64_t never = 0;  // searches that did not come near
};

// Intervals (95 %, seeded bootstrap) are over searches. `counts`: at least one, rising from 1. UserError when two
// searches are the same (method, workload, platform, seed), a method lacks one that another has or is not there, or a
// search has fewer trials than `counts` asks for.
std::vector<MethodSearched> compare_searches(const std::vector<Searched>& searches,
                                             const std::vector<std::int64_t>& counts, const std::string& against,
                                             double near, std::uint64_t seed);

}  // namespace graft::search
