// What judges a program of a network: its calls one by one, each on the operands that it was given, and how far the
// outputs are from those in double precision.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/monitor.h"
#include "codegen/expression/elements.h"
#include "graph/plan.h"

namespace graft::graph {

// What a plan's buffers hold.
class BufferElements {
 public:
  explicit BufferElements(const Plan& plan) : plan_(plan), whole_(plan.buffers.size()) {}
  codegen::Elements read(int buffer) const;
  void write(int buffer, codegen::Elements elements);
  void write_inputs(const std::map<std::string, codegen::Elements>& inputs);  // by name
  void drop(std::size_t buffer) { whole_[buffer] = {}; }

 private:
  const Plan& plan_;
  std::vector<codegen::Elements> whole_;  // by buffer; of parts nothing
};

// By output, what the plan's calls give in double precision, each of what those before it gave; nothing is rounded
// between them. `inputs` by name.
std::vector<codegen::Elements> reference(const Plan& plan, const std::map<std::string, codegen::Elements>& inputs,
                                         base::Monitor& monitor);

// How far a call's result is from what its workload gives for the operands that it read.
struct CallError {
  // The largest error of an element, as a part of what rounding may do to it (codegen/expression/reference.h): right up
  // to 1. Infinite for a number where there should be none, and for the reverse.
  double of_bound = 0;
  std::int64_t element = 0;  // where
  double got = 0, expected = 0;
  // Elements that rounding may change to anything, as after a division by what may be 0: they are right if finite.
  std::int64_t elements = 0, unbounded = 0;
};
// The worst element of a call. `amplification`: of the kernel's program (codegen::Signature).
CallError call_error(const Plan& plan, const Plan::Call& call, const BufferElements& buffers, double amplification);

// How far an output of the network is from double precision throughout.
struct OutputError {
  std::string name;
  double largest = 0;        // |value| of the expected elements
  double largest_error = 0;  // |difference|; infinite for a result that is not a number where one is expected
};
OutputError output_error(const std::string& name, const codegen::Elements& got, const codegen::Elements& expected);

}  // namespace graft::graph
