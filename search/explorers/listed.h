// Proposes given candidates, in their order: for programs from elsewhere (another platform's dataset),
// so that platforms can be compared on the same ones. They need not belong to the tuning's space.
#pragma once

#include <vector>

#include "search/explorer.h"

namespace graft::search {

class Listed : public Explorer {
 public:
  // Distinct candidates.
  explicit Listed(std::vector<codegen::Candidate> candidates) : candidates_(std::move(candidates)) {}
  void told(std::span<const datasets::Trial>) override {}

 private:
  Proposal proposal(int count, Scorer& scorer) override;

  std::vector<codegen::Candidate> candidates_;
  std::size_t proposed_ = 0;
};

}  // namespace graft::search
