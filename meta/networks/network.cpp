#include "meta/network.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/installation.h"
#include "base/one_line.h"
#include "base/random.h"
#include "meta/networks/conditioned.h"
#include "meta/networks/mlp.h"
#include "meta/networks/torch/plugin.h"
#include "meta/networks/tree_gru.h"

namespace graft::meta {
namespace {

// Never closed: the networks that came from it may live to the end.
void* torch_plugin() {
  static void* const handle = [] {
    const std::filesystem::path file = base::plugin_folder() / torch_plugin_file;
    if (!std::filesystem::exists(file))
      throw base::Failure(
          fmt::format("LibTorch: no {}; build graft with -DGRAFT_TORCH=ON, or leave out device cuda", file.string()));
    void* const opened = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr)
      throw base::Failure(fmt::format("{}: cannot be loaded: {}", file.string(), base::one_line(dlerror())));
    return opened;
  }();
  return handle;
}

template <class Function>
Function torch_function(const char* name) {
  const auto function = reinterpret_cast<Function>(dlsym(torch_plugin(), name));
  if (function == nullptr) throw base::Failure(fmt::format("{} lacks {}; build it again", torch_plugin_file, name));
  return function;
}

const std::vector<std::string> backends = {"native", "torch", "torch-cuda"};

NetworkShape without_context(NetworkShape shape) {
  shape.context = {};
  return shape;
}

template <class T>
std::unique_ptr<NetworkOf<T>> make(const NetworkShape& shape, std::string_view backend, const char* torch_factory) {
  if (shape.context.size > 0)
    return make_conditioned<T>(shape.context, make<T>(without_context(shape), backend, torch_factory));
  if (backend == "native")
    return shape.kind == NetworkKind::mlp ? make_native_mlp<T>(shape) : make_native_tree_gru<T>(shape);
  check_backend(backend);
  const auto factory = torch_function<TorchFactory<T>>(torch_factory);
  return std::unique_ptr<NetworkOf<T>>(factory(shape, layout_of(shape), backend == "torch-cuda"));
}

constexpr std::string_view kind_names[] = {"mlp", "treegru"};

}  // namespace

std::string_view name_of(NetworkKind kind) {
  return kind_names[std::size_t(kind)];
}

NetworkKind network_kind_named(std::string_view name) {
  for (std::size_t k = 0; k < std::size(kind_names); ++k) {
    if (kind_names[k] == name) return NetworkKind(k);
  }
  const std::vector<std::string> known(std::begin(kind_names), std::end(kind_names));
  throw base::UserError(fmt::format("unknown kind of network '{}'{}", name, base::did_you_mean(name, known)));
}

std::vector<ParameterBlock> layout_of(const NetworkShape& shape) {
  if (shape.context.size > 0) return conditioned_layout(shape.context, layout_of(without_context(shape)));
  return shape.kind == NetworkKind::mlp ? mlp_layout(shape) : tree_gru_layout(shape);
}

std::int64_t parameter_count(const NetworkShape& shape) {
  const ParameterBlock last = layout_of(shape).back();
  return last.offset + last.size;
}

std::vector<float> initial_parameters(const NetworkShape& shape, std::uint64_t seed) {
  std::vector<float> theta(std::size_t(parameter_count(shape)), 0.0f);
  base::Stream stream(seed, "initial parameters");
  for (const ParameterBlock& block : layout_of(shape)) {
    if (block.shape.size() != 2) continue;
    const double deviation = std::sqrt((block.saturates ? 1.0 : 2.0) / double(block.shape[0]));
    for (std::int64_t i = 0; i < block.size; ++i) {
      theta[std::size_t(block.offset + i)] = float(deviation * stream.normal());
    }
  }
  return theta;
}

void check_backend(std::string_view backend) {
  if (std::find(backends.begin(), backends.end(), backend) == backends.end())
    throw base::UserError(fmt::format("unknown backend '{}'{}", backend, base::did_you_mean(backend, backends)));
  if (backend != "native") torch_plugin();
  if (backend == "torch-cuda" && !torch_function<TorchHasCuda>(torch_has_cuda)())
    throw base::UserError("device cuda", "this LibTorch has no CUDA device (Debian's is built without); leave it out");
}

std::unique_ptr<Network> make_network(const NetworkShape& shape, std::string_view backend) {
  return make<float>(shape, backend, torch_factory_float);
}
std::unique_ptr<NetworkOf<double>> make_network_double(const NetworkShape& shape, std::string_view backend) {
  return make<double>(shape, backend, torch_factory_double);
}

}  // namespace graft::meta
