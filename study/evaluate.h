// Judging methods on platforms that they were not trained on: each target in turn, by cross-validation over folds of
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
  std::string against;  // the method that the others' differences are taken to; "": scratch, else the first
  std::vector<std::string> targets;     // none: all platforms, each in turn
  std::vector<std::string> sources;     // none: all but the target
  std::vector<std::string> misleading;  // sources whose times are reversed within each workload
  std::int64_t folds = 0;               // from 2 on: cross-validation, which says what targets and sources are
  std::int64_t judge_last = 0;          // of each workload's programs; 0: all that are no support
  std::string support = "random";       // how it is chosen (meta/support.h)
  std::vector<std::string> train_workloads, judge_workloads;  // in domain; none: all
  std::uint64_t seed = 1;
  int threads = 1;            // no result depends on it
  std::filesystem::path out;  // where the table is stored after each target, and continued from; "": nowhere
  std::string command_line;   // for provenance
};

std::string_view name_of(meta::Regime regime);
meta::Regime regime_named(std::string_view name);  // FieldError

// The platforms dealt out to that number of folds, shuffled by the seed; sizes differ by one at most.
// FieldError for fewer than 2 folds or more folds than platforms.
std::vector<std::vector<std::string>> folds_of(std::vector<std::string> platforms, std::int64_t folds,
                                               std::uint64_t seed);

// Rows of an earlier run of the same request that are in the file, as far as they hold all draws. None where there is
// no such file, or another one.
Rows known_rows(const std::filesystem::path& file, const base::Document& request);

// Told of each target when its rows are in the table, which has no statistics yet.
using TargetDone = std::function<void(const EvaluationTable& table, const std::string& target)>;

// UserError (FieldError) for what does not go together, before anything is read as far as possible; Stopped when the
// monitor asks for it, and what is stored in `out` is then taken over by the next call.
EvaluationTable evaluate(const EvaluateRequest& request, base::Monitor& monitor, const TargetDone& target_done = {});

// Methods and shots of the request, for these targets.
Compared compared_in(const EvaluateRequest& request, std::vector<std::string> targets);
// What the differences of the request are taken to.
std::string against_of(const EvaluateRequest& request);

}  // namespace graft::study
