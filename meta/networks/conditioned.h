// A network with a context: a few numbers z that shift some blocks of another network's parameters, theta_b + z U_b.
// Shifting the first layer's bias is the same as appending z to the features of every row (CAVIA, Zintgraf et al.
// 2019); shifting all biases and the head is a linear hypernetwork (Ha et al. 2017) from z to parameters. Exact
// derivatives of both orders follow from the inner network's, so it works for either kind and backend.
#pragma once

#include <memory>
#include <vector>

#include "meta/network.h"

namespace graft::meta {

// "context" (z), "context.<block>" (U_b, size of z times size of b) for each block shifted, then the inner blocks.
std::vector<ParameterBlock> conditioned_layout(const NetworkShape::Context& context, std::vector<ParameterBlock> inner);

template <class T>
std::unique_ptr<NetworkOf<T>> make_conditioned(const NetworkShape::Context& context,
                                               std::unique_ptr<NetworkOf<T>> inner);

}  // namespace graft::meta
