// What a machine must have so that code for a target runs on it, and code that asks the machine
// whether it does. Libraries say the former in NAME.json, and have the latter as NAME_runs_here.
#pragma once

#include <string>
#include <vector>

#include "codegen/expression/target.h"

namespace graft::codegen {

// Features by LLVM's names, beyond what all machines of the architecture have: "avx2", "avx512f", "sve". Those that
// numerical code may use alone, of architectures for which machine_text has a question.
std::vector<std::string> needs(const Target& target);

// Definitions of `i1 @graft.runs0()`, `@graft.runs1()`, ...: whether this machine has what each target needs, all of
// one architecture. They say no where the system does not tell. Asked on x86-64 by CPUID and XGETBV, on AArch64 and
// POWER in /proc/self/auxv, on RISC-V by riscv_hwprobe.
std::string machine_text(const std::vector<Target>& targets);
// `int NAME_runs_here(void)` of a library for the first of them.
std::string runs_here_text(const std::string& symbol);

// Code for it runs on every machine of the architecture that has the target's calling convention.
Target least_target(const Target& target);

}  // namespace graft::codegen
