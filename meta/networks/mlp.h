// The multi-layer perceptron in native code: ReLU layers and one linear output, with exact derivatives of first and
// second order written out by hand (Pearlmutter's R-operator). Of a program with several rows the score is their sum.
// It is what learners train with by default and what every trained network scores with.
#pragma once

#include <memory>
#include <vector>

#include "meta/network.h"

namespace graft::meta {

// The flat parameter vector of a shape: per layer a weight (inputs x outputs, row-major) and a bias.
std::vector<ParameterBlock> mlp_layout(const NetworkShape& shape);
std::int64_t parameter_count(const NetworkShape& shape);

template <class T>
std::unique_ptr<NetworkOf<T>> make_native_mlp(const NetworkShape& shape);

}  // namespace graft::meta
