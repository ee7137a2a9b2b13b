#include "features/registers.h"

#include <algorithm>
#include <cmath>

namespace graft::features {

void Registers::add(std::size_t position, int buffer, std::int64_t lanes) {
  int& use = use_of_[std::size_t(buffer)];
  if (use < 0) {
    use = int(uses_.size());
    uses_.push_back({.first = position, .elements = double(program_.buffers[std::size_t(buffer)].elements())});
  }
  uses_[std::size_t(use)].last = position;
  uses_[std::size_t(use)].lanes = std::max(uses_[std::size_t(use)].lanes, lanes);
}

Registers::Most Registers::alive_together() const {
  Most most;
  for (const Use& at : uses_) {  // the most are alive where one begins
    Most alive;
    for (const Use& use : uses_) {
      if (use.first > at.first || use.last < at.first) continue;
      alive.elements += use.elements;
      alive.vectors += std::ceil(use.elements / double(use.lanes));
    }
    most.elements = std::max(most.elements, alive.elements);
    most.vectors = std::max(most.vectors, alive.vectors);
  }
  return most;
}

}  // namespace graft::features
