#include "datasets/clean.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "base/statistics.h"

namespace graft::datasets {
namespace {

constexpr std::array drop_names = {
#define X(name, description) std::string_view(#name),
    GRAFT_DROPS(X)
#undef X
};

// Makes the median absolute deviation of a normal distribution its standard deviation.
constexpr double consistent = 1.4826;

// |log(t / median)| of each repetition.
std::vector<double> distances(const std::vector<double>& seconds) {
  std::vector<double> logs;
  for (const double each : seconds) logs.push_back(std::log(each));
  const double middle = base::median(logs);
  for (double& each : logs) each = std::abs(each - middle);
  return logs;
}

// How far a repetition may be from its row's median, by workload, on the log scale.
std::vector<double> allowances(const Dataset& dataset, const std::vector<bool>& counts, const CleanRules& rules) {
  std::vector<std::vector<double>> all(dataset.workloads.size());
  for (std::size_t i = 0; i < dataset.rows.size(); ++i) {
    const Dataset::Row& row = dataset.rows[i];
    if (!counts[i] || row.measurement.seconds.size() < 2) continue;
    std::vector<double> own = distances(row.measurement.seconds);
    // With an odd number of repetitions one is the median itself.
    if (own.size() % 2 == 1) own.erase(std::min_element(own.begin(), own.end()));
    all[std::size_t(row.workload)].insert(all[std::size_t(row.workload)].end(), own.begin(), own.end());
  }
  std::vector<double> result;
  for (const std::vector<double>& own : all) {
    const double typical = own.empty() ? 0 : rules.deviations * consistent * base::median(own);
    result.push_back(std::max(std::log(rules.least_factor), typical));
  }
  return result;
}

}  // namespace

std::string_view name_of(Drop drop) {
  return drop_names[std::size_t(drop)];
}

std::int64_t Cleaned::count(Drop why) const {
  return std::count_if(dropped.begin(), dropped.end(), [&](const Dropped& each) { return each.why == why; });
}

namespace {

// By row: why it is dropped for what it says alone; nullopt if it is not.
std::vector<std::optional<Drop>> dropped_alone(const Dataset& dataset, const CleanRules& rules) {
  std::vector<double> least_seconds;
  for (const codegen::Workload& workload : dataset.workloads) {
    const std::int64_t flops = codegen::names_computation(workload) ? codegen::flops(workload) : 0;
    least_seconds.push_back(double(flops) / rules.most_flops_per_second);
  }
  const auto impossible = [&](const Dataset::Row& row) {
    return std::any_of(row.measurement.seconds.begin(), row.measurement.seconds.end(), [&](double seconds) {
      return seconds < least_seconds[std::size_t(row.workload)] || seconds > rules.most_seconds;
    });
  };

  std::vector<std::optional<Drop>> why;
  for (const Dataset::Row& row : dataset.rows) {
    const bool failed = row.measurement.status != Status::ok;
    why.push_back(failed            ? std::optional(Drop::failed)
                  : impossible(row) ? std::optional(Drop::impossible)
                                    : std::nullopt);
  }
  return why;
}

base::Document summary_of(const Cleaned& cleaned, std::size_t rows) {
  base::Document what = base::Document::map();
  what.set("rows", rows);
  for (std::size_t d = 0; d < drop_names.size(); ++d) what.set(std::string(drop_names[d]), cleaned.count(Drop(d)));
  what.set("repetitions", cleaned.repetitions);
  return what;
}

}  // namespace

Cleaned cleaned(const Dataset& dataset, const CleanRules& rules) {
  const std::vector<std::optional<Drop>> why = dropped_alone(dataset, rules);
  std::vector<bool> counts;
  for (const std::optional<Drop>& each : why) counts.push_back(!each);
  const std::vector<double> allowed = allowances(dataset, counts, rules);

  Cleaned result;
  Dataset& out = result.dataset;
  out = dataset;
  out.workloads.clear();
  out.sketches.clear();
  out.rows.clear();
  // The hash identifies a program; without one, sketch and arguments do.
  using Program = std::pair<std::uint64_t, std::pair<int, std::vector<std::int64_t>>>;
  std::vector<std::set<Program>> seen(dataset.workloads.size());
  const auto drop = [&](std::size_t row, Drop reason) { result.dropped.push_back({std::int64_t(row), reason}); };
  for (std::size_t i = 0; i < dataset.rows.size(); ++i) {
    if (why[i]) {
      drop(i, *why[i]);
      continue;
    }
    const Dataset::Row& row = dataset.rows[i];
    const std::size_t w = std::size_t(row.workload);
    Measurement measurement = row.measurement;
    const std::vector<double> far = distances(row.measurement.seconds);
    measurement.seconds.clear();
    for (std::size_t r = 0; r < far.size(); ++r) {
      if (far[r] <= allowed[w]) measurement.seconds.push_back(row.measurement.seconds[r]);
    }
    if (2 * measurement.seconds.size() <= far.size()) {
      drop(i, Drop::unsteady);
      continue;
    }
    Program program{row.program_hash, {}};
    if (row.program_hash == 0) program.second = {row.sketch, row.arguments};
    if (!seen[w].insert(std::move(program)).second) {
      drop(i, Drop::duplicate);
      continue;
    }
    if (const std::size_t outliers = far.size() - measurement.seconds.size(); outliers > 0) {
      result.repetitions += std::int64_t(outliers);
      ++result.steadied_rows;
    }
    out.add({0, dataset.candidate(row), row.program_hash, std::move(measurement)});
  }

  if (!out.provenance.is_map()) out.provenance = base::Document::map();
  out.provenance.set("cleaned", summary_of(result, dataset.rows.size()));
  return result;
}

}  // namespace graft::datasets
