// The interface of graft_meta and the LibTorch plug-in: the name of the library and of its factories. The plug-in is
// loaded when a network of backend "torch" is asked for, and never otherwise: LibTorch costs 0.4 s and 160 MB.
#pragma once

#include "meta/network.h"

namespace graft::meta {

inline constexpr const char* torch_plugin_file = "graft_torch.so";
inline constexpr const char* torch_factory_float = "graft_torch_network_float";
inline constexpr const char* torch_factory_double = "graft_torch_network_double";
inline constexpr const char* torch_has_cuda = "graft_torch_has_cuda";

// A new network that the caller owns, which computes on the processor or on the first CUDA device. `layout` comes from
// graft_meta, so that both sides divide the flat vector in the same way.
template <class T>
using TorchFactory = NetworkOf<T>* (*)(const NetworkShape& shape, const std::vector<ParameterBlock>& layout, bool cuda);
// Whether this LibTorch was built with CUDA and sees a device.
using TorchHasCuda = bool (*)();

}  // namespace graft::meta
