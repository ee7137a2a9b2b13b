#include "datasets/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_map>

#include "base/error.h"
#include "base/statistics.h"
#include "base/text.h"
#include "codegen/space/table_schema.h"
#include "datasets/joined_tables.h"

namespace graft::datasets {
namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();
constexpr double level = 0.95;
constexpr std::uint64_t seed = 1;

// Seconds by candidate, in the order of the rows. Vectors with a map: the order decides between equals, and must
// not depend on hashes.
struct Times {
  std::vector<std::uint64_t> candidates;
  std::unordered_map<std::uint64_t, double> seconds;
  std::unordered_map<std::uint64_t, std::uint64_t> rows;  // of tables: by candidate, which row of the table it is

  void add(std::uint64_t candidate, double value) {
    if (seconds.insert_or_assign(candidate, value).second) candidates.push_back(candidate);
  }
  // One row for others, but several here: not a program in common.
  void add_row(std::uint64_t candidate, std::uint64_t row, double value) {
    const auto known = rows.emplace(candidate, row).first;
    if (known->second == row) return add(candidate, value);
    seconds.erase(candidate);
    known->second = 0;
  }
};

struct Measured {
  Agreement::Platform platform;
  std::map<std::string, Times> times;  // by the workload's text
};

std::vector<Measured> measured_of(const std::vector<Dataset>& datasets, const codegen::TableSchema& schema) {
  std::vector<Measured> all;
  for (const Dataset& dataset : datasets) {
    refuse_emulated(dataset.platform, dataset.source);
    auto own = std::find_if(all.begin(), all.end(),
                            [&](const Measured& each) { return each.platform.name == dataset.platform; });
    if (own == all.end()) {
      all.push_back({{dataset.platform, dataset.source}, {}});
      own = all.end() - 1;
    }
    for (const Dataset::Row& row : dataset.rows) {
      if (row.measurement.status != Status::ok) continue;
      const codegen::Candidate candidate = dataset.candidate(row);
      Times& times = own->times[codegen::joined_name(schema, candidate.workload.text())];
      if (const std::uint64_t identity = codegen::row_identity(schema, candidate); identity != 0) {
        times.add_row(identity, codegen::hash_by_name(candidate), seconds_of(row.measurement));
      } else {
        times.add(codegen::hash(candidate), seconds_of(row.measurement));
      }
    }
  }
  return all;
}

// Two platforms on one workload.
struct Common {
  std::vector<double> a, b;  // seconds of the same programs
};

Common common(const Times& a, const Times& b) {
  Common result;
  for (const std::uint64_t candidate : a.candidates) {
    const auto here = a.seconds.find(candidate), there = b.seconds.find(candidate);
    if (here == a.seconds.end() || there == b.seconds.end()) continue;
    result.a.push_back(here->second);
    result.b.push_back(there->second);
  }
  return result;
}

// Seconds on the second platform of the program that is fastest on the first, over the least.
double regret_of(const std::vector<double>& chosen_by, const std::vector<double>& run_on) {
  const auto best = std::min_element(chosen_by.begin(), chosen_by.end());
  return run_on[std::size_t(best - chosen_by.begin())] / *std::min_element(run_on.begin(), run_on.end());
}

// What a pair of platforms says, workload by workload.
struct Pair {
  std::vector<codegen::Workload> workloads;
  std::vector<double> spearman, forth, back;
  std::vector<std::int64_t> programs;
};

Pair pair_of(const Measured& a, const Measured& b, int least_programs) {
  Pair pair;
  for (const auto& [workload, times] : a.times) {
    const auto there = b.times.find(workload);
    if (there == b.times.end()) continue;
    const Common both = common(times, there->second);
    if (std::int64_t(both.a.size()) < std::max(least_programs, 2)) continue;
    pair.workloads.emplace_back(workload);
    pair.spearman.push_back(base::spearman(both.a, both.b));
    pair.forth.push_back(regret_of(both.a, both.b));
    pair.back.push_back(regret_of(both.b, both.a));
    pair.programs.push_back(std::int64_t(both.a.size()));
  }
  return pair;
}

Agreement::Correlation correlation_of(const Pair& pair, const std::string& family) {
  Agreement::Correlation result;
  std::vector<double> values;
  for (std::size_t w = 0; w < pair.workloads.size(); ++w) {
    if (!family.empty() && family_of(pair.workloads[w]) != family) continue;
    values.push_back(pair.spearman[w]);
    ++result.workloads;
    result.programs += pair.programs[w];
  }
  result.value = base::bootstrap_mean(values, level, seed);
  return result;
}

Agreement::Regret regret_of(const Pair& pair, const std::vector<double>& regrets) {
  Agreement::Regret result;
  if (regrets.empty()) {
    result.value = {none, none, none};
    result.worst = none;
    return result;
  }
  std::vector<double> logs;
  for (const double each : regrets) logs.push_back(std::log(each));
  const base::Interval of_logs = base::bootstrap_mean(logs, level, seed);
  result.value = {std::exp(of_logs.mean), std::exp(of_logs.low), std::exp(of_logs.high)};
  result.workloads = int(regrets.size());
  const auto worst = std::max_element(regrets.begin(), regrets.end());
  result.worst = *worst;
  result.worst_workload = pair.workloads[std::size_t(worst - regrets.begin())].text();
  return result;
}

}  // namespace

std::string family_of(const codegen::Workload& workload) {
  base::Cursor cursor(workload.text(), "workload");
  const std::string name = cursor.at_identifier() ? cursor.identifier() : "";
  if (name.empty() || !cursor.accept("(")) return "expression";
  std::string height, width;
  while (!cursor.at_end() && !cursor.accept(")")) {
    const std::string key = cursor.identifier();
    cursor.expect("=");
    const std::string value = cursor.at_identifier() ? cursor.identifier() : std::to_string(cursor.integer());
    if (key == "r") height = value;
    if (key == "s") width = value;
    cursor.accept(",");
  }
  if (width.empty()) return name;
  return height.empty() ? fmt::format("{} {}", name, width) : fmt::format("{} {}x{}", name, height, width);
}

Agreement agreement(const std::vector<Dataset>& datasets, int least_programs) {
  JoinedTables joined = joined_tables(datasets);
  const std::vector<Measured> measured = measured_of(datasets, joined.schema);
  const std::size_t count = measured.size();
  if (count < 2) throw base::UserError("data of one platform; give datasets of at least two");
  Square<Pair> pairs(count, std::vector<Pair>(count));  // above the diagonal
  std::map<std::string, std::vector<codegen::Workload>> families;
  std::vector<codegen::Workload> all;
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = a + 1; b < count; ++b) {
      pairs[a][b] = pair_of(measured[a], measured[b], least_programs);
      for (const codegen::Workload& workload : pairs[a][b].workloads) {
        if (std::find(all.begin(), all.end(), workload) != all.end()) continue;
        all.push_back(workload);
        families[family_of(workload)].push_back(workload);
      }
    }
  }
  if (all.empty()) {
    throw base::UserError(
        fmt::format("no two platforms have {} programs of a workload in common; measure the same ones: collect those "
                    "of one on the other (`programs`)",
                    least_programs));
  }

  Agreement result;
  result.notes = std::move(joined.notes);
  for (const Measured& each : measured) result.platforms.push_back(each.platform);
  const auto correlations = [&](const std::string& family) {
    Square<Agreement::Correlation> square(count, std::vector<Agreement::Correlation>(count));
    for (std::size_t a = 0; a < count; ++a) {
      square[a][a].value = {1, none, none};
      for (std::size_t b = a + 1; b < count; ++b) {
        square[a][b] = square[b][a] = correlation_of(pairs[a][b], family);
      }
    }
    return square;
  };
  result.families.push_back({"all", all, correlations("")});
  for (const auto& [name, workloads] : families) result.families.push_back({name, workloads, correlations(name)});
  result.regret.assign(count, std::vector<Agreement::Regret>(count));
  for (std::size_t a = 0; a < count; ++a) {
    result.regret[a][a].value = {1, none, none};
    result.regret[a][a].worst = 1;
    for (std::size_t b = a + 1; b < count; ++b) {
      result.regret[a][b] = regret_of(pairs[a][b], pairs[a][b].forth);
      result.regret[b][a] = regret_of(pairs[a][b], pairs[a][b].back);
    }
  }
  return result;
}

}  // namespace graft::datasets
