// Private to this room: computations of two nodes as one, the second reading what the first one gives.
#pragma once

#include <optional>
#include <vector>

#include "codegen/expression/computation.h"

namespace graft::graph {

// A computation of which each operand is a value of a graph, and whose output is one.
struct Part {
  codegen::Computation computation;
  std::vector<int> values;  // by tensor; -1: a temporary or a literal

  int output() const;  // its tensor
};

// `second` with the output of `first` as a temporary, for the tensors of `second` whose value that is. Stages of
// `first` that reduce nothing are written into their readers where this computes little twice. Nothing if `second`
// reads them in a way that has no form: outside of the tensor, or in a shape in which they are not lines.
std::optional<Part> merged(const Part& first, const Part& second);

// The same with as few axes as possible, if it is one stage that reduces nothing: neighbouring axes along which all
// operands and the output are stored alike are one, so that [1,64,7,7] is gone through as 3136 elements.
Part flattened(Part part);

// Operands x0, x1, ... in the order in which they are read first, temporaries t0, t1, ..., the output y; operands that
// are not read are left out.
Part renamed(const Part& part);

}  // namespace graft::graph
