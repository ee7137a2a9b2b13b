// Candidates -> programs -> scores: lower, encode, score, in batches and on several threads, with what was made of a
// candidate remembered.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "codegen/expression/target.h"
#include "codegen/schedule/candidate.h"
#include "features/encoding.h"
#include "meta/cost_model.h"

namespace graft::search {

class Scorer {
 public:
  Scorer(const features::Encoding& encoding, codegen::Target target, int threads);
  // Null, as at first: then every score is 0 and `has_model` false.
  void use(const meta::CostModel* model) { model_ = model; }
  bool has_model() const { return model_ != nullptr; }
  int threads() const { return threads_; }

  // Higher is faster; -infinity for a candidate that does not lower. Rows in the candidates' order.
  std::vector<float> scores(std::span<const codegen::Candidate> candidates);
  // codegen::hash of each candidate's program: many schedules come to the same one. 0: it does not lower.
  std::vector<std::uint64_t> programs(std::span<const codegen::Candidate> candidates);
  // UserError for a candidate that does not lower.
  features::Encoded encoded(std::span<const codegen::Candidate> candidates);

 private:
  struct Made {
    std::uint64_t program = 0;   // 0: it does not lower
    features::Encoded encoding;  // then of no rows
  };

  void remember(std::span<const codegen::Candidate> candidates, const std::vector<std::uint64_t>& keys);

  const features::Encoding& encoding_;
  codegen::Target target_;
  int threads_;
  const meta::CostModel* model_ = nullptr;
  // By candidate hash; dropped as a whole when it grows large.
  std::unordered_map<std::uint64_t, Made> remembered_;
  std::int64_t remembered_values_ = 0;  // numbers in all encodings: a tree has thousands
};

}  // namespace graft::search
