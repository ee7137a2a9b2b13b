// What the cost model that guides a search thinks of candidates, in batches and on several threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "codegen/space/candidate.h"
#include "features/encoding.h"
#include "meta/cost_model.h"
#include "search/programs.h"
#include "search/selection.h"

namespace graft::search {

class Scorer {
 public:
  // The acquisition's random draws, if any, come from `seed`. `programs` must outlive this.
  Scorer(Programs& programs, int threads, SelectionSettings selection = {}, std::uint64_t seed = 1)
      : programs_(programs), threads_(threads), selection_(selection), seed_(seed) {}
  // Null, as at first: then every score is 0 and `has_model` false. `measured`: the candidates whose best score
  // is the incumbent of acquisitions that use one.
  void use(const meta::CostModel* model, std::span<const codegen::Candidate> measured = {});
  bool has_model() const { return model_ != nullptr; }
  bool compares_by_mean() const { return selection_.acquisition == Acquisition::mean; }
  int threads() const { return threads_; }
  codegen::Judge& judge() { return programs_; }  // of what the space's points come to

  // The acquisition's values for the model's scores (by default these scores), higher is better; of many candidates
  // only the highest by score have their spreads looked at, the others come after them by score; -infinity for a
  // candidate that does not lower. In the candidates' order.
  std::vector<float> scores(std::span<const codegen::Candidate> candidates);
  // The model's own scores, whatever the acquisition; otherwise the same.
  std::vector<float> predictions(std::span<const codegen::Candidate> candidates);
  // What each candidate comes to (Programs::identity). 0: nothing can be made of it.
  std::vector<std::uint64_t> programs(std::span<const codegen::Candidate> candidates) {
    return programs_.identities(candidates, threads_);
  }
  // UserError for a candidate of which nothing can be made. The programs must have an encoding.
  features::Encoded encoded(std::span<const codegen::Candidate> candidates);

 private:
  std::vector<float> scores(std::span<const codegen::Candidate> candidates, bool acquire);

  Programs& programs_;
  int threads_;
  SelectionSettings selection_;
  std::uint64_t seed_;
  const meta::CostModel* model_ = nullptr;
  AcquisitionContext context_;
  std::int64_t rounds_ = 0;  // models used so far
};

}  // namespace graft::search
