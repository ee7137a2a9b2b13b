// The JSON form of loop programs, and JSON itself.
#include "tests/fuzz/program.h"

namespace graft::fuzz {

void examine(std::string_view text) {
  base::Document document;
  if (!accepted([&] { document = base::parse_json(text, "text"); })) return;
  const std::string json = document.to_json();
  promise(base::parse_json(json, "again").to_json() == json, "JSON is read as it was written", json);
  codegen::LoopProgram program;
  if (accepted([&] { program = codegen::program_from(document); })) hold_promises(program);
}

}  // namespace graft::fuzz
