// lld, in process, behind one lock: the only linker.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "codegen/expression/reference.h"
#include "codegen/expression/target.h"
#include "codegen/machine/compile.h"

namespace graft::codegen {

// A shared object (bytes of an ELF file) for this host's dynamic loader; no libraries needed.
base::Result<std::string> link_shared(const std::vector<const Object*>& objects);

// A static, freestanding executable for the target (Linux system calls only: write, exit, clock_gettime): fills the
// inputs as reference(computation, seed) does, runs prepare and run `repetitions` times, and writes one JSON line to
// standard output:
//   {"outputs":[{"name":"C","bytes":N}],"seconds":[...]}\n
// followed by the raw bytes of the outputs. Its inputs are embedded as data. It has one thread: parallel loops run one
// iteration after the other. A Reason for an architecture other than x86_64, riscv64, aarch64.
base::Result<std::string> link_executable(const Object& object, const Target& target, const Computation& computation,
                                          const Reference& reference, int repetitions);

// What an ELF file defines, by name: where its code and data come to lie (as linked), for whoever observes it running.
struct Symbol {
  std::uint64_t address = 0, bytes = 0;
};
std::map<std::string, Symbol> symbols_of(const std::string& elf);  // Failure for what is no ELF file

}  // namespace graft::codegen
