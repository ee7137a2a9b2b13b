// Shared by targets that read programs.
#pragma once

#include "codegen/program/analysis.h"
#include "codegen/program/forms.h"
#include "tests/fuzz/target.h"

namespace graft::fuzz {

// The promises that every program that was read must keep.
inline void hold_promises(const codegen::LoopProgram& program) {
  const std::string text = to_text(program);
  codegen::LoopProgram again = read_back(text, [&] { return codegen::parse_program(text, "again"); });
  promise(again == program && hash(again) == hash(program), "the text of a program is that program", text,
          to_text(again));
  promise(to_text(again) == text, "the text of a program is its own", text, to_text(again));
  const std::string json = to_document(program).to_json();
  again = read_back(json, [&] { return codegen::program_from(base::parse_json(json, "again")); });
  promise(again == program, "the JSON of a program is that program", text, to_text(again));
  (void)codegen::analyse(program);
  (void)codegen::flops(program);
}

}  // namespace graft::fuzz
