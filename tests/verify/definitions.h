// Independent definitions of operators: plain loops that add up in double, written from the operators'
// definitions. Nothing of codegen is used here, so that an error in an index expression, in its reference or in the
// compiler cannot hide itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"

namespace graft::verify {

// A workload of random shape and type, with inputs and their expected output.
struct Example {
  std::string workload;
  std::vector<std::vector<double>> operands;  // inputs and constants, in the order in which the operator has them
  std::vector<double> output;
  std::vector<double> magnitude;  // of each output: the sum of the absolute values that were added up
  std::int64_t roundings = 1;     // on the longest way to an output
};

struct Definition {
  std::string_view name;
  Example (*draw)(base::Stream& stream);
};
const std::vector<Definition>& definitions();

}  // namespace graft::verify
