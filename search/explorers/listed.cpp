#include "search/explorers/listed.h"

#include <algorithm>

namespace graft::search {

std::vector<codegen::Candidate> Listed::propose(int count, Scorer&) {
  const std::size_t end = std::min(candidates_.size(), proposed_ + std::size_t(count));
  std::vector<codegen::Candidate> batch(candidates_.begin() + std::ptrdiff_t(proposed_),
                                        candidates_.begin() + std::ptrdiff_t(end));
  proposed_ = end;
  return batch;
}

}  // namespace graft::search
