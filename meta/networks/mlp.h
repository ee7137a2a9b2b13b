// The multi-layer perceptron in native code: ReLU layers and one linear output, with exact derivatives of first and
// second order (numbers.h). Of a program with several rows the score is their sum.
// It is what learners train with by default and what every trained network scores with.
#pragma once

#include <memory>
#include <vector>

#include "meta/network.h"

namespace graft::meta {

std::vector<ParameterBlock> mlp_layout(const NetworkShape& shape);

template <class T>
std::unique_ptr<NetworkOf<T>> make_native_mlp(const NetworkShape& shape);

}  // namespace graft::meta
