// The Markdown files of the project, for tests that read all of them.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace graft::cli {

// Relative to the root of the project, sorted; builds, runs and hidden folders have none.
inline std::vector<std::filesystem::path> documents() {
  const std::filesystem::path root = GRAFT_SOURCE_DIR;
  std::vector<std::filesystem::path> found;
  for (auto entry = std::filesystem::recursive_directory_iterator(root);
       entry != std::filesystem::recursive_directory_iterator(); ++entry) {
    const std::string name = entry->path().filename().string();
    if (entry->is_directory() &&
        (name.starts_with(".") || (entry.depth() == 0 && (name.starts_with("build") || name == "runs"))))
      entry.disable_recursion_pending();
    else if (entry->is_regular_file() && entry->path().extension() == ".md")
      found.push_back(entry->path().lexically_relative(root));
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace graft::cli
