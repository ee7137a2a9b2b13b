#include "datasets/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <unordered_set>
#include <utility>

#include "base/random.h"
#include "codegen/expression/suites.h"

namespace graft::datasets {
namespace {

// The ok rows by workload, each program once. `row_of` is asked only for rows whose program has no hash.
template <class KeyOf, class RowOf>
std::vector<Group> grouped(const Dataset& head, std::size_t rows, KeyOf key_of, RowOf row_of) {
  // The identity of a row's program: the hash alone if there is one.
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

}  // namespace graft::datasets
