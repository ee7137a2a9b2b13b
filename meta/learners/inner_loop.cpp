#include "meta/learners/inner_loop.h"

#include <algorithm>
#include <cassert>

namespace graft::meta {
namespace {

// What a step of the inner loop leaves behind for the way back: all of it before the step.
template <class T>
struct Step {
  std::vector<T> theta, gradient, scores, by_scores;
  std::unique_ptr<typename NetworkOf<T>::Tape> tape;
};

// Forward, loss, backward; the batch has something to compare.
template <class T>
auto pass(const NetworkOf<T>& network, std::span<const T> theta, const Batch<T>& batch, std::vector<T>& scores,
          std::vector<T>& by_scores, std::span<T> gradient) {
  const std::int64_t rows = batch.objective.rows();
  assert(batch.inputs().programs() == rows);
  scores.resize(std::size_t(rows));
  by_scores.resize(std::size_t(rows));
  auto tape = network.forward(theta, batch.inputs(), scores);
  batch.objective.template gradient<T>(scores, by_scores);
  network.backward(theta, *tape, by_scores, gradient);
  return tape;
}

// Where the batch has nothing to compare, all but theta is left empty and the gradient 0.
template <class T>
Step<T> step_at(const NetworkOf<T>& network, std::vector<T> theta, const Batch<T>& batch) {
  Step<T> out;
  out.theta = std::move(theta);
  out.gradient.assign(out.theta.size(), T(0));
  if (!batch.objective.empty())
    out.tape = pass<T>(network, out.theta, batch, out.scores, out.by_scores, out.gradient);
  return out;
}

template <class T>
void hessian_product(const NetworkOf<T>& network, const Step<T>& at, const Batch<T>& batch, std::span<const T> v,
                     std::span<T> product) {
  if (at.tape == nullptr) {
    std::fill(product.begin(), product.end(), T(0));
    return;
  }
  std::vector<T> along(at.scores.size()), du(at.scores.size());
  const auto tangent = network.tangent_forward(at.theta, *at.tape, v, along);
  batch.objective.template hessian_product<T>(at.scores, along, du);
  network.tangent_backward(at.theta, *at.tape, *tangent, v, at.by_scores, du, product);
}

// Which of the rates' values belongs to a step: `first` that of the first block or parameter.
template <class T>
std::size_t first_rate(const NetworkOf<T>& network, const Rates<T>& rates, std::int64_t step) {
  const std::size_t set = rates.per_parameter ? std::size_t(network.parameters()) : network.layout().size();
  assert(set > 0 && !rates.values.empty() && rates.values.size() % set == 0);
  return set * std::min(std::size_t(step), rates.values.size() / set - 1);
}

// `work(begin, end, rate number, rate)` for every piece [begin, end) of the parameters that has one rate.
template <class T, class Work>
void with_rates(const NetworkOf<T>& network, const Rates<T>& rates, std::int64_t step, const Work& work) {
  const std::size_t first = first_rate(network, rates, step);
  if (rates.per_parameter) {
    for (std::size_t i = 0; i < std::size_t(network.parameters()); ++i) work(i, i + 1, first + i, rates.values[first + i]);
    return;
  }
  for (std::size_t b = 0; b < network.layout().size(); ++b) {
    const ParameterBlock& block = network.layout()[b];
    work(std::size_t(block.offset), std::size_t(block.offset + block.size), first + b, rates.values[first + b]);
  }
}

template <class T>
std::vector<T> walk(const NetworkOf<T>& network, const Rates<T>& rates, std::span<const T> theta,
                    const Batch<T>& support, std::vector<Step<T>>* steps) {
  std::vector<T> current(theta.begin(), theta.end());
  for (std::int64_t k = 0; k < rates.steps; ++k) {
    Step<T> step = step_at<T>(network, current, support);
    with_rates<T>(network, rates, k, [&](std::size_t begin, std::size_t end, std::size_t, T rate) {
#pragma omp simd
      for (std::size_t i = begin; i < end; ++i) current[i] -= rate * step.gradient[i];
    });
    if (steps != nullptr) steps->push_back(std::move(step));
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
  std::vector<T> scores, by_scores;
  pass<T>(network, theta, batch, scores, by_scores, gradient);
  if (value != nullptr) *value = batch.objective.template value<T>(scores);
}

template <class T>
void loss_hessian_product(const NetworkOf<T>& network, std::span<const T> theta, const Batch<T>& batch,
                          std::span<const T> v, std::span<T> product) {
  hessian_product<T>(network, step_at<T>(network, {theta.begin(), theta.end()}, batch), batch, v, product);
}

template <class T>
std::vector<T> adapt(const NetworkOf<T>& network, const Rates<T>& rates, std::span<const T> theta,
                     const Batch<T>& support) {
  if (support.objective.empty()) return {theta.begin(), theta.end()};
  return walk<T>(network, rates, theta, support, nullptr);
}

template <class T>
MetaGradient<T> meta_gradient(const NetworkOf<T>& network, OuterRule rule, const Rates<T>& rates,
                              std::span<const T> theta, const Batch<T>& support, const Batch<T>& query,
                              std::span<const double> step_weights) {
  assert(step_weights.empty() || std::int64_t(step_weights.size()) == rates.steps);
  std::vector<Step<T>> steps;
  const std::vector<T> adapted = walk<T>(network, rates, theta, support, &steps);
  MetaGradient<T> out;
  out.theta.resize(theta.size());
  out.rates.assign(rates.values.size(), T(0));
  if (rule == OuterRule::towards) {
    for (std::size_t i = 0; i < theta.size(); ++i) out.theta[i] = theta[i] - adapted[i];
    return out;
  }
  std::vector<T>& v = out.theta;  // of the outer loss by theta_k, from k = K down to 0
  std::vector<T> stepped(theta.size()), product(theta.size());
  // The query's part after `after` steps.
  const auto add_query = [&](std::size_t after, std::span<const T> at) {
    const T weight = step_weights.empty() ? T(after == steps.size() ? 1 : 0) : T(step_weights[after - 1]);
    if (weight == 0) return;
    T loss = 0;
    loss_gradient<T>(network, at, query, product, &loss);
    out.query_loss += weight * loss;
    for (std::size_t i = 0; i < v.size(); ++i) v[i] += weight * product[i];
  };
  if (steps.empty()) loss_gradient<T>(network, adapted, query, v, &out.query_loss);
  for (std::size_t k = steps.size(); k-- > 0;) {
    add_query(k + 1, k + 1 == steps.size() ? adapted : steps[k + 1].theta);
    with_rates<T>(network, rates, std::int64_t(k), [&](std::size_t begin, std::size_t end, std::size_t number, T rate) {
      T by_rate = 0;
      const T *const by_query = v.data(), *const taken = steps[k].gradient.data();
      T* const along = stepped.data();
#pragma omp simd reduction(- : by_rate)
      for (std::size_t i = begin; i < end; ++i) {
        by_rate -= by_query[i] * taken[i];
        along[i] = rate * by_query[i];
      }
      out.rates[number] += by_rate;
    });
    if (rule == OuterRule::first_order) continue;
    hessian_product<T>(network, steps[k], support, stepped, product);
    for (std::size_t i = 0; i < theta.size(); ++i) v[i] -= product[i];
  }
  return out;
}

#define GRAFT_INSTANTIATE(T)                                                                                       \
  template void loss_gradient(const NetworkOf<T>&, std::span<const T>, const Batch<T>&, std::span<T>, T*);         \
  template void loss_hessian_product(const NetworkOf<T>&, std::span<const T>, const Batch<T>&, std::span<const T>, \
                                     std::span<T>);                                                                \
  template std::vector<T> adapt(const NetworkOf<T>&, const Rates<T>&, std::span<const T>, const Batch<T>&);        \
  template MetaGradient<T> meta_gradient(const NetworkOf<T>&, OuterRule, const Rates<T>&, std::span<const T>,      \
                                         const Batch<T>&, const Batch<T>&, std::span<const double>);
GRAFT_INSTANTIATE(float)
GRAFT_INSTANTIATE(double)
#undef GRAFT_INSTANTIATE

}  // namespace graft::meta
