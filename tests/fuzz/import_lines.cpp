// Records of others, one a line: any text, by every importer of lines.
#include "tests/fuzz/import.h"

namespace graft::fuzz {

void examine(std::string_view text) {
  for (const char* format : {"autotvm", "auto_scheduler", "metaschedule", "programs"}) import(format, text);
  import("programs", text, "*");
}

}  // namespace graft::fuzz
