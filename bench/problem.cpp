#include "bench/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace graft::bench {

using namespace codegen;

Problem::Problem(const Workload& workload) : workload_(workload), computation_(codegen::computation(workload)) {
  for (const Tensor& tensor : computation_.tensors) {
    if (tensor.role != Role::temporary && tensor.dtype != DType::f32) {
      throw base::UserError(workload.text,
                            fmt::format("bench compares f32 only; {} is {}", tensor.name, name_of(tensor.dtype)));
    }
  }
  expected_ = reference(computation_, 1);
  for (std::size_t t = 0; t < computation_.tensors.size(); ++t) {
    const Tensor& tensor = computation_.tensors[t];
    if (tensor.role == Role::temporary) continue;
    const Memory& memory = memory_.emplace_back(tensor.bytes());
    if (tensor.role != Role::output) {
      std::copy(expected_.tensors[t].begin(), expected_.tensors[t].end(), memory.floats());
    }
    buffers_.push_back(memory.data());
    tensors_.push_back(int(t));
  }
}

const Tensor& Problem::tensor(int parameter) const {
  return computation_.tensors[std::size_t(tensors_[std::size_t(parameter)])];
}

void Problem::clear_outputs() const {
  for (int p = 0; p < int(buffers_.size()); ++p) {
    if (tensor(p).role == Role::output) {
      std::fill_n(values(p), tensor(p).elements(), std::numeric_limits<float>::quiet_NaN());
    }
  }
}

bool Problem::outputs_right(double amplification) const {
  for (int p = 0; p < int(buffers_.size()); ++p) {
    if (tensor(p).role != Role::output) continue;
    const std::size_t t = std::size_t(tensors_[std::size_t(p)]);
    for (std::size_t i = 0; i < expected_.tensors[t].size(); ++i) {
      const double error = std::abs(double(values(p)[i]) - expected_.tensors[t][i]);
      const double allowed =
          amplification * tolerance(DType::f32, expected_.reduction_length[t], expected_.magnitude[t][i]);
      if (!(error <= allowed)) return false;
    }
  }
  return true;
}

}  // namespace graft::bench
