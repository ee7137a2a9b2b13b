#include "meta/networks/gemm.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <Eigen/Core>

#include "base/error.h"

namespace graft::meta {

void gemm(Transposed a_form, Transposed b_form, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
          std::int64_t a_stride, const float* b, std::int64_t b_stride, float beta, float* c, std::int64_t c_stride) {
  // oneDNN takes its thread count from OpenMP's per-thread setting.
  thread_local const bool single = (omp_set_num_threads(1), true);
  (void)single;
  const dnnl_status_t status = dnnl_sgemm(a_form == Transposed::yes ? 'T' : 'N', b_form == Transposed::yes ? 'T' : 'N',
                                          m, n, k, 1.0f, a, a_stride, b, b_stride, beta, c, c_stride);
  if (status != dnnl_success) throw base::Failure("oneDNN refused a matrix product");
}

void gemm(Transposed a_form, Transposed b_form, std::int64_t m, std::int64_t n, std::int64_t k, const double* a,
          std::int64_t a_stride, const double* b, std::int64_t b_stride, double beta, double* c,
          std::int64_t c_stride) {
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Stride = Eigen::OuterStride<>;
  using Map = Eigen::Map<const Matrix, Eigen::Unaligned, Stride>;
  Eigen::Map<Matrix, Eigen::Unaligned, Stride> out(c, m, n, Stride(c_stride));
  if (beta == 0) {
    out.setZero();
  } else if (beta != 1) {
    out *= beta;
  }
  const bool a_turned = a_form == Transposed::yes, b_turned = b_form == Transposed::yes;
  const Map left(a, a_turned ? k : m, a_turned ? m : k, Stride(a_stride));
  const Map right(b, b_turned ? n : k, b_turned ? k : n, Stride(b_stride));
  if (a_turned && b_turned) {
    out.noalias() += left.transpose() * right.transpose();
  } else if (a_turned) {
    out.noalias() += left.transpose() * right;
  } else if (b_turned) {
    out.noalias() += left * right.transpose();
  } else {
    out.noalias() += left * right;
  }
}

}  // namespace graft::meta
