#include "meta/networks/layer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"

namespace graft::meta {
namespace {

// Sizes around those that the kernel cuts by: rows of a tile, columns of a strip, inputs summed at a time.
TEST(Layer, IsProductBiasAndRectifier) {
  base::Stream stream(1, "layer");
  const auto numbers = [&](std::int64_t count) {
    std::vector<float> out(static_cast<std::size_t>(count));
    for (float& value : out) value = float(stream.normal());
    return out;
  };
  for (const std::int64_t rows : {1, 5, 6, 7, 13, 100}) {
    for (const std::int64_t in : {1, 30, 256, 257, 600}) {
      for (const std::int64_t out : {1, 8, 15, 16, 32, 33, 70}) {
        const std::int64_t x_stride = in + 3, weight_stride = out + 2, y_stride = out + 1;
        const std::vector<float> x = numbers(rows * x_stride), weight = numbers(in * weight_stride),
                                 bias = numbers(out);
        for (const bool rectify : {false, true}) {
          std::vector<float> y(std::size_t(rows * y_stride), 7.0f);
          run({in, out, weight.data(), weight_stride, bias.data(), rectify}, rows, x.data(), x_stride, y.data(),
              y_stride);
          for (std::int64_t r = 0; r < rows; ++r) {
            for (std::int64_t j = 0; j < out; ++j) {
              double sum = double(bias[std::size_t(j)]);
              for (std::int64_t i = 0; i < in; ++i)
                sum += double(x[std::size_t(r * x_stride + i)]) * double(weight[std::size_t(i * weight_stride + j)]);
              if (rectify) sum = std::max(sum, 0.0);
              ASSERT_NEAR(y[std::size_t(r * y_stride + j)], sum, 1e-5 * std::sqrt(double(in)) * 4)
                  << rows << " x " << in << " x " << out;
            }
            ASSERT_EQ(y[std::size_t(r * y_stride + out)], 7.0f);  // what is not its own
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace graft::meta
