// Evaluates methods on platforms that they were not trained on: each target in turn, by cross-validation over folds of
// platforms, or within one platform. By the order that they predict, and by searches that they guide.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/monitor.h"
#include "base/team.h"
#include "meta/evaluate.h"
#include "study/flows/evaluation_table.h"
#include "study/inputs/data.h"
#include "study/inputs/model_choice.h"
#include "study/inputs/setting.h"

namespace graft::study {

inline std::vector<std::string> usual_methods() {
  return {"scratch", "zero-shot", "residual"};
}
inline std::vector<std::int64_t> usual_shots() {
  return {0, 10, 50};
}

inline std::vector<std::int64_t> usual_search_counts() {
  return {1, 5, 10, 20, 50};
}

struct EvaluateRequest {
#include "study/inputs/settings/evaluate.def"
  std::string command_line;  // for provenance
};

std::string_view name_of(meta::Regime regime);
meta::Regime regime_named(std::string_view name);  // UserError

// The platforms distributed over that number of folds, shuffled by the seed; sizes differ by at most one.
// FieldError for fewer than 2 folds or more folds than platforms.
std::vector<std::vector<std::string>> folds_of(std::vector<std::string> platforms, std::int64_t folds,
                                               std::uint64_t seed);

// The rows, those that hold all draws, and searches in the file of an earlier run of the same request. None if there is
// no such file, or a different one.
EvaluationTable known_results(const std::filesystem::path& file, const base::Document& request);

// Called for each target when its rows are in the table, which has no statistics yet.
using TargetDone = std::function<void(const EvaluationTable& table, const std::string& target)>;

// UserError (FieldError) for contradictory settings, as far as possible before anything is read; Stopped
// when the monitor asks for it, and the next call then continues from `out`.
EvaluationTable evaluate(const EvaluateRequest& request, base::Monitor& monitor, const TargetDone& target_done = {});
// The same by all ranks of the team, which need the same request and files and have the same table; rank 0 stores it.
EvaluationTable evaluate(const EvaluateRequest& request, base::Team& team, base::Monitor& monitor,
                         const TargetDone& target_done = {});

// Methods and shots of the request, for these targets.
Compared compared_in(const EvaluateRequest& request, std::vector<std::string> targets);
// The methods that guide searches, by default those of the request and random, scratch and gbt-scratch; none without
// `search`.
std::vector<std::string> searched_methods(const EvaluateRequest& request);
// The method that the differences of the request are taken from; for searches scratch, if it
// guides any, else their first.
std::string against_of(const EvaluateRequest& request);
std::string search_against_of(const EvaluateRequest& request);

}  // namespace graft::study
