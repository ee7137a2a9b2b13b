#include "base/installation.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include "base/error.h"

namespace graft::base {
namespace {

std::filesystem::path own_file() {
  Dl_info info{};
  link_map* map = nullptr;
  const bool known =
      ::dladdr1(reinterpret_cast<void*>(&own_file), &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0 &&
      map != nullptr;
  // The loader has no name for the program itself.
  return std::filesystem::canonical(known && map->l_name[0] != '\0' ? map->l_name : "/proc/self/exe");
}

}  // namespace

std::filesystem::path own_folder() {
  // Asked once: the loader's name may be relative to a working folder that changes later.
  static const std::filesystem::path folder = own_file().parent_path();
  return folder;
}

std::filesystem::path own_program(const std::string& name) {
  const std::filesystem::path here = own_folder();
  for (const std::filesystem::path& file : {here / name, here / ".." / "bin" / name})
    if (std::filesystem::exists(file)) return file;
  throw Failure(fmt::format("{} is neither in '{}' nor in its '../bin'; install it there", name, here.string()));
}

std::filesystem::path share_folder() {
  return own_folder() / ".." / "share" / "graft";
}

}  // namespace graft::base
