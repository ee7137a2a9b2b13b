// The operations of libraries that a workload corresponds to. Only bench needs this: rules and learners never see an
// operator's name.
#pragma once

#include <cstdint>
#include <optional>

#include "codegen/expression/workload.h"

namespace graft::bench {

// C[b,i,j] += A[b,i,l] * B[b,l,j], row-major, A and B perhaps transposed; `batch` 1 without b. By the form of the
// computation, so that a typed index expression is one, too.
struct MatrixProduct {
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  int a = 0, b = 0, c = 0;  // tensors of the computation
  bool a_transposed = false, b_transposed = false;
};
std::optional<MatrixProduct> matrix_product(const codegen::Computation& computation);

// A 2-d convolution without epilogue: X, W, Y as in the operators conv2d, conv2d_nchwc, conv2d_nhwc, depthwise_conv2d
// and similar ones. Recognised by the canonical text's parameters, checked against the tensors.
struct Convolution {
  std::int64_t n = 1, c = 1, h = 1, w = 1, k = 1, r = 1, s = 1, stride = 1, pad = 0, dilation = 1;
  std::int64_t groups = 1;     // of input and output channels; c of a depthwise one
  std::int64_t block = 1;      // channels stored together: X [n,c/block,h,w,block]; 1: X [n,c,h,w]
  bool channels_last = false;  // NHWC with weights RSCK, RSC of a depthwise one: one block of all channels
  std::int64_t c_block() const { return channels_last ? c : block; }
  std::int64_t k_block() const { return channels_last ? k : block; }
  std::int64_t out_h() const { return (h + 2 * pad - dilation * (r - 1) - 1) / stride + 1; }
  std::int64_t out_w() const { return (w + 2 * pad - dilation * (s - 1) - 1) / stride + 1; }
};
std::optional<Convolution> convolution(const codegen::Workload& workload);

}  // namespace graft::bench
