#include "datasets/episodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "codegen/expression/suites.h"

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

// The ok rows by workload, each program once. `row_of` is asked only for rows whose program has no hash.
template <class KeyOf, class RowOf>
std::vector<Group> grouped(const Dataset& head, std::size_t rows, KeyOf key_of, RowOf row_of) {
  // What makes two rows the same program: the hash alone where there is one.
  using Unnamed = std::pair<int, std::vector<std::int64_t>>;
  std::vector<std::unordered_set<std::uint64_t>> named(head.workloads.size());
  std::vector<std::set<Unnamed>> unnamed(head.workloads.size());
  std::vector<Group> all;
  for (const codegen::Workload& workload : head.workloads) all.push_back({head.platform, workload, {}});
  for (std::size_t i = 0; i < rows; ++i) {
    const DatasetFile::Key key = key_of(i);
    if (key.status != Status::ok) continue;
    const std::size_t workload = std::size_t(key.workload);
    bool is_new = false;
    if (key.program_hash != 0) {
      is_new = named[workload].insert(key.program_hash).second;
    } else {
      const Dataset::Row row = row_of(i);
      is_new = unnamed[workload].insert({row.sketch, row.arguments}).second;
    }
    if (is_new) all[workload].rows.push_back(std::int64_t(i));
  }
  std::erase_if(all, [](const Group& group) { return group.rows.empty(); });
  return all;
}

constexpr std::string_view by_platform = "platforms";

constexpr std::string_view sources[] = {
    "model:cortex-a53", "model:cortex-a72", "model:cortex-a510", "model:neoverse-n1", "model:a64fx",
    "model:haswell",    "model:znver4",     "model:silvermont",  "model:pwr9",        "model:sifive-u54"};
constexpr std::string_view held_out_platforms[] = {"model:sifive-x280", "model:sifive-p670", "model:xiangshan-nanhu"};

}  // namespace

std::vector<Group> groups(const Dataset& dataset) {
  return grouped(
      dataset, dataset.rows.size(),
      [&](std::size_t i) -> DatasetFile::Key {
        const Dataset::Row& row = dataset.rows[i];
        return {row.workload, row.measurement.status, row.program_hash};
      },
      [&](std::size_t i) { return dataset.rows[i]; });
}

std::vector<Group> groups(const DatasetFile& file) {
  const std::vector<DatasetFile::Key> keys = file.keys();
  return grouped(
      file.head(), keys.size(), [&](std::size_t i) { return keys[i]; },
      [&](std::size_t i) { return file.rows(std::int64_t(i), 1).front(); });
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

Dataset narrowed(const Dataset& dataset, const std::vector<std::string>& sketches, std::int64_t most,
                 std::uint64_t seed) {
  std::vector<char> wanted;  // by sketch
  for (const auto& sketch : dataset.sketches) {
    wanted.push_back(sketches.empty() || std::find(sketches.begin(), sketches.end(), sketch->name) != sketches.end());
  }
  Dataset named = dataset;
  std::erase_if(named.rows, [&](const Dataset::Row& row) { return wanted[std::size_t(row.sketch)] == 0; });
  std::vector<Dataset::Row> rows;
  for (const Group& group : groups(named)) {
    const std::int64_t count = std::int64_t(group.rows.size());
    base::Stream stream(seed, "narrowed", codegen::hash(group.workload));
    std::vector<std::int64_t> kept = stream.choose(count, most > 0 ? std::min(most, count) : count);
    std::sort(kept.begin(), kept.end());
    for (const std::int64_t k : kept) rows.push_back(named.rows[std::size_t(group.rows[std::size_t(k)])]);
  }
  named.rows = std::move(rows);
  return named;
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

std::vector<std::string> split_names() {
  std::vector<std::string> names{std::string(by_platform)};
  for (int fold = 0; fold < folds; ++fold) names.push_back(workload_split(fold));
  return names;
}

std::string workload_split(int fold) {
  return fmt::format("workloads.{}", fold);
}

std::string_view role_of(std::string_view platform) {
  const auto among = [&](const auto& names) {
    return std::find(std::begin(names), std::end(names), platform) != std::end(names);
  };
  return among(sources) ? "source" : among(held_out_platforms) ? "held out" : "";
}

int fold_of(const codegen::Workload& workload) {
  for (const codegen::Suite& suite : codegen::suites()) {
    if (suite.name != "shipped") continue;
    const auto found = std::find(suite.workloads.begin(), suite.workloads.end(), workload);
    if (found != suite.workloads.end()) return int(found - suite.workloads.begin()) % folds;
  }
  return int(codegen::hash(workload) % folds);
}

Split named_split(const std::vector<Group>& groups, const std::string& name) {
  const std::vector<std::string> known = split_names();
  const auto found = std::find(known.begin(), known.end(), name);
  if (found == known.end()) {
    throw base::UserError(fmt::format("unknown split '{}'{}", name, base::did_you_mean(name, known)));
  }
  const int fold = int(found - known.begin()) - 1;
  Split split;
  for (int i = 0; i < int(groups.size()); ++i) {
    const Group& group = groups[std::size_t(i)];
    if (fold >= 0) {
      (fold_of(group.workload) == fold ? split.held_out : split.train).push_back(i);
    } else if (const std::string_view role = role_of(group.platform); !role.empty()) {
      (role == "held out" ? split.held_out : split.train).push_back(i);
    }
  }
  if (split.train.empty() || split.held_out.empty()) {
    throw base::UserError(fmt::format("split '{}' of these data has no {} part; add datasets", name,
                                      split.train.empty() ? "training" : "held-out"));
  }
  return split;
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
