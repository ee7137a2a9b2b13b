// Rows of tables that the sources measured themselves are known by identity (features::Encoded::identities), whatever
// their parameters say: the sources' times of a row are evidence for its time on the target. Any model gets it as a
// part of its own; a row that no source has is scored by the model alone. The target's own times are never among it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/arrays.h"
#include "base/monitor.h"
#include "meta/cost_model.h"
#include "meta/learner.h"

namespace graft::meta {

// The times that sources measured, by row.
struct KnownRows {
  struct Source {
    std::string platform;
    float spread = 1;  // standard deviation of its log seconds about the workloads' means
    double share = 0;  // in the mean of the sources
    // -log seconds over the spread, in each workload about the mean of the rows that sources have in common.
    std::unordered_map<std::uint64_t, float> speeds;
  };
  std::vector<Source> sources;
  double of_model = 0;  // the share of the model's scores before anything is measured, next to the sources' times

  // programs x sources: speeds times the mean spread of the sources; NaN where a source lacks the row.
  base::Matrix speeds(const features::Encoded& programs) const;
  // Which programs at least one source has.
  std::vector<char> has(const features::Encoded& programs) const;
};

// From rows with an identity that is one row's on its platform. The shares are those of a one-factor model: sources'
// times are a common order plus deviations of their own, and a source counts by how far the others confirm it; equal
// shares for two sources, and for four or more where these predict held-out sources better.
KnownRows known_rows(std::span<const Examples> groups);
// Those of `groups` as well, in place of what was known of their platforms.
void add(KnownRows& known, std::span<const Examples> groups);
// The mean of the sources' speeds (a row of KnownRows::speeds) by shares, of those that have the row; NaN if none has.
double mean_speed(const KnownRows& known, std::span<const float> speeds);

// How well each source is ranked by the times of the others, and by a linear model of the others' features (mean
// Spearman over sources of rows that the others have). Equal and 0 where no two sources have rows in common.
struct KnownRowsQuality {
  double by_times = 0, by_features = 0;
};
KnownRowsQuality quality_of_known_rows(std::span<const Examples> groups);

// The share of a model of the features next to the sources' times, by the squares of both qualities; half if nothing is
// known of them.
double share_of_model(const KnownRowsQuality& quality);

// Whether the times say all that is to be had: the share of a model is below a tenth. Else, once there are
// measurements of the target, a model of the parameters alone is sometimes far better, and seldom much worse
// (docs/notebook/2026-11-26-known-rows.md).
bool parameters_say_nothing(const KnownRowsQuality& quality);

// By feature, whether it has different values within a group.
std::vector<char> varying(std::span<const Examples> groups);

// Whether models of these tasks, of which this is known, use the sources' times of rows: as said, and if that is left
// open, where parameters say nothing. Of one source alone that is judged by its parameters: words without an order say
// nothing.
bool uses_known_rows(const KnownRows& known, const TaskSet& tasks, KnownRowsUse use);

// kind "known-rows": a model that scores rows that a source has by the mean of the sources and the model's scores, and
// after measurements by ridge regression on the sources' times and the model's scores of rows that it was not adapted
// to, shrunk to that mean. Other rows are scored by the model alone, on the same scale.
std::unique_ptr<CostModel> make_known_rows_model(std::unique_ptr<CostModel> model, KnownRows known,
                                                 std::span<const Examples> groups);
std::unique_ptr<CostModel> known_rows_model_from(const base::Arrays& state);
inline constexpr const char* known_rows_kind = "known-rows";

// The model with what the tasks know of rows, as the settings say (LearnerSettings::known_rows); itself if there is
// nothing to know, or if it learnt nothing from the tasks.
std::unique_ptr<CostModel> with_known_rows(std::unique_ptr<CostModel> model, const TaskSet& tasks,
                                           const LearnerSettings& settings, base::Monitor& monitor);

}  // namespace graft::meta
