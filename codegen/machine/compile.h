// Loop programs -> machine code of the target (code.h), through LLVM.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "codegen/expression/target.h"
#include "codegen/machine/code.h"
#include "codegen/program/intrinsic.h"
#include "codegen/program/program.h"

namespace graft::codegen {

// A sequence of LLVM's passes as data.
struct Pipeline {
  std::string name;
  std::string passes;  // LLVM's textual pipeline, or "default<O3>" and the like; "": none
  // The same for a program with a loop that accesses the same memory in each iteration: its loads can be hoisted and
  // its sums kept in registers.
  std::string passes_where_repeated;
  int codegen_level = 1;  // CodeGenOptLevel 0..3
  // Passes of the code generator that are not run, as LLVM calls them (argument, or name where it has none); a name
  // that a target does not use has no effect there.
  std::set<std::string, std::less<>> left_out;
  auto operator<=>(const Pipeline&) const = default;
};
// Fast enough to search with; its code is as fast as that of O3. On x86-64 that is "search"; elsewhere "less", because
// the passes left out by "search" pay off if offsets are short and cores run in order.
const Pipeline& search_pipeline(const Target& target);
// By the name that runs record: "" is the target's search pipeline. UserError for one that this graft does not know.
const Pipeline& pipeline_named(const std::string& name, const Target& target);
// All known pipelines. Their code for a program differs by a few per cent in speed: the result of a
// search is worth building with each.
const std::vector<Pipeline>& pipelines();

// A target that no code can be made for.
class TargetError : public base::UserError {
 public:
  TargetError(std::string key, const std::string& message) : UserError(message), key_(std::move(key)) {}
  const std::string& key() const { return key_; }  // of its map form: what to correct

 private:
  std::string key_;
};

// LLVM met what it ends the process for. That is seldom a matter of one program, and each time memory is lost: what is
// under way ends.
class GaveUp : public base::Failure {
 public:
  GaveUp(const std::string& message, std::string said) : Failure(message), said_(std::move(said)) {}
  const std::string& said() const { return said_; }  // by LLVM, in one line

 private:
  std::string said_;
};

// Thread-safe (each call has its own context). A Reason for a program that this back
// end cannot emit; TargetError for a target that LLVM does not know ("this LLVM (19.1.7) does not know the cpu 'x' for
// riscv64; did you mean ...") or that contradicts itself, UserError for an intrinsic whose body violates the rules of
// intrinsic.h, GaveUp where LLVM gave up.
base::Result<Code> compile(const LoopProgram& program, const Target& target, const Pipeline& pipeline,
                           const std::string& symbol = "graft");
base::Result<Code> compile(const LoopProgram& program, const Target& target);  // with the search pipeline

// A Reason if the target lacks a feature that the intrinsic needs. An intrinsic must name all features that its body
// uses: LLVM gives up if it cannot generate code for one.
std::optional<base::Reason> lacks_feature(const Intrinsic& intrinsic, const Target& target);

// The program with plain loops in place of the nests of intrinsics that the target lacks: the same results, for a check
// on another machine than the one that the program is for.
LoopProgram without_foreign_intrinsics(LoopProgram program, const Target& target);

// Throws the TargetError that compile would for this target, or where compile would give up on a small program for it.
void check_target(const Target& target);
// This machine: triple, cpu, features as LLVM sees them, vector bits and registers, cores, caches from sysfs. Found
// once: the hundred CPUID instructions that it takes are slow in virtual machines.
const Target& host_target();

// What becomes of a program, as text for people and tests.
struct Listing {
  std::string ir;        // LLVM's, after all passes; empty for a GPU
  std::string assembly;  // for a GPU the kernels in OpenCL C
};
base::Result<Listing> listing(const LoopProgram& program, const Target& target, const Pipeline& pipeline);
base::Result<Listing> listing(const LoopProgram& program, const Target& target);  // with the search pipeline

}  // namespace graft::codegen
