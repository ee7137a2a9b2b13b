// The multi-layer perceptron in native code: ReLU layers and one linear output, with exact derivatives of first and
// second order (numbers.h). For a program with several rows the outputs of the first layer are summed, and the
// following layers take that sum (without hidden layers the rows themselves are summed): each row is embedded, as in
// TenSet's model of stores (Zheng et al. 2021), and the order of rows has no effect. Learners train with it by default,
// and every trained network scores with it.
#pragma once

#include <memory>
#include <vector>

#include "meta/network.h"

namespace graft::meta {

std::vector<ParameterBlock> mlp_layout(const NetworkShape& shape);

template <class T>
std::unique_ptr<NetworkOf<T>> make_native_mlp(const NetworkShape& shape);

}  // namespace graft::meta
