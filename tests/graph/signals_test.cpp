// Fourier transforms, and reads at places that are numbers of a run, against plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <map>
#include <numbers>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/graph/support/onnx_file.h"

namespace {

using namespace graft::graph;
using file::attribute;
using graft::base::UserError;
using graft::codegen::Elements;
using Numbers = std::vector<double>;

Numbers waves(std::size_t count) {
  Numbers all(count);
  for (std::size_t e = 0; e < count; ++e) all[e] = std::sin(1.7 * double(e * e % 37) + 0.3);
  return all;
}

// The sum of x[t] e^(-2 pi i t k / length) over `count` numbers that are `step` apart.
std::complex<double> at_frequency(const Numbers& x, std::size_t begin, std::size_t count, std::size_t k,
                                  std::size_t length) {
  std::complex<double> sum = 0;
  for (std::size_t t = 0; t < count; ++t)
    sum += std::polar(x[begin + t], -2 * std::numbers::pi * double(t * k) / double(length));
  return sum;
}

TEST(Signals, TransformsOfRowsLongerAndShorterThanThese) {
  const Numbers x = waves(2 * 6);
  for (const std::int64_t length : {4, 6, 9})
    for (const bool is_half : {false, true}) {
      file::GraphFile file;
      file.input("x", {2, 6, 1}).integers("n", {}, {length});
      file.node("DFT", {"x", "n"}, {"y"}, {attribute("axis", 1), attribute("onesided", int(is_half))}).output("y");
      const Elements y = file::results(file, {{"x", Elements(x)}}, 17).front();
      const std::size_t n = std::size_t(length), results = is_half ? n / 2 + 1 : n;
      ASSERT_EQ(y.size(), 2 * results * 2);
      for (std::size_t row = 0; row < 2; ++row)
        for (std::size_t k = 0; k < results; ++k) {
          const std::complex<double> should = at_frequency(x, row * 6, std::min<std::size_t>(6, n), k, n);
          EXPECT_NEAR(y[(row * results + k) * 2], should.real(), 1e-5) << length;
          EXPECT_NEAR(y[(row * results + k) * 2 + 1], should.imag(), 1e-5) << length;
        }
    }
}

// Along an axis that is not the last, from version 20 on an operand; half of a spectrum is enough for real numbers.
TEST(Signals, InverseTransformsGiveWhatWasTransformed) {
  const Numbers x = waves(5 * 3 * 2), real = waves(5 * 3);
  file::GraphFile file;
  file.input("x", {5, 3, 2}).integers("a", {}, {-3});
  file.node("DFT", {"x", "", "a"}, {"f"}).node("DFT", {"f", "", "a"}, {"y"}, {attribute("inverse", 1)}).output("y");
  const Elements back = file::results(file, {{"x", Elements(x)}}, 20).front();
  for (std::size_t e = 0; e < x.size(); ++e) EXPECT_NEAR(back[e], x[e], 1e-5);
  file::GraphFile half;
  half.input("x", {5, 3, 1}).integers("a", {}, {0}).integers("n", {}, {5});
  half.node("DFT", {"x", "n", "a"}, {"f"}, {attribute("onesided", 1)});
  half.node("DFT", {"f", "n", "a"}, {"y"}, {attribute("onesided", 1), attribute("inverse", 1)}).output("y");
  const Elements whole = file::results(half, {{"x", Elements(real)}}, 20).front();
  ASSERT_EQ(whole.size(), real.size());
  for (std::size_t e = 0; e < real.size(); ++e) EXPECT_NEAR(whole[e], real[e], 1e-5);
}

TEST(Signals, FramesAreWeightedAndTransformed) {
  const Numbers x = waves(20), window = {0.1, 0.5, 1, 0.7, 0.2};
  file::GraphFile file;
  file.input("x", {1, 20, 1}).integers("step", {}, {3}).input("w", {5});
  file.node("STFT", {"x", "step", "w"}, {"y"}).output("y");
  const Elements y = file::results(file, {{"x", Elements(x)}, {"w", Elements(window)}}, 17).front();
  ASSERT_EQ(y.size(), 6 * 3 * 2);
  for (std::size_t frame = 0; frame < 6; ++frame)
    for (std::size_t k = 0; k < 3; ++k) {
      Numbers weighted(5);
      for (std::size_t t = 0; t < 5; ++t) weighted[t] = x[3 * frame + t] * window[t];
      const std::complex<double> should = at_frequency(weighted, 0, 5, k, 5);
      EXPECT_NEAR(y[(frame * 3 + k) * 2], should.real(), 1e-5);
      EXPECT_NEAR(y[(frame * 3 + k) * 2 + 1], should.imag(), 1e-5);
    }
}

TEST(Signals, WhatDoesNotFitIsRefused) {
  const auto refused = [](const Shape& shape, int axis, int onesided, std::int64_t length) {
    file::GraphFile file;
    file.input("x", shape).integers("n", {}, {length});
    file.node("DFT", {"x", "n"}, {"y"}, {attribute("axis", axis), attribute("onesided", onesided)}).output("y");
    EXPECT_THROW(file::results(file, {}, 17), UserError);
  };
  refused({2, 6, 3}, 1, 0, 6);
  refused({2, 6, 2}, 1, 1, 6);        // half of a spectrum of complex numbers
  refused({2, 6, 1}, 2, 0, 6);        // the axis of parts
  refused({2, 6, 1}, 1, 0, 0);        // no length
  refused({2, 6, 1}, 1, 0, 1 << 24);  // a matrix too large
  file::GraphFile frames;
  frames.input("x", {1, 4, 1}).integers("step", {}, {1}).integers("n", {}, {5});
  frames.node("STFT", {"x", "step", "", "n"}, {"y"}).output("y");
  EXPECT_THROW(file::results(frames, {}, 17), UserError);
}

// A plain sample of one channel: linear, by the mode of padding.
double sample(const Numbers& x, std::int64_t rows, std::int64_t columns, double row, double column,
              const std::string& padding) {
  const auto read = [&](std::int64_t r, std::int64_t c) {
    const bool is_outside = r < 0 || c < 0 || r >= rows || c >= columns;
    if (padding == "zeros" && is_outside) return 0.0;
    const auto inside = [&](std::int64_t at, std::int64_t extent) {
      if (padding == "border") return std::clamp<std::int64_t>(at, 0, extent - 1);
      while (at < 0 || at >= extent) at = at < 0 ? -1 - at : 2 * extent - 1 - at;
      return at;
    };
    return x[std::size_t(inside(r, rows) * columns + inside(c, columns))];
  };
  const double r = std::floor(row), c = std::floor(column), a = row - r, b = column - c;
  const auto at = [&](int dr, int dc) { return read(std::int64_t(r) + dr, std::int64_t(c) + dc); };
  return (1 - a) * ((1 - b) * at(0, 0) + b * at(0, 1)) + a * ((1 - b) * at(1, 0) + b * at(1, 1));
}

TEST(Sampling, GridsWithPlacesOutside) {
  const Numbers x = waves(4 * 5), grid = {-1, -1, 0.3, -0.2, 1, 1, 1.7, -1.4, -1.9, 0.5, 0.01, 2.3};
  for (const char* const padding : {"zeros", "border", "reflection"}) {
    file::GraphFile file;
    file.input("x", {1, 1, 4, 5}).input("g", {1, 2, 3, 2});
    file.node("GridSample", {"x", "g"}, {"y"}, {attribute("padding_mode", padding)}).output("y");
    const Elements y = file::results(file, {{"x", Elements(x)}, {"g", Elements(grid)}}, 16).front();
    for (std::size_t p = 0; p < 6; ++p) {
      const double column = ((grid[2 * p] + 1) * 5 - 1) / 2, row = ((grid[2 * p + 1] + 1) * 4 - 1) / 2;
      EXPECT_NEAR(y[p], sample(x, 4, 5, row, column, padding), 1e-5) << padding << p;
    }
  }
}

TEST(Sampling, AlignedCornersAreTheElementsThemselves) {
  const Numbers x = waves(3 * 3), grid = {-1, -1, 0, -1, 1, -1, -1, 0, 0, 0, 1, 0, -1, 1, 0, 1, 1, 1};
  for (const char* const mode : {"bilinear", "bicubic", "nearest"}) {
    file::GraphFile file;
    file.input("x", {1, 1, 3, 3}).input("g", {1, 3, 3, 2});
    file.node("GridSample", {"x", "g"}, {"y"}, {attribute("mode", mode), attribute("align_corners", 1)}).output("y");
    const Elements y = file::results(file, {{"x", Elements(x)}, {"g", Elements(grid)}}, 16).front();
    for (std::size_t e = 0; e < 9; ++e) EXPECT_NEAR(y[e], x[e], 1e-6) << mode;
  }
  file::GraphFile volume;
  volume.input("x", {1, 1, 3, 3, 3}).input("g", {1, 1, 1, 1, 3});
  volume.node("GridSample", {"x", "g"}, {"y"}, {attribute("mode", "cubic")}).output("y");
  EXPECT_THROW(file::results(volume, {}, 20), UserError);
}

// One matrix moves the grid by a number, the other turns it.
TEST(Sampling, GridsOfMatrices) {
  file::GraphFile file;
  file.input("m", {2, 2, 3}).integers("size", {4}, {2, 1, 2, 3});
  file.node("AffineGrid", {"m", "size"}, {"y"}).output("y");
  const Elements y = file::results(file, {{"m", Elements{1, 0, 0.5, 0, 1, 0, 0, -1, 0, 1, 0, 0}}}, 20).front();
  ASSERT_EQ(y.size(), 2 * 2 * 3 * 2);
  for (std::size_t row = 0; row < 2; ++row)
    for (std::size_t column = 0; column < 3; ++column) {
      const double h = double(2 * row + 1) / 2 - 1, w = double(2 * column + 1) / 3 - 1;
      const std::size_t at = (row * 3 + column) * 2;
      EXPECT_NEAR(y[at], w + 0.5, 1e-6);
      EXPECT_NEAR(y[at + 1], h, 1e-6);
      EXPECT_NEAR(y[12 + at], -h, 1e-6);
      EXPECT_NEAR(y[12 + at + 1], w, 1e-6);
    }
}

// The mean of a plane over a region is that of its middle.
TEST(Sampling, RegionsOfAPlane) {
  Numbers x;
  for (int row = 0; row < 8; ++row)
    for (int column = 0; column < 8; ++column) x.push_back(2 * row + 3 * column);
  const auto of = [&](int samples) {
    file::GraphFile file;
    file.input("x", {1, 1, 8, 8}).input("r", {1, 4}).integers("b", {1}, {0});
    file.node("RoiAlign", {"x", "r", "b"}, {"y"},
              {attribute("output_height", 1), attribute("output_width", 2), attribute("sampling_ratio", samples)});
    return file::results(file.output("y"), {{"x", Elements(x)}, {"r", Elements{1, 2, 5, 6}}}, 16).front();
  };
  const Elements y = of(2);
  EXPECT_NEAR(y[0], 2 * 3.5 + 3 * 1.5, 1e-5);
  EXPECT_NEAR(y[1], 2 * 3.5 + 3 * 3.5, 1e-5);
  EXPECT_THROW(of(0), UserError);
}

// Windows apart, and windows that overlap; the latter give one place twice.
TEST(Sampling, LargestOfWindowsGoBackToTheirPlaces) {
  const Numbers x = waves(2 * 7 * 7);
  for (const std::int64_t extent : {2, 3}) {
    file::GraphFile file;
    const std::vector<std::int64_t> kernel = {extent, extent}, strides = {2, 2};
    file.input("x", {1, 2, 7, 7});
    file.node("MaxPool", {"x"}, {"v", "i"}, {attribute("kernel_shape", kernel), attribute("strides", strides)});
    file.integers("s", {4}, {1, 2, 7, 7});
    file.node("MaxUnpool", {"v", "i", "s"}, {"y"}, {attribute("kernel_shape", kernel), attribute("strides", strides)});
    if (extent == 3)
      file.node("MaxUnpool", {"v", "i"}, {"z"}, {attribute("kernel_shape", kernel), attribute("strides", strides)});
    file.output("v").output("i").output("y");
    if (extent == 3) file.output("z");
    const auto all = file::results(file, {{"x", Elements(x)}}, 12);
    Numbers should(x.size(), 0);
    for (std::size_t e = 0; e < all[0].size(); ++e) should[std::size_t(all[1][e])] = all[0][e];
    for (std::size_t o = 2; o < all.size(); ++o)
      for (std::size_t e = 0; e < should.size(); ++e) EXPECT_EQ(all[o][e], should[e]) << extent;
  }
}

}  // namespace
