// Private to this folder: loop program -> LLVM IR, loop by loop as the program says; nothing is tiled, unrolled or
// vectorised here that the program does not name. The shape that LLVM makes fast code of: one function per part with
// noalias pointers, pointers advanced once per loop level, loads and splats kept per block, register buffers as SSA
// values carried by phis. Knows nothing of target machines beyond the attributes handed in.
//
// Functions made for a symbol S (all nounwind, with an entry count, exact branch weights on every loop):
//   S_prepare, S_run      exported wrappers that load the pointers (compile.h gives their types)
//   S_prepare.0, S_run.N  internal: the loops themselves; entry count = how often one call of the wrapper calls it
//   S_run.N.tasks         internal: what parallel_for calls, once per slot, for the sections from N on (dispatch.h)
#pragma once

#include <llvm/IR/Module.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "codegen/program/program.h"

namespace graft::codegen {

// The loop of the program (position in LoopProgram::loops) whose branch carries this !llvm.loop; -1 for none.
int loop_of_program(const llvm::MDNode* loop_id);

// How the larger and the smaller of two become code: NaN if one of them is (by selection or by instructions that do
// so), or, where NaN is ignored, either of them.
enum class Extremes { selected, instructions, selected_number, number_instructions };

// Attributes of the machine that every function gets.
struct CodeAttributes {
  std::string cpu, features;
  std::int64_t prefer_vector_bits = 0;  // 0: no word about it
  // Registers that are spilled may need more than the stack's own alignment. Without this attribute, LLVM learns that
  // too late and stores them across cache lines, which prevents store forwarding: up to three times as slow.
  bool realign_stack = false;
  unsigned vscale_least = 0;    // of scalable vector units; 0: no word about it
  bool rounds = true;           // has an instruction that rounds down to an integer
  bool rounds_to_even = false;  // has an instruction that rounds to the nearest integer, halves to even
  Extremes extremes = Extremes::selected;
  bool scales = false;    // has AVX-512's instructions for x * 2^n and for the smaller of two sizes
  bool saturates = true;  // LLVM's conversions to integers with the ends of their range keep vectors
  // Has instructions between f16 and f32, and from f32 to bf16 that LLVM selects (of SVE it does not).
  bool converts_f16 = false, converts_bf16 = false;
  // Accesses to buffers that are both written and read say in their !alias.scope which element they begin with. Tells
  // LLVM nothing: no access is said to be outside of a scope.
  bool named_places = false;
};

// An element of a buffer, row-major, as a function of the surrounding loops.
struct NamedPlace {
  int buffer = 0;  // position in LoopProgram::buffers
  std::int64_t constant = 0;
  std::map<int, std::int64_t> by_loop = {};  // elements per iteration, by position in LoopProgram::loops
  bool operator==(const NamedPlace&) const = default;
};
// The place that this !alias.scope names; none if it names no place or several.
std::optional<NamedPlace> named_place(const llvm::MDNode* scopes);

// Adds the functions to `module`, whose triple and data layout are set. A Reason for a
// program that this back end cannot express; the module is then unusable. For one thread, parallel loops are emitted as
// serial ones.
std::optional<base::Reason> emit(llvm::Module& module, const LoopProgram& program, const CodeAttributes& attributes,
                                 const std::string& symbol, std::int64_t threads);

}  // namespace graft::codegen
