// Random search: the baseline of every other explorer, and how datasets are collected.
#pragma once

#include <unordered_set>

#include "search/explorer.h"

namespace graft::search {

class Sampling : public Explorer {
 public:
  Sampling(const codegen::Space& space, std::uint64_t seed) : space_(space), stream_(seed, "sampling") {}
  void told(std::span<const datasets::Trial> trials) override;

 private:
  Proposal proposal(int count, Scorer& scorer) override;

  const codegen::Space& space_;
  base::Stream stream_;
  std::unordered_set<std::uint64_t> proposed_;  // candidate hashes
};

}  // namespace graft::search
