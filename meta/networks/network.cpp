#include "meta/network.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "base/process.h"
#include "meta/networks/mlp.h"
#include "meta/networks/torch/plugin.h"

namespace graft::meta {
namespace {

// Beside the program, where it is installed, or in the build's folder of programs. Never closed: the networks that came
// from it may live to the end.
void* torch_plugin() {
  static void* const handle = [] {
    const std::filesystem::path folder = base::program_folder();
    for (const std::filesystem::path& place : {folder, folder / ".." / "lib" / "graft", folder / ".." / "bin"}) {
      const std::filesystem::path file = place / torch_plugin_file;
      if (!std::filesystem::exists(file)) continue;
      void* const opened = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (opened == nullptr) throw base::Failure(fmt::format("{}: cannot be loaded: {}", file.string(), dlerror()));
      return opened;
    }
    throw base::Failure(
        fmt::format("backend torch: no {} beside {}; build graft with -DGRAFT_TORCH=ON, or use backend native",
                    torch_plugin_file, folder.string()));
  }();
  return handle;
}

template <class T>
std::unique_ptr<NetworkOf<T>> make(const NetworkShape& shape, std::string_view backend, const char* torch_factory) {
  if (backend == "native") return make_native_mlp<T>(shape);
  if (backend == "torch") {
    const auto factory = reinterpret_cast<TorchFactory<T>>(dlsym(torch_plugin(), torch_factory));
    if (factory == nullptr)
      throw base::Failure(fmt::format("{} lacks {}; build it again", torch_plugin_file, torch_factory));
    return std::unique_ptr<NetworkOf<T>>(factory(shape, mlp_layout(shape)));
  }
  const std::vector<std::string> known = {"native", "torch"};
  throw base::UserError(fmt::format("unknown backend '{}'{}", backend, base::did_you_mean(backend, known)));
}

}  // namespace

std::unique_ptr<Network> make_mlp(const NetworkShape& shape, std::string_view backend) {
  return make<float>(shape, backend, torch_factory_float);
}
std::unique_ptr<NetworkOf<double>> make_mlp_double(const NetworkShape& shape, std::string_view backend) {
  return make<double>(shape, backend, torch_factory_double);
}

}  // namespace graft::meta
