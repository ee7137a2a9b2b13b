#include "datasets/episodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "base/error.h"

namespace graft::datasets {
namespace {

// The parts of `groups` by a yes or no.
template <class HeldOut>
Split split_by(const std::vector<Group>& groups, HeldOut held_out) {
  Split split;
  for (int i = 0; i < int(groups.size()); ++i) {
    (held_out(groups[std::size_t(i)]) ? split.held_out : split.train).push_back(i);
  }
  return split;
}

}  // namespace

std::vector<Group> groups(const Dataset& dataset) {
  // What makes two rows the same program: the hash alone where there is one.
  using Program = std::tuple<std::uint64_t, int, std::vector<std::int64_t>>;
  std::vector<std::set<Program>> seen(dataset.workloads.size());
  std::vector<Group> all;
  for (const codegen::Workload& workload : dataset.workloads) all.push_back({dataset.platform, workload, {}});
  for (std::size_t i = 0; i < dataset.rows.size(); ++i) {
    const Dataset::Row& row = dataset.rows[i];
    if (row.measurement.status != Status::ok) continue;
    Program program(row.program_hash, 0, {});
    if (row.program_hash == 0) program = {0, row.sketch, row.arguments};
    const std::size_t workload = std::size_t(row.workload);
    if (seen[workload].insert(std::move(program)).second) all[workload].rows.push_back(std::int64_t(i));
  }
  std::erase_if(all, [](const Group& group) { return group.rows.empty(); });
  return all;
}

Split split_by_platform(const std::vector<Group>& groups, const std::string& platform) {
  Split split = split_by(groups, [&](const Group& group) { return group.platform == platform; });
  if (split.held_out.empty()) {
    std::set<std::string> known;
    for (const Group& group : groups) known.insert(group.platform);
    const std::vector<std::string> names(known.begin(), known.end());
    throw base::UserError(fmt::format("no data of platform '{}'{}", platform, base::did_you_mean(platform, names)));
  }
  return split;
}

Split split_by_workload(const std::vector<Group>& groups, double share, std::uint64_t seed) {
  if (!(share >= 0 && share <= 1)) {
    throw base::UserError(fmt::format("a share of {} of the workloads; choose one between 0 and 1", share));
  }
  // Sorted, so that the order in which datasets are given changes nothing.
  std::set<std::string> distinct;
  for (const Group& group : groups) distinct.insert(group.workload.text);
  if (distinct.size() < 2) {
    throw base::UserError(fmt::format("{} workloads cannot be split by workload; give at least 2", distinct.size()));
  }
  std::vector<std::string> texts(distinct.begin(), distinct.end());
  base::Stream stream(seed, "split_by_workload");
  stream.shuffle(texts);
  const std::int64_t count =
      std::clamp<std::int64_t>(std::llround(share * double(texts.size())), 1, std::int64_t(texts.size()) - 1);
  const std::set<std::string> held_out(texts.begin(), texts.begin() + count);
  return split_by(groups, [&](const Group& group) { return held_out.contains(group.workload.text); });
}

Episode draw_episode(const Group& group, int position, int shots, base::Stream& stream) {
  const std::int64_t count = std::int64_t(group.rows.size());
  if (shots < 0) throw base::UserError(fmt::format("{} shots; choose 0 or more", shots));
  if (count <= shots) {
    throw base::UserError(fmt::format("{} on {} has {} measured programs; {} shots need at least {}",
                                      group.workload.text, group.platform, count, shots, shots + 1));
  }
  Episode episode{position, stream.choose(count, shots), {}};
  std::vector<bool> in_support(std::size_t(count), false);
  for (const std::int64_t row : episode.support) in_support[std::size_t(row)] = true;
  for (std::int64_t row = 0; row < count; ++row) {
    if (!in_support[std::size_t(row)]) episode.query.push_back(row);
  }
  return episode;
}

}  // namespace graft::datasets
