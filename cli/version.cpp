#include "cli/version.h"

#include <fmt/format.h>

#include "study/inputs/request.h"

namespace graft::cli {

std::string version_text() {
  std::string text = fmt::format("graft {}\n", study::graft_version());
  const std::string_view commit = GRAFT_COMMIT;
  text += fmt::format("commit: {}\n", commit.empty() ? "not known (built from an archive)" : commit);
  text += fmt::format("compiler: {}, {}\n", GRAFT_COMPILER, GRAFT_BUILD_TYPE);
  return text + fmt::format("LLVM: {}\nHDF5: {}\n", GRAFT_LLVM_VERSION, GRAFT_HDF5_VERSION);
}

}  // namespace graft::cli
