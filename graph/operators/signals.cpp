// Fourier transforms of constant lengths, as products with constant matrices, and weights of mel bands. Constants are
// made in double precision.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "graph/onnx.h"
#include "graph/operators/body.h"

namespace graft::graph {
namespace {

constexpr std::int64_t most_numbers = std::int64_t(1) << 25;  // of a constant matrix

// A transform of `length`: of the first `given` elements, of 1 or 2 numbers each (real, imaginary), to `results` of 1
// or 2 numbers.
struct Transform {
  std::int64_t length = 1, given = 1, parts = 1, results = 1, result_parts = 2;
  bool is_inverse = false;

  Transform(std::int64_t of_length, std::int64_t elements, std::int64_t numbers, bool is_half, bool inverse)
      : length(of_length), parts(numbers), results(of_length), is_inverse(inverse) {
    if (parts != 1 && parts != 2) throw Malformed{fmt::format("its elements are of {} numbers, not 1 or 2", parts)};
    if (is_half && is_inverse) {
      if (parts != 2) throw Malformed{"half of a spectrum is of complex numbers"};
      result_parts = 1;
      elements = std::min(elements, length / 2 + 1);
    } else if (is_half) {
      if (parts != 1) throw Malformed{"a spectrum of complex numbers has no half that is all of it"};
      results = length / 2 + 1;
    }
    given = std::min(elements, length);
    if (double(given * parts) * double(results * result_parts) > double(most_numbers))
      throw Unsupported{fmt::format(
          "a transform of length {}: its matrix has more than 2^25 numbers; cut the model before it", length)};
  }

  // What part `p` of element `t` counts for in part `q` of result `k`.
  double factor(std::int64_t t, std::int64_t p, std::int64_t k, std::int64_t q) const {
    const double angle = 2 * std::numbers::pi * double(t * k % length) / double(length);
    const double sine = is_inverse ? std::sin(angle) : -std::sin(angle);
    const double wave = p == q ? std::cos(angle) : q == 1 ? sine : -sine;
    // In half of a spectrum all but its ends count for their mirror images, too.
    const bool is_twice = result_parts == 1 && t != 0 && 2 * t != length;
    return wave * (is_twice ? 2 : 1) / (is_inverse ? double(length) : 1);
  }
};

std::int64_t length_of(const Call& call, int operand, std::int64_t otherwise) {
  const std::int64_t length = call.has(operand) ? std::int64_t(call.scalar(operand)) : otherwise;
  if (length < 1 || length > most_numbers) throw Malformed{fmt::format("a length of {}", length)};
  return length;
}

void only_floats(const Call& call) {
  if (!codegen::is_floating(call.type(0))) throw Malformed{"its input is of integers"};
}

// The axis goes in front of the parts, both become one dimension that is multiplied by a matrix, and back.
Graph fourier(const Call& call) {
  only_floats(call);
  const std::int64_t rank = call.rank(0);
  if (rank < 2) throw Malformed{fmt::format("its input is {}", to_text(call.shape(0)))};
  const std::int64_t given_axis = call.version() < 20 ? call.integer("axis", 1)
                                  : call.has(2)       ? std::int64_t(call.scalar(2))
                                                      : -2;
  const std::size_t axis = std::size_t(call.axis(given_axis, rank)), before = std::size_t(rank) - 2;
  if (axis > before) throw Malformed{"its axis is that of real and imaginary parts"};
  const Shape& from = call.shape(0);
  const bool is_half = call.integer("onesided", 0) != 0, is_inverse = call.integer("inverse", 0) != 0;
  const std::int64_t length = length_of(call, 1, is_half && is_inverse ? 2 * (from[axis] - 1) : from[axis]);
  const Transform of(length, from[axis], from.back(), is_half, is_inverse);
  std::vector<double> numbers;
  for (std::int64_t t = 0; t < of.given; ++t)
    for (std::int64_t p = 0; p < of.parts; ++p)
      for (std::int64_t k = 0; k < of.results; ++k)
        for (std::int64_t q = 0; q < of.result_parts; ++q) numbers.push_back(of.factor(t, p, k, q));
  std::vector<std::int64_t> order(static_cast<std::size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[axis], order[before]);
  Body body(call);
  Part x = body.operand(0);
  if (of.given < from[axis]) x = body.part(x, std::int64_t(axis), 0, of.given);
  if (axis != before) x = body.transposed(x, order);
  Shape rows = from;
  rows[axis] = from[before];
  rows.resize(before);
  const auto with = [&](std::initializer_list<std::int64_t> last) {
    Shape shape = rows;
    shape.insert(shape.end(), last);
    return shape;
  };
  const Part matrix = body.constant(
      known(call.type(0), {of.given * of.parts, of.results * of.result_parts}, codegen::Elements(numbers)));
  x = body.node("MatMul", {body.reshaped(x, with({of.given * of.parts})), matrix});
  x = body.reshaped(x, with({of.results, of.result_parts}));
  return std::move(body).results({axis == before ? x : body.transposed(x, order)});
}

// Frames that are a step apart, weighted, and each transformed: a convolution.
Graph fourier_of_frames(const Call& call) {
  only_floats(call);
  const Shape& from = call.shape(0);
  if (from.size() != 3 && from.size() != 2) throw Malformed{fmt::format("its signal is {}", to_text(from))};
  if (!call.has(2) && !call.has(3)) throw Malformed{"it has neither a window nor a length of frames"};
  const bool is_half = call.integer("onesided", 1) != 0;
  const std::int64_t parts = from.size() == 3 ? from[2] : 1, step = length_of(call, 1, 0);
  const std::int64_t length = length_of(call, 3, call.has(2) ? elements_of(call.shape(2)) : 0);
  if (call.has(2) && call.shape(2) != Shape{length})
    throw Malformed{fmt::format("its window is {}, its frames have {}", to_text(call.shape(2)), length)};
  if (length > from[1]) throw Malformed{fmt::format("frames of {} of a signal of {}", length, from[1])};
  const Transform of(length, length, parts, is_half, false);
  std::vector<double> numbers;
  for (std::int64_t k = 0; k < of.results; ++k)
    for (std::int64_t q = 0; q < of.result_parts; ++q)
      for (std::int64_t p = 0; p < parts; ++p)
        for (std::int64_t t = 0; t < length; ++t) numbers.push_back(of.factor(t, p, k, q));
  Body body(call);
  Part weights =
      body.constant(known(call.type(0), {of.results * of.result_parts, parts, length}, codegen::Elements(numbers)));
  if (call.has(2)) weights = weights * body.operand(2);
  const Part signal =
      parts == 1 ? body.reshaped(body.operand(0), {from[0], 1, from[1]}) : body.transposed(body.operand(0), {0, 2, 1});
  const Part y = body.node("Conv", {signal, weights}, {{"strides", std::vector<std::int64_t>{step}}});
  const std::int64_t frames = (from[1] - length) / step + 1;
  return std::move(body).results(
      {body.transposed(body.reshaped(y, {from[0], of.results, of.result_parts, frames}), {0, 3, 1, 2})});
}

double mel_of(double hertz) {
  return 2595 * std::log10(1 + hertz / 700);
}

// The bins at which bands begin, have their middle, and end, in order.
std::vector<std::int64_t> edges_of_bands(const Call& call, std::int64_t bands, std::int64_t bins) {
  const double length = call.scalar(1), rate = call.scalar(2), low = call.scalar(3), high = call.scalar(4);
  if (!(rate >= 1) || !(low >= 0) || !(high >= low))
    throw Malformed{fmt::format("bands of {} to {} at a rate of {}", low, high, rate)};
  std::vector<std::int64_t> edges;
  for (std::int64_t b = 0; b < bands + 2; ++b) {
    const double mel = mel_of(low) + double(b) * (mel_of(high) - mel_of(low)) / double(bands + 2);
    const double bin = std::floor((length + 1) * (700 * (std::pow(10, mel / 2595) - 1)) / rate);
    if (!(bin < double(bins))) throw Malformed{fmt::format("bands of up to {} at a rate of {}", high, rate)};
    edges.push_back(std::int64_t(bin));
  }
  return edges;
}

// Triangles over the bins of a spectrum, which overlap by half.
Meaning weights_of_bands(const Call& call) {
  const std::int64_t bands = length_of(call, 0, 0), bins = length_of(call, 1, 0) / 2 + 1;
  if (double(bands) * double(bins) > double(most_numbers)) throw Unsupported{"weights of more than 2^25 numbers"};
  const std::vector<std::int64_t> edges = edges_of_bands(call, bands, bins);
  const auto type = type_of_onnx(call.integer("output_datatype", 1));
  if (!type) throw Unsupported{"its output_datatype"};
  std::vector<double> weights(std::size_t(bands * bins), 0);
  for (std::int64_t b = 0; b < bands; ++b) {
    const std::int64_t begin = edges[std::size_t(b)], middle = edges[std::size_t(b) + 1],
                       end = edges[std::size_t(b) + 2];
    for (std::int64_t bin = begin; bin <= std::max(middle, end - 1); ++bin)
      weights[std::size_t(bin * bands + b)] = bin < middle || (bin == middle && (begin < middle || end == middle))
                                                  ? (begin == middle ? 1 : double(bin - begin) / double(middle - begin))
                                                  : double(end - bin) / double(end - middle);
  }
  return {constant(known(*type, {bins, bands}, codegen::Elements(weights)))};
}

}  // namespace

std::vector<Row> signal_rows() {
  return {
      composed("DFT", 1, 3, "axis inverse onesided", fourier),
      composed("STFT", 2, 4, "onesided", fourier_of_frames),
      {"MelWeightMatrix", 5, 5, "output_datatype", weights_of_bands},
  };
}

}  // namespace graft::graph
