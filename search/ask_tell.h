// What to measure next, by what was measured so far: the search itself, without anything that measures. `Tuning` is a
// loop around it; whoever measures by other means asks and tells.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "codegen/space/space.h"
#include "datasets/trial.h"
#include "meta/cost_model.h"
#include "search/explorer.h"
#include "search/programs.h"

namespace graft::search {

// What is tuned: points of a space, what they come to, and where that is measured.
struct Task {
  const codegen::Space& space;  // both must outlive the search
  Programs& programs;           // with an encoding where a model looks
  std::string platform;         // id, put into the examples
};

struct AskTellSettings {
  std::string explorer = "evolution";
  SelectionSettings selection = {};
  std::uint64_t seed = 1;
  int threads = 1;
  std::vector<codegen::Candidate> start = {};  // asked for first, before anything is proposed
  // Known to be fast elsewhere: for this workload, and for other shapes and moved to this one. They are asked for next,
  // among proposals in the order of their scores, without moved ones that the model gives up.
  std::vector<codegen::Candidate> known = {}, moved = {};
};

class AskTell {
 public:
  // `prior` may be null (no model: random search, or annealing without one); if it is not informed (cost_model.h), what
  // is asked for before anything was told is drawn at random. `explorer` replaces the one that the settings name
  // (null: that one). References must outlive the search.
  AskTell(Task task, const meta::CostModel* prior, const AskTellSettings& settings,
          std::unique_ptr<Explorer> explorer = nullptr);

  // Before anything is asked: earlier runs, each of one workload, that the model learns from, too: of this workload
  // elsewhere, or on this machine when it was another one, or of other workloads. It learns the order of the programs
  // within each run, not how long they took. Nothing without a model.
  void remember(std::span<const std::vector<datasets::Trial>> runs);
  // Distinct candidates to measure next, at most `count`, none that was asked for before; fewer where the space has no
  // more. Learns first. Begins with those to start with, then those known. Deterministic in the seed and in what was
  // asked and told, in this order. By evolution in what was told, and in what was asked for since: a search that is
  // told all that another one was goes on as that one.
  std::vector<codegen::Candidate> ask(int count);
  // Trials of this workload, in the order of measurement, whether they were asked for or not. Those that are ok must
  // lower where a model learns from them. Sets their index.
  void tell(std::vector<datasets::Trial> trials);
  // What was told since, if it was not learnt yet; `ask` does the same.
  void learn();

  // How many of those to start with and of those known, moved ones included, were not asked for yet.
  std::int64_t waiting() const { return std::int64_t(start_.size() + known_.size() + moved_.size()); }
  const std::vector<datasets::Trial>& trials() const { return trials_; }  // that were told
  bool any_ok() const { return any_ok_; }
  std::optional<datasets::Trial> best() const;  // the fastest ok trial
  // All `ok` trials, encoded: the support for `adapted`. Its programs must have an encoding.
  meta::Examples examples();

  // Whether a model that knows something guides the search, and what it thinks (Scorer::predictions).
  bool is_informed() const { return scorer_.has_model() && (model_ != nullptr ? *model_ : *prior_).is_informed(); }
  std::vector<float> predictions(std::span<const codegen::Candidate> candidates) {
    return scorer_.predictions(candidates);
  }

  const Task& task() const { return task_; }

 private:
  // Before anything that was told is learnt from: drops moved ones that are not worth a trial; the best score first.
  void choose_moved();
  // By score; the first `known` of the batch are known elsewhere, the others proposals.
  void order(std::span<codegen::Candidate> batch, std::size_t known);
  std::vector<codegen::Candidate> ok_candidates() const;
  meta::Examples examples_of(std::span<const datasets::Trial> trials);

  Task task_;
  const meta::CostModel* prior_;
  std::unique_ptr<meta::CostModel> model_;
  std::vector<codegen::Candidate> start_, known_, moved_;  // distinct, in order, neither asked for nor told yet
  std::unordered_set<std::uint64_t> started_;              // hashes of those that were asked for, and not told yet
  Scorer scorer_;
  std::unique_ptr<Explorer> explorer_;
  std::unique_ptr<Explorer> random_;
  std::vector<datasets::Trial> trials_;
  std::vector<meta::Examples> history_;  // a group for each run
  bool any_ok_ = false, learnt_ = true, has_chosen_ = false;
};

}  // namespace graft::search
