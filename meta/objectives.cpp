#include "meta/objectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <string>
#include <type_traits>

#include "base/error.h"
#include "meta/networks/numbers.h"

namespace graft::meta {
namespace {

// Beyond a factor of e in time a pair does not become more important: near-ties carry noise, far pairs are easy anyway.
constexpr double largest_gap = 1.0;

// Per row in sorted order: label, exp of the centred score. With these a pair costs one division and no exponential:
// 1 / (1 + exp(s_fast - s_slow)) = e_slow / (e_fast + e_slow).
template <class T>
struct Sorted {
  std::vector<T> label, centred, exponential;
};

template <class T>
Sorted<T> sorted(std::span<const T> scores, std::span<const std::int64_t> order, std::span<const double> log_seconds) {
  constexpr T limit = std::is_same_v<T, float> ? T(40) : T(300);
  Sorted<T> out;
  out.label.assign(log_seconds.begin(), log_seconds.end());
  T low = scores[order[0]], high = low;
  for (const std::int64_t row : order) {
    low = std::min(low, scores[row]);
    high = std::max(high, scores[row]);
  }
  const T centre = (low + high) / 2;
  for (const std::int64_t row : order) {
    out.centred.push_back(std::clamp(scores[row] - centre, -limit, limit));
    out.exponential.push_back(std::exp(out.centred.back()));
  }
  return out;
}

template <class T>
T pair_weight(T fast, T slow) {
  return std::min(slow - fast, T(largest_gap));
}

// How much a pair (the faster one first) counts, by positions in sorted order.
template <class T>
class GapWeight {
 public:
  GapWeight(const Sorted<T>& rows) : label_(rows.label.data()) {}
  T operator()(std::int64_t fast, std::int64_t slow) const { return pair_weight(label_[fast], label_[slow]); }

 private:
  const T* label_;
};

double discount(std::size_t place) {  // 0: first
  return 1 / std::log2(2 + double(place));
}
// Speed relative to the fastest of the group.
double gain(double log_seconds, double fastest) {
  return std::exp(fastest - log_seconds);
}

// By how much the discounted gain would change if the two swapped places in the ranking by score.
template <class T>
class SwapWeight {
 public:
  SwapWeight(const Sorted<T>& rows) : gain_(rows.label.size()), discount_(rows.label.size()) {
    std::vector<std::size_t> ranking(rows.label.size());
    std::iota(ranking.begin(), ranking.end(), std::size_t(0));
    std::stable_sort(ranking.begin(), ranking.end(),
                     [&](std::size_t a, std::size_t b) { return rows.centred[a] > rows.centred[b]; });
    for (std::size_t place = 0; place < ranking.size(); ++place) discount_[ranking[place]] = T(discount(place));
    for (std::size_t i = 0; i < gain_.size(); ++i) gain_[i] = T(gain(double(rows.label[i]), double(rows.label[0])));
  }
  T operator()(std::int64_t fast, std::int64_t slow) const {
    return (gain_[std::size_t(fast)] - gain_[std::size_t(slow)]) *
           std::abs(discount_[std::size_t(fast)] - discount_[std::size_t(slow)]);
  }

 private:
  std::vector<T> gain_, discount_;
};

// Sums over the pairs of one group, rows in sorted order: the loss, what each row's score adds to it, and the change of
// that along `direction`.
template <class T, class Weight>
double pairs_value(const Sorted<T>& rows, const Weight& weight) {
  const std::int64_t size = std::int64_t(rows.label.size());
  const T* e = rows.exponential.data();
  double sum = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    T own = 0;
    const T ei = e[i], centred = rows.centred[i];
#pragma omp simd reduction(+ : own)
    for (std::int64_t j = i + 1; j < size; ++j) own += weight(i, j) * (logarithm(ei + e[j]) - centred);
    sum += double(own);
  }
  return sum;
}

template <class T, class Weight>
std::vector<T> pairs_gradient(const Sorted<T>& rows, const Weight& weight) {
  const std::int64_t size = std::int64_t(rows.label.size());
  std::vector<T> sums(rows.label.size(), T(0));
  T* sum = sums.data();
  const T* e = rows.exponential.data();
  for (std::int64_t i = 0; i < size; ++i) {
    T lost = 0;
    const T ei = e[i];
#pragma omp simd reduction(+ : lost)
    for (std::int64_t j = i + 1; j < size; ++j) {
      const T g = weight(i, j) * e[j] / (ei + e[j]);
      sum[j] += g;
      lost += g;
    }
    sum[i] -= lost;
  }
  return sums;
}

// Slopes as pairs_gradient; with them the diagonal of the Hessian.
template <class T>
struct Newton {
  std::vector<T> slope, curvature;
};
template <class T, class Weight>
Newton<T> pairs_newton(const Sorted<T>& rows, const Weight& weight) {
  const std::int64_t size = std::int64_t(rows.label.size());
  Newton<T> sums{std::vector<T>(rows.label.size(), T(0)), std::vector<T>(rows.label.size(), T(0))};
  T *slope = sums.slope.data(), *curvature = sums.curvature.data();
  const T* e = rows.exponential.data();
  for (std::int64_t i = 0; i < size; ++i) {
    T lost = 0, curved = 0;
    const T ei = e[i];
#pragma omp simd reduction(+ : lost, curved)
    for (std::int64_t j = i + 1; j < size; ++j) {
      const T wrong = e[j] / (ei + e[j]);
      const T g = weight(i, j) * wrong, h = g * (1 - wrong);
      slope[j] += g;
      lost += g;
      curvature[j] += h;
      curved += h;
    }
    slope[i] -= lost;
    curvature[i] += curved;
  }
  return sums;
}

template <class T, class Weight>
std::vector<T> pairs_product(const Sorted<T>& rows, const Weight& weight, const std::vector<T>& direction) {
  const std::int64_t size = std::int64_t(rows.label.size());
  std::vector<T> sums(rows.label.size(), T(0));
  T* sum = sums.data();
  const T *e = rows.exponential.data(), *d = direction.data();
  for (std::int64_t i = 0; i < size; ++i) {
    T lost = 0;
    const T ei = e[i], di = d[i];
#pragma omp simd reduction(+ : lost)
    for (std::int64_t j = i + 1; j < size; ++j) {
      const T both = ei + e[j];
      const T g = weight(i, j) * (ei / both) * (e[j] / both) * (d[j] - di);
      sum[j] += g;
      lost += g;
    }
    sum[i] -= lost;
  }
  return sums;
}

// `work` with the weights that the loss gives to pairs.
template <class T, class Work>
auto with_weight(Loss loss, const Sorted<T>& rows, const Work& work) {
  return loss == Loss::rank ? work(GapWeight<T>(rows)) : work(SwapWeight<T>(rows));
}

}  // namespace

std::string_view name_of(Loss loss) {
  switch (loss) {
#define X(name)    \
  case Loss::name: \
    return #name;
    GRAFT_LOSSES(X)
#undef X
  }
  return "";
}

Loss loss_named(std::string_view name) {
#define X(each) \
  if (name == #each) return Loss::each;
  GRAFT_LOSSES(X)
#undef X
  const std::vector<std::string> known = {
#define X(each) #each,
      GRAFT_LOSSES(X)
#undef X
  };
  throw base::UserError(fmt::format("unknown loss '{}'{}", name, base::did_you_mean(name, known)));
}

Objective::Objective(Loss loss, std::span<const double> log_seconds, std::span<const std::int64_t> sizes)
    : loss_(loss) {
  order_.resize(log_seconds.size());
  std::iota(order_.begin(), order_.end(), 0);
  std::int64_t begin = 0;
  for (const std::int64_t size : sizes) {
    Group group{begin, size, 0};
    std::sort(order_.begin() + begin, order_.begin() + begin + size, [&](std::int64_t a, std::int64_t b) {
      return log_seconds[a] != log_seconds[b] ? log_seconds[a] < log_seconds[b] : a < b;
    });
    const auto label = [&](std::int64_t place) { return log_seconds[order_[begin + place]]; };
    if (size > 1 && label(0) < label(size - 1)) {
      double total = 0;  // of the pair weights, of the rows, or of the discounted gains of the right ranking
      for (std::int64_t i = 0; i < size; ++i) {
        if (loss == Loss::squared) total += 1;
        if (loss == Loss::lambda) total += gain(label(i), label(0)) * discount(std::size_t(i));
        for (std::int64_t j = i + 1; j < size && loss == Loss::rank; ++j) total += pair_weight(label(i), label(j));
      }
      group.weight = 1 / total;
      ++counted_;
    }
    groups_.push_back(group);
    begin += size;
  }
  assert(begin == std::int64_t(log_seconds.size()));
  for (Group& group : groups_) group.weight /= double(std::max<std::int64_t>(counted_, 1));
  for (const std::int64_t row : order_) log_seconds_.push_back(log_seconds[row]);
}

template <class T>
T Objective::value(std::span<const T> scores) const {
  assert(std::int64_t(scores.size()) == rows());
  double total = 0;
  for (const Group& group : groups_) {
    if (group.weight == 0) continue;
    const std::span order = std::span(order_).subspan(group.begin, group.size);
    const std::span labels = std::span(log_seconds_).subspan(group.begin, group.size);
    double sum = 0;
    if (loss_ != Loss::squared) {
      const Sorted<T> rows = sorted(scores, order, labels);
      sum = with_weight(loss_, rows, [&](const auto& weight) { return pairs_value(rows, weight); });
    } else {
      double offset = 0;  // mean of score + log seconds
      for (std::int64_t i = 0; i < group.size; ++i)
        offset += (double(scores[order[i]]) + labels[i]) / double(group.size);
      for (std::int64_t i = 0; i < group.size; ++i) {
        const double residual = double(scores[order[i]]) + labels[i] - offset;
        sum += residual * residual / 2;
      }
    }
    total += group.weight * sum;
  }
  return T(total);
}

template <class T>
void Objective::gradient(std::span<const T> scores, std::span<T> gradient) const {
  assert(std::int64_t(scores.size()) == rows() && gradient.size() == scores.size());
  std::fill(gradient.begin(), gradient.end(), T(0));
  for (const Group& group : groups_) {
    if (group.weight == 0) continue;
    const std::span order = std::span(order_).subspan(group.begin, group.size);
    const std::span labels = std::span(log_seconds_).subspan(group.begin, group.size);
    if (loss_ != Loss::squared) {
      const Sorted<T> rows = sorted(scores, order, labels);
      const std::vector<T> sum =
          with_weight(loss_, rows, [&](const auto& weight) { return pairs_gradient(rows, weight); });
      for (std::int64_t i = 0; i < group.size; ++i) gradient[order[i]] = T(group.weight) * sum[i];
    } else {
      double offset = 0;
      for (std::int64_t i = 0; i < group.size; ++i)
        offset += (double(scores[order[i]]) + labels[i]) / double(group.size);
      for (std::int64_t i = 0; i < group.size; ++i) {
        gradient[order[i]] = T(group.weight * (double(scores[order[i]]) + labels[i] - offset));
      }
    }
  }
}

template <class T>
void Objective::hessian_product(std::span<const T> scores, std::span<const T> v, std::span<T> product) const {
  assert(std::int64_t(scores.size()) == rows() && v.size() == scores.size() && product.size() == scores.size());
  std::fill(product.begin(), product.end(), T(0));
  for (const Group& group : groups_) {
    if (group.weight == 0) continue;
    const std::span order = std::span(order_).subspan(group.begin, group.size);
    const std::span labels = std::span(log_seconds_).subspan(group.begin, group.size);
    if (loss_ != Loss::squared) {
      const Sorted<T> rows = sorted(scores, order, labels);
      std::vector<T> direction;
      for (const std::int64_t row : order) direction.push_back(v[row]);
      const std::vector<T> sum =
          with_weight(loss_, rows, [&](const auto& weight) { return pairs_product(rows, weight, direction); });
      for (std::int64_t i = 0; i < group.size; ++i) product[order[i]] = T(group.weight) * sum[i];
    } else {
      double mean = 0;
      for (std::int64_t i = 0; i < group.size; ++i) mean += double(v[order[i]]) / double(group.size);
      for (std::int64_t i = 0; i < group.size; ++i) product[order[i]] = T(group.weight * (double(v[order[i]]) - mean));
    }
  }
}

template <class T>
void Objective::newton(std::span<const T> scores, std::span<T> gradient, std::span<T> diagonal) const {
  assert(diagonal.size() == scores.size());
  if (loss_ == Loss::squared) {
    this->gradient(scores, gradient);
    for (const Group& group : groups_) {
      for (std::int64_t i = 0; i < group.size; ++i) {
        diagonal[order_[group.begin + i]] = T(group.weight * (1 - 1 / double(group.size)));
      }
    }
    return;
  }
  assert(std::int64_t(scores.size()) == rows() && gradient.size() == scores.size());
  std::fill(gradient.begin(), gradient.end(), T(0));
  std::fill(diagonal.begin(), diagonal.end(), T(0));
  for (const Group& group : groups_) {
    if (group.weight == 0) continue;
    const std::span order = std::span(order_).subspan(group.begin, group.size);
    const std::span labels = std::span(log_seconds_).subspan(group.begin, group.size);
    const Sorted<T> rows = sorted(scores, order, labels);
    const Newton<T> sums = with_weight(loss_, rows, [&](const auto& weight) { return pairs_newton(rows, weight); });
    for (std::int64_t i = 0; i < group.size; ++i) {
      gradient[order[i]] = T(group.weight) * sums.slope[i];
      diagonal[order[i]] = T(group.weight) * sums.curvature[i];
    }
  }
}

template float Objective::value(std::span<const float>) const;
template double Objective::value(std::span<const double>) const;
template void Objective::gradient(std::span<const float>, std::span<float>) const;
template void Objective::gradient(std::span<const double>, std::span<double>) const;
template void Objective::hessian_product(std::span<const float>, std::span<const float>, std::span<float>) const;
template void Objective::hessian_product(std::span<const double>, std::span<const double>, std::span<double>) const;
template void Objective::newton(std::span<const float>, std::span<float>, std::span<float>) const;
template void Objective::newton(std::span<const double>, std::span<double>, std::span<double>) const;

}  // namespace graft::meta
