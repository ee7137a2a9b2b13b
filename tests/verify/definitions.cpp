#include "tests/verify/definitions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace graft::verify {
namespace {

using Int = std::int64_t;
using Numbers = std::vector<double>;

// ---- what is drawn

enum class Type { f32, f64, i32, i8, u8 };

class Draw {
 public:
  explicit Draw(base::Stream& stream, bool integers = true) : stream_(stream) {
    const Int of_ten = stream.below(10);
    if (of_ten == 0) type_ = Type::f64;
    if (of_ten == 1 && integers) type_ = Type::i32;
  }

  Int below(Int n) { return stream_.below(n); }
  bool coin() { return stream_.below(2) == 0; }

  // Small, odd, and rarely a multiple of anything.
  Int size(Int most) {
    constexpr Int sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 24, 31, 32, 33, 37, 47, 64, 65, 67};
    Int count = 0;
    while (count < Int(std::size(sizes)) && sizes[count] <= most) ++count;
    return sizes[below(count)];
  }

  // Exact in every type of their kind, while products of two need rounding; integers stay small.
  Numbers numbers(Int count, Type type) {
    Numbers values(std::size_t(count), 0);
    for (double& value : values) {
      switch (type) {
        case Type::f32:
        case Type::f64:
          value = double(below(1 << 21)) * 0x1p-20 - 1;
          break;
        case Type::i32:
        case Type::i8:
          value = double(below(16) - 8);
          break;
        case Type::u8:
          value = double(17 * below(16));  // half of them beyond what is signed
          break;
      }
    }
    return values;
  }
  Numbers numbers(Int count) { return numbers(count, type_); }

  Type type() const { return type_; }
  std::string dtype() const { return name(type_); }
  // The type of an operand: for sums of integers, often a shorter one.
  Type operand() {
    constexpr Type integers[] = {Type::i32, Type::i8, Type::u8};
    return type_ == Type::i32 ? integers[below(3)] : type_;
  }
  static std::string name(Type type) {
    constexpr const char* names[] = {"f32", "f64", "i32", "i8", "u8"};
    return names[int(type)];
  }
  double lowest() const {
    return type_ == Type::i32 ? std::numeric_limits<std::int32_t>::min() : -std::numeric_limits<double>::infinity();
  }

 private:
  base::Stream& stream_;
  Type type_ = Type::f32;
};

Example example(std::string workload, std::vector<Numbers> operands, Int outputs, Int roundings) {
  return {std::move(workload), std::move(operands), Numbers(std::size_t(outputs), 0), Numbers(std::size_t(outputs), 0),
          roundings};
}

void add(Example& to, Int output, double value) {
  to.output[std::size_t(output)] += value;
  to.magnitude[std::size_t(output)] += std::abs(value);
}

// ---- matrices

Example matmul_of(Draw& draw, Int batch, const std::string& head) {
  const Int m = draw.size(67), n = draw.size(67), k = draw.size(67);
  Example made = example(fmt::format("{}m={},n={},k={},dtype={})", head, m, n, k, draw.dtype()),
                         {draw.numbers(batch * m * k), draw.numbers(batch * k * n)}, batch * m * n, k + 1);
  const Numbers &a = made.operands[0], &b = made.operands[1];
  for (Int z = 0; z < batch; ++z)
    for (Int i = 0; i < m; ++i)
      for (Int j = 0; j < n; ++j)
        for (Int l = 0; l < k; ++l)
          add(made, (z * m + i) * n + j, a[std::size_t((z * m + i) * k + l)] * b[std::size_t((z * k + l) * n + j)]);
  return made;
}

Example matmul(base::Stream& stream) {
  Draw draw(stream);
  return matmul_of(draw, 1, "matmul(");
}

Example batch_matmul(base::Stream& stream) {
  Draw draw(stream);
  const Int batch = draw.size(5);
  return matmul_of(draw, batch, fmt::format("batch_matmul(b={},", batch));
}

Example dense(base::Stream& stream) {
  Draw draw(stream);
  const Int m = draw.size(33), n = draw.size(67), k = draw.size(67);
  Example made = example(fmt::format("dense(m={},n={},k={},dtype={})", m, n, k, draw.dtype()),
                         {draw.numbers(m * k), draw.numbers(n * k), draw.numbers(n)}, m * n, k + 2);
  for (Int i = 0; i < m; ++i)
    for (Int j = 0; j < n; ++j) {
      for (Int l = 0; l < k; ++l)
        add(made, i * n + j, made.operands[0][std::size_t(i * k + l)] * made.operands[1][std::size_t(j * k + l)]);
      add(made, i * n + j, made.operands[2][std::size_t(j)]);
      made.output[std::size_t(i * n + j)] = std::max(made.output[std::size_t(i * n + j)], 0.0);
    }
  return made;
}

// ---- windows over images

struct Images {
  Int n = 1, groups = 1, ci = 1, co = 1;  // channels are of one group
  Int h = 1, w = 1, r = 1, s = 1, stride = 1, pad = 0, dilation = 1;
  bool flat = false;  // h, r are 1 and have neither padding nor stride
  Int block = 0;      // channels in blocks; 0: NCHW

  Int pad_y() const { return flat ? 0 : pad; }
  Int rows() const { return flat ? 1 : (h + 2 * pad - dilation * (r - 1) - 1) / stride + 1; }
  Int columns() const { return (w + 2 * pad - dilation * (s - 1) - 1) / stride + 1; }
  Int c() const { return groups * ci; }
  Int k() const { return groups * co; }
  Int outputs() const { return n * k() * rows() * columns(); }

  Int at(Int channels, Int height, Int width, Int b, Int channel, Int y, Int x) const {
    if (block == 0) return ((b * channels + channel) * height + y) * width + x;
    return (((b * (channels / block) + channel / block) * height + y) * width + x) * block + channel % block;
  }
  Int in(Int b, Int channel, Int y, Int x) const { return at(c(), h, w, b, channel, y, x); }
  Int out(Int b, Int channel, Int y, Int x) const { return at(k(), rows(), columns(), b, channel, y, x); }
  // Output channel o of all, input channel i of its group.
  Int weight(Int o, Int i, Int u, Int v) const {
    if (block == 0) return ((o * ci + i) * r + u) * s + v;
    if (groups > 1) return ((o / block * r + u) * s + v) * block + o % block;  // depthwise
    return (((((o / block) * (ci / block) + i / block) * r + u) * s + v) * block + i % block) * block + o % block;
  }
  Int weights() const { return k() * ci * r * s; }

  std::string call(std::string_view name, bool with_k, std::string_view more, const Draw& draw) const {
    return fmt::format("{}(n={},c={},h={},w={}{},r={},s={},stride={},pad={}{},dtype={})", name, n, c(), h, w,
                       with_k ? fmt::format(",k={}", k()) : "", r, s, stride, pad, more, draw.dtype());
  }
};

// Heights and widths in which the window has a place.
void draw_windows(Draw& draw, Images& images, Int most, Int dilation = 1) {
  images.n = draw.size(3);
  images.r = 1 + draw.below(4);
  images.s = 1 + draw.below(4);
  images.stride = 1 + draw.below(draw.coin() ? 1 : 3);
  images.pad = draw.below(3);
  images.dilation = dilation;
  const auto extent = [&](Int taps) { return std::max(draw.size(most), dilation * (taps - 1) + 1 - 2 * images.pad); };
  images.h = std::max<Int>(1, extent(images.r));
  images.w = std::max<Int>(1, extent(images.s));
}

// Visits every pair of an input element within the image and a tap: visit(b, group, y, x, input y, input x, u, v).
template <class Visit>
void over_windows(const Images& im, const Visit& visit) {
  for (Int b = 0; b < im.n; ++b)
    for (Int g = 0; g < im.groups; ++g)
      for (Int y = 0; y < im.rows(); ++y)
        for (Int x = 0; x < im.columns(); ++x)
          for (Int u = 0; u < im.r; ++u)
            for (Int v = 0; v < im.s; ++v) {
              const Int from_y = y * im.stride + u * im.dilation - im.pad_y();
              const Int from_x = x * im.stride + v * im.dilation - im.pad;
              if (from_y < 0 || from_y >= im.h || from_x < 0 || from_x >= im.w) continue;
              visit(b, g, y, x, from_y, from_x, u, v);
            }
}

Example convolution(Draw& draw, const Images& im, std::string workload) {
  Example made = example(std::move(workload), {draw.numbers(im.n * im.c() * im.h * im.w), draw.numbers(im.weights())},
                         im.outputs(), im.ci * im.r * im.s + 1);
  over_windows(im, [&](Int b, Int g, Int y, Int x, Int from_y, Int from_x, Int u, Int v) {
    for (Int o = g * im.co; o < (g + 1) * im.co; ++o)
      for (Int i = 0; i < im.ci; ++i)
        add(made, im.out(b, o, y, x),
            made.operands[0][std::size_t(im.in(b, g * im.ci + i, from_y, from_x))] *
                made.operands[1][std::size_t(im.weight(o, i, u, v))]);
  });
  return made;
}

Example conv1d(base::Stream& stream) {
  Draw draw(stream);
  Images im;
  draw_windows(draw, im, 67);
  im.h = im.r = 1;
  im.flat = true;
  im.ci = draw.size(17);
  im.co = draw.size(33);
  return convolution(draw, im,
                     fmt::format("conv1d(n={},c={},w={},k={},s={},stride={},pad={},dtype={})", im.n, im.ci, im.w, im.co,
                                 im.s, im.stride, im.pad, draw.dtype()));
}

Example conv2d(base::Stream& stream) {
  Draw draw(stream);
  Images im;
  draw_windows(draw, im, 19);
  im.ci = draw.size(13);
  im.co = draw.size(33);
  return convolution(draw, im, im.call("conv2d", true, "", draw));
}

Example conv2d_nchwc(base::Stream& stream) {
  Draw draw(stream);
  Images im;
  draw_windows(draw, im, 13);
  im.block = draw.size(17);
  im.ci = im.block * (1 + draw.below(3));
  im.co = im.block * (1 + draw.below(3));
  return convolution(draw, im, im.call("conv2d_nchwc", true, fmt::format(",block={}", im.block), draw));
}

Example grouped_conv2d(base::Stream& stream) {
  Draw draw(stream);
  Images im;
  draw_windows(draw, im, 13);
  im.groups = draw.size(7);
  im.ci = draw.size(7);
  im.co = draw.size(17);
  return convolution(draw, im, im.call("grouped_conv2d", true, fmt::format(",groups={}", im.groups), draw));
}

Example dilated_conv2d(base::Stream& stream) {
  Draw draw(stream);
  Images im;
  draw_windows(draw, im, 17, 1 + draw.below(3));
  im.ci = draw.size(7);
  im.co = draw.size(17);
  return convolution(draw, im, im.call("dilated_conv2d", true, fmt::format(",dilation={}", im.dilation), draw));
}

Example depthwise_conv2d(base::Stream& stream) {
  Draw draw(stream);
  Images im;
  draw_windows(draw, im, 33);
  im.groups = draw.size(33);
  return convolution(draw, im, im.call("depthwise_conv2d", false, "", draw));
}

Example depthwise_conv2d_nchwc(base::Stream& stream) {
  Draw draw(stream);
  Images im;
  draw_windows(draw, im, 24);
  im.block = draw.size(17);
  im.groups = std::max<Int>(2, im.block * (1 + draw.below(3)));
  im.groups -= im.groups % im.block;
  return convolution(draw, im, im.call("depthwise_conv2d_nchwc", false, fmt::format(",block={}", im.block), draw));
}

// What is done to each output of a convolution.
template <class Change>
void over_outputs(const Images& im, const Change& change) {
  for (Int b = 0; b < im.n; ++b)
    for (Int o = 0; o < im.k(); ++o)
      for (Int y = 0; y < im.rows(); ++y)
        for (Int x = 0; x < im.columns(); ++x) change(o, im.out(b, o, y, x));
}

Example conv2d_clamp(base::Stream& stream) {
  Draw draw(stream);
  Images im;
  draw_windows(draw, im, 13);
  im.ci = draw.size(7);
  im.co = draw.size(33);
  const Int limit = 1 + draw.below(6);
  Example made = convolution(draw, im, im.call("conv2d_clamp", true, fmt::format(",limit={}", limit), draw));
  made.operands.push_back(draw.numbers(im.k()));
  made.roundings += 1;
  over_outputs(im, [&](Int o, Int at) {
    add(made, at, made.operands[2][std::size_t(o)]);
    made.output[std::size_t(at)] = std::clamp(made.output[std::size_t(at)], 0.0, double(limit));
  });
  return made;
}

Example conv2d_residual(base::Stream& stream) {
  Draw draw(stream);
  Images im;
  draw_windows(draw, im, 13);
  im.ci = draw.size(7);
  im.co = draw.size(33);
  Example made = convolution(draw, im, im.call("conv2d_residual", true, "", draw));
  made.operands.push_back(draw.numbers(im.k()));
  made.operands.push_back(draw.numbers(im.outputs()));
  made.roundings += 2;
  over_outputs(im, [&](Int o, Int at) {
    add(made, at, made.operands[2][std::size_t(o)]);
    add(made, at, made.operands[3][std::size_t(at)]);
    made.output[std::size_t(at)] = std::max(made.output[std::size_t(at)], 0.0);
  });
  return made;
}

// Scatters, as transposed convolutions are defined; the stride divides the filter.
Example transposed_conv2d(base::Stream& stream) {
  Draw draw(stream);
  const Int n = draw.size(3), c = draw.size(7), k = draw.size(17), h = draw.size(11), w = draw.size(13);
  const Int stride = 1 + draw.below(3), r = stride * (1 + draw.below(3)), s = stride * (1 + draw.below(3));
  const Int rows = stride * (h - 1) + r, columns = stride * (w - 1) + s;
  Example made = example(fmt::format("transposed_conv2d(n={},c={},h={},w={},k={},r={},s={},stride={},dtype={})", n, c,
                                     h, w, k, r, s, stride, draw.dtype()),
                         {draw.numbers(n * c * h * w), draw.numbers(c * k * r * s)}, n * k * rows * columns,
                         c * (r / stride) * (s / stride) + 1);
  for (Int b = 0; b < n; ++b)
    for (Int i = 0; i < c; ++i)
      for (Int y = 0; y < h; ++y)
        for (Int x = 0; x < w; ++x)
          for (Int o = 0; o < k; ++o)
            for (Int u = 0; u < r; ++u)
              for (Int v = 0; v < s; ++v)
                add(made, ((b * k + o) * rows + stride * y + u) * columns + stride * x + v,
                    made.operands[0][std::size_t(((b * c + i) * h + y) * w + x)] *
                        made.operands[1][std::size_t(((i * k + o) * r + u) * s + v)]);
  return made;
}

Example conv3d(base::Stream& stream) {
  Draw draw(stream);
  const Int n = draw.size(2), c = draw.size(5), k = draw.size(13), stride = 1 + draw.below(2), pad = draw.below(3);
  const Int a = 1 + draw.below(3), r = 1 + draw.below(3), s = 1 + draw.below(3);
  const auto extent = [&](Int taps) { return std::max<Int>({1, draw.size(9), taps - 2 * pad}); };
  const Int t = extent(a), h = extent(r), w = extent(s);
  const auto out = [&](Int size, Int taps) { return (size + 2 * pad - taps) / stride + 1; };
  const Int depth = out(t, a), rows = out(h, r), columns = out(w, s);
  Example made = example(fmt::format("conv3d(n={},c={},t={},h={},w={},k={},a={},r={},s={},stride={},pad={},dtype={})",
                                     n, c, t, h, w, k, a, r, s, stride, pad, draw.dtype()),
                         {draw.numbers(n * c * t * h * w), draw.numbers(k * c * a * r * s)},
                         n * k * depth * rows * columns, c * a * r * s + 1);
  for (Int b = 0; b < n; ++b)
    for (Int o = 0; o < k; ++o)
      for (Int z = 0; z < depth; ++z)
        for (Int y = 0; y < rows; ++y)
          for (Int x = 0; x < columns; ++x)
            for (Int i = 0; i < c; ++i)
              for (Int e = 0; e < a; ++e)
                for (Int u = 0; u < r; ++u)
                  for (Int v = 0; v < s; ++v) {
                    const Int fz = stride * z + e - pad, fy = stride * y + u - pad, fx = stride * x + v - pad;
                    if (fz < 0 || fz >= t || fy < 0 || fy >= h || fx < 0 || fx >= w) continue;
                    add(made, (((b * k + o) * depth + z) * rows + y) * columns + x,
                        made.operands[0][std::size_t((((b * c + i) * t + fz) * h + fy) * w + fx)] *
                            made.operands[1][std::size_t((((o * c + i) * a + e) * r + u) * s + v)]);
                  }
  return made;
}

Example max_pool2d(base::Stream& stream) {
  Draw draw(stream);
  Images im;
  draw_windows(draw, im, 33);
  im.groups = draw.size(17);
  Example made =
      example(im.call("max_pool2d", false, "", draw), {draw.numbers(im.n * im.groups * im.h * im.w)}, im.outputs(), 1);
  std::fill(made.output.begin(), made.output.end(), draw.lowest());  // windows that see nothing but padding
  over_windows(im, [&](Int b, Int g, Int y, Int x, Int from_y, Int from_x, Int, Int) {
    double& output = made.output[std::size_t(im.out(b, g, y, x))];
    output = std::max(output, made.operands[0][std::size_t(im.in(b, g, from_y, from_x))]);
  });
  return made;
}

Example avg_pool2d(base::Stream& stream) {
  Draw draw(stream, false);
  Images im;
  draw_windows(draw, im, 33);
  im.groups = draw.size(17);
  Example made = example(im.call("avg_pool2d", false, "", draw), {draw.numbers(im.n * im.groups * im.h * im.w)},
                         im.outputs(), im.r * im.s + 1);
  over_windows(im, [&](Int b, Int g, Int y, Int x, Int from_y, Int from_x, Int, Int) {
    add(made, im.out(b, g, y, x), made.operands[0][std::size_t(im.in(b, g, from_y, from_x))] / double(im.r * im.s));
  });
  return made;
}

// ---- rows

// The sum or the largest of each row, of shorter integers, too.
Example row_reduction(base::Stream& stream) {
  Draw draw(stream);
  const Int m = draw.size(19), n = draw.size(67);
  const bool sum = draw.coin();
  const Type type = draw.operand();
  Example made = example(fmt::format("input X[{0},{1}] : {2}; output Y[i] : {3} {4} X[i,l] where i={0}, l={1}", m, n,
                                     Draw::name(type), draw.dtype(), sum ? "+=" : "max="),
                         {draw.numbers(m * n, type)}, m, n);
  if (!sum) std::fill(made.output.begin(), made.output.end(), draw.lowest());
  for (Int i = 0; i < m; ++i)
    for (Int l = 0; l < n; ++l) {
      const double value = made.operands[0][std::size_t(i * n + l)];
      double& output = made.output[std::size_t(i)];
      if (sum)
        add(made, i, value);
      else
        output = std::max(output, value);
    }
  return made;
}

Example softmax(base::Stream& stream) {
  Draw draw(stream, false);
  const Int m = draw.size(19), n = draw.size(67);
  // Roundings of the sum, of the difference that is the exponent (at most 2 in size), of exp and of the division.
  Example made =
      example(fmt::format("softmax(m={},n={},dtype={})", m, n, draw.dtype()), {draw.numbers(m * n)}, m * n, n + 16);
  for (Int i = 0; i < m; ++i) {
    const double* const x = made.operands[0].data() + i * n;
    const double largest = *std::max_element(x, x + n);
    double total = 0;
    for (Int j = 0; j < n; ++j) total += std::exp(x[j] - largest);
    for (Int j = 0; j < n; ++j) add(made, i * n + j, std::exp(x[j] - largest) / total);
  }
  return made;
}

Example layer_norm(base::Stream& stream) {
  Draw draw(stream, false);
  const Int m = draw.size(19), n = draw.size(67);
  Example made = example(fmt::format("layer_norm(m={},n={},dtype={})", m, n, draw.dtype()),
                         {draw.numbers(m * n), draw.numbers(n), draw.numbers(n)}, m * n, 2 * (n + 8));
  for (Int i = 0; i < m; ++i) {
    const double* const x = made.operands[0].data() + i * n;
    double mean = 0, size = 0, variance = 0;
    for (Int j = 0; j < n; ++j) mean += x[j] / double(n), size += std::abs(x[j]) / double(n);
    for (Int j = 0; j < n; ++j) variance += (x[j] - mean) * (x[j] - mean) / double(n);
    const double deviation = std::sqrt(variance + 1e-5);
    for (Int j = 0; j < n; ++j) {
      const double gamma = made.operands[1][std::size_t(j)], beta = made.operands[2][std::size_t(j)];
      made.output[std::size_t(i * n + j)] = (x[j] - mean) / deviation * gamma + beta;
      made.magnitude[std::size_t(i * n + j)] = (std::abs(x[j]) + size) / deviation * std::abs(gamma) + std::abs(beta);
    }
  }
  return made;
}

// An activation, by element, of a product by column.
Example activation(base::Stream& stream) {
  Draw draw(stream, false);
  const Int m = draw.size(19), n = draw.size(67);
  struct Function {
    const char* text;  // of the argument
    double (*exact)(double);
    double magnitude;  // |value| + |argument * slope| is within this where |argument| <= 2
  };
  constexpr auto gelu = [](double x) { return x * std::erfc(-x / std::sqrt(2.0)) / 2; };
  constexpr auto leaky = [](double x) { return x > 0 ? x : 0.125 * x; };
  static const Function functions[] = {
      {"tanh({})", [](double x) { return std::tanh(x); }, 2},
      {"erf({})", [](double x) { return std::erf(x); }, 2},
      {"sigmoid({})", [](double x) { return 1 / (1 + std::exp(-x)); }, 2},
      {"({0}) * sigmoid({0})", [](double x) { return x / (1 + std::exp(-x)); }, 5},
      {"0.5 * ({0}) * (1 + erf(({0}) * 0.7071067811865476))", gelu, 9},
      {"log(2.5 + {})", [](double x) { return std::log(2.5 + x); }, 11},
      {"pow(2.5 + {}, 1.5)", [](double x) { return std::pow(2.5 + x, 1.5); }, 30},
      {"rsqrt(2.5 + {})", [](double x) { return 1 / std::sqrt(2.5 + x); }, 20},
      {"abs({})", [](double x) { return std::abs(x); }, 2},
      {"select({0} > 0, {0}, 0.125 * ({0}))", leaky, 2},
  };
  const Function& function = functions[std::size_t(draw.below(Int(std::size(functions))))];
  Example made =
      example(fmt::format("input X[{0},{1}] : {2}; constant G[{1}] : {2}; output Y[i,j] : {2} = {3} where i={0}, j={1}",
                          m, n, draw.dtype(), fmt::format(fmt::runtime(function.text), "X[i,j] * G[j]")),
              {draw.numbers(m * n), draw.numbers(n)}, m * n, 12);
  for (Int i = 0; i < m; ++i)
    for (Int j = 0; j < n; ++j) {
      const double x = made.operands[0][std::size_t(i * n + j)] * made.operands[1][std::size_t(j)];
      made.output[std::size_t(i * n + j)] = function.exact(x);
      made.magnitude[std::size_t(i * n + j)] = function.magnitude;
    }
  return made;
}

// ---- index expressions that have no name

// C[...] (+=|max=|min=) A[...] (*|+) B[...] over two to five axes in any order in each of them, of which A may walk
// some in strides or as windows, with operands of other types.
Example contraction(base::Stream& stream) {
  Draw draw(stream);
  const Int axes = 2 + draw.below(4);
  std::vector<Int> extent(std::size_t(axes), 1);
  Int points = 1;
  for (Int& e : extent) {
    e = draw.size(points > 1000 ? 7 : 33);
    points *= e;
  }
  // Where each axis occurs; the first one is always in C, and each is in A or B.
  std::vector<Int> in_a, in_b, in_c, reduced;
  for (Int x = 0; x < axes; ++x) {
    const Int where = draw.below(3);
    if (where != 0) in_a.push_back(x);
    if (where != 1) in_b.push_back(x);
    (x == 0 || draw.coin() ? in_c : reduced).push_back(x);
  }
  const auto shuffled = [&](std::vector<Int> list) {
    stream.shuffle(list);
    return list;
  };
  in_a = shuffled(in_a), in_b = shuffled(in_b), in_c = shuffled(in_c);

  // One dimension of an operand: the sum of factor * axis.
  struct Dimension {
    std::vector<std::pair<Int, Int>> terms;  // axis, factor
    Int size = 1;
  };
  const auto dimensions = [&](const std::vector<Int>& of, bool windows) {
    std::vector<Dimension> result;
    for (std::size_t d = 0; d < of.size(); ++d) {
      Dimension dimension;
      const Int factor = windows ? 1 + draw.below(2) : 1;
      dimension.terms.push_back({of[d], factor});
      dimension.size = factor * (extent[std::size_t(of[d])] - 1) + 1;
      if (windows && d + 1 < of.size() && draw.below(3) == 0) {
        dimension.terms.push_back({of[++d], 1});
        dimension.size += extent[std::size_t(of[d])] - 1;
      }
      result.push_back(std::move(dimension));
    }
    return result;
  };
  const std::vector<Dimension> a = dimensions(in_a, draw.coin()), b = dimensions(in_b, false),
                               c = dimensions(in_c, false);
  const auto size_of = [](const std::vector<Dimension>& list) {
    Int size = 1;
    for (const Dimension& dimension : list) size *= dimension.size;
    return size;
  };
  const auto shape = [](const std::vector<Dimension>& list) {
    std::vector<Int> sizes;
    for (const Dimension& dimension : list) sizes.push_back(dimension.size);
    return fmt::format("{}", fmt::join(sizes, ","));
  };
  const auto index = [](const std::vector<Dimension>& list) {
    std::vector<std::string> forms;
    for (const Dimension& dimension : list) {
      std::vector<std::string> terms;
      for (const auto& [axis, factor] : dimension.terms)
        terms.push_back(factor == 1 ? fmt::format("x{}", axis) : fmt::format("{}*x{}", factor, axis));
      forms.push_back(fmt::format("{}", fmt::join(terms, " + ")));
    }
    return fmt::format("{}", fmt::join(forms, ","));
  };
  const auto at = [](const std::vector<Dimension>& list, const std::vector<Int>& point) {
    Int offset = 0;
    for (const Dimension& dimension : list) {
      Int i = 0;
      for (const auto& [axis, factor] : dimension.terms) i += factor * point[std::size_t(axis)];
      offset = offset * dimension.size + i;
    }
    return offset;
  };

  const Int combine = reduced.empty() ? 3 : draw.below(3);
  const bool product = draw.coin();
  const Type first = draw.operand();
  const Type other = draw.type() != Type::i32 && draw.below(4) == 0 ? Type::i32 : draw.operand();
  std::vector<std::string> where, listed;
  for (Int x = 0; x < axes; ++x) where.push_back(fmt::format("x{}={}", x, extent[std::size_t(x)]));
  for (const Int x : reduced) listed.push_back(fmt::format("x{}", x));
  constexpr const char* signs[] = {"+=", "max=", "min=", "="};
  const std::string workload =
      fmt::format("input A[{}] : {}; {} B[{}] : {}; output C[{}{}{}] : {} {} A[{}] {} B[{}] where {}", shape(a),
                  Draw::name(first), draw.coin() ? "input" : "constant", shape(b), Draw::name(other), index(c),
                  reduced.empty() ? "" : " | ", fmt::join(listed, ","), draw.dtype(), signs[combine], index(a),
                  product ? "*" : "+", index(b), fmt::join(where, ", "));
  Example made = example(workload, {draw.numbers(size_of(a), first), draw.numbers(size_of(b), other)}, size_of(c), 1);
  for (const Int x : reduced) made.roundings *= extent[std::size_t(x)];
  made.roundings += 2;
  if (combine == 1) std::fill(made.output.begin(), made.output.end(), -1e300);
  if (combine == 2) std::fill(made.output.begin(), made.output.end(), 1e300);
  std::vector<Int> point(std::size_t(axes), 0);
  for (Int left = points; left > 0; --left) {
    const double x = made.operands[0][std::size_t(at(a, point))], y = made.operands[1][std::size_t(at(b, point))];
    const double value = product ? x * y : x + y, size = product ? std::abs(x * y) : std::abs(x) + std::abs(y);
    double& output = made.output[std::size_t(at(c, point))];
    double& magnitude = made.magnitude[std::size_t(at(c, point))];
    if (combine == 0 || combine == 3) output += value, magnitude += size;
    if (combine == 1) output = std::max(output, value), magnitude = std::max(magnitude, size);
    if (combine == 2) output = std::min(output, value), magnitude = std::max(magnitude, size);
    for (std::size_t d = point.size(); d-- > 0 && ++point[d] == extent[d];) point[d] = 0;
  }
  return made;
}

}  // namespace

const std::vector<Definition>& definitions() {
#define DEFINITION(name) \
  { #name, name }
  static const std::vector<Definition> all = {
      DEFINITION(matmul),
      DEFINITION(batch_matmul),
      DEFINITION(dense),
      DEFINITION(conv1d),
      DEFINITION(conv2d),
      DEFINITION(conv2d_clamp),
      DEFINITION(conv2d_residual),
      DEFINITION(conv2d_nchwc),
      DEFINITION(grouped_conv2d),
      DEFINITION(dilated_conv2d),
      DEFINITION(transposed_conv2d),
      DEFINITION(depthwise_conv2d),
      DEFINITION(depthwise_conv2d_nchwc),
      DEFINITION(conv3d),
      DEFINITION(max_pool2d),
      DEFINITION(avg_pool2d),
      DEFINITION(row_reduction),
      DEFINITION(softmax),
      DEFINITION(layer_norm),
      DEFINITION(activation),
      DEFINITION(contraction),
  };
#undef DEFINITION
  return all;
}

}  // namespace graft::verify
