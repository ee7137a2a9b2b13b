// Results of tuners of kernels, one JSON document each.
#include "tests/fuzz/import.h"

namespace graft::fuzz {

void examine(std::string_view text) {
  for (const char* format : {"kernel_tuner", "ktt"}) {
    import(format, text);
    import(format, text, "p", {{ "unit", "us" }});
  }
}

}  // namespace graft::fuzz
