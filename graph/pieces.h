// Private to this room: copies of whole runs of elements, which need no code if memory is planned for them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "codegen/expression/computation.h"

namespace graft::graph {

// Elements of the output from `first` on, which are those of a tensor from `from` on.
struct Piece {
  int tensor = -1;
  std::int64_t first = 0, from = 0, elements = 0;
};

// A computation of one stage whose output consists of such pieces, in order: what concatenates along the outermost axis
// of more than one element, stacks, or takes a part. Nothing for all others.
std::optional<std::vector<Piece>> pieces_of(const codegen::Computation& computation);

}  // namespace graft::graph
