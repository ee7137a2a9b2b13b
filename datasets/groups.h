// Cutting datasets: groups of one (platform, workload), named splits by platform and by workload, support/query
// episodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
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

// A dataset of the rows of its groups alone: of those, none but the named sketches' (no names: all), and at most `most`
// of a workload (0: all), drawn by the seed, in their order.
Dataset narrowed(const Dataset& dataset, const std::vector<std::string>& sketches, std::int64_t most,
                 std::uint64_t seed);

// Positions into a list of groups, by part.
struct Split {
  std::vector<int> train, held_out;
};
// Held out: every group of the named platform. UserError (did you mean) if no group has it.
Split split_by_platform(const std::vector<Group>& groups, const std::string& platform);
// Held out: a seeded share of the workloads (at least one, at most all but one) on every platform. UserError for fewer
// than two workloads or a share outside of 0 .. 1.
Split split_by_workload(const std::vector<Group>& groups, double share, std::uint64_t seed);

// The splits that tables name, the same in every release:
//   platforms        trained on: the ten modelled platforms; held out: the three new RISC-V boards; no other is in a
//   part workloads.0 .. workloads.4   held out: a fifth of the workloads; like operators of suite:shipped are dealt out
//   in turn
// UserError (did you mean) for another name, and when a part would be empty.
std::vector<std::string> split_names();  // in this order
Split named_split(const std::vector<Group>& groups, const std::string& name);
// What a platform is in the split `platforms`: "source", "held out", or "" for none of them.
std::string_view role_of(std::string_view platform);
// In which of the five parts a workload is held out: 0 .. folds - 1.
constexpr int folds = 5;
int fold_of(const codegen::Workload& workload);
std::string workload_split(int fold);  // its name

// `shots` support rows drawn at random, all others are query. UserError if the group has not more than `shots` rows.
struct Episode {
  int group = 0;                             // position in the list it was drawn from
  std::vector<std::int64_t> support, query;  // positions in Group::rows
};
Episode draw_episode(const Group& group, int position, int shots, base::Stream& stream);

}  // namespace graft::datasets
