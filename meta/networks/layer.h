// A fully connected layer of floats in one go: its product, bias and rectifier on one thread, by a kernel that is
// compiled for each width of vectors. For many rows it is faster than a matrix product (gemm.h) followed by a pass.
// Private to networks/.
#pragma once

#include <cstdint>

namespace graft::meta {

struct Layer {
  std::int64_t in = 0, out = 0;
  const float* weight = nullptr;  // in x out, row-major
  std::int64_t weight_stride = 0;
  const float* bias = nullptr;  // out
  bool rectify = false;         // negative outputs become 0
};

// y (rows x out) of x (rows x in), strides between rows. Every output is summed from the bias on in the order of the
// inputs, for any width of vectors and number of rows.
void run(const Layer& layer, std::int64_t rows, const float* x, std::int64_t x_stride, float* y, std::int64_t y_stride);

}  // namespace graft::meta
