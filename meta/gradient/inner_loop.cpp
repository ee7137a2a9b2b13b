#include "meta/gradient/inner_loop.h"

#include <algorithm>
#include <cassert>
#include <optional>

namespace graft::meta {
namespace {

// The record of a step of the inner loop for the backward pass: the state before the step. The gradient only if that
// of the rates is requested.
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

// Takes the step's theta and fills in the rest. If the batch has nothing to compare there is no tape and the
// gradient is 0.
template <class T>
void take(Step<T>& step, const NetworkOf<T>& network, const Batch<T>& batch, std::vector<T>& gradient) {
  gradient.resize(step.theta.size());
  if (batch.objective.empty()) {
    std::fill(gradient.begin(), gradient.end(), T(0));
    step.tape.reset();
  } else {
    step.tape = pass<T>(network, step.theta, batch, step.scores, step.by_scores, gradient);
  }
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
    for (std::size_t i = 0; i < std::size_t(network.parameters()); ++i)
      work(i, i + 1, first + i, rates.values[first + i]);
    return;
  }
  for (std::size_t b = 0; b < network.layout().size(); ++b) {
    const ParameterBlock& block = network.layout()[b];
    work(std::size_t(block.offset), std::size_t(block.offset + block.size), first + b, rates.values[first + b]);
  }
}

// The rate of a step that is the same for all parameters, if there is one.
template <class T>
std::optional<T> only_rate(const NetworkOf<T>& network, const Rates<T>& rates, std::int64_t step) {
  std::optional<T> rate;
  bool same = true;
  with_rates<T>(network, rates, step, [&](std::size_t, std::size_t, std::size_t, T each) {
    same = same && each == rate.value_or(each);
    rate = each;
  });
  return same ? rate : std::nullopt;
}

template <class T>
T inner_product(const std::vector<T>& a, const std::vector<T>& b, std::size_t begin, std::size_t end) {
  const T *const left = a.data(), *const right = b.data();
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t i = begin; i < end; ++i) sum += left[i] * right[i];
  return sum;
}

// What a thread needs for one walk after the other: fresh pages would cost as much as the arithmetic on them. Tapes are
// let go by their owner, for they refer to its batch.
template <class T>
struct Room {
  std::vector<Step<T>> steps;
  std::vector<T> stepped, product;
  static Room& of_this_thread() {
    thread_local Room room;
    return room;
  }
  void let_go() {
    for (Step<T>& step : steps) step.tape.reset();
  }
};

// The way through the steps: room.steps[k] before step k, and the adapted parameters as theta of one more.
template <class T>
void walk(const NetworkOf<T>& network, const Rates<T>& rates, std::span<const T> theta, const Batch<T>& support,
          ByRates by_rates, Room<T>& room) {
  std::vector<Step<T>>& steps = room.steps;
  steps.resize(std::size_t(rates.steps) + 1);
  steps.front().theta.assign(theta.begin(), theta.end());
  for (std::size_t k = 0; k < std::size_t(rates.steps); ++k) {
    std::vector<T>& kept = by_rates == ByRates::yes ? steps[k].gradient : room.product;
    take<T>(steps[k], network, support, kept);
    steps[k + 1].theta.resize(theta.size());
    const T *const from = steps[k].theta.data(), *const gradient = kept.data();
    T* const to = steps[k + 1].theta.data();
    with_rates<T>(network, rates, std::int64_t(k), [&](std::size_t begin, std::size_t end, std::size_t, T rate) {
#pragma omp simd
      for (std::size_t i = begin; i < end; ++i) to[i] = from[i] - rate * gradient[i];
    });
  }
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
  Step<T> step;
  step.theta.assign(theta.begin(), theta.end());
  take<T>(step, network, batch, step.gradient);
  hessian_product<T>(network, step, batch, v, product);
}

template <class T>
std::vector<T> adapt(const NetworkOf<T>& network, const Rates<T>& rates, std::span<const T> theta,
                     const Batch<T>& support) {
  if (support.objective.empty()) return {theta.begin(), theta.end()};
  Room<T>& room = Room<T>::of_this_thread();
  walk<T>(network, rates, theta, support, ByRates::no, room);
  room.let_go();
  return room.steps.back().theta;
}

template <class T>
MetaGradient<T> meta_gradient(const NetworkOf<T>& network, OuterRule rule, const Rates<T>& rates,
                              std::span<const T> theta, const Batch<T>& support, const Batch<T>& query,
                              std::span<const double> step_weights, ByRates by_rates) {
  assert(step_weights.empty() || std::int64_t(step_weights.size()) == rates.steps);
  Room<T>& room = Room<T>::of_this_thread();
  walk<T>(network, rates, theta, support, by_rates, room);
  std::vector<Step<T>>& steps = room.steps;
  MetaGradient<T> out;
  out.theta.resize(theta.size());
  if (by_rates == ByRates::yes) out.rates.assign(rates.values.size(), T(0));
  if (rule == OuterRule::towards) {
    for (std::size_t i = 0; i < theta.size(); ++i) out.theta[i] = theta[i] - steps.back().theta[i];
    room.let_go();
    return out;
  }
  std::vector<T>& v = out.theta;  // of the outer loss by theta_k, from k = K down to 0
  std::vector<T>&stepped = room.stepped, &product = room.product;
  stepped.resize(theta.size());
  product.resize(theta.size());
  const std::size_t last = steps.size() - 1;
  // The query's part after `after` steps.
  const auto add_query = [&](std::size_t after) {
    const T weight = step_weights.empty() || after == 0 ? T(after == last ? 1 : 0) : T(step_weights[after - 1]);
    if (weight == 0) return;
    T loss = 0;
    const bool alone = after == last && weight == 1;
    loss_gradient<T>(network, steps[after].theta, query, alone ? v : product, &loss);
    out.query_loss += weight * loss;
    if (alone) return;
    for (std::size_t i = 0; i < v.size(); ++i) v[i] += weight * product[i];
  };
  add_query(last);
  for (std::size_t k = last; k-- > 0;) {
    if (k + 1 < last) add_query(k + 1);
    if (by_rates == ByRates::yes) {
      with_rates<T>(network, rates, std::int64_t(k), [&](std::size_t begin, std::size_t end, std::size_t number, T) {
        out.rates[number] -= inner_product<T>(v, steps[k].gradient, begin, end);
      });
    }
    if (rule == OuterRule::first_order) continue;
    // The product is linear in its direction, so a common rate may be applied after it.
    const std::optional<T> rate = only_rate<T>(network, rates, std::int64_t(k));
    if (!rate) {
      T* const along = stepped.data();
      with_rates<T>(network, rates, std::int64_t(k), [&](std::size_t begin, std::size_t end, std::size_t, T each) {
#pragma omp simd
        for (std::size_t i = begin; i < end; ++i) along[i] = each * v[i];
      });
    }
    hessian_product<T>(network, steps[k], support, rate ? v : stepped, product);
    const T scale = rate.value_or(1);
#pragma omp simd
    for (std::size_t i = 0; i < theta.size(); ++i) v[i] -= scale * product[i];
  }
  room.let_go();
  return out;
}

#define GRAFT_INSTANTIATE(T)                                                                                       \
  template void loss_gradient(const NetworkOf<T>&, std::span<const T>, const Batch<T>&, std::span<T>, T*);         \
  template void loss_hessian_product(const NetworkOf<T>&, std::span<const T>, const Batch<T>&, std::span<const T>, \
                                     std::span<T>);                                                                \
  template std::vector<T> adapt(const NetworkOf<T>&, const Rates<T>&, std::span<const T>, const Batch<T>&);        \
  template MetaGradient<T> meta_gradient(const NetworkOf<T>&, OuterRule, const Rates<T>&, std::span<const T>,      \
                                         const Batch<T>&, const Batch<T>&, std::span<const double>, ByRates);
GRAFT_INSTANTIATE(float)
GRAFT_INSTANTIATE(double)
#undef GRAFT_INSTANTIATE

}  // namespace graft::meta
