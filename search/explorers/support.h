// What to measure first on a new platform: candidates whose predicted ranks are spread evenly over a random pool, so
// that a few measurements cover both ends of the model's ranking. Without a model: random. No program twice.
#pragma once

#include "search/explorer.h"

namespace graft::search {

struct SupportSettings {
  int pool = 16;             // programs that a model scores, for each that is proposed
  int draws_per_pooled = 4;  // at most, if the space has few programs
};

class Support : public Explorer {
 public:
  Support(const codegen::Space& space, std::uint64_t seed, const SupportSettings& settings)
      : space_(space), settings_(settings), stream_(seed, "support") {}
  void told(std::span<const datasets::Trial> trials) override;

 private:
  Proposal proposal(int count, Scorer& scorer) override;

  const codegen::Space& space_;
  SupportSettings settings_;
  base::Stream stream_;
  KnownPrograms proposed_;
};

}  // namespace graft::search
