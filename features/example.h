// The program whose values documentation shows: a tiled, vectorised matmul with a tail, its candidate and target.
#pragma once

#include <memory>

#include "features/encoding.h"

namespace graft::features {

class Example {
 public:
  Example();
  Subject subject() const { return {&program_, &candidate_, &target_}; }
  const codegen::LoopProgram& program() const { return program_; }

 private:
  codegen::Target target_;
  codegen::Candidate candidate_;
  codegen::LoopProgram program_;
};

}  // namespace graft::features
