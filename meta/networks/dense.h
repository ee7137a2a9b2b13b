// Fully connected layers on numbers (numbers.h), forward and backward. Private to networks/.
#pragma once

#include <algorithm>
#include <span>

#include "meta/network.h"
#include "meta/networks/layer.h"
#include "meta/networks/numbers.h"

namespace graft::meta {

// A block of the flat parameter vector, or of the gradient by it; the stride of a bias is not used.
template <class N>
ConstView<N> block_of(ConstView<N> theta, const ParameterBlock& block) {
  ConstView<N> view = theta.from(0, block.offset);
  view.stride = block.shape.back();
  return view;
}
template <class N>
View<N> block_of(View<N> theta, const ParameterBlock& block) {
  View<N> view = theta.from(0, block.offset);
  view.stride = block.shape.back();
  return view;
}

template <class N>
struct Dense {
  ConstView<N> weight, bias;  // in x out; out
  std::int64_t in = 0, out = 0;
  bool rectify = false;
};
template <class N>
Dense<N> dense(ConstView<N> theta, const ParameterBlock& weight, const ParameterBlock& bias, bool rectify) {
  return {block_of<N>(theta, weight), block_of<N>(theta, bias), weight.shape[0], weight.shape[1], rectify};
}

// Row by row and skipping zeros (of which ReLU leaves many): for few rows, for which reading the weights is all the
// work.
template <class T>
void forward_few(const Dense<T>& layer, std::int64_t rows, ConstView<T> x, View<T> y) {
  with_wide_vectors([&]() GRAFT_INLINED {
    constexpr std::int64_t at_once = 4;
    for (std::int64_t i = 0; i < rows; ++i) {
      const T* from = x.value + i * x.stride;
      T* to = y.value + i * y.stride;
#pragma omp simd
      for (std::int64_t j = 0; j < layer.out; ++j) to[j] = layer.bias.value[j];
      const T* weights[at_once];
      T factors[at_once];
      std::int64_t waiting = 0;
      for (std::int64_t k = 0; k < layer.in; ++k) {
        if (from[k] != 0) {
          weights[waiting] = layer.weight.value + k * layer.weight.stride;
          factors[waiting++] = from[k];
        }
        if (k + 1 == layer.in) {  // the rest is filled with zeros
          for (; waiting % at_once != 0; ++waiting) {
            weights[waiting] = layer.weight.value;
            factors[waiting] = 0;
          }
        }
        if (waiting < at_once) continue;
        waiting = 0;
#pragma omp simd
        for (std::int64_t j = 0; j < layer.out; ++j) {
          to[j] += factors[0] * weights[0][j] + factors[1] * weights[1][j] + factors[2] * weights[2][j] +
                   factors[3] * weights[3][j];
        }
      }
      if (!layer.rectify) continue;
#pragma omp simd
      for (std::int64_t j = 0; j < layer.out; ++j) to[j] = rectified<T>(to[j]);
    }
  });
}

// With one output a layer is a scalar product.
template <class T>
void forward_to_one(const Dense<T>& layer, std::int64_t rows, ConstView<T> x, View<T> y) {
  assert(!layer.rectify);
  with_wide_vectors([&]() GRAFT_INLINED {
    for (std::int64_t i = 0; i < rows; ++i) {
      const T *from = x.value + i * x.stride, *weight = layer.weight.value;
      T sum = 0;
#pragma omp simd reduction(+ : sum)
      for (std::int64_t k = 0; k < layer.in; ++k) sum += from[k] * weight[k];
      y.value[i * y.stride] = sum + layer.bias.value[0];
    }
  });
}

// y = x W + b, cut off below 0 if the layer rectifies.
template <class N>
void forward(const Dense<N>& layer, std::int64_t rows, ConstView<N> x, View<N> y) {
  if constexpr (!is_dual<N>) {
    if (layer.out == 1 && !layer.rectify) return forward_to_one<N>(layer, rows, x, y);
    if (rows <= 4) return forward_few<N>(layer, rows, x, y);
  }
  if constexpr (std::is_same_v<N, float>) {
    run({layer.in, layer.out, layer.weight.value, layer.weight.stride, layer.bias.value, layer.rectify}, rows, x.value,
        x.stride, y.value, y.stride);
  } else {
    multiply<N>(Transposed::no, Transposed::no, rows, layer.out, layer.in, x, layer.weight, 0, y);
    with_wide_vectors([&]() GRAFT_INLINED {
      for (std::int64_t i = 0; i < rows; ++i) {
        const View<N> row = y.from(i, 0);
        if (layer.rectify) {
#pragma omp simd
          for (std::int64_t j = 0; j < layer.out; ++j) row.put(j, rectified<N>(row.at(j) + layer.bias.at(j)));
        } else {
#pragma omp simd
          for (std::int64_t j = 0; j < layer.out; ++j) row.put(j, row.at(j) + layer.bias.at(j));
        }
      }
    });
  }
}

// The slopes of y alone; `y`: its values, used if the layer rectifies. Both have no gaps between rows.
template <class T>
void forward_slopes(const Dense<Dual<T>>& layer, std::int64_t rows, ConstView<Dual<T>> x, const T* y, T* slopes) {
  multiply<Dual<T>>(Transposed::no, Transposed::no, rows, layer.out, layer.in, x, layer.weight, 0,
                    {nullptr, slopes, layer.out});
  with_wide_vectors([&]() GRAFT_INLINED {
    for (std::int64_t i = 0; i < rows; ++i) {
      T* const row = slopes + i * layer.out;
      if (layer.rectify) {
        const T* const alive = y + i * layer.out;
#pragma omp simd
        for (std::int64_t j = 0; j < layer.out; ++j) row[j] = alive[j] > 0 ? row[j] + layer.bias.slope[j] : T(0);
      } else {
#pragma omp simd
        for (std::int64_t j = 0; j < layer.out; ++j) row[j] += layer.bias.slope[j];
      }
    }
  });
}

// sums[j] = sum over rows of x.
template <class N>
void sum_columns(std::int64_t rows, std::int64_t columns, ConstView<N> x, View<N> sums) {
  const auto plane = [&](const Real<N>* from, Real<N>* to) {
    if (to == nullptr) return;
    std::fill(to, to + columns, Real<N>(0));
    with_wide_vectors([&]() GRAFT_INLINED {
      for (std::int64_t i = 0; i < rows; ++i) {
        const Real<N>* row = from + i * x.stride;
#pragma omp simd
        for (std::int64_t j = 0; j < columns; ++j) to[j] += row[j];
      }
    });
  };
  plane(x.value, sums.value);
  if constexpr (is_dual<N>) plane(x.slope, sums.slope);
}

// Turns y's gradient `up` into that of x W + b, in place.
template <class N>
void backward_rectified(std::int64_t rows, std::int64_t columns, ConstView<N> y, View<N> up) {
  with_wide_vectors([&]() GRAFT_INLINED {
    for (std::int64_t i = 0; i < rows; ++i) {
      const Real<N>* alive = y.value + i * y.stride;
      const View<N> row = up.from(i, 0);
#pragma omp simd
      for (std::int64_t j = 0; j < columns; ++j) row.put(j, alive[j] > 0 ? row.at(j) : number<N>(0));
    }
  });
}

// Gradients by the layer's parameters, from that of y, which is overwritten.
template <class N>
void backward(const Dense<N>& layer, std::int64_t rows, ConstView<N> x, ConstView<N> y, View<N> up, View<N> weight,
              View<N> bias) {
  if (layer.rectify) backward_rectified<N>(rows, layer.out, y, up);
  multiply<N>(Transposed::yes, Transposed::no, layer.in, layer.out, rows, x, up, 0, weight);
  sum_columns<N>(rows, layer.out, up, bias);
}
// The gradient by x, from the gradient of y as `backward` left it.
template <class N>
void backward_to_input(const Dense<N>& layer, std::int64_t rows, ConstView<N> up, View<N> down) {
  multiply<N>(Transposed::no, Transposed::yes, rows, layer.in, layer.out, up, layer.weight, 0, down);
}

}  // namespace graft::meta
