// Operators whose results are drawn at random. They are drawn once, when the model is read, so that every run of a
// network uses the same numbers: as the model's seed says, or by the node's name where it says none. They are not those
// of other runtimes, which differ among each other, too. Who wants others in each run makes them an input.
#include "base/random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "graph/onnx.h"
#include "graph/operators/body.h"

namespace graft::graph {
namespace {

constexpr std::int64_t most_drawn = std::int64_t(1) << 26;

// `draw`s for a tensor.
template <class Draw>
Known drawn(const Call& call, DType type, const Shape& shape, const Draw& draw) {
  if (!codegen::is_floating(type)) throw Unsupported{fmt::format("random numbers of {}", codegen::name_of(type))};
  const std::int64_t elements = elements_of(shape);
  if (elements < 0 || elements > most_drawn) throw Unsupported{fmt::format("more than {} numbers", most_drawn)};
  const double seed = call.number("seed", 0);
  base::Stream stream(std::bit_cast<std::uint64_t>(seed), call.has_attribute("seed") ? "" : call.name());
  std::vector<double> numbers;
  for (std::int64_t e = 0; e < elements; ++e) numbers.push_back(draw(stream));
  return known(type, shape, codegen::Elements(std::move(numbers)));
}

// The type that the model asks for: that of operand 0 if it names none.
DType type_of(const Call& call, bool is_like) {
  const std::optional<DType> type = type_of_onnx(call.integer("dtype", 1));
  if (is_like && !call.has_attribute("dtype")) return call.type(0);
  if (!type) throw Unsupported{"its type"};
  return *type;
}

Meaning drawn_numbers(const Call& call, bool is_like, bool is_normal) {
  const double a = is_normal ? call.number("mean", 0) : call.number("low", 0),
               b = is_normal ? call.number("scale", 1) : call.number("high", 1);
  const Shape shape = is_like ? call.shape(0) : call.list("shape").value_or(Shape());
  return {constant(drawn(call, type_of(call, is_like), shape, [&](base::Stream& stream) {
    return is_normal ? a + b * stream.normal() : a + (b - a) * stream.uniform();
  }))};
}

// 1 with the probability that an element is.
Graph by_probability(const Call& call) {
  Body body(call);
  const Part bound =
      body.constant(drawn(call, call.type(0), call.shape(0), [](base::Stream& stream) { return stream.uniform(); }));
  const Part is_one = body.node("Less", {bound, body.operand(0)});
  return std::move(body).results({body.node("CastLike", {is_one, body.number(0, type_of(call, true))})});
}

// Classes by their logarithms of probabilities: the largest of them with a number of Gumbel's distribution added to
// each (Gumbel, "Statistical theory of extreme values", 1954).
Graph by_logarithms(const Call& call) {
  if (call.rank(0) != 2) throw Malformed{"its logarithms have not 2 dimensions"};
  const std::int64_t samples = call.integer("sample_size", 1), batch = call.shape(0)[0], classes = call.shape(0)[1];
  const std::int64_t type = call.integer("dtype", 6);
  if (samples < 0 || samples > most_drawn || classes < 1) throw Malformed{"its sample_size or its classes"};
  Body body(call);
  const Part noise = body.constant(drawn(call, call.type(0), {batch, samples, classes}, [](base::Stream& stream) {
    return -std::log(-std::log(std::max(stream.uniform(), 0x1p-60)));
  }));
  const Part sum = body.reshaped(body.operand(0), {batch, 1, classes}) + noise;
  const Part best = body.node("ArgMax", {sum}, {{"axis", std::int64_t(2)}, {"keepdims", std::int64_t(0)}});
  return std::move(body).results({body.node("Cast", {best}, {{"to", type}})});
}

Row drawn_row(std::string_view name, bool is_like, bool is_normal) {
  return {name, is_like ? 1 : 0, is_like ? 1 : 0,
          std::string("dtype seed ") + (is_normal ? "mean scale" : "low high") + (is_like ? "" : " shape"),
          [=](const Call& call) { return drawn_numbers(call, is_like, is_normal); }};
}

}  // namespace

std::vector<Row> random_rows() {
  return {
      drawn_row("RandomNormal", false, true),
      drawn_row("RandomNormalLike", true, true),
      drawn_row("RandomUniform", false, false),
      drawn_row("RandomUniformLike", true, false),
      composed("Bernoulli", 1, 1, "dtype seed", by_probability),
      composed("Multinomial", 1, 1, "dtype sample_size seed", by_logarithms),
  };
}

}  // namespace graft::graph
