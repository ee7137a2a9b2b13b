// What code of a program is, whoever makes it (compile.h does for processors). Object files have one stable kernel ABI
// (no allocation, no libc, no libm in the code):
//
//   void <symbol>_prepare(void* const* buffers, void* prepared, void* scratch);
//   void <symbol>_run(void* const* buffers, const void* prepared, void* scratch, parallel_for, void* context);
//   using parallel_for = void (*)(void* context, void (*body)(void* closure, int64_t index), void* closure, int64_t n);
//
// Code for a target with `threads` above 1 calls parallel_for with n <= threads; body may be called from any thread, in
// any order, each index once, and all must have returned before parallel_for does. Other code never calls it.
//
// `buffers`: one pointer per parameter of the Signature. `prepared`: Signature::prepared_bytes, which prepare fills
// from the constants, once, and run reads. `scratch`: Signature::scratch_bytes, for prepare prepare_scratch_bytes,
// whose content nobody needs between calls, so that kernels may share it, but not calls at the same time. All are
// aligned to 64 bytes; of 0 bytes, a pointer may be null.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "codegen/program/program.h"

namespace graft::codegen {

struct Parameter {
  std::string name;
  Role role = Role::input;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::int64_t bytes = 0;
  Layout layout = {};          // how `shape` stores the workload's tensor
  bool only_prepared = false;  // a constant that `run` does not read: its pointer may be null there
};

struct Signature {
  std::vector<Parameter> parameters;  // the program's buffers except temporaries, in order
  std::int64_t prepared_bytes = 0;    // 0: there is nothing to prepare
  std::int64_t prepare_scratch_bytes = 0, scratch_bytes = 0;
  double amplification = 1;  // the program's, for checks of results
  std::int64_t threads = 1;  // of the target: the number that the kernel may use

  std::int64_t most_scratch_bytes() const { return std::max(prepare_scratch_bytes, scratch_bytes); }
};
Signature signature(const LoopProgram& program, std::int64_t threads = 1);

// What the bytes of code are. Each has its own linkers and writers: those of link.h, library.h and sequence.h take
// object files.
enum class CodeForm { object_file, opencl };

struct Code {
  std::string bytes;
  std::uint64_t hash = 0;  // of the bytes' code (equal programs give equal hashes)
  Signature signature;
  std::string symbol;  // prefix of the two functions
  std::int64_t ir_instructions = 0;
  CodeForm form = CodeForm::object_file;
};

}  // namespace graft::codegen
