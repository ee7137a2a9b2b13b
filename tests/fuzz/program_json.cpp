// The JSON form of loop programs, and JSON itself.
#include "tests/fuzz/program.h"

namespace graft::fuzz {

void examine(std::string_view text) {
  const auto document = accepted([&] { return base::parse_json(text, "text"); });
  if (!document) return;
  const std::string json = document->to_json();
  promise(base::parse_json(json, "again").to_json() == json, "JSON is read as it was written", json);
  if (const auto program = accepted([&] { return codegen::program_from(*document); })) hold_promises(*program);
}

}  // namespace graft::fuzz
