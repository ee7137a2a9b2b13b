// Private to the operators: axes and indices of the sums of products, which those of numbers and those of quantised
// numbers share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/operators/call.h"

namespace graft::graph {

// Along one spatial dimension.
struct Window {
  std::int64_t input = 1, kernel = 1, stride = 1, dilation = 1, begin = 0, end = 0, output = 1;
  std::int64_t reach() const { return dilation * (kernel - 1) + 1; }
  // What is read of the input with pads around it.
  std::int64_t padded() const { return std::max(input + begin + end, (output - 1) * stride + reach()); }
  bool is_padded() const { return padded() > input; }
  // The elements of window `place` that are in the input, or in the input and its pads.
  std::int64_t cells(std::int64_t place, bool with_pads) const;
};

// Loads of operand 0 with its pads, which are a stage of their own if there are any: of `channel`, at the windows.
// `outside`: what the pads hold, a number ("": 0), or, if it is computed, any value.
class Padded {
 public:
  Padded(const Call& call, Expression& expression, const std::vector<Window>& windows, std::string_view outside,
         bool is_computed = false);
  std::string load(const std::string& channel);

 private:
  Expression& expression_;
  const std::vector<Window>& windows_;
  bool is_padded_ = false;
};

// Operand 0 convolved with the weights, another operand. Malformed if they do not fit.
struct Convolution {
  Convolution(const Call& call, int operand);

  std::vector<Window> windows;
  std::int64_t channels = 1;  // of the result
  Axes axes, reduced;
  Index element;                    // of the result, where it is not its axes
  std::string input_channel = "i";  // for Padded
  Index weights;                    // of a load of them
  Shape shape;                      // of the result
};
void check_bias(const Call& call, int operand, std::int64_t channels);

// The product of two operands as matrices, the last two dimensions of each; one of one dimension is a row on the left,
// and a column on the right. Malformed if they do not fit.
struct Product {
  Product(const Call& call, int a, int b);

  Axes axes, reduced;
  Index left, right;  // of loads
  bool is_row = false, is_column = false;
  std::int64_t rows = 1, columns = 1;
  Shape shape;
};

}  // namespace graft::graph
