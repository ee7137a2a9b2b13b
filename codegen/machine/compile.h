// Loop programs -> machine code of the target, through LLVM. One kernel ABI from the first day (no allocation, no libc,
// no libm in the code):
//
//   void <symbol>_prepare(void* const* buffers, void* workspace);
//   void <symbol>_run(void* const* buffers, void* workspace, parallel_for, void* context);
//   using parallel_for = void (*)(void* context, void (*body)(void* closure, int64_t index), void* closure, int64_t n);
//
// `buffers`: one pointer per parameter of the Signature, aligned to 64 bytes; `workspace`: Signature::workspace_bytes,
// aligned to 64, kept from prepare to run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "codegen/expression/target.h"
#include "codegen/program/program.h"

namespace graft::codegen {

struct Parameter {
  std::string name;
  Role role = Role::input;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::int64_t bytes = 0;
};

struct Signature {
  std::vector<Parameter> parameters;  // buffers of the program that are no temporaries, in order
  std::int64_t workspace_bytes = 0;
};
Signature signature(const LoopProgram& program);

// A way through LLVM as data.
struct Pipeline {
  std::string name;
  std::string passes;     // LLVM's textual pipeline, or "default<O3>" and the like
  int codegen_level = 1;  // CodeGenOptLevel 0..3
};
const Pipeline& search_pipeline();         // fast enough to search with, equal to O3 in speed of its code
const std::vector<Pipeline>& pipelines();  // all known: search, O3

struct Object {
  std::string bytes;       // relocatable ELF
  std::uint64_t hash = 0;  // of the bytes' code (equal programs give equal hashes)
  Signature signature;
  std::string symbol;  // prefix of the two functions
  std::int64_t ir_instructions = 0;
};

// Where the time of a compilation went: CPU seconds of the calling thread.
struct PhaseSeconds {
  double emit = 0, optimise = 0, generate = 0;
  double inspect = 0;  // the object's hash and what it needs from elsewhere
};

// Thread-safe (each call has its own context); `phases`, if given, is added to. A Reason for a program that this back
// end cannot emit; UserError for a target that LLVM does not know ("this LLVM (19.1.7) does not know the cpu 'x' for
// riscv64; did you mean ...").
base::Result<Object> compile(const LoopProgram& program, const Target& target,
                             const Pipeline& pipeline = search_pipeline(), const std::string& symbol = "graft",
                             PhaseSeconds* phases = nullptr);

// Throws the UserError that compile would for this target.
void check_target(const Target& target);
// This machine: triple, cpu, features as LLVM sees them, vector bits and registers, cores, caches from sysfs.
Target host_target();

// Optimised LLVM IR and assembly as text, for `graft inspect` and for tests.
base::Result<std::string> assembly(const LoopProgram& program, const Target& target,
                                   const Pipeline& pipeline = search_pipeline());

}  // namespace graft::codegen
