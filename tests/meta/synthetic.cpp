#include "tests/meta/synthetic.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "base/random.h"

namespace graft::meta::synthetic {
namespace {

const features::Encoding& encoding_of(int columns, bool trees) {
  static std::map<std::pair<int, bool>, features::Encoding> known;
  features::Encoding& encoding = known[{columns, trees}];
  if (encoding.name.empty()) {
    encoding.name = trees ? "synthetic_tree" : "synthetic";
    encoding.shape = trees ? features::Shape::tree : features::Shape::row;
    for (int c = 0; c < columns; ++c) encoding.features.push_back({fmt::format("f{}", c), "1", "a random number"});
    encoding.hash = std::uint64_t(columns);
  }
  return encoding;
}

features::Encoded as_trees(const base::Matrix& rows) {
  features::Encoded trees;
  trees.rows = base::Matrix(3 * rows.rows, rows.columns);
  for (std::int64_t r = 0; r < rows.rows; ++r) {
    for (std::int64_t c = 0; c < rows.columns; ++c) trees.rows.at(3 * r + 1 + c % 2, c) = rows.at(r, c);
    trees.begins.push_back(3 * (r + 1));
    for (const std::int32_t parent : {-1, 0, 0}) trees.parents.push_back(parent);
  }
  return trees;
}

}  // namespace

TaskSet make(const Settings& settings) {
  constexpr int costs = 3;
  TaskSet tasks;
  tasks.encoding = &encoding_of(settings.features, settings.trees);
  base::Stream shared(settings.seed, "hidden costs");
  std::vector<double> hidden(std::size_t(costs * settings.features));
  for (double& value : hidden) value = shared.normal() / std::sqrt(double(settings.features));
  for (int p = 0; p < settings.platforms; ++p) {
    base::Stream own(settings.seed, "platform", std::uint64_t(p));
    double mix[costs], bend[costs];
    for (int c = 0; c < costs; ++c) {
      mix[c] = own.normal();
      bend[c] = 0.5 * own.normal();
    }
    const std::string name = fmt::format("p{}", p);
    tasks.sources[name] = "modelled";
    for (int w = 0; w < settings.workloads; ++w) {
      Examples group;
      group.platform = name;
      group.workload = codegen::Workload(fmt::format("w{}", w));
      group.features = features::one_row_each(base::Matrix(settings.rows, settings.features));
      // Features depend on the workload alone: all platforms measured the same programs.
      base::Stream programs(settings.seed, "programs", std::uint64_t(w));
      for (std::int64_t r = 0; r < settings.rows; ++r) {
        double log_seconds = -5 + w + settings.noise * own.normal();
        for (float& value : group.features.rows.row(r)) value = float(3 + 2 * programs.normal());
        for (int c = 0; c < costs; ++c) {
          double cost = 0;
          for (int f = 0; f < settings.features; ++f) {
            cost += hidden[std::size_t(c * settings.features + f)] * (double(group.features.rows.at(r, f)) - 3) / 2;
          }
          log_seconds += mix[c] * cost + bend[c] * std::max(cost, 0.0);
        }
        group.log_seconds.push_back(log_seconds);
        group.program_hashes.push_back(programs.bits());
      }
      if (settings.trees) group.features = as_trees(group.features.rows);
      tasks.groups.push_back(std::move(group));
    }
  }
  return tasks;
}

}  // namespace graft::meta::synthetic
