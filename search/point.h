// A candidate as a point of its space: its sketch, and the row that each of the sketch's domains takes. Used by
// explorers that move along domains, and for the diversity of batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "codegen/space/space.h"

namespace graft::search {

struct Point {
  std::size_t sketch = 0;         // position in the space
  std::vector<std::size_t> rows;  // by domain
  bool operator==(const Point&) const = default;
};

// nullopt for a candidate of another space, or whose arguments are in no row of their domain.
std::optional<Point> point_of(const codegen::Candidate& candidate, const codegen::Space& space);
// Need not be valid (codegen/space/space.h).
codegen::Candidate candidate_at(const Point& point, const codegen::Space& space);

// Whether all that the space has are rows of tables.
bool is_of_tables(const codegen::Space& space);

}  // namespace graft::search
