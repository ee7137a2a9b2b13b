#include "meta/networks/gemm.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <Eigen/Core>

#include "base/error.h"

namespace graft::meta {

void gemm(Transposed a_form, Transposed b_form, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
          const float* b, float beta, float* c) {
  // oneDNN takes its thread count from OpenMP's per-thread setting.
  thread_local const bool single = (omp_set_num_threads(1), true);
  (void)single;
  const bool a_turned = a_form == Transposed::yes, b_turned = b_form == Transposed::yes;
  const dnnl_status_t status = dnnl_sgemm(a_turned ? 'T' : 'N', b_turned ? 'T' : 'N', m, n, k, 1.0f, a,
                                          a_turned ? m : k, b, b_turned ? k : n, beta, c, n);
  if (status != dnnl_success) throw base::Failure("oneDNN refused a matrix product");
}

void gemm(Transposed a_form, Transposed b_form, std::int64_t m, std::int64_t n, std::int64_t k, const double* a,
          const double* b, double beta, double* c) {
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Map = Eigen::Map<const Matrix>;
  Eigen::Map<Matrix> out(c, m, n);
  if (beta == 0) {
    out.setZero();
  } else if (beta != 1) {
    out *= beta;
  }
  const bool a_turned = a_form == Transposed::yes, b_turned = b_form == Transposed::yes;
  const Map left(a, a_turned ? k : m, a_turned ? m : k), right(b, b_turned ? n : k, b_turned ? k : n);
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
