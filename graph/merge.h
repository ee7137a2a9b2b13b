// Private to this room: computations of two nodes as one, the second reading what the first one gives.
#pragma once

#include <cstdint>
#include <functional>
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
// reads them in a way that has no form: outside of the tensor, or in a shape in which they are not lines. A copy of
// what `first` reduces, in another order of dimensions with the same innermost one, is written in that order at once.
std::optional<Part> merged(const Part& first, const Part& second);

// The same without stages that only copy an operand: their readers read it.
Part without_copies(Part part);

// The same with what softmax gives to a product divided after the product: sum_l (E[l] / D) V[l] is
// (sum_l E[l] V[l]) / D. Only where E is the exponential of what is at most 0, the maximum having been subtracted, and
// D its sum: then nothing is as large as before the division but what has D times the largest V.
Part divided_last(Part part);

// The same with as few axes as possible, if it is one stage that reduces nothing: neighbouring axes along which all
// operands and the output are stored alike are one, so that [1,64,7,7] is gone through as 3136 elements.
Part flattened(Part part);

// Each stage by itself, in order. The values of what stages read of each other are given by `value_of`, from the
// tensor's number.
std::vector<Part> stages_of(const Part& part, const std::function<int(int tensor)>& value_of);

// A tensor that the part reads only with the same constants in its first dimensions: the part with the tensor without
// them, and where that begins. `tensor` is an operand.
struct Sliced {
  Part part;
  std::int64_t first = 0;  // element
};
std::optional<Sliced> sliced(const Part& part, int tensor);

// Operands x0, x1, ... in the order in which they are read first, temporaries t0, t1, ..., the output y; operands that
// are not read are left out.
Part renamed(const Part& part);

}  // namespace graft::graph
