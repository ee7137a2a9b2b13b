// Figures of an experiment: the speeds that a method's searches reached and after how many trials, with intervals, and
// verdicts on claims.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/statistics.h"
#include "study/experiments/experiment.h"
#include "study/experiments/results.h"

namespace graft::study {

// For the searches of one method (95 % bootstrap intervals over searches, factors as geometric means):
// the time of the fastest program that any search of the workload found, over the best after `trials`. 1: none is
// faster. A search without an ok trial by then counts as 0.01.
base::Interval speed_of_fastest(const std::vector<search::Searched>& searches, const std::string& method,
                                std::int64_t trials);

// The measure of a claim, and its outcome:
//   speed        speed of `method` after `at` trials, over that of `other` after `other_at`; pairs of searches
//   least-speed  the same for the workload with the least (mean over seeds; no interval)
//   wins         workloads in which that mean is 1 or more (a number, no interval)
//   sum          time of `other` for all workloads, each as often as the claim's weights say, over that of `method`;
//                by timing
//   trials       trials of `method` until it has `share` of the speed that `reach`, or else `other`, has after
//                `other_at` trials (of the mean over its seeds); a search that never has it counts as one trial more
//                than it made
//   times-fewer  trials of `other` until then, over those of `method`; pairs of searches
//   score        `metric` of `method` with `at` shots, mean over targets
//   gain         that minus the metric of `other` with `other_at` shots
//   found        share of the speed of the fastest recorded program that searches by `method` have found after `at`
//                trials, geometric mean over targets
//   found-gain   that minus the share of `other` after `other_at`
//   least-found-gain  the least of these differences, after equally many trials, over targets and numbers of trials; no
//                interval; `at` 0: over all numbers that were recorded
struct Finding {
  base::Interval value;
  std::int64_t of = 0, never = 0;  // searches or targets; searches that never reached it
  std::string where;               // the workload of least-speed; target and trials of least-found-gain
  // reproduced: the value is within the claim's bound; contradicted: its whole interval is outside; else open.
  enum class Verdict { reproduced, open, contradicted } verdict = Verdict::open;
  double short_by = 0;  // distance of the value from the bound; 0 within
};
Finding finding(const Claim& claim, const ExperimentResults& results);
std::string_view name_of(Finding::Verdict verdict);  // "reproduced", "not reproduced", "contradicted"

}  // namespace graft::study
