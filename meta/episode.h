// An episode: one platform takes the role of the new one; a model gets some of its measurements and predicts others.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace graft::meta {

// The two parts, of any type: rows of a group, examples, batches.
template <class Support, class Query = Support>
struct Episode {
  Support support;
  Query query;
};

// From rows in random order, takes the first `shots` as support, but at most half of them, and up to `most` others
// as query.
inline Episode<std::vector<std::int64_t>> episode_of(const std::vector<std::int64_t>& rows, std::int64_t shots,
                                                     std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
  const auto count = std::ptrdiff_t(rows.size()), cut = std::min<std::ptrdiff_t>(shots, count / 2);
  const auto end = cut + std::min<std::ptrdiff_t>(most, count - cut);
  return {{rows.begin(), rows.begin() + cut}, {rows.begin() + cut, rows.begin() + end}};
}

}  // namespace graft::meta
