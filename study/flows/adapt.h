// Adapting a model to a platform with a few measurements there, and its quality afterwards, estimated from them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/document.h"
#include "base/interval.h"
#include "base/monitor.h"
#include "codegen/expression/workload.h"
#include "meta/cost_model.h"
#include "study/inputs/request.h"
#include "study/inputs/setting.h"
#include "tasks/platform.h"

namespace graft::study {

struct AdaptRequest {
  std::filesystem::path model;               // the model to adapt; "": graft's own (study/knowledge/prior.h)
  tasks::Platform platform;                  // with `from`: that of these measurements
  std::vector<codegen::Workload> workloads;  // to measure; none with `from`
  std::filesystem::path out;                 // the adapted model's file
#include "study/inputs/settings/adapt.def"
  std::string command_line;  // for provenance
};

struct AdaptResult {
  // Spearman correlations of predicted and measured speed, with intervals over programs; nullopt: unknown.
  struct Row {
    std::string workload;
    std::int64_t programs = 0;  // measured with status ok
    std::optional<base::Interval> zero_shot, cross_validated;
  };
  // What adapting changed: Spearman correlations, means over programs of the workloads that have both.
  struct Gain {
    std::int64_t workloads = 0, programs = 0;  // that were judged; in all
    double before = 0, after = 0;
    base::Interval gain;  // over programs, each judged by both models
  };
  std::unique_ptr<meta::CostModel> model;
  std::filesystem::path prior;  // what was adapted
  std::string platform, source;
  std::int64_t shots = 0;  // 0: given back by searches
  std::int64_t measurements = 0;
  std::uint64_t seed = 1;
  std::vector<Row> rows;
  std::optional<Gain> gain;           // nothing if no workload was judged twice
  std::filesystem::path out, folder;  // none with `from`
};

// Whether adapting helped, in one sentence: "adapting helped: Spearman 0.61 before, 0.72 after, a gain of 0.11 [0.04,
// 0.18] (...)", or how many programs would tell.
std::string verdict_of(const AdaptResult& result);

// The least number of programs of a workload for cross-validation: one for each fold.
inline constexpr std::int64_t cross_validation_folds = 5;

// The most programs of `from` that a model adapts to; of more, as many of each workload as possible.
inline constexpr std::int64_t most_support = 2048;

// Measures the support that the model chooses, except trials that the run already has, or takes that of `from`, and
// writes the adapted model.
// UserError for contradictory settings, before a folder is made, and for a folder of another request; Failure if no
// program of a workload is ok; Stopped when the monitor asks for it, and the same request then continues.
AdaptResult adapt(const AdaptRequest& request, base::Monitor& monitor);

// Spearman correlation of predicted and measured speed, with the percentile interval over resampled programs. One
// program has no order: its mean is unknown, too.
base::Interval quality_of(const std::vector<float>& predicted, const std::vector<double>& log_seconds,
                          std::uint64_t seed);

// The same of the difference between two predictions of the same programs, the mean over programs.
struct PredictedTwice {
  std::vector<float> before, after;
  std::vector<double> log_seconds;
};
AdaptResult::Gain gain_of(const std::vector<PredictedTwice>& workloads, std::uint64_t seed);

// For each support program its place (rank over count) in its workload, as predicted by a model that was adapted
// without it. Places, unlike scores, are comparable between the models of the folds. Empty for a workload that has
// fewer programs than there are folds.
std::vector<std::vector<float>> cross_validated(const meta::CostModel& prior,
                                                const std::vector<meta::Examples>& supports, std::uint64_t seed,
                                                base::Monitor& monitor);

// {"model":...,"platform":...,"rows":[{"workload":...,"zero_shot":...,"cross_validated":...}],...}
base::Document to_document(const AdaptResult& result);

}  // namespace graft::study
