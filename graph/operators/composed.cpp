// Operators that others compute: normalisations, activations, and what onnxruntime fuses of plain operators.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>

#include "graph/operators/body.h"

namespace graft::graph {
namespace {

using List = std::vector<std::int64_t>;

constexpr std::int64_t one = 1;

List axes_from(const Call& call, std::int64_t axis) {
  List axes(std::size_t(call.rank(0) - call.axis(axis, call.rank(0))));
  std::iota(axes.begin(), axes.end(), call.rank(0) - std::int64_t(axes.size()));
  return axes;
}

// ---- normalisations ----

void stash_in_type(const Call& call) {
  if (call.integer("stash_type", 1) != 1) throw Unsupported{"stash_type"};
}

struct Normalised {
  Part y, inverse;  // of the root of the mean of squares
};

// Without a mean. In the order of operations of exporters of decoders.
Normalised by_mean_square(Body& body, Part x, Part scale, const List& axes, double epsilon, DType type) {
  const Part square = body.mean(x * x, axes) + body.number(epsilon, type);
  const Part inverse = body.number(1, type) / body.node("Sqrt", {square});
  return {x * inverse * scale, inverse};
}

double epsilon_of(const Call& call, double otherwise) {
  return call.number("epsilon", double(float(otherwise)));
}

Graph root_mean_square(const Call& call) {
  stash_in_type(call);
  if (broadcast({call.shape(0), call.shape(1)}) != call.shape(0))
    throw Malformed{fmt::format("its scale is {}, its input {}", to_text(call.shape(1)), to_text(call.shape(0)))};
  Body body(call);
  const auto [y, inverse] =
      by_mean_square(body, body.operand(0), body.operand(1), axes_from(call, call.integer("axis", -1)),
                     epsilon_of(call, 1e-5), call.type(0));
  return std::move(body).results({y, inverse});
}

// The sum of the input, another one, and a bias, normalised: scale, shift and bias are operands `scale`, and after it.
Graph after_sum(const Call& call, bool has_mean) {
  Body body(call);
  const Part x = body.operand(0), scale = body.operand(2), shift = has_mean ? body.operand(3) : Part{},
             bias = body.operand(has_mean ? 4 : 3);
  if (broadcast({call.shape(0), call.shape(1)}) != call.shape(0))
    throw Malformed{fmt::format("operand 1 is {}, its input {}", to_text(call.shape(1)), to_text(call.shape(0)))};
  Part sum = x + body.operand(1);
  if (bias) sum = sum + bias;
  if (!has_mean) {
    call.refuse_result(1, "mean");
    const auto [y, inverse] =
        by_mean_square(body, sum, scale, {call.rank(0) - 1}, epsilon_of(call, 1e-12), call.type(0));
    return std::move(body).results({y, sum, inverse, sum});
  }
  std::vector<Part> all =
      body.nodes("LayerNormalization", {sum, scale, shift}, 3, {{"axis", -one}, {"epsilon", epsilon_of(call, 1e-12)}});
  all.push_back(sum);
  return std::move(body).results(all);
}

// Rows of three tables by words, segments and places, normalised.
Graph embedded(const Call& call) {
  if (call.rank(0) != 2) throw Malformed{fmt::format("its words are {}, not a matrix", to_text(call.shape(0)))};
  if (call.integer("mask_index_type", 1) == 0 && call.wants(1) && call.has(7)) throw Unsupported{"mask_index_type"};
  const std::int64_t batch = call.shape(0)[0], length = call.shape(0)[1];
  Body body(call);
  const auto rows = [&](int table, Part at) {
    return body.node("Gather", {body.operand(table), at}, {{"axis", std::int64_t(0)}});
  };
  Part sum = rows(2, body.operand(0));
  if (call.rank(3) != 2 || (!call.has(8) && call.shape(3)[0] < length))
    throw Malformed{fmt::format("its table of places is {}", to_text(call.shape(3)))};
  sum = sum + (call.has(8) ? rows(3, body.operand(8)) : body.part(body.operand(3), 0, 0, length));
  if (call.has(1) && call.has(4)) sum = sum + rows(4, body.operand(1));
  const Part y = body.node("LayerNormalization", {sum, body.operand(5), body.operand(6)},
                           {{"axis", -one}, {"epsilon", epsilon_of(call, 1e-12)}});
  Part lengths = body.node("Expand", {body.cast(body.number(0, DType::f32), DType::i32), body.integers({batch})});
  if (call.has(7))
    lengths = body.node("ReduceSum", {body.cast(body.operand(7), DType::i32), body.integers({1})},
                        {{"keepdims", std::int64_t(0)}});
  return std::move(body).results({y, lengths, sum});
}

Graph mean_and_variance(const Call& call) {
  const List axes = call.list("axes").value_or(List{0, 2, 3});
  const DType type = call.type(0);
  Body body(call);
  const Part difference = body.operand(0) - body.mean(body.operand(0), axes);
  const Part deviation = body.node("Sqrt", {body.mean(difference * difference, axes)});
  return std::move(body).results({difference / (deviation + body.number(1e-9, type))});
}

Part norm(Body& body, const List& axes, std::int64_t p) {
  if (p != 1 && p != 2) throw Unsupported{fmt::format("p={}", p)};
  return body.node(p == 1 ? "ReduceL1" : "ReduceL2", {body.operand(0), body.integers(axes)});
}

Graph by_norm(const Call& call) {
  Body body(call);
  const List axis = {call.axis(call.integer("axis", -1), call.rank(0))};
  const Part length = norm(body, axis, call.integer("p", 2)), zero = body.number(0, call.type(0));
  // Nothing divided by nothing is nothing.
  const Part is_zero = body.node("Equal", {length, zero});
  return std::move(body).results(
      {body.node("Where", {is_zero, zero,
                           body.operand(0) / body.node("Where", {is_zero, body.number(1, call.type(0)), length})})});
}

Graph global_norm(const Call& call) {
  if (call.rank(0) < 3) throw Malformed{fmt::format("its input {} has no spatial dimensions", to_text(call.shape(0)))};
  Body body(call);
  return std::move(body).results({norm(body, axes_from(call, 2), call.integer("p", 2))});
}

// ---- activations ----

Part sigmoid_linear(Body& body, Part x, double alpha, DType type) {
  return x * body.node("Sigmoid", {alpha == 1 ? x : x * body.number(alpha, type)});
}

Graph swish(const Call& call, double otherwise) {
  Body body(call);
  return std::move(body).results(
      {sigmoid_linear(body, body.operand(0), call.number("alpha", double(float(otherwise))), call.type(0))});
}

Graph gated(const Call& call) {
  Body body(call);
  return std::move(body).results(
      {sigmoid_linear(body, body.operand(0), call.number("alpha", 1), call.type(0)) * body.operand(1)});
}

// Operand 1, if it is there, is added first.
Graph gelu(const Call& call, const char* approximate) {
  Body body(call);
  const Part x = call.has(1) ? body.operand(0) + body.operand(1) : body.operand(0);
  return std::move(body).results({body.node("Gelu", {x}, {{"approximate", std::string(approximate)}})});
}

// The activation that an attribute names, with its parameters.
Part activated(Body& body, Part x) {
  const Call& call = body.call();
  const std::string name = call.text("activation", "");
  const std::vector<double> numbers = call.number_list("activation_params").value_or(std::vector<double>());
  const auto number = [&](std::size_t at) {
    if (at >= numbers.size())
      throw Malformed{fmt::format("activation {} has {} numbers", in_quotes(name), numbers.size())};
    return numbers[at];
  };
  if (name.empty()) return x;
  if (name == "Relu" || name == "Tanh" || name == "Sigmoid") return body.node(name, {x});
  if (name == "LeakyRelu") return body.node(name, {x}, {{"alpha", number(0)}});
  if (name == "HardSigmoid") return body.node(name, {x}, {{"alpha", number(0)}, {"beta", number(1)}});
  if (name == "Clip")
    return body.node(name, {x, body.number(number(0), call.type(0)), body.number(number(1), call.type(0))});
  throw Unsupported{fmt::format("activation {}", in_quotes(name))};
}

// ---- products and windows ----

// The determinant of the matrix of `rows` rows and the columns from row `row` on, by its first row. Elements are
// columns of `x`.
Part determinant_of(Body& body, Part x, std::int64_t rows, std::int64_t row, const List& columns) {
  Part sum;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const std::int64_t at = row * rows + columns[c];
    Part term = body.part(x, 1, at, at + 1);
    List others = columns;
    others.erase(others.begin() + std::ptrdiff_t(c));
    if (!others.empty()) term = term * determinant_of(body, x, rows, row + 1, others);
    sum = !sum ? term : c % 2 == 0 ? sum + term : sum - term;
  }
  return sum;
}

Graph determinant(const Call& call) {
  constexpr std::int64_t most_rows = 4;
  const Shape& shape = call.shape(0);
  if (shape.size() < 2 || shape.back() != shape[shape.size() - 2])
    throw Malformed{fmt::format("its input {} is not of square matrices", to_text(shape))};
  const std::int64_t rows = shape.back();
  if (rows < 1 || rows > most_rows)
    throw Unsupported{
        fmt::format("matrices of {} rows, where 1 to {} are known; cut the model before it", rows, most_rows)};
  const Shape batch(shape.begin(), shape.end() - 2);
  List columns(static_cast<std::size_t>(rows));
  std::iota(columns.begin(), columns.end(), 0);
  Body body(call);
  const Part x = body.reshaped(body.operand(0), {product(batch, 0, batch.size()), rows * rows});
  return std::move(body).results({body.reshaped(determinant_of(body, x, rows, 0, columns), batch)});
}

// `is_turned`: the last two dimensions change places; `is_batch_turned`: the first becomes the last but one.
Part turned(Body& body, int operand, bool is_turned, bool is_batch_turned) {
  const std::int64_t rank = body.call().rank(operand);
  List order(static_cast<std::size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  if (rank < 2 || (!is_turned && !is_batch_turned)) return body.operand(operand);
  if (is_batch_turned) std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
  if (is_turned) std::swap(order[std::size_t(rank - 1)], order[std::size_t(rank - 2)]);
  return body.transposed(body.operand(operand), order);
}

Graph fused_matrices(const Call& call) {
  Body body(call);
  const auto is = [&](const char* name) { return call.integer(name, 0) != 0; };
  const Part y = body.node(
      "MatMul", {turned(body, 0, is("transA"), is("transBatchA")), turned(body, 1, is("transB"), is("transBatchB"))});
  const double alpha = call.number("alpha", 1);
  return std::move(body).results({alpha == 1 ? y : y * body.number(alpha, call.type(0))});
}

Graph fused_convolution(const Call& call) {
  Body body(call);
  Part y = body.node("Conv", {body.operand(0), body.operand(1), body.operand(2)},
                     kept(call, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}));
  if (call.has(3)) y = y + body.operand(3);
  return std::move(body).results({activated(body, y)});
}

// The mean of powers in each window, times their number.
Graph norm_of_windows(const Call& call) {
  const double p = double(call.integer("p", 2));
  if (p < 1) throw Malformed{fmt::format("p is {}", p)};
  if (call.integer("ceil_mode", 0) != 0) throw Unsupported{"ceil_mode"};
  Body body(call);
  const Part x = body.operand(0);
  const Part powers = p == 2 ? x * x : body.node("Pow", {body.node("Abs", {x}), body.number(p, call.type(0))});
  Body::Attributes attributes = kept(call, {"auto_pad", "dilations", "kernel_shape", "pads", "strides"});
  attributes["count_include_pad"] = one;
  const List extents = call.list("kernel_shape").value_or(List());
  const double count = double(product(extents, 0, extents.size()));
  const Part sum = body.node("AveragePool", {powers}, std::move(attributes)) * body.number(count, call.type(0));
  return std::move(body).results(
      {p == 2 ? body.node("Sqrt", {sum}) : body.node("Pow", {sum, body.number(1 / p, call.type(0))})});
}

List channels_last(std::int64_t rank, bool is_back) {
  List order = {0};
  if (!is_back) order.push_back(rank - 1);
  for (std::int64_t d = is_back ? 2 : 1; d < (is_back ? rank : rank - 1); ++d) order.push_back(d);
  if (is_back) order.push_back(1);
  return order;
}

Graph largest_with_channels_last(const Call& call) {
  if (call.rank(0) < 3) throw Malformed{fmt::format("its input {} has no spatial dimensions", to_text(call.shape(0)))};
  Body body(call);
  const Part x = body.transposed(body.operand(0), channels_last(call.rank(0), false));
  const Part y =
      body.node("MaxPool", {x}, kept(call, {"auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides"}));
  return std::move(body).results({body.transposed(y, channels_last(call.rank(0), true))});
}

// ---- positions ----

// A matrix of the operand's shape with ones on a diagonal.
Graph ones_on_diagonal(const Call& call) {
  if (call.rank(0) != 2) throw Malformed{fmt::format("its operand {} is not a matrix", to_text(call.shape(0)))};
  Body body(call);
  const auto places = [&](std::int64_t extent, const Shape& shape) {
    List all(static_cast<std::size_t>(extent));
    std::iota(all.begin(), all.end(), 0);
    return body.reshaped(body.integers(all), shape);
  };
  const std::int64_t rows = call.shape(0)[0], columns = call.shape(0)[1];
  const Part is_one = body.node(
      "Equal", {places(rows, {rows, 1}) + body.integers({call.integer("k", 0)}), places(columns, {1, columns})});
  const std::int64_t to = call.integer("dtype", 0);
  const Part y = to == 0 ? body.cast(is_one, call.type(0)) : body.node("Cast", {is_one}, {{"to", to}});
  return std::move(body).results({y});
}

// A cache that a run gives: its memory may be the result's, so that only what is new is written.
Graph appended(const Call& call, int axis) {
  const Shape &all = call.shape(0), &added = call.shape(1);
  const auto product = [&](int from, int to) { return elements_of(Shape(all.begin() + from, all.begin() + to)); };
  const codegen::Foreign foreign = codegen::append(
      {all[0], product(1, axis), all[std::size_t(axis)], product(axis + 1, int(all.size())), added[std::size_t(axis)]},
      call.type(0));
  Body body(call);
  const Part begin = body.cast(body.reshaped(body.operand(2), {all[0]}), DType::i64);
  return std::move(body).results(
      {body.reshaped(body.node("graft.Foreign", {body.operand(0), body.operand(1), begin},
                               {{"function", foreign.function}, {"numbers", foreign.numbers}}),
                     all)});
}

// Rows of a cache along an axis, by default the last but one, are replaced from a place on that each batch names.
Graph scattered(const Call& call) {
  const std::int64_t rank = call.rank(0);
  const int axis = call.axis(call.integer("axis", -2), rank);
  const std::string mode = call.text("mode", "linear");
  if (axis == 0) throw Malformed{"its axis is that of batches"};
  if (mode != "linear" && mode != "circular") throw Malformed{"mode is neither linear nor circular"};
  const std::int64_t cached = call.shape(0)[std::size_t(axis)];
  Shape expected = call.shape(1);
  if (std::int64_t(expected.size()) == rank) expected[std::size_t(axis)] = cached;
  if (expected != call.shape(0) || call.shape(1)[std::size_t(axis)] > cached)
    throw Malformed{fmt::format("its cache is {}, what is new {}", to_text(call.shape(0)), to_text(call.shape(1)))};
  const std::int64_t updated = call.shape(1)[std::size_t(axis)], batch = call.shape(0)[0];
  Body body(call);
  if (call.has(2) && !call.is_known(0) && mode == "linear") return appended(call, axis);
  const Part begin = call.has(2) ? body.reshaped(body.operand(2), {batch, 1}) : body.integers({0});
  List places(static_cast<std::size_t>(cached));
  std::iota(places.begin(), places.end(), 0);
  // By place in the cache, the place in what is new; a place outside is an old one.
  Part place = body.integers(places) - begin;
  if (mode == "circular") place = body.node("Mod", {place + body.integers({cached}), body.integers({cached})});
  const Part end = body.integers({updated}), zero = body.integers({0});
  const Part is_new = body.node("And", {body.node("GreaterOrEqual", {place, zero}), body.node("Less", {place, end})});
  Shape along(std::size_t(rank), 1);
  along[0] = call.has(2) ? batch : 1, along[std::size_t(axis)] = cached;
  Shape extended = call.shape(0);
  const Part inside = body.node("Clip", {place, zero, body.integers({updated - 1})});
  const Part at = body.node("Expand", {body.reshaped(inside, along), body.integers(extended)});
  const Part rows = body.node("GatherElements", {body.operand(1), at}, {{"axis", std::int64_t(axis)}});
  return std::move(body).results({body.node("Where", {body.reshaped(is_new, along), rows, body.operand(0)})});
}

// ---- losses ----

struct Loss {
  Part value, weight;
};

// The logarithms of probabilities along dimension 1, at the classes that operand 1 names; operand 2 weighs classes.
Loss losses_at(Body& body, Part logarithms) {
  const Call& call = body.call();
  const std::int64_t classes = call.rank(0) < 2 ? 0 : call.shape(0)[1];
  Shape expected = call.shape(0);
  if (classes > 0) expected.erase(expected.begin() + 1);
  if (classes == 0 || call.shape(1) != expected)
    throw Malformed{fmt::format("its scores are {}, its classes {}", to_text(call.shape(0)), to_text(call.shape(1)))};
  if (call.has(2) && call.shape(2) != Shape{classes})
    throw Malformed{fmt::format("its weights are {} for {} classes", to_text(call.shape(2)), classes)};
  Part place = body.operand(1), counts;
  if (call.has_attribute("ignore_index")) {
    const Part ignored = body.number(double(call.integer("ignore_index", 0)), call.type(1));
    counts = body.node("Not", {body.node("Equal", {place, ignored})});
    place = body.node("Where", {counts, place, body.number(0, call.type(1))});
  }
  const Part at = body.node("Unsqueeze", {place, body.integers({1})});
  Part value = body.node("Neg", {body.node("GatherElements", {logarithms, at}, {{"axis", one}})});
  value = body.node("Squeeze", {value, body.integers({1})});
  Part weight = call.has(2) ? body.node("Gather", {body.operand(2), place}) : Part();
  if (counts) {
    const Part valid = body.cast(counts, call.type(0));
    weight = weight ? weight * valid : valid;
  }
  return {weight ? value * weight : value, weight};
}

Part combined_loss(Body& body, const Loss& loss) {
  const std::string how = body.call().text("reduction", "mean");
  if (how != "none" && how != "sum" && how != "mean") throw Malformed{fmt::format("reduction is {}", in_quotes(how))};
  if (how == "none") return loss.value;
  const auto over_all = [&](const char* operation, Part x) {
    return body.node(operation, {x}, {{"keepdims", std::int64_t(0)}});
  };
  if (how == "mean" && !loss.weight) return over_all("ReduceMean", loss.value);
  const Part sum = over_all("ReduceSum", loss.value);
  return how == "sum" ? sum : sum / over_all("ReduceSum", loss.weight);
}

Graph negative_logarithms(const Call& call) {
  Body body(call);
  const Part loss = combined_loss(body, losses_at(body, body.operand(0)));
  return std::move(body).results({loss});
}

Graph cross_entropy(const Call& call) {
  Body body(call);
  const Part logarithms = body.node("LogSoftmax", {body.operand(0)}, {{"axis", one}});
  const Part loss = combined_loss(body, losses_at(body, logarithms));
  return std::move(body).results({loss, logarithms});
}

}  // namespace

std::vector<Row> composed_rows() {
  const std::string windows = "auto_pad dilations kernel_shape pads strides ";
  const auto gelu_of = [](const char* approximate) {
    return [approximate](const Call& call) { return gelu(call, approximate); };
  };
  const auto after = [](bool has_mean) { return [has_mean](const Call& call) { return after_sum(call, has_mean); }; };
  const auto swish_of = [](double otherwise) {
    return [otherwise](const Call& call) { return swish(call, otherwise); };
  };
  return {
      composed("RMSNormalization", 2, 2, "axis epsilon stash_type", root_mean_square),
      composed("SimplifiedLayerNormalization", 2, 2, "axis epsilon stash_type", root_mean_square),
      composed("com.microsoft.SimplifiedLayerNormalization", 2, 2, "axis epsilon stash_type", root_mean_square),
      composed("com.microsoft.SkipLayerNormalization", 3, 5, "epsilon", after(true)),
      composed("com.microsoft.SkipSimplifiedLayerNormalization", 3, 4, "epsilon", after(false)),
      composed("com.microsoft.EmbedLayerNormalization", 7, 9, "epsilon mask_index_type", embedded),
      composed("MeanVarianceNormalization", 1, 1, "axes", mean_and_variance),
      composed("LpNormalization", 1, 1, "axis p", by_norm),
      composed("GlobalLpPool", 1, 1, "p", global_norm),
      composed("LpPool", 1, 1, windows + "ceil_mode p", norm_of_windows),
      composed("Swish", 1, 1, "alpha", swish_of(1)),
      composed("SwiGLU", 2, 2, "alpha", gated),
      composed("com.microsoft.QuickGelu", 1, 1, "alpha", swish_of(1.702)),
      composed("com.microsoft.Gelu", 1, 1, "", gelu_of("none")),
      composed("com.microsoft.BiasGelu", 2, 2, "", gelu_of("none")),
      composed("com.microsoft.FastGelu", 1, 2, "", gelu_of("tanh")),
      composed("com.microsoft.FusedMatMul", 2, 2, "alpha transA transB transBatchA transBatchB", fused_matrices),
      composed("com.microsoft.FusedConv", 2, 4, windows + "group activation activation_params", fused_convolution),
      composed("com.microsoft.NhwcMaxPool", 1, 1, windows + "ceil_mode", largest_with_channels_last),
      composed("EyeLike", 1, 1, "dtype k", ones_on_diagonal),
      composed("Det", 1, 1, "", determinant),
      composed("TensorScatter", 2, 3, "axis mode", scattered),
      composed("NegativeLogLikelihoodLoss", 2, 3, "ignore_index reduction", negative_logarithms),
      composed("SoftmaxCrossEntropyLoss", 2, 3, "ignore_index reduction", cross_entropy),
  };
}

}  // namespace graft::graph
