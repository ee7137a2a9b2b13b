#include "meta/learners/inner_loop.h"

#include <algorithm>
#include <cassert>

namespace graft::meta {
namespace {

// What a step of the inner loop leaves behind for the way back.
template <class T>
struct Step {
  std::vector<T> theta, gradient;  // before the step
};

template <class T>
std::vector<T> walk(const NetworkOf<T>& network, std::span<const T> rates, std::span<const T> theta,
                    const Batch<T>& support, std::vector<Step<T>>* steps) {
  const std::vector<ParameterBlock>& layout = network.layout();
  assert(rates.size() % layout.size() == 0);
  std::vector<T> current(theta.begin(), theta.end()), gradient(theta.size());
  for (std::size_t k = 0; k < rates.size() / layout.size(); ++k) {
    loss_gradient<T>(network, current, support, gradient);
    if (steps != nullptr) steps->push_back({current, gradient});
    for (std::size_t b = 0; b < layout.size(); ++b) {
      const T rate = rates[k * layout.size() + b];
      for (std::int64_t i = layout[b].offset; i < layout[b].offset + layout[b].size; ++i) {
        current[std::size_t(i)] -= rate * gradient[std::size_t(i)];
      }
    }
  }
  return current;
}

}  // namespace

template <class T>
void loss_gradient(const NetworkOf<T>& network, std::span<const T> theta, const Batch<T>& batch, std::span<T> gradient,
                   T* value) {
  if (batch.objective.empty()) {
    std::fill(gradient.begin(), gradient.end(), T(0));
    if (value != nullptr) *value = 0;
    return;
  }
  const std::int64_t rows = batch.objective.rows();
  assert(batch.inputs().programs() == rows);
  std::vector<T> scores(std::size_t(rows), T(0)), u(std::size_t(rows), T(0));
  const auto tape = network.forward(theta, batch.inputs(), scores);
  batch.objective.template gradient<T>(scores, u);
  network.backward(theta, *tape, u, gradient);
  if (value != nullptr) *value = batch.objective.template value<T>(scores);
}

template <class T>
void loss_hessian_product(const NetworkOf<T>& network, std::span<const T> theta, const Batch<T>& batch,
                          std::span<const T> v, std::span<T> product) {
  if (batch.objective.empty()) {
    std::fill(product.begin(), product.end(), T(0));
    return;
  }
  const std::int64_t rows = batch.objective.rows();
  assert(batch.inputs().programs() == rows);
  std::vector<T> scores(std::size_t(rows), T(0)), u(std::size_t(rows), T(0)), along(std::size_t(rows), T(0)),
      du(std::size_t(rows), T(0));
  const auto tape = network.forward(theta, batch.inputs(), scores);
  batch.objective.template gradient<T>(scores, u);
  const auto tangent = network.tangent_forward(theta, *tape, v, along);
  batch.objective.template hessian_product<T>(scores, along, du);
  network.tangent_backward(theta, *tape, *tangent, v, u, du, product);
}

template <class T>
std::vector<T> adapt(const NetworkOf<T>& network, std::span<const T> rates, std::span<const T> theta,
                     const Batch<T>& support) {
  if (support.objective.empty()) return {theta.begin(), theta.end()};
  return walk<T>(network, rates, theta, support, nullptr);
}

template <class T>
MetaGradient<T> meta_gradient(const NetworkOf<T>& network, OuterRule rule, std::span<const T> rates,
                              std::span<const T> theta, const Batch<T>& support, const Batch<T>& query) {
  const std::vector<ParameterBlock>& layout = network.layout();
  std::vector<Step<T>> steps;
  const std::vector<T> adapted = walk<T>(network, rates, theta, support, &steps);
  MetaGradient<T> out;
  out.theta.resize(theta.size());
  out.rates.assign(rates.size(), T(0));
  if (rule == OuterRule::towards) {
    for (std::size_t i = 0; i < theta.size(); ++i) out.theta[i] = theta[i] - adapted[i];
    return out;
  }
  std::vector<T>& v = out.theta;  // d query / d theta_k, from k = K down to 0
  loss_gradient<T>(network, adapted, query, v, &out.query_loss);
  std::vector<T> stepped(theta.size()), product(theta.size());
  for (std::size_t k = steps.size(); k-- > 0;) {
    for (std::size_t b = 0; b < layout.size(); ++b) {
      const T rate = rates[k * layout.size() + b];
      T by_rate = 0;
      for (std::int64_t i = layout[b].offset; i < layout[b].offset + layout[b].size; ++i) {
        by_rate -= v[std::size_t(i)] * steps[k].gradient[std::size_t(i)];
        stepped[std::size_t(i)] = rate * v[std::size_t(i)];
      }
      out.rates[k * layout.size() + b] = by_rate;
    }
    if (rule == OuterRule::first_order) continue;
    loss_hessian_product<T>(network, steps[k].theta, support, stepped, product);
    for (std::size_t i = 0; i < theta.size(); ++i) v[i] -= product[i];
  }
  return out;
}

#define GRAFT_INSTANTIATE(T)                                                                                       \
  template void loss_gradient(const NetworkOf<T>&, std::span<const T>, const Batch<T>&, std::span<T>, T*);         \
  template void loss_hessian_product(const NetworkOf<T>&, std::span<const T>, const Batch<T>&, std::span<const T>, \
                                     std::span<T>);                                                                \
  template std::vector<T> adapt(const NetworkOf<T>&, std::span<const T>, std::span<const T>, const Batch<T>&);     \
  template MetaGradient<T> meta_gradient(const NetworkOf<T>&, OuterRule, std::span<const T>, std::span<const T>,   \
                                         const Batch<T>&, const Batch<T>&);
GRAFT_INSTANTIATE(float)
GRAFT_INSTANTIATE(double)
#undef GRAFT_INSTANTIATE

}  // namespace graft::meta
