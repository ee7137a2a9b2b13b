// The entry that libFuzzer calls.
#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  graft::fuzz::examine({reinterpret_cast<const char*>(data), size});
  return 0;
}
