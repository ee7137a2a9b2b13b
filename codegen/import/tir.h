// Functions of TIR, TVM's loop programs, as its databases store them before they are scheduled:
// node graphs in JSON, of the releases with type keys (0.8 to 0.20) and of those after them. What a function computes
// is read as index expressions. Nothing else of it is kept.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "codegen/expression/computation.h"

namespace graft::codegen {

// A stage of the computation as TIR has it: a block in a nest of loops, one for each axis.
struct TirBlock {
  std::string name;
  int stage = 0;
  std::vector<int> loops;  // axes of the stage, outermost first
};

struct TirFunction {
  // Parameters that TIR marks as free in layout are constants. Dimensions of one element that no load moves in are left
  // out of parameters.
  Computation computation;
  std::vector<TirBlock> blocks;  // in order of execution
};

// The only function of a module in base64, as a line of a database of workloads has it. A Reason for what is not TIR of
// blocks that each store one element at the axes of their loops, and for values that index expressions do not have.
base::Result<TirFunction> tir_function(std::string_view module);

// A map of indices, such as (i, j) -> (j / 4, i, j % 4), of non-negative numbers.
struct IndexMap {
  enum class Kind { number, index, sum, difference, product, quotient, remainder };
  struct Node {
    Kind kind = Kind::number;
    std::int64_t number = 0;  // or the position of the index
    int a = -1, b = -1;       // operands: earlier nodes
  };
  std::vector<Node> nodes;
  std::vector<int> results;
  std::size_t dimensions = 0;  // of what is mapped
};
// From a node graph in JSON. A Reason if it is something else.
base::Result<IndexMap> index_map(std::string_view json);

// The map of forms over variables of these ranges.
struct Mapped {
  bool is_affine = true;
  std::vector<Affine> results;
  // Where it is not affine: the part of a form that a divisor does not divide, and that divisor; 0 for another fault.
  Affine rest = {};
  std::int64_t divisor = 0;
};
Mapped mapped(const IndexMap& map, const std::vector<Affine>& index, const std::vector<Interval>& ranges);

}  // namespace graft::codegen
