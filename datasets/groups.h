// Cutting datasets: groups of one (platform, workload), and the named splits by platform and by workload.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/dataset.h"

namespace graft::datasets {

// Rows (positions) with status ok of one workload on one platform. A program that occurs more than once (by program
// hash) is kept once, with its first row.
struct Group {
  std::string platform;
  codegen::Workload workload;
  std::vector<std::int64_t> rows;
};
std::vector<Group> groups(const Dataset& dataset);
std::vector<Group> groups(const DatasetFile& file);  // the same groups, from three columns

// A dataset of the rows of its groups alone: only those of the named sketches (no names: all), and at most `most`
// of a workload (0: all), drawn by the seed, in their order.
Dataset narrowed(const Dataset& dataset, const std::vector<std::string>& sketches, std::int64_t most,
                 std::uint64_t seed);

// The splits that tables name, the same in every release:
//   platforms                         trained on: the ten modelled platforms; held out: the three new RISC-V boards
//   workloads.0 .. workloads.4        held out: a fifth of the workloads; like operators of suite:shipped are dealt out
//                                     in turn
// The role of a platform in the split `platforms`: "source", "held out", or "" for none of them.
std::string_view role_of(std::string_view platform);
// In which of the five parts a workload is held out: 0 .. folds - 1.
constexpr int folds = 5;
int fold_of(const codegen::Workload& workload);
std::string workload_split(int fold);  // its name

}  // namespace graft::datasets
