// A number with its uncertainty, and how results store it. statistics.h makes them.
#pragma once

#include <cstddef>

#include "base/document.h"

namespace graft::base {

struct Interval {
  double mean = 0, low = 0, high = 0;  // low = high = NaN: the mean alone is known
};

// Resamples of one or two values say nothing about the spread: fewer values than this have no interval.
inline constexpr std::size_t least_for_interval = 3;

// {"mean":...,"low":...,"high":...}, null for unknown values, and back.
Document to_document(const Interval& value);
Interval interval_from(const Document& document);

}  // namespace graft::base
