#include "meta/networks/layer.h"

#include <algorithm>
#include <cstring>

#include "meta/networks/wide.h"

namespace graft::meta {
namespace {

// Outputs are made in tiles: `tall` rows, two vectors wide, summed in registers along `deep` inputs at a time. Weights
// come in strips that are two vectors wide, each copied together, so that it stays in the nearest cache while all rows
// pass.
constexpr std::int64_t deep = 256;
template <int lanes>
constexpr int tall = lanes == 16 ? 12 : 6;  // two sums a row in 32 vector registers, in 16
template <int lanes>
constexpr std::int64_t strip_width = 2 * lanes;

// What one strip does to all rows.
struct Strip {
  const float* x;
  std::int64_t x_stride;
  std::int64_t inputs;
  const float* weight;  // copied together
  const float* bias;    // null: the outputs hold what the inputs before have made
  bool rectify;
  float* y;
  std::int64_t y_stride;
};

template <int lanes, int rows>
GRAFT_INLINE void tile(const Strip& strip, std::int64_t first) {
  typedef float Vector __attribute__((vector_size(lanes * sizeof(float)), aligned(sizeof(float)), may_alias));
  const float* const x = strip.x + first * strip.x_stride;
  float* const y = strip.y + first * strip.y_stride;
  Vector left[rows], right[rows];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
    const float* const from = strip.bias != nullptr ? strip.bias : y + r * strip.y_stride;
    left[r] = *reinterpret_cast<const Vector*>(from);
    right[r] = *reinterpret_cast<const Vector*>(from + lanes);
  }
  const float* weight = strip.weight;
  for (std::int64_t i = 0; i < strip.inputs; ++i, weight += strip_width<lanes>) {
    const Vector left_weight = *reinterpret_cast<const Vector*>(weight),
                 right_weight = *reinterpret_cast<const Vector*>(weight + lanes);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const float factor = x[r * strip.x_stride + i];
      left[r] += factor * left_weight;
      right[r] += factor * right_weight;
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
    if (strip.rectify) {
      left[r] = left[r] > Vector{} ? left[r] : Vector{};
      right[r] = right[r] > Vector{} ? right[r] : Vector{};
    }
    *reinterpret_cast<Vector*>(y + r * strip.y_stride) = left[r];
    *reinterpret_cast<Vector*>(y + r * strip.y_stride + lanes) = right[r];
  }
}

// The rows from `first` on: as many tiles as fit, then lower ones.
template <int lanes, int rows = tall<lanes>>
GRAFT_INLINE void tiles(const Strip& strip, std::int64_t count, std::int64_t first = 0) {
  for (; first + rows <= count; first += rows) tile<lanes, rows>(strip, first);
  if constexpr (rows > 1) tiles<lanes, rows / 2>(strip, count, first);
}

// With fewer columns than a tile is wide: some rows at a time go through a wider copy.
template <int lanes>
GRAFT_INLINE void narrow_tiles(const Strip& strip, std::int64_t count, std::int64_t columns) {
  constexpr std::int64_t width = strip_width<lanes>, at_once = 8 * tall<lanes>;
  float y[at_once * width] = {}, bias[width] = {};
  if (strip.bias != nullptr) std::copy_n(strip.bias, columns, bias);
  for (std::int64_t first = 0; first < count; first += at_once) {
    const std::int64_t rows = std::min(at_once, count - first);
    Strip part = strip;
    part.x += first * strip.x_stride;
    part.y = y;
    part.y_stride = width;
    float* const to = strip.y + first * strip.y_stride;
    if (strip.bias != nullptr) {
      part.bias = bias;
    } else {
      for (std::int64_t r = 0; r < rows; ++r) std::copy_n(to + r * strip.y_stride, columns, y + r * width);
    }
    tiles<lanes>(part, rows);
    for (std::int64_t r = 0; r < rows; ++r) std::copy_n(y + r * width, columns, to + r * strip.y_stride);
  }
}

template <int lanes>
GRAFT_INLINE void run_with(const Layer& layer, std::int64_t rows, const float* x, std::int64_t x_stride, float* y,
                           std::int64_t y_stride) {
  constexpr std::int64_t width = strip_width<lanes>;
  alignas(64) float copied[deep * width];
  for (std::int64_t from = 0; from < layer.in; from += deep) {
    const std::int64_t inputs = std::min(deep, layer.in - from);
    for (std::int64_t j = 0; j < layer.out; j += width) {
      const std::int64_t columns = std::min(width, layer.out - j);
      const float* weight = layer.weight + from * layer.weight_stride + j;
      if (columns < width) std::memset(copied, 0, sizeof copied);
      for (std::int64_t i = 0; i < inputs; ++i, weight += layer.weight_stride) {
        if (columns == width) {
          std::memcpy(copied + i * width, weight, sizeof(float) * width);
        } else {
          std::copy_n(weight, columns, copied + i * width);
        }
      }
      const Strip strip{.x = x + from,
                        .x_stride = x_stride,
                        .inputs = inputs,
                        .weight = copied,
                        .bias = from == 0 ? layer.bias + j : nullptr,
                        .rectify = layer.rectify && from + deep >= layer.in,
                        .y = y + j,
                        .y_stride = y_stride};
      if (columns == width) {
        tiles<lanes>(strip, rows);
      } else {
        narrow_tiles<lanes>(strip, rows, columns);
      }
    }
  }
}

}  // namespace

void run(const Layer& layer, std::int64_t rows, const float* x, std::int64_t x_stride, float* y,
         std::int64_t y_stride) {
  with_vectors([&]<int lanes>() GRAFT_INLINED { run_with<lanes>(layer, rows, x, x_stride, y, y_stride); });
}

}  // namespace graft::meta
