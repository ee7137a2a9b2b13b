// Candidates -> programs -> scores: lower, encode, score, in batches and on several threads, with cached results
// for each candidate.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "codegen/expression/target.h"
#include "codegen/schedule/candidate.h"
#include "features/encoding.h"
#include "meta/cost_model.h"
#include "search/selection.h"

namespace graft::search {

class Scorer {
 public:
  // The acquisition's random draws, if any, come from `seed`.
  Scorer(const features::Encoding& encoding, codegen::Target target, int threads, SelectionSettings selection = {},
         std::uint64_t seed = 1);
  // Null, as at first: then every score is 0 and `has_model` false. `measured`: the candidates whose best score
  // is the incumbent of acquisitions that use one.
  void use(const meta::CostModel* model, std::span<const codegen::Candidate> measured = {});
  bool has_model() const { return model_ != nullptr; }
  int threads() const { return threads_; }

  // The acquisition's values for the model's scores (by default these scores), higher is better; -infinity for a
  // candidate that does not lower. In the candidates' order.
  std::vector<float> scores(std::span<const codegen::Candidate> candidates);
  // The model's own scores, whatever the acquisition; otherwise the same.
  std::vector<float> predictions(std::span<const codegen::Candidate> candidates);
  // codegen::hash of each candidate's program: many schedules come to the same one. 0: it does not lower.
  std::vector<std::uint64_t> programs(std::span<const codegen::Candidate> candidates);
  // UserError for a candidate that does not lower.
  features::Encoded encoded(std::span<const codegen::Candidate> candidates);

 private:
  struct Made {
    std::uint64_t program = 0;   // 0: it does not lower
    features::Encoded encoding;  // then of no rows
  };

  meta::Scores scored(const features::Encoded& programs) const;
  std::vector<float> scores(std::span<const codegen::Candidate> candidates, bool acquire);
  void remember(std::span<const codegen::Candidate> candidates, const std::vector<std::uint64_t>& keys);

  const features::Encoding& encoding_;
  codegen::Target target_;
  int threads_;
  SelectionSettings selection_;
  std::uint64_t seed_;
  const meta::CostModel* model_ = nullptr;
  AcquisitionContext context_;
  std::int64_t rounds_ = 0;  // models used so far
  // By candidate hash; dropped as a whole when it grows large.
  std::unordered_map<std::uint64_t, Made> remembered_;
  std::int64_t remembered_values_ = 0;  // numbers in all encodings: a tree has thousands
};

}  // namespace graft::search
