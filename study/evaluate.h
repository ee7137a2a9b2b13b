// Evaluates methods on platforms that they were not trained on: each target in turn, by cross-validation over folds of
// platforms, or within one platform.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/monitor.h"
#include "meta/evaluate.h"
#include "study/data.h"
#include "study/evaluation_table.h"
#include "study/model_choice.h"

namespace graft::study {

struct EvaluateRequest {
  DataSource data;
  ModelChoice model;
  std::vector<std::string> methods;  // names of meta::evaluated_methods(), at least one
  std::vector<std::int64_t> shots;   // at least one
  std::int64_t draws = 20;
  meta::Regime regime = meta::Regime::seen;
  std::string against;  // the method that differences of the others are taken from; "": scratch, else the first
  std::vector<std::string> targets;     // none: all platforms, each in turn
  std::vector<std::string> sources;     // none: all but the target
  std::vector<std::string> misleading;  // sources whose times are reversed within each workload
  std::int64_t folds = 0;               // from 2 on: cross-validation, which defines targets and sources
  std::int64_t judge_last = 0;          // the last programs of each workload, to judge on; 0: all but the support
  bool sources_know_judged = false;     // with judge_last: the sources learn from the judged programs, too
  std::string support = "random";       // how the support is chosen (meta/support.h)
  std::vector<std::string> train_workloads, judge_workloads;  // in domain; none: all
  std::uint64_t seed = 1;
  int threads = 1;            // no result depends on it
  std::filesystem::path out;  // file of the table, stored after each target and continued from; "": none
  std::string command_line;   // for provenance
};

std::string_view name_of(meta::Regime regime);
meta::Regime regime_named(std::string_view name);  // FieldError

// The platforms distributed over that number of folds, shuffled by the seed; sizes differ by at most one.
// FieldError for fewer than 2 folds or more folds than platforms.
std::vector<std::vector<std::string>> folds_of(std::vector<std::string> platforms, std::int64_t folds,
                                               std::uint64_t seed);

// The rows in the file of an earlier run of the same request that hold all draws. None if there is no such
// file, or a different one.
Rows known_rows(const std::filesystem::path& file, const base::Document& request);

// Called for each target when its rows are in the table, which has no statistics yet.
using TargetDone = std::function<void(const EvaluationTable& table, const std::string& target)>;

// UserError (FieldError) for contradictory settings, as far as possible before anything is read; Stopped
// when the monitor asks for it, and the next call then continues from `out`.
EvaluationTable evaluate(const EvaluateRequest& request, base::Monitor& monitor, const TargetDone& target_done = {});

// Methods and shots of the request, for these targets.
Compared compared_in(const EvaluateRequest& request, std::vector<std::string> targets);
// The method that the differences of the request are taken from.
std::string against_of(const EvaluateRequest& request);

}  // namespace graft::study
