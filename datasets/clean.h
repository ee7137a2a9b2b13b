// Removes rows that a model should not learn from, by stated rules. Nothing is changed in place: the result is a new
// dataset, with a list of dropped rows and reasons.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "datasets/dataset.h"

namespace graft::datasets {

// Why a row was dropped: the first that applies, in this order.
#define GRAFT_DROPS(X)                                                                                       \
  X(failed, "status is not ok")                                                                              \
  X(impossible, "a time below flops / 1e15 or above 1e4 seconds: wrong unit or clock")                       \
  X(unsteady, "not more than half of the repetitions agree with their median (see the rule of repetitions)") \
  X(duplicate, "an earlier row of the workload has the same program")

enum class Drop {
#define X(name, description) name,
  GRAFT_DROPS(X)
#undef X
};
std::string_view name_of(Drop drop);

struct CleanRules {
  double most_flops_per_second = 1e15;
  double most_seconds = 1e4;
  // A repetition is an outlier if it is further from the median of its row than this factor and than
  // `deviations` * 1.4826 * (median of such distances over all rows of the workload), both on the log scale; the
  // distance of the repetition that is the median does not count. Outliers are removed from a row that is kept.
  double least_factor = 1.25;
  double deviations = 6;
};

struct Cleaned {
  Dataset dataset;  // workloads and sketches without rows are left out; provenance describes the cleaning
  struct Dropped {
    std::int64_t row = 0;  // of the input
    Drop why = Drop::failed;
  };
  std::vector<Dropped> dropped;    // by row
  std::int64_t repetitions = 0;    // outliers removed from kept rows
  std::int64_t steadied_rows = 0;  // rows that they were removed from
  std::int64_t count(Drop why) const;
};
Cleaned cleaned(const Dataset& dataset, const CleanRules& rules = {});

}  // namespace graft::datasets
