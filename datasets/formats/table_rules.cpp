#include "datasets/formats/table_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "datasets/formats/configurations.h"

namespace graft::datasets::formats {
namespace {

const std::vector<TableRule> rules = {
    // Files of formats of their own.
    {.program = "AutoTVM",
     .needs = {"input*|^input", "config.entity*|^config", "result*|^result"},
     .refusal = "import it as the format autotvm"},
    {.program = "Ansor", .needs = {"i.*|^i", "r.*|^r", "v|^v"}, .refusal = "import it as the format auto_scheduler"},
    {.program = "Kernel Tuner",
     .needs = {"^tune_params_keys|^tune_params"},
     .refusal = "import it as the format kernel_tuner"},
    {.program = "a tuner that writes T4",
     .needs = {"configuration.*", "invalidity"},
     .refusal = "import it as the format kernel_tuner"},
    {.program = "KTT", .needs = {"^Metadata", "^Results"}, .refusal = "import it as the format ktt"},
    {.program = "a program that prints loop programs",
     .needs = {"program*|^program", "workload|^workload"},
     .refusal = "import it as the format programs"},
    {.program = "criterion",
     .needs = {"^mean", "^median", "^std_dev"},
     .refusal = "the estimates of one benchmark without its parameters; write a line for each: cargo criterion "
                "--message-format=json, and import that"},

    {.program = "Google Benchmark",
     .needs = {"name", "iterations", "real_time", "time_unit"},
     .times = {"real_time", "cpu_time"},
     .validity = "error_occurred",
     .good = {"", "false", "False"},
     .names = "name",
     .has_summaries = true},
    {.program = "hyperfine",
     .needs = {"command", "mean", "stddev", "median", "user", "system"},
     .parameters = {"parameter_*", "parameters.*"},
     .times = {"median", "mean", "min", "max", "user", "system"},
     .unit = "s",
     .validity = "exit_codes",
     .good = {"0"},
     .key = "command"},
    {.program = "Optuna",
     .needs = {"number", "state", "params_*"},
     .parameters = {"params_*"},
     .times = {"value"},
     .validity = "state",
     .good = {"COMPLETE", "TrialState.COMPLETE"}},
    {.program = "BenchmarkDotNet",
     .needs = {"Method", "Mean*", "Error*", "StdDev*"},
     .parameters = {"..Mean*"},
     .times = {"Median*", "Mean*"},
     .key = "Method",
     .failure = "NA",
     .takes_all_parameters = false},
    {.program = "BenchmarkDotNet",
     .needs = {"Method", "Parameters", "Statistics.Mean"},
     .parameters = {"Method"},
     .times = {"Statistics.Median", "Statistics.Mean", "Statistics.Min"},
     .unit = "ns",
     .names = "Parameters",
     .key = "Method",
     .takes_all_parameters = false},
    {.program = "ytopt or DeepHyper",
     .needs = {"objective", "p:*"},
     .parameters = {"p:*"},
     .times = {"objective"},
     .failure = "F"},
    {.program = "ytopt or DeepHyper",
     .needs = {"objective", "elapsed_sec|timestamp_submit|timestamp_gather"},
     .parameters = {"..objective"},
     .times = {"objective"},
     .failure = "F"},
    {.program = "SMAC",
     .needs = {"config.*", "config_id", "cost", "status"},
     .parameters = {"config.*"},
     .times = {"cost"},
     .validity = "status",
     .good = {"1", "SUCCESS", "StatusType.SUCCESS"}},
    {.program = "SMAC",
     .needs = {"config.*", "0.0", "1.0", "1.2.__enum__"},
     .parameters = {"config.*"},
     .times = {"cost"},
     .validity = "status",
     .good = {"StatusType.SUCCESS"},
     .aliases = {{"1.0", "cost"}, {"1.2.__enum__", "status"}}},
    {.program = "SMAC",  // with the time of the CPU
     .needs = {"config.*", "0", "4", "7", "9", "^config_origins", "^data"},
     .parameters = {"config.*"},
     .times = {"cost"},
     .validity = "status",
     .good = {"1"},
     .aliases = {{"4", "cost"}, {"7", "status"}}},
    {.program = "SMAC",
     .needs = {"config.*", "0", "4", "6", "^config_origins", "^data"},
     .parameters = {"config.*"},
     .times = {"cost"},
     .validity = "status",
     .good = {"1"},
     .aliases = {{"4", "cost"}, {"6", "status"}}},
    {.program = "pytest-benchmark",
     .needs = {"fullname", "stats.median", "stats.rounds"},
     .parameters = {"params.*"},
     .times = {"stats.median", "stats.mean", "stats.min"},
     .unit = "s",
     .key = "name"},
    {.program = "pytest-benchmark",
     .needs = {"name", "median", "iqr", "rounds", "iterations"},
     .parameters = {"param:*"},
     .times = {"median", "mean", "min"},
     .unit = "s",
     .key = "name"},
    {.program = "criterion",
     .needs = {"reason", "id", "typical.estimate", "typical.unit"},
     .times = {"median.estimate", "typical.estimate", "mean.estimate"},
     .names = "id"},
    {.program = "criterion",
     .needs = {"group", "function", "value", "sample_measured_value", "iteration_count"},
     .parameters = {"group", "function", "value"},
     .times = {"sample_measured_value"},
     .divisor = "iteration_count"},
    {.program = "CLTune or CLBlast",
     .needs = {"kernel", "time", "parameters.*", "^device_core_clock"},
     .parameters = {"parameters.*"},
     .times = {"time"},
     .unit = "ms",
     .key = "kernel"},
    {.program = "HyperMapper or BaCO",
     .needs = {"Valid|valid"},
     .validity = "Valid|valid",
     .good = {"True", "true", "1", "1.0"}},
    {.program = "", .needs = {"config.*"}, .parameters = {"config.*"}},
    {.program = "", .needs = {"configuration.*"}, .parameters = {"configuration.*"}},
    {.program = "", .needs = {"parameters.*"}, .parameters = {"parameters.*"}},
    {.program = "", .needs = {"params.*"}, .parameters = {"params.*"}},
};

// What the '*' of the pattern is for; nullopt if the name is not of it. Of a pattern without one, the whole name.
std::optional<std::string_view> starred(std::string_view pattern, std::string_view name) {
  for (const std::string_view each : base::split(pattern, '|')) {
    if (!each.ends_with('*')) {
      if (each == name) return name;
      continue;
    }
    const std::string_view begin = each.substr(0, each.size() - 1);
    if (name.starts_with(begin)) return name.size() > begin.size() ? name.substr(begin.size()) : name;
  }
  return std::nullopt;
}

bool has(std::span<const std::string> names, std::string_view pattern) {
  return column_of(pattern, names) >= 0;
}

struct Named {
  std::string program;
  std::vector<std::pair<std::string, std::string>> arguments;
};

// "gemm/n:8/16/threads:2/real_time": how often and how it was measured is left out.
Named named_of(std::string_view text) {
  constexpr std::string_view of_measuring[] = {"iterations",   "repeats",   "min_time",   "min_warmup_time",
                                               "process_time", "real_time", "manual_time"};
  const auto is_of_measuring = [&](std::string_view word) {
    return std::find(std::begin(of_measuring), std::end(of_measuring), word) != std::end(of_measuring);
  };
  Named named;
  int unnamed = 0;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find_first_of("/&", begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t mark = part.find_first_of(":=");
    const bool has_key = mark != std::string_view::npos && mark > 0 && mark + 1 < part.size() && part[mark + 1] != ':';
    if (is_of_measuring(part.substr(0, mark))) continue;
    if (has_key)
      named.arguments.emplace_back(part.substr(0, mark), part.substr(mark + 1));
    else if (number_in(part))
      named.arguments.emplace_back(fmt::format("arg_{}", unnamed++), part);
    else
      named.program += fmt::format("{}{}", named.program.empty() ? "" : "/", part);
  }
  return named;
}

// What a row's name says: which other rows it sums up, and by what ("gemm/8_mean").
struct Summary {
  std::string of;
  std::string statistic;  // empty: of none
};

class Rows {
 public:
  Rows(const TableRule& rule, TableRecords& records, Import& import, std::string_view file)
      : rule_(rule), records_(records), import_(import), file_(file) {}

  void leave_out_summaries() {
    const int name = records_.named("name"), type = records_.named("run_type");
    std::set<std::string, std::less<>> names, plain;
    for (const auto& row : records_.rows) names.insert(row[std::size_t(name)]);
    std::vector<Summary> summaries;
    for (const auto& row : records_.rows) {
      summaries.push_back(type >= 0 ? said(row, type) : found(row[std::size_t(name)], names));
      if (summaries.back().statistic.empty()) plain.insert(summaries.back().of);
    }
    std::size_t kept = 0;
    for (std::size_t i = 0; i < summaries.size(); ++i) {
      const bool stands_for_all = summaries[i].statistic == "median" && !plain.contains(summaries[i].of);
      if (!summaries[i].statistic.empty() && !stands_for_all) {
        import_.ignore("a row that sums up others", fmt::format("{}:{}", file_, records_.lines[i]));
        continue;
      }
      records_.rows[i][std::size_t(name)] = summaries[i].of;
      records_.lines[kept] = records_.lines[i];
      if (kept != i) records_.rows[kept] = std::move(records_.rows[i]);
      ++kept;
    }
    records_.rows.resize(kept);
    records_.lines.resize(kept);
  }

  // The parameters in the names, which become columns.
  std::vector<std::string> split_names() {
    const int column = column_of(rule_.names, records_.head);
    std::vector<Named> all;
    std::vector<std::string> keys;
    std::set<std::string> programs;
    for (const auto& row : records_.rows) {
      all.push_back(named_of(row[std::size_t(column)]));
      programs.insert(all.back().program);
      for (const auto& [key, value] : all.back().arguments)
        if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    }
    const std::string own = records_.head[std::size_t(column)];
    for (const std::string& key : keys) {
      // Another column of that name is about the same, or nothing that was chosen.
      if (const int other = records_.named(key); other >= 0) records_.head[std::size_t(other)] += " (column)";
      records_.head.push_back(key);
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::vector<std::string>& row = records_.rows[i];
      row[std::size_t(column)] = all[i].program;
      row.resize(records_.head.size());
      for (const auto& [key, value] : all[i].arguments) row[std::size_t(records_.named(key))] = value;
    }
    programs.erase("");
    if (programs.size() > 1 || (keys.empty() && !programs.empty())) keys.insert(keys.begin(), own);
    return keys;
  }

  std::vector<std::string> parameters() {
    std::vector<std::string> found;
    for (const std::string_view pattern : rule_.parameters) {
      const bool is_before = pattern.starts_with("..");
      const int end = is_before ? column_of(pattern.substr(2), records_.head) : int(records_.head.size());
      for (int c = 0; c < end; ++c) {
        std::string& name = records_.head[std::size_t(c)];
        const std::optional<std::string_view> own = is_before ? name : starred(pattern, name);
        if (!own || name.empty() || (!rule_.takes_all_parameters && !differs(c))) continue;
        if (std::string plain(*own); records_.named(plain) < 0) name = std::move(plain);
        found.push_back(name);
      }
    }
    return found;
  }

 private:
  static Summary found(const std::string& name, const std::set<std::string, std::less<>>& names) {
    for (const std::string_view statistic : {"mean", "median", "stddev", "cv", "min", "max", "BigO", "RMS"}) {
      const std::string end = fmt::format("_{}", statistic);
      if (!name.ends_with(end)) continue;
      const std::string of = name.substr(0, name.size() - end.size());
      const bool has_all =
          names.contains(of + "_mean") && names.contains(of + "_median") && names.contains(of + "_stddev");
      if (names.contains(of) || has_all || statistic == "BigO" || statistic == "RMS")
        return {of, std::string(statistic)};
    }
    return {name, ""};
  }

  Summary said(const std::vector<std::string>& row, int type) const {
    const auto cell = [&](std::string_view column) {
      const int at = records_.named(column);
      return at < 0 ? std::string() : row[std::size_t(at)];
    };
    if (row[std::size_t(type)] != "aggregate") return {cell("name"), ""};
    return {cell("run_name"), cell("aggregate_name").empty() ? "aggregate" : cell("aggregate_name")};
  }

  bool differs(int column) const {
    return std::any_of(records_.rows.begin(), records_.rows.end(), [&](const auto& row) {
      return row[std::size_t(column)] != records_.rows.front()[std::size_t(column)];
    });
  }

  const TableRule& rule_;
  TableRecords& records_;
  Import& import_;
  std::string_view file_;
};

}  // namespace

bool is_of(std::string_view pattern, std::string_view name) {
  return starred(pattern, name).has_value();
}

int column_of(std::string_view pattern, std::span<const std::string> head) {
  if (pattern.empty()) return -1;
  for (std::size_t c = 0; c < head.size(); ++c)
    if (is_of(pattern, head[c])) return int(c);
  return -1;
}

const TableRule* rule_for(std::span<const std::string> head, std::span<const std::string> keys,
                          std::string_view place) {
  std::vector<std::string> names(head.begin(), head.end());
  for (const std::string& key : keys) names.push_back("^" + key);
  for (const TableRule& rule : rules) {
    const bool fits = std::all_of(rule.needs.begin(), rule.needs.end(),
                                  [&](std::string_view pattern) { return has(names, pattern); });
    if (!fits) continue;
    if (!rule.refusal.empty())
      throw base::UserError(place, fmt::format("is a file of {}, not a table; {}", rule.program, rule.refusal));
    return &rule;
  }
  return nullptr;
}

std::vector<std::string> use_rule(const TableRule& rule, TableRecords& records, Import& import, std::string_view file) {
  for (std::string& name : records.head) {
    for (const auto& [before, after] : rule.aliases)
      if (name == before && records.named(after) < 0) name = after;
  }
  Rows rows(rule, records, import, file);
  if (rule.has_summaries) rows.leave_out_summaries();
  std::vector<std::string> parameters = rows.parameters();
  if (!rule.names.empty()) {
    for (std::string& name : rows.split_names())
      if (std::find(parameters.begin(), parameters.end(), name) == parameters.end())
        parameters.push_back(std::move(name));
  }
  if (parameters.empty() && records.named(rule.key) >= 0) parameters.emplace_back(rule.key);
  return parameters;
}

bool is_program_of_tables(std::string_view name) {
  const std::vector<std::string> words = base::words_of_name(name);
  const auto fits = [&](const TableRule& rule) {
    return rule.refusal.empty() && !words.empty() &&
           base::join(base::words_of_name(rule.program), "").find(base::join(words, "")) != std::string::npos;
  };
  return std::any_of(rules.begin(), rules.end(), fits);
}

}  // namespace graft::datasets::formats
