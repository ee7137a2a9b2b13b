// Networks in LibTorch, the oracle of graft's own. They are a plug-in that tests load where they need it: LibTorch costs
// 0.4 s and 160 MB.
#pragma once

#include <dlfcn.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "meta/network.h"

namespace graft::meta {

template <class T>
using TorchFactory = NetworkOf<T>* (*)(const NetworkShape& shape, const std::vector<ParameterBlock>& layout);

// GRAFT_TORCH_PLUGIN is "" where graft was configured without LibTorch.
inline bool has_torch() {
  return *GRAFT_TORCH_PLUGIN != '\0';
}

// Never closed: networks that came from it may live to the end.
template <class T>
std::unique_ptr<NetworkOf<T>> torch_network(const NetworkShape& shape, const char* factory) {
  static void* const plugin = dlopen(GRAFT_TORCH_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) throw std::runtime_error(dlerror());
  return std::unique_ptr<NetworkOf<T>>(
      reinterpret_cast<TorchFactory<T>>(dlsym(plugin, factory))(shape, layout_of(shape)));
}
inline std::unique_ptr<Network> torch_network_float(const NetworkShape& shape) {
  return torch_network<float>(shape, "graft_torch_network_float");
}
inline std::unique_ptr<NetworkOf<double>> torch_network_double(const NetworkShape& shape) {
  return torch_network<double>(shape, "graft_torch_network_double");
}

}  // namespace graft::meta
