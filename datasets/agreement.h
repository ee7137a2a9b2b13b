// Do platforms agree on what is fast? Over the programs (workload, sketch, arguments; rows of tables by the names and
// values of their columns: joined_tables.h) that they have in common: rank
// correlations by family of workloads, and what is lost by running one platform's best program on another.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/interval.h"
#include "codegen/expression/workload.h"
#include "datasets/dataset.h"

namespace graft::datasets {

// The operator of a workload, with its window if it has one ("conv2d 3x3"). "expression" for
// an index expression.
std::string family_of(const codegen::Workload& workload);

template <class T>
using Square = std::vector<std::vector<T>>;  // [platform][platform]

struct Agreement {
  struct Platform {
    std::string name, source;
  };
  // For two platforms, the mean over workloads of Spearman's correlation of their times. NaN if they share no
  // workload with enough common programs.
  struct Correlation {
    base::Interval value;  // 95 %, bootstrap over workloads; the mean alone for fewer than base::least_for_interval
    int workloads = 0;
    std::int64_t programs = 0;  // in common, of all these workloads
  };
  struct Family {
    std::string name;
    std::vector<codegen::Workload> workloads;  // that any two platforms share
    Square<Correlation> spearman;
  };
  // Time on the second platform of the program that is fastest on the first / of the fastest, both among the common
  // ones: geometric mean over workloads.
  struct Regret {
    base::Interval value;  // as above
    int workloads = 0;
    double worst = 0;
    std::string worst_workload;
  };
  std::vector<Platform> platforms;  // in the order of the datasets
  std::vector<std::string> notes;   // where the joining of tables is in doubt, for the user
  std::vector<Family> families;     // "all" first, the others by name
  Square<Regret> regret;            // [whose best][where it runs]
};
// Datasets of one platform count as one; for programs measured twice, the later row counts. Only `ok` rows, and
// workloads of which two platforms have at least `least_programs` in common. UserError for fewer than two platforms,
// when no two have such a workload, and as joined_tables.
Agreement agreement(const std::vector<Dataset>& datasets, int least_programs = 10);

}  // namespace graft::datasets
