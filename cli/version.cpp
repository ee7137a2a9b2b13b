#include "cli/version.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "base/installation.h"
#include "study/request.h"

namespace graft::cli {

std::string torch_plugin() {
  const std::filesystem::path file = base::plugin_folder() / "graft_torch.so";
  if (!std::filesystem::exists(file)) throw base::Failure(fmt::format("{} is not there", file.string()));
  return "present";
}

std::string version_text() {
  std::string text = fmt::format("graft {}\n", study::graft_version());
  const std::string_view commit = GRAFT_COMMIT;
  text += fmt::format("commit: {}\n", commit.empty() ? "not known (built from an archive)" : commit);
  text += fmt::format("compiler: {}, {}\n", GRAFT_COMPILER, GRAFT_BUILD_TYPE);
  text += fmt::format("LLVM: {}\nHDF5: {}\n", GRAFT_LLVM_VERSION, GRAFT_HDF5_VERSION);
  std::string plugin = "absent (only --backend torch needs it)";
  try {
    plugin = torch_plugin();
  } catch (const base::Failure&) {  // what it is for is said instead of where it was looked for
  }
  return text + fmt::format("LibTorch plug-in: {}\n", plugin);
}

}  // namespace graft::cli
