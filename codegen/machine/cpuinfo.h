// What a Linux machine says of its cpu, as a target: for boards that graft cannot run on itself.
#pragma once

#include <string>

#include "base/error.h"
#include "codegen/expression/target.h"

namespace graft::codegen {

// Triple, cpu, features, vector bits and registers, from `uname -m` and the text of /proc/cpuinfo (may be empty: then
// the least that the architecture has). RVV and SVE have their least length, 128 bits: see vector_length_program.
// UserError for an architecture other than x86_64, aarch64 and riscv64.
Target target_of_cpuinfo(const std::string& machine, const std::string& cpuinfo);

// A static executable for the target, whose architecture is riscv64 or aarch64, that leaves with the bytes of a vector
// register (RVV's vlenb, SVE's cntb) as its exit code, 0 meaning 256; a machine without such vectors ends it by SIGILL.
// A Reason for other architectures.
base::Result<std::string> vector_length_program(const Target& target);

}  // namespace graft::codegen
