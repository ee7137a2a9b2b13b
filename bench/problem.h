// One workload ready to be computed by any contender: memory for its parameters, inputs, and expected outputs.
#pragma once

#include <vector>

#include "bench/memory.h"
#include "codegen/expression/reference.h"
#include "codegen/expression/workload.h"

namespace graft::bench {

class Problem {
 public:
  // Expected outputs as for measuring, of a large computation of a sample. UserError if this machine's memory does not
  // suffice.
  explicit Problem(const codegen::Workload& workload);

  const codegen::Workload& workload() const { return workload_; }
  const codegen::Computation& computation() const { return computation_; }
  double flops() const { return double(codegen::flops(computation_)); }
  // Inputs, constants and outputs, in the computation's order: the parameters of every kernel.
  const std::vector<void*>& buffers() const { return buffers_; }
  const std::vector<int>& tensors() const { return tensors_; }  // of the computation, parallel to buffers
  const codegen::Tensor& tensor(int parameter) const;
  int parameter_of(int tensor) const;
  // Whether all parameters are f32: what most libraries compute.
  bool is_f32() const;
  float* values(int parameter) const { return static_cast<float*>(buffers_[std::size_t(parameter)]); }  // of f32

  void clear_outputs() const;  // to NaN, where that is right to 0; integers to a pattern
  bool outputs_right(double amplification = 1) const;

 private:
  codegen::Workload workload_;
  codegen::Computation computation_;
  codegen::Reference expected_;
  std::vector<Memory> memory_;
  std::vector<void*> buffers_;
  std::vector<int> tensors_;
};

}  // namespace graft::bench
