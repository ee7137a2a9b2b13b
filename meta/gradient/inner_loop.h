// The one recursion behind gradient-based meta-learning: adapt parameters to a support set by a few gradient steps, and
// differentiate the adapted parameters' loss on a query set by the parameters they started from.
//
//   theta_{k+1} = theta_k - rates_k * g_k,     g_k = d support(theta_k) / d theta_k
//   d query(theta_K) / d theta_0 = (I - H_0 rates_0) ... (I - H_{K-1} rates_{K-1}) d query(theta_K) / d theta_K
//
// MAML (Finn et al. 2017) computes the full product, by exact Hessian-vector products; FOMAML drops the H_k; ANIL
// (Raghu et al. 2020) has rates of 0 for all blocks but the head's, CAVIA (Zintgraf et al. 2019) for all but the
// context's (networks/conditioned.h); Meta-SGD (Li et al. 2017) learns a rate for each parameter by the gradient by the
// rates, MAML++ (Antoniou et al. 2019) one for each step and layer block, and weighs the query's loss after every step;
// Reptile (Nichol et al. 2018) moves towards theta_K. It depends on no framework and no data set.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "meta/network.h"
#include "meta/objectives.h"

namespace graft::meta {

// Programs with their loss, ready for a network.
template <class T>
struct Batch {
  std::vector<T> x;                     // row-major
  std::vector<std::int64_t> begins{0};  // as in features::Encoded: objective.rows() programs
  std::vector<std::int32_t> parents;
  Objective objective;
  Inputs<T> inputs() const { return {x, begins, parents}; }
};

// How far each step goes: in sets of one number a layer block or one a parameter; step k takes set min(k, sets - 1).
template <class T>
struct Rates {
  std::int64_t steps = 0;
  bool per_parameter = false;
  std::vector<T> values;  // set after set
  bool operator==(const Rates&) const = default;
};

enum class OuterRule {
  second_order,  // MAML
  first_order,   // FOMAML
  towards,       // Reptile: the "gradient" is theta_0 - theta_K, and the query is not used
};

template <class T>
struct MetaGradient {
  T query_loss = 0;      // of the adapted parameters (0 for OuterRule::towards)
  std::vector<T> theta;  // by the parameters before adaptation
  std::vector<T> rates;  // by each of Rates::values; zeros for OuterRule::towards; empty if not requested
};

// Gradient of the batch's loss by theta, and its value if requested.
template <class T>
void loss_gradient(const NetworkOf<T>& network, std::span<const T> theta, const Batch<T>& batch, std::span<T> gradient,
                   T* value = nullptr);
// (d2 loss / d theta2) v.
template <class T>
void loss_hessian_product(const NetworkOf<T>& network, std::span<const T> theta, const Batch<T>& batch,
                          std::span<const T> v, std::span<T> product);

// An empty support objective leaves theta as it is.
template <class T>
std::vector<T> adapt(const NetworkOf<T>& network, const Rates<T>& rates, std::span<const T> theta,
                     const Batch<T>& support);

// step_weights[k]: the weight of the query's loss after step k (k = 0: after the first), summing to 1; empty: only
// the last step's. Ignored by OuterRule::towards. The gradient of the rates is computed only if requested.
enum class ByRates { yes, no };
template <class T>
MetaGradient<T> meta_gradient(const NetworkOf<T>& network, OuterRule rule, const Rates<T>& rates,
                              std::span<const T> theta, const Batch<T>& support, const Batch<T>& query,
                              std::span<const double> step_weights = {}, ByRates by_rates = ByRates::yes);

}  // namespace graft::meta
