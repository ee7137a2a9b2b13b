// Micro-kernels: a small nest of loops with machine code of its own. An intrinsic says what it computes as an index
// expression over fixed extents and how as LLVM IR; a nest that computes the same may be replaced by it
// (tensorisation). The nest stays in the loop program as loops and a store, so that everything but the emitter reads
// what is computed.
//
//   intrinsic dot_u8i8                          # comments as in sketches
//   needs +avx512vnni
//   computes input A[4] : u8; input B[16,4] : i8; output C[i] : i32 += A[l] * B[i,l] where i=16, l=4
//   body
//   declare <16 x i32> @llvm.x86.avx512.vpdpbusd.512(<16 x i32>, <16 x i32>, <16 x i32>)
//   define <16 x i32> @dot_u8i8(<16 x i32> %c, <4 x i8> %a, <64 x i8> %b) {
//     ...
//   }
//   end
//
// The body is a function of values, not of memory: it takes the output's elements before (with `=` it does not), then
// those of each input in order of declaration, and returns the output's elements. A tensor is one vector, row-major; a
// tensor of a single element is a scalar. Elements of f16 and bf16 are i16, whose bits they are. So accumulators stay
// in registers, and values read twice are loaded once. Packing lays operands out in the order of the axes, spatial ones
// first: tensors are best declared so.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "codegen/program/program.h"

namespace graft::codegen {

struct Intrinsic {
  std::string name;
  std::string needs;        // LLVM features, "+avx512vnni,+avx512vl"; may be empty
  Computation computation;  // one stage; every input is read in one place, in full
  std::string body;         // LLVM IR: one function of the intrinsic's name, of one block; declarations
  bool operator==(const Intrinsic&) const = default;

  const Stage& stage() const { return computation.stages.front(); }
  const Tensor& output() const { return computation.tensors[std::size_t(stage().tensor)]; }
};

// Any number of them; throws UserError with the place. The body is not checked here (machine/compile.h).
std::vector<IntrinsicPointer> parse_intrinsics(std::string_view text, std::string_view place);
std::string to_text(const Intrinsic& intrinsic);  // parses back
std::uint64_t hash(const Intrinsic& intrinsic);

// The text of one intrinsic that begins at `line` of `lines`, read while another text is; `line` is moved past its
// end.
IntrinsicPointer parse_intrinsic(std::span<const std::string_view> lines, std::size_t& line, std::string_view place);

// Refuses a second intrinsic of the same name with a UserError at the place.
void append_intrinsic(std::vector<IntrinsicPointer>& intrinsics, IntrinsicPointer intrinsic, std::string_view place);

// nullptr if none has that name.
IntrinsicPointer intrinsic_named(std::span<const IntrinsicPointer> intrinsics, std::string_view name);

// A nest of a program that computes the same as an intrinsic.
struct Match {
  int store = 0;
  std::vector<int> loops;  // outermost first: the intrinsic's axes of extent > 1, in order
  std::vector<int> loads;  // by tensor of the intrinsic: position in the store's loads; -1 for the output
};

// Whether body[node] and the loops inside of it are what the intrinsic computes: the same extents in the same order,
// one store of the same value (operands of + * max min may be swapped), combined in the same way, equal types, and
// every operand contiguous, in the order of the intrinsic's tensor. A Reason names the first difference.
base::Result<Match> match(const LoopProgram& program, const Body& body, int node, const Intrinsic& intrinsic);

// A way in which part of a stage computes the same as an intrinsic.
struct Assignment {
  std::vector<int> axes;   // by axis of the intrinsic: the stage's axis in its place; -1 for an extent of 1
  std::vector<int> loads;  // by load of the intrinsic: the stage's
};

// All such ways: axes of at least the intrinsic's extents, along which the same operands move. How far they move is
// left to packing, and to match.
std::vector<Assignment> assignments(const Computation& computation, const Stage& stage, const Intrinsic& intrinsic);

}  // namespace graft::codegen
