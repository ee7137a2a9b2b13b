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

// Positions into a list of groups, by part.
struct Split {
  std::vector<int> train, held_out;
};
// Held out: every group of the named platform. UserError (did you mean) if no group has it.
Split split_by_platform(const std::vector<Group>& groups, const std::string& platform);
// Held out: a seeded share of the workloads (at least one, at most all but one) on every platform. UserError for fewer
// than two workloads or a share outside of 0 .. 1.
Split split_by_workload(const std::vector<Group>& groups, double share, std::uint64_t seed);

// `shots` support rows drawn at random, all others are query. UserError if the group has not more than `shots` rows.
struct Episode {
  int group = 0;                             // position in the list it was drawn from
  std::vector<std::int64_t> support, query;  // positions in Group::rows
};
Episode draw_episode(const Group& group, int position, int shots, base::Stream& stream);

}  // namespace graft::datasets
