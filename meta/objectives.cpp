#include "meta/objectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <string>
#include <type_traits>

#include "base/error.h"

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

}  // namespace

std::string_view name_of(Loss loss) {
  return loss == Loss::rank ? "rank" : "squared";
}

Loss loss_named(std::string_view name) {
  for (const Loss loss : {Loss::rank, Loss::squared}) {
    if (name == name_of(loss)) return loss;
  }
  const std::vector<std::string> known = {"rank", "squared"};
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
    double total = 0;  // of the pair weights, or of the rows
    for (std::int64_t i = 0; i < size; ++i) {
      for (std::int64_t j = i + 1; j < size; ++j) {
        total += pair_weight(log_seconds[order_[begin + i]], log_seconds[order_[begin + j]]);
      }
    }
    if (total > 0) {
      group.weight = 1 / (loss == Loss::rank ? total : double(size));
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
    if (loss_ == Loss::rank) {
      const Sorted<T> rows = sorted(scores, order, labels);
      for (std::int64_t i = 0; i < group.size; ++i) {
        for (std::int64_t j = i + 1; j < group.size; ++j) {
          sum += pair_weight(labels[i], labels[j]) *
                 double(std::log(rows.exponential[i] + rows.exponential[j]) - rows.centred[i]);
        }
      }
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
    if (loss_ == Loss::rank) {
      const Sorted<T> rows = sorted(scores, order, labels);
      const T *y = rows.label.data(), *e = rows.exponential.data();
      std::vector<T> sums(std::size_t(group.size), T(0));
      T* sum = sums.data();
      for (std::int64_t i = 0; i < group.size; ++i) {
        T lost = 0;
        const T yi = y[i], ei = e[i];
#pragma omp simd reduction(+ : lost)
        for (std::int64_t j = i + 1; j < group.size; ++j) {
          const T g = pair_weight(yi, y[j]) * e[j] / (ei + e[j]);
          sum[j] += g;
          lost += g;
        }
        sum[i] -= lost;
      }
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
    if (loss_ == Loss::rank) {
      const Sorted<T> rows = sorted(scores, order, labels);
      const T *y = rows.label.data(), *e = rows.exponential.data();
      std::vector<T> sums(std::size_t(group.size), T(0)), directions;
      for (const std::int64_t row : order) directions.push_back(v[row]);
      T* sum = sums.data();
      const T* d = directions.data();
      for (std::int64_t i = 0; i < group.size; ++i) {
        T lost = 0;
        const T yi = y[i], ei = e[i], di = d[i];
#pragma omp simd reduction(+ : lost)
        for (std::int64_t j = i + 1; j < group.size; ++j) {
          const T both = ei + e[j];
          const T g = pair_weight(yi, y[j]) * (ei / both) * (e[j] / both) * (d[j] - di);
          sum[j] += g;
          lost += g;
        }
        sum[i] -= lost;
      }
      for (std::int64_t i = 0; i < group.size; ++i) product[order[i]] = T(group.weight) * sum[i];
    } else {
      double mean = 0;
      for (std::int64_t i = 0; i < group.size; ++i) mean += double(v[order[i]]) / double(group.size);
      for (std::int64_t i = 0; i < group.size; ++i) product[order[i]] = T(group.weight * (double(v[order[i]]) - mean));
    }
  }
}

template float Objective::value(std::span<const float>) const;
template double Objective::value(std::span<const double>) const;
template void Objective::gradient(std::span<const float>, std::span<float>) const;
template void Objective::gradient(std::span<const double>, std::span<double>) const;
template void Objective::hessian_product(std::span<const float>, std::span<const float>, std::span<float>) const;
template void Objective::hessian_product(std::span<const double>, std::span<const double>, std::span<double>) const;

}  // namespace graft::meta
