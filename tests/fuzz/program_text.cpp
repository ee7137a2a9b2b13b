// The text form of loop programs.
#include "tests/fuzz/program.h"

namespace graft::fuzz {

void examine(std::string_view text) {
  if (const auto program = accepted([&] { return codegen::parse_program(text, "text"); })) hold_promises(*program);
}

}  // namespace graft::fuzz
