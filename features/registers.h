// The number of vector registers that the register buffers of a program need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codegen/program/program.h"

namespace graft::features {

// Each register buffer is alive from the first store of run that uses it to the last.
class Registers {
 public:
  explicit Registers(const codegen::LoopProgram& program) : program_(program), use_of_(program.buffers.size(), -1) {}

  // position: of the store in run. lanes: elements of one register, 1 if no vector loop moves the access.
  void add(std::size_t position, int buffer, std::int64_t lanes);

  struct Most {
    double elements = 0, vectors = 0;
  };
  Most alive_together() const;

 private:
  struct Use {
    std::size_t first = 0, last = 0;
    double elements = 0;
    std::int64_t lanes = 1;
  };
  const codegen::LoopProgram& program_;
  std::vector<int> use_of_;  // by buffer, -1: not met
  std::vector<Use> uses_;
};

}  // namespace graft::features
