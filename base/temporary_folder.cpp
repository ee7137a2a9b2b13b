#include "base/temporary_folder.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <vector>

#include "base/error.h"

namespace graft::base {

TemporaryFolder::TemporaryFolder(std::string_view purpose, Where where) {
  std::vector<std::filesystem::path> places;
  if (where == Where::memory) places.emplace_back("/dev/shm");
  std::error_code none;
  const std::filesystem::path usual = std::filesystem::temp_directory_path(none);
  places.push_back(none ? "/tmp" : usual);
  std::string name;
  for (const std::filesystem::path& place : places) {
    name = (place / fmt::format("graft-{}-XXXXXX", purpose)).string();
    if (::mkdtemp(name.data()) == nullptr) continue;  // which makes it with mode 0700
    path_ = name;
    return;
  }
  throw Failure(fmt::format("{}: cannot make a temporary folder: {}", places.back().string(), std::strerror(errno)));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace graft::base
