// The TreeGRU of Chen et al. 2018 ("Learning to Optimize Tensor Programs") with the memory slots of its transferable
// form, in native code with exact derivatives of first and second order.
//
// A node's input is its features through an embedding layer, e = ReLU(x We + be). From the leaves up a gated recurrent
// unit takes the sum S of the children's states (Tai et al. 2015, child-sum):
//
//   r, z = sigmoid([S e] Wg + bg)     n = tanh([e r*S] Wn + bn)     h = (1 - z) n + z S
//
// Every node's h is scattered over the slots, M_s += softmax(h Ws)_s h, and the decoder (ReLU layers, then one linear
// output) computes the score from the program's slots. Nodes are handled height by height over all programs of a batch,
// and equal subtrees once (packed_trees.h).
#pragma once

#include <memory>
#include <vector>

#include "meta/network.h"

namespace graft::meta {

std::vector<ParameterBlock> tree_gru_layout(const NetworkShape& shape);

// share_equal: off to check that sharing changes only the time.
template <class T>
std::unique_ptr<NetworkOf<T>> make_native_tree_gru(const NetworkShape& shape, bool share_equal = true);

}  // namespace graft::meta
