// Draws in proportion to weights.
#pragma once

#include <cstddef>
#include <vector>

#include "base/random.h"

namespace graft::search {

// Scales weights to a sum of 1. They are not negative, and not all 0.
void normalise(std::vector<double>& weights);
// Softmax: exp(logit), scaled to a sum of 1.
std::vector<double> chances_of(const std::vector<double>& logits);
// Draws a position with its chance. The chances sum to 1; there is at least one.
std::size_t drawn(const std::vector<double>& chances, base::Stream& stream);

}  // namespace graft::search
