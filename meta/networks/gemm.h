// Row-major matrix products on one thread, for the two number types that networks come in. Floats go to oneDNN, which
// generates code for the CPU it runs on (graft itself is built for the baseline one); doubles, for checks only, to
// Eigen.
#pragma once

#include <cstdint>

namespace graft::meta {

enum class Transposed { no, yes };

// c (m x n) = op(a) (m x k) * op(b) (k x n) + beta * c. A stride is the distance between the rows of a matrix in
// memory, at least their length. Calls change the number of OpenMP threads of the calling thread to one: parallelism is
// left to the calling tasks.
void gemm(Transposed a_form, Transposed b_form, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
          std::int64_t a_stride, const float* b, std::int64_t b_stride, float beta, float* c, std::int64_t c_stride);
void gemm(Transposed a_form, Transposed b_form, std::int64_t m, std::int64_t n, std::int64_t k, const double* a,
          std::int64_t a_stride, const double* b, std::int64_t b_stride, double beta, double* c, std::int64_t c_stride);

}  // namespace graft::meta
