#include "search/explorers/listed.h"

#include <algorithm>

namespace graft::search {

Proposal Listed::proposal(int count, Scorer&) {
  const std::size_t end = std::min(candidates_.size(), proposed_ + std::size_t(count));
  Proposal found;
  found.others.assign(candidates_.begin() + std::ptrdiff_t(proposed_), candidates_.begin() + std::ptrdiff_t(end));
  proposed_ = end;
  return found;
}

}  // namespace graft::search
