// Text and JSON forms of loop programs, without their `amplification`. Text:
//
//   buffer A f32 [512,512] input
//   buffer acc f32 [8,32] temporary registers
//   run
//     for i.0 64
//       for k 512
//         for j.v 16 vector
//           acc[0,j.v] += A[8*i.0,k] * B[k,j.v]
//
// A literal's elements follow its role: `buffer B f32 [2,2] temporary {1, 0, 0, -1}`.
// A parameter's layout, if it has one, too: `buffer X f32 [1,4,8,8,16] input stored {0 1/16 2 3 1%16}` (layout.h). What
// a loop prefetches follows its kind: `for k 512 prefetch A[8*i.0,k + 16]`. Two spaces a level; loop names must
// be unique on the path to a node (the same name may be used again elsewhere).
#pragma once

#include <string>
#include <string_view>

#include "base/document.h"
#include "codegen/program/program.h"

namespace graft::codegen {

std::string to_text(const LoopProgram& program);
LoopProgram parse_program(std::string_view text, std::string_view place);  // checked; throws UserError with line

base::Document to_document(const LoopProgram& program);
LoopProgram program_from(const base::Document& document);  // checked; throws UserError with place

}  // namespace graft::codegen
