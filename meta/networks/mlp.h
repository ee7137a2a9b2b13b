// The multi-layer perceptron in native code: ReLU layers and one linear output, with exact derivatives of first and
// second order (numbers.h). Of a program with several rows the outputs of the first layer are summed, and the layers
// behind it take that sum (without hidden layers the rows themselves are): each row is embedded, as in TenSet's model
// of stores (Zheng et al. 2021), and the order of rows means nothing. It is what learners train with by default and
// what every trained network scores with.
#pragma once

#include <memory>
#include <vector>

#include "meta/network.h"

namespace graft::meta {

std::vector<ParameterBlock> mlp_layout(const NetworkShape& shape);

template <class T>
std::unique_ptr<NetworkOf<T>> make_native_mlp(const NetworkShape& shape);

}  // namespace graft::meta
