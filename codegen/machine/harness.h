// Private to this folder: the freestanding program around kernels - start, system calls, clock, output - as an object
// for the target. No libc, no files, no threads: parallel_for runs the iterations in order, so times of parallel
// programs are times on one core.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "codegen/expression/reference.h"
#include "codegen/expression/target.h"
#include "codegen/machine/code.h"
#include "codegen/machine/link.h"

namespace graft::codegen {

// What kernels are run on.
struct Operands {
  // Data of the program by name.
  struct Data {
    std::string name, content;  // no content: zeros
    std::int64_t bytes = 0;
    bool constant = false;
  };
  std::vector<Data> data;
  std::vector<std::vector<std::string>> names;  // of data, [kernel][parameter]
  std::vector<std::string> outputs;             // of data
};

// Inputs as the reference has them, in the order in which each kernel stores them; outputs in memory that all kernels
// share. The first kernel's parameter p is `data<p>`.
Operands operands_of(const std::vector<const Code*>& objects, const Computation& computation,
                     const Reference& reference);
// Inputs of one kernel as it stores them, one for each parameter except outputs.
Operands operands_of(const Code& object, const std::vector<std::string>& inputs);

// Relocatable ELF with `_start`, to be linked with the objects. Does what link_executable (link.h) promises. The memory
// of all kernels is the symbols `prepared` and `scratch`; the first may be elsewhere: a symbol of another object, where
// nothing is written. A Reason for an architecture whose system calls are not known
// here, and for what is too large; `make_operands` is called for nothing else.
base::Result<std::string> harness(const std::vector<const Code*>& objects, const Target& target,
                                  const std::function<Operands()>& make_operands, const RunSettings& settings,
                                  bool prepared_elsewhere = false);

}  // namespace graft::codegen
