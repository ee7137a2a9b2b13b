// How far rounding may move a network's outputs: what judges a program of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/monitor.h"
#include "codegen/expression/elements.h"
#include "graph/plan.h"

namespace graft::graph {

// Inputs of a graph for checks, by name: floating-point numbers of -1 to 1, integers of 0 and 1, which are valid
// indices of anything with two elements, and masks. The same for the same seed.
std::map<std::string, codegen::Elements> check_inputs(const Graph& graph, std::uint64_t seed);

// What a plan's buffers hold while it is run in double precision.
class BufferElements {
 public:
  explicit BufferElements(const Plan& plan) : plan_(plan), whole_(plan.buffers.size()) {}
  codegen::Elements read(int buffer) const;
  void write(int buffer, codegen::Elements elements);
  void drop(std::size_t buffer) { whole_[buffer] = {}; }

 private:
  const Plan& plan_;
  std::vector<codegen::Elements> whole_;  // by buffer; of parts nothing
};

// The outputs of a plan, call by call in double precision, where each result is moved, element by element, by a random
// part of the error that its kernel may have (codegen/expression/reference.h): the largest difference from the exact
// outputs says what rounding alone explains.
std::vector<codegen::Elements> moved_by_rounding(const Plan& plan, const Graph& graph,
                                                 const std::map<std::string, codegen::Elements>& inputs,
                                                 std::uint64_t seed, base::Monitor& monitor);

// Of one output, in units of its elements.
struct OutputError {
  std::string name;
  double largest = 0;        // |value| of the expected elements
  double largest_error = 0;  // |difference|; infinite for a result that is not a number where one is expected
  double bound = 0;          // the largest difference that rounding explains, or the rounding of the largest element
  bool right() const { return largest_error <= bound; }
};
OutputError compared(const std::string& name, codegen::DType type, const codegen::Elements& got,
                     const codegen::Elements& expected, const codegen::Elements& moved);

}  // namespace graft::graph
