#include "meta/network.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "meta/networks/conditioned.h"
#include "meta/networks/mlp.h"
#include "meta/networks/tree_gru.h"

namespace graft::meta {
namespace {

NetworkShape without_context(NetworkShape shape) {
  shape.context = {};
  return shape;
}

template <class T>
std::unique_ptr<NetworkOf<T>> make(const NetworkShape& shape) {
  if (shape.context.size > 0) return make_conditioned<T>(shape.context, make<T>(without_context(shape)));
  return shape.kind == NetworkKind::mlp ? make_native_mlp<T>(shape) : make_native_tree_gru<T>(shape);
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

std::unique_ptr<Network> make_network(const NetworkShape& shape) {
  return make<float>(shape);
}
std::unique_ptr<NetworkOf<double>> make_network_double(const NetworkShape& shape) {
  return make<double>(shape);
}

}  // namespace graft::meta
