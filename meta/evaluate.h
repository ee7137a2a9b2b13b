// Leave-one-platform-out tables: methods x shots x metrics over the same support draws for all methods, with intervals.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/interval.h"
#include "base/monitor.h"
#include "meta/learner.h"
#include "meta/support.h"
#include "meta/task_set.h"

namespace graft::meta {

// A row of the tables of results: a method and how it is used.
struct EvaluatedMethod {
  std::string name;     // "zero-shot", "finetune", "maml", ...
  std::string learner;  // of methods()
  bool adapts = true;   // false: scored with the empty support at every K
};
std::vector<EvaluatedMethod> evaluated_methods();  // all uses of all methods()
// A name may have settings of its learner (methods/setting.h): "finetune", "maml:inner_steps=5". UserError (did you
// mean).
EvaluatedMethod evaluated_method_named(const std::string& name);

// Support from the judged workloads / for each of them only its own, as in a search / from other workloads only /
// no other platform at all: in_domain.
enum class Regime { seen, alone, unseen, in_domain };

struct EvaluationSettings {
  std::vector<std::string> methods;  // names of evaluated_methods()
  std::vector<int> shots;
  int draws = 20;
  Regime regime = Regime::seen;
  LearnerSettings learner;
  std::vector<std::string> sources;  // platforms to train on; none: all but the target
  // From 1 on: only this number of the last programs of each workload is judged, and the same positions are excluded
  // from training and support on all platforms. If all platforms measured the same programs in one order, judged
  // programs are new ones, too.
  std::int64_t judge_last = 0;
  // With judge_last: the sources have measured the judged programs, too, and learn from them.
  bool sources_know_judged = false;
  SupportChoice support = SupportChoice::random;
  // In domain: a method learns from `shots` programs of each of `train_workloads`, and is judged on the
  // other programs of `judge_workloads` (by canonical text; empty: all).
  std::vector<std::string> train_workloads, judge_workloads;
};

struct EvaluationRow {
  std::string target, method;
  int shots = 0;                  // per (platform, workload)
  std::int64_t measurements = 0;  // support trials in all
  int draws = 0;
  int workloads = 0;                    // judged in each draw
  base::Interval spearman, top1, top5;  // means over workloads (top-k: geometric) per draw; 95 % over draws
  double kendall = 0;                   // tau-b, mean
  double spearman_best30 = 0;           // Spearman within the fastest 30 % of the query set, mean
  double spearman_middle80 = 0;         // within its middle 80 % by time, as HELP (Lee et al. 2021) judges, mean
  double best_place = 0;    // position of the fastest program in the predicted order, geometric mean; 1 is best
  double trials_to_95 = 0;  // programs to measure in the predicted order until one has 95 % of the best speed, likewise
  std::vector<double> spearman_draws, top1_draws, top5_draws;  // by draw: equal draws of two methods are pairs
};

// The methods' learners after their last training. With settings.sources, several targets share them.
struct Priors {
  std::vector<std::string> sources;
  std::map<std::string, std::unique_ptr<CostModel>> models;  // by learner
  const CostModel& of(const EvaluatedMethod& method) const { return *models.at(method.learner); }
};

// Trains what the settings' methods need and `priors` lack, on what evaluate() of the target trains on. Priors of other
// sources go. What is to note of the sources, evaluate() notes. They are for calls with equal tasks and settings,
// methods and targets apart.
void train(const TaskSet& tasks, const std::string& target, const EvaluationSettings& settings, base::Monitor& monitor,
           Priors& priors);

// Every method trained on the sources, adapted to each draw's support, judged on the query rows. Rows
// for which a method cannot work (0 shots for scratch) are reported at the value of its untrained prior. Workloads with
// too few programs for the most shots (and two to judge on) are left out, with a note; UserError if none is left, and
// for a target's table of which nothing can be said: no source has its rows, and no parameter varies in both.
std::vector<EvaluationRow> evaluate(const TaskSet& tasks, const std::string& target, const EvaluationSettings& settings,
                                    base::Monitor& monitor);
// The same with priors that train() filled, or fills now.
std::vector<EvaluationRow> evaluate(const TaskSet& tasks, const std::string& target, const EvaluationSettings& settings,
                                    base::Monitor& monitor, Priors& priors);

// The regime in_domain: every draw trains again, with its own seed, on programs of the target itself (methods that
// know nothing before support get them as support). Across shapes and operators if the two lists differ. UserError
// for a workload that was not measured, or of too few programs.
std::vector<EvaluationRow> evaluate_in_domain(const TaskSet& tasks, const std::string& target,
                                              const EvaluationSettings& settings, base::Monitor& monitor);

}  // namespace graft::meta
