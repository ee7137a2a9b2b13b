// Integers of 8 bits that stand for numbers: scale * (integer - zero point). Sums of their products are exact in 32
// bits; what they become is rounded once, halves to even, in the order of operations of single precision in which
// onnxruntime has it.
#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "graph/operators/sums.h"

namespace graft::graph {
namespace {

void bytes_only(const Call& call, int number) {
  if (call.type(number) != DType::u8 && call.type(number) != DType::i8)
    throw Unsupported{fmt::format("operand {} of type {}", number, codegen::name_of(call.type(number)))};
}

// The type of a result whose zero point may be left out.
DType type_of_zero(const Call& call, int number, DType otherwise) {
  if (!call.has(number)) return otherwise;
  bytes_only(call, number);
  return call.type(number);
}

std::string saturated(DType type, const std::string& value) {
  return fmt::format("saturate_{}({})", codegen::name_of(type), value);
}

// A scale or zero point for each block of places along `axis`.
std::string of_block(const Call& call, Expression& expression, int number, std::int64_t block) {
  const std::size_t axis = std::size_t(call.axis(call.integer("axis", 1), call.rank(0)));
  if (block < 0) throw Malformed{fmt::format("block_size is {}", block)};
  Shape shape = call.shape(0);
  Index index = index_of(axes_over(shape));
  index[axis] = fmt::format("{} / {}", index[axis], block);
  shape[axis] = shape[axis] / block + (shape[axis] % block != 0);
  if (call.shape(number) != shape)
    throw Malformed{fmt::format("operand {} is {}, its input {} in blocks of {}", number, to_text(call.shape(number)),
                                to_text(call.shape(0)), block)};
  return expression.operand(number, index);
}

// A scale or zero point: one, or one for each place along `axis`, or for each block of places.
std::string of_channel(const Call& call, Expression& expression, int number) {
  if (const std::int64_t block = call.integer("block_size", 0); block != 0)
    return of_block(call, expression, number, block);
  if (elements_of(call.shape(number)) == 1 && call.rank(number) < 2) return expression.scalar(number);
  const int axis = call.axis(call.integer("axis", 1), call.rank(0));
  if (call.shape(number) != Shape{call.shape(0)[std::size_t(axis)]})
    throw Malformed{
        fmt::format("operand {} is {}, its input {}", number, to_text(call.shape(number)), to_text(call.shape(0)))};
  return expression.operand(number, {axes_over(call.shape(0))[std::size_t(axis)].name});
}

Meaning quantised(const Call& call) {
  if (const std::int64_t type = call.integer("output_dtype", 0); type != 0 && (call.has(2) || type != 2))
    throw Unsupported{"output_dtype"};
  const DType type = type_of_zero(call, 2, DType::u8);
  Expression expression(call);
  const std::string x = expression.broadcast(0, axes_over(call.shape(0)));
  std::string value = fmt::format("round(cast_f32({}) / {})", x, of_channel(call, expression, 1));
  if (call.has(2)) value += fmt::format(" + cast_f32({})", of_channel(call, expression, 2));
  return {element_wise(expression, type, call.shape(0), saturated(type, value))};
}

Meaning dequantised(const Call& call) {
  Expression expression(call);
  const std::string x = expression.broadcast(0, axes_over(call.shape(0)));
  std::string value = fmt::format("cast_f32({})", x);
  if (call.has(2)) {
    const std::string zero = of_channel(call, expression, 2);
    // Zero points of floating point are onnxruntime's (few_bits.cpp).
    value = codegen::is_floating(call.type(2)) ? fmt::format("({} - {})", value, zero)
                                               : fmt::format("cast_f32(cast_i32({}) - cast_i32({}))", x, zero);
  }
  return {element_wise(expression, call.type(1), call.shape(0),
                       fmt::format("{} * {}", value, of_channel(call, expression, 1)))};
}

// The range of the input with 0 in 255 steps; the least of them is the zero point.
Meaning quantised_by_range(const Call& call) {
  if (call.type(0) != DType::f32) throw Unsupported{fmt::format("type {}", codegen::name_of(call.type(0)))};
  const Axes axes = axes_over(call.shape(0));
  const auto scaled = [&](Expression& expression) {
    const std::string x = expression.operand(0, index_of(axes));
    expression.stage("L", DType::f32, {}, x, "min=", axes);
    expression.stage("H", DType::f32, {}, x, "max=", axes);
  };
  const std::string range = "(max(H[], 0) - min(L[], 0))", step = fmt::format("{} / 255", range);
  const std::string scale = fmt::format("select({} > 0, {}, 1)", range, step);
  const std::string zero = "round(max(0, min(255, 0 - min(L[], 0) / D[])))";
  Expression of_scale(call), of_zero(call), of_y(call);
  for (Expression* const each : {&of_scale, &of_zero, &of_y}) scaled(*each);
  of_scale.stage("y", DType::f32, {}, scale);
  for (Expression* const each : {&of_zero, &of_y}) each->stage("D", DType::f32, {}, scale);
  of_zero.stage("y", DType::u8, {}, saturated(DType::u8, zero));
  of_y.stage("Z", DType::f32, {}, zero);
  of_y.stage("y", DType::u8, axes,
             saturated(DType::u8, fmt::format("round({} / D[]) + Z[]", of_y.operand(0, index_of(axes)))));
  return {of_y.result(DType::u8, call.shape(0)), of_scale.result(DType::f32, {}), of_zero.result(DType::u8, {})};
}

// ---- sums of products ----

// What is subtracted from integers of an operand.
struct Zero {
  bool is_zero = true;
  bool is_one = true;     // for all of the operand
  std::string text = {};  // a value in i32
};

// `load` gives the load of one that is not the same for all.
Zero zero_of(const Call& call, Expression& expression, int number, const std::function<std::string()>& load) {
  if (!call.has(number)) return {};
  bytes_only(call, number);
  if (call.is_known(number)) {
    const std::vector<std::int64_t> zeros = call.integers(number);
    if (std::all_of(zeros.begin(), zeros.end(), [](std::int64_t zero) { return zero == 0; })) return {};
  }
  const bool is_one = elements_of(call.shape(number)) == 1;
  return {false, is_one, is_one ? expression.scalar(number) : load()};
}

std::string less(const std::string& value, const Zero& zero) {
  return zero.is_zero ? value : fmt::format("({} - {})", value, zero.text);
}

// The sum of (x - zero of x) * (w - zero of w).
struct Sum {
  Axes axes, reduced;
  Index element;          // of the sum, where it is not its axes
  std::string x;          // a load
  int weights = 1;        // the operand
  Index index;            // of their load
  std::vector<int> kept;  // their dimensions that are not summed over
  Index result, own;      // of the sum, and of the sum of the weights alone, in the axes of who reads it
};

// The value of an element of the sum; "" if `is_all` and the sum is written to the output. The zero point of x goes
// with the sum of the weights, which is known before, so that the products are those of bytes. Zero points of weights
// are 0 here if the weights are constants (graph/integers.cpp).
std::string summed(const Call& call, Expression& expression, const Sum& sum, const Zero& of_x, const Zero& of_weights,
                   bool is_all = false) {
  const bool is_apart = !of_x.is_zero && of_weights.is_zero && call.is_known(sum.weights);
  const std::string tensor = is_all && !is_apart ? "y" : "T";
  const std::string w = expression.operand(sum.weights, sum.index);
  if (is_apart) {
    Axes kept, reduced;
    Index index;
    const Axes all = axes_over(call.shape(sum.weights), "k");
    for (std::size_t d = 0; d < all.size(); ++d)
      (std::find(sum.kept.begin(), sum.kept.end(), int(d)) != sum.kept.end() ? kept : reduced).push_back(all[d]);
    expression.stage("S", DType::i32, kept, expression.operand(sum.weights, index_of(all)), "+=", reduced);
  }
  expression.stage(tensor, DType::i32, sum.axes,
                   fmt::format("{} * {}", is_apart ? sum.x : less(sum.x, of_x), less(w, of_weights)), "+=", sum.reduced,
                   sum.element);
  if (tensor == "y") return "";
  const std::string value = load("T", sum.result);
  return is_apart ? fmt::format("{} - {} * {}", value, of_x.text, load("S", sum.own)) : value;
}

// An operand of one element as a load, never as its number: layers that differ in it alone are one kernel.
std::string parameter(const Call& call, Expression& expression, int number) {
  const Shape& shape = call.shape(number);
  if (elements_of(shape) != 1)
    throw Malformed{fmt::format("operand {} is {}, which is not one element", number, to_text(shape))};
  return expression.operand(number, Index(shape.size(), "0"));
}

// What a sum is multiplied with, alpha * x * w / y: operands of scales, that of the weights one or one for each place
// of its only dimension, `channel`. Without y, which is -1 then, a sum is not divided. Known ones are one number for
// each of these, computed before a run.
std::string factor(const Call& call, Expression& expression, int x, int w, int y, const std::string& channel,
                   double alpha = 1) {
  for (const int number : {x, w, y})
    if (number >= 0 && call.type(number) != DType::f32)
      throw Unsupported{fmt::format("a scale of type {}", codegen::name_of(call.type(number)))};
  const bool is_known = call.is_known(x) && call.is_known(w) && (y < 0 || call.is_known(y));
  const bool is_one = elements_of(call.shape(w)) == 1;
  const std::string first = alpha == 1 ? "" : fmt::format("{} * ", number_text(alpha));
  const auto value = [&](const std::string& at) {
    const std::string scale = fmt::format("{}{} * {}", first, parameter(call, expression, x),
                                          is_one ? parameter(call, expression, w) : expression.operand(w, {at}));
    return y < 0 ? scale : fmt::format("{} / {}", scale, parameter(call, expression, y));
  };
  if (!is_known) return fmt::format("({})", value(channel));
  expression.stage("M", DType::f32, is_one ? Axes{} : Axes{{"m", elements_of(call.shape(w))}}, value("m"));
  return load("M", is_one ? Index{} : Index{channel});
}

// round(sum * factor) and the zero point, in the type's range.
std::string requantised(const Call& call, Expression& expression, const std::string& sum, const std::string& factor,
                        int zero, DType type) {
  std::string value = fmt::format("round(cast_f32({}) * {})", sum, factor);
  if (call.has(zero)) value += fmt::format(" + cast_f32({})", parameter(call, expression, zero));
  return saturated(type, value);
}

void one_for_channel(const Call& call, int number, std::int64_t channels) {
  if (!call.has(number) || elements_of(call.shape(number)) == 1 || call.shape(number) == Shape{channels}) return;
  throw Malformed{
      fmt::format("operand {} is {}, there are {} channels", number, to_text(call.shape(number)), channels)};
}

// Numbers of operands; -1: there is none.
struct Convolved {
  int x_zero, weights, weights_zero, x_scale = -1, weights_scale = -1, y_scale = -1, y_zero = -1, bias = -1;
};

Meaning convolved(const Call& call, const Convolved& of) {
  bytes_only(call, 0), bytes_only(call, of.weights);
  const Convolution windows(call, of.weights);
  one_for_channel(call, of.weights_zero, windows.channels);
  Expression expression(call);
  const Zero of_x = zero_of(call, expression, of.x_zero,
                            []() -> std::string { throw Malformed{"its zero point is not one number"}; });
  const Zero of_weights = zero_of(call, expression, of.weights_zero,
                                  [&] { return expression.operand(of.weights_zero, {windows.weights.front()}); });
  const bool is_computed = !of_x.is_zero && !call.is_known(of.x_zero);
  const std::string outside =
      of_x.is_zero || is_computed ? of_x.text : fmt::format("{}", call.integers(of.x_zero).front());
  Padded padded(call, expression, windows.windows, outside, is_computed);
  const Axes axes = axes_over(windows.shape);
  Sum sum{
      windows.axes, windows.reduced, windows.element, padded.load(windows.input_channel), of.weights, windows.weights,
      {0},          index_of(axes),  {axes[1].name}};
  const bool is_requantised = of.y_scale >= 0;
  std::string scale;
  if (is_requantised) {
    one_for_channel(call, of.weights_scale, windows.channels);
    scale = factor(call, expression, of.x_scale, of.weights_scale, of.y_scale, axes[1].name);
  }
  std::string value = summed(call, expression, sum, of_x, of_weights, !is_requantised);
  if (!is_requantised) {
    if (!value.empty()) expression.stage("y", DType::i32, axes, value);
    return {expression.result(DType::i32, windows.shape)};
  }
  if (call.has(of.bias)) {
    check_bias(call, of.bias, windows.channels);
    value += fmt::format(" + {}", expression.operand(of.bias, {axes[1].name}));
  }
  const DType type = type_of_zero(call, of.y_zero, DType::u8);
  expression.stage("y", type, axes, requantised(call, expression, value, scale, of.y_zero, type));
  return {expression.result(type, windows.shape)};
}

Meaning integer_convolution(const Call& call) {
  return convolved(call, {.x_zero = 2, .weights = 1, .weights_zero = 3});
}

Meaning quantised_convolution(const Call& call) {
  return convolved(call, {.x_zero = 2,
                          .weights = 3,
                          .weights_zero = 5,
                          .x_scale = 1,
                          .weights_scale = 4,
                          .y_scale = 6,
                          .y_zero = 7,
                          .bias = 8});
}

// A zero point of a matrix: one, one for each row of the left or column of the right one, or one for each of these of
// all matrices.
Zero zero_of_matrix(const Call& call, Expression& expression, int number, const Product& product, bool is_left) {
  return zero_of(call, expression, number, [&] {
    const Shape& own = call.shape(number);
    if (own.size() == 1) {
      if (own[0] != (is_left ? product.rows : product.columns))
        throw Malformed{fmt::format("operand {} is {}, the product {}", number, to_text(own), to_text(product.shape))};
      return expression.operand(number, {is_left ? "i" : "j"});
    }
    if (product.is_row || product.is_column || broadcast({product.shape, own}) != product.shape)
      throw Malformed{fmt::format("operand {} is {}, the product {}", number, to_text(own), to_text(product.shape))};
    return expression.broadcast(number, product.axes);
  });
}

struct Multiplied {
  int a_zero, b, b_zero, a_scale = -1, b_scale = -1, y_scale = -1, y_zero = -1;
};

// The sum of (a - zero of a) * (b - zero of b) where zero points cannot be taken off before: that of a * b, and those
// of both matrices alone, so that products are those of bytes. Of two matrices without signs, the right one is moved by
// 128: dot products of bytes want a sign on one side.
std::string summed_apart(const Call& call, Expression& expression, const Product& product, int b, const Zero& of_a,
                         const Zero& of_b) {
  const auto without_sum = [&](Index index) {
    std::erase(index, product.reduced.front().name);
    return index;
  };
  // Terms of zero points alone are not in their type, nor in the result's.
  const auto as_integer = [](const Zero& zero) { return fmt::format("cast_i32({})", zero.text); };
  const auto sum_of = [&](std::string_view tensor, int operand, const Index& of, const std::string& stored) {
    const std::size_t summed = std::size_t(std::find(of.begin(), of.end(), product.reduced.front().name) - of.begin());
    const Axes all = axes_over(call.shape(operand), "k");
    Axes kept = all;
    kept.erase(kept.begin() + std::ptrdiff_t(summed));
    expression.stage(tensor, DType::i32, kept,
                     stored.empty() ? expression.operand(operand, index_of(all)) : load(stored, index_of(all)),
                     "+=", {all[summed]});
    return load(tensor, without_sum(of));
  };
  const bool is_moved = call.type(0) == DType::u8 && call.type(b) == DType::u8;
  std::string w = expression.operand(b, product.right), zero_b = of_b.is_zero ? "0" : as_integer(of_b);
  if (is_moved) {
    const Axes all = axes_over(call.shape(b), "k");
    expression.stage("W", DType::i8, all,
                     fmt::format("saturate_i8(cast_i32({}) - 128)", expression.operand(b, index_of(all))));
    w = load("W", product.right), zero_b = fmt::format("({} - 128)", zero_b);
  }
  std::string value = load("T", index_of(product.axes));
  if (is_moved || !of_b.is_zero) value += fmt::format(" - {} * {}", zero_b, sum_of("R", 0, product.left, ""));
  if (!of_a.is_zero) {
    value += fmt::format(" - {} * {}", as_integer(of_a), sum_of("S", b, product.right, is_moved ? "W" : ""));
    if (is_moved || !of_b.is_zero)
      value += fmt::format(" + {} * {} * {}", product.reduced.front().extent, as_integer(of_a), zero_b);
  }
  expression.stage("T", DType::i32, product.axes, fmt::format("{} * {}", expression.operand(0, product.left), w),
                   "+=", product.reduced);
  return value;
}

Meaning multiplied(const Call& call, const Multiplied& of) {
  bytes_only(call, 0), bytes_only(call, of.b);
  const Product product(call, 0, of.b);
  Expression expression(call);
  const Zero of_a = zero_of_matrix(call, expression, of.a_zero, product, true);
  const Zero of_b = zero_of_matrix(call, expression, of.b_zero, product, false);
  Sum sum{product.axes, product.reduced,        {},           expression.operand(0, product.left), of.b, product.right,
          {},           index_of(product.axes), product.right};
  const int summed_dimension = call.rank(of.b) - (product.is_column ? 1 : 2);
  for (int d = 0; d < call.rank(of.b); ++d)
    if (d != summed_dimension) sum.kept.push_back(d);
  std::erase(sum.own, product.reduced.front().name);
  const bool is_requantised = of.y_scale >= 0;
  std::string scale;
  if (is_requantised) {
    one_for_channel(call, of.b_scale, product.columns);
    scale = factor(call, expression, of.a_scale, of.b_scale, of.y_scale, "j");
  }
  const bool is_apart = (!of_a.is_zero || !of_b.is_zero) && !(of_b.is_zero && call.is_known(of.b));
  const std::string value = is_apart ? summed_apart(call, expression, product, of.b, of_a, of_b)
                                     : summed(call, expression, sum, of_a, of_b, !is_requantised);
  if (!is_requantised) {
    if (!value.empty()) expression.stage("y", DType::i32, product.axes, value);
    return {expression.result(DType::i32, product.shape)};
  }
  const DType type = type_of_zero(call, of.y_zero, DType::u8);
  expression.stage("y", type, product.axes, requantised(call, expression, value, scale, of.y_zero, type));
  return {expression.result(type, product.shape)};
}

Meaning integer_product(const Call& call) {
  return multiplied(call, {.a_zero = 2, .b = 1, .b_zero = 3});
}

Meaning quantised_product(const Call& call) {
  return multiplied(call, {.a_zero = 2, .b = 3, .b_zero = 5, .a_scale = 1, .b_scale = 4, .y_scale = 6, .y_zero = 7});
}

// ---- onnxruntime's own operators ----

// A, scale, zero point, B, scale, zero point, C in 32 bits, scale, zero point.
Meaning quantised_general_product(const Call& call) {
  bytes_only(call, 0), bytes_only(call, 3);
  if (call.rank(0) != 2 || call.rank(3) != 2) throw Malformed{"its operands are not matrices"};
  const bool turned_a = call.integer("transA", 0) != 0, turned_b = call.integer("transB", 0) != 0;
  const Shape &a = call.shape(0), &b = call.shape(3);
  const std::int64_t m = a[turned_a ? 1 : 0], k = a[turned_a ? 0 : 1], n = b[turned_b ? 0 : 1];
  if (k != b[turned_b ? 1 : 0])
    throw Malformed{fmt::format("{} times {}: inner extents differ", to_text(a), to_text(b))};
  const Shape shape = {m, n};
  const Axes axes = {{"i", m}, {"j", n}};
  one_for_channel(call, 4, n), one_for_channel(call, 5, n);
  Expression expression(call);
  const Zero of_a =
      zero_of(call, expression, 2, []() -> std::string { throw Malformed{"its zero point is not one number"}; });
  const Zero of_b = zero_of(call, expression, 5, [&] { return expression.operand(5, {"j"}); });
  const Sum sum{axes,
                {{"l", k}},
                {},
                expression.operand(0, turned_a ? Index{"l", "i"} : Index{"i", "l"}),
                3,
                turned_b ? Index{"j", "l"} : Index{"l", "j"},
                {turned_b ? 0 : 1},
                {"i", "j"},
                {"j"}};
  const bool is_requantised = call.has(7);
  const std::string scale = factor(call, expression, 1, 4, is_requantised ? 7 : -1, "j", call.number("alpha", 1));
  std::string value = summed(call, expression, sum, of_a, of_b);
  if (call.has(6)) {
    if (call.rank(6) > 2 || broadcast({shape, call.shape(6)}) != shape)
      throw Malformed{fmt::format("operand C is {}, the product {}", to_text(call.shape(6)), to_text(shape))};
    value += fmt::format(" + {}", expression.broadcast(6, axes));
  }
  if (!is_requantised) {
    expression.stage("y", DType::f32, axes, fmt::format("cast_f32({}) * {}", value, scale));
    return {expression.result(DType::f32, shape)};
  }
  const DType type = type_of_zero(call, 8, DType::u8);
  expression.stage("y", type, axes, requantised(call, expression, value, scale, 8, type));
  return {expression.result(type, shape)};
}

float known_scale(const Call& call, int number) {
  const float scale = float(call.scalar(number));
  if (!(scale > 0)) throw Malformed{fmt::format("a scale of {}", scale)};
  return scale;
}
float known_zero(const Call& call, int number) {
  return call.has(number) ? float(call.scalar(number)) : 0;
}

// A, scale, zero point, B, scale, zero point, scale and zero point of the result.
Meaning quantised_pair(const Call& call, bool is_product) {
  bytes_only(call, 0), bytes_only(call, 3);
  const Shape shape = broadcast({call.shape(0), call.shape(3)});
  const Axes axes = axes_over(shape);
  const DType type = type_of_zero(call, 7, call.type(0));
  const float scale_a = known_scale(call, 1), scale_b = known_scale(call, 4), scale = known_scale(call, 6),
              zero_a = known_zero(call, 2), zero_b = known_zero(call, 5), zero = known_zero(call, 7);
  Expression expression(call);
  const std::string a = expression.broadcast(0, axes), b = expression.broadcast(3, axes);
  std::string value;
  if (is_product) {
    value = fmt::format("round(cast_f32((cast_i32({}) - {}) * (cast_i32({}) - {})) * {}) + {}", a, number_text(zero_a),
                        b, number_text(zero_b), number_text(double(scale_a * scale_b / scale)), number_text(zero));
  } else {
    const float part_a = scale_a / scale, part_b = scale_b / scale;
    const float fixed = zero - (part_a * zero_a + part_b * zero_b);
    value = fmt::format("round({} + {} * cast_f32({}) + {} * cast_f32({}))", number_text(double(fixed)),
                        number_text(double(part_a)), a, number_text(double(part_b)), b);
  }
  return {element_wise(expression, type, shape, saturated(type, value))};
}
Meaning quantised_sum(const Call& call) {
  return quantised_pair(call, false);
}
Meaning quantised_multiplication(const Call& call) {
  return quantised_pair(call, true);
}

// X, scale, zero point, scale and zero point of the result.
Meaning quantised_means(const Call& call) {
  bytes_only(call, 0);
  if (call.integer("channels_last", 0) != 0) throw Unsupported{"channels_last"};
  if (call.rank(0) < 3) throw Malformed{fmt::format("its input {} has no spatial dimensions", to_text(call.shape(0)))};
  Shape shape = call.shape(0);
  const Axes reduced = axes_over({shape.begin() + 2, shape.end()}, "u");
  const std::int64_t count = product(shape, 2, shape.size());
  std::fill(shape.begin() + 2, shape.end(), 1);
  const Axes axes = axes_over(shape);
  Index index = {axes[0].name, axes[1].name};
  for (const Axis& axis : reduced) index.push_back(axis.name);
  const DType type = type_of_zero(call, 4, call.type(0));
  Expression expression(call);
  expression.stage("T", DType::i32, axes, expression.operand(0, index), "+=", reduced);
  const double zeros = double(known_zero(call, 2)) * double(count);
  const float scale = known_scale(call, 1) / (known_scale(call, 3) * float(count));
  const std::string sum = fmt::format("{} - {}", load("T", index_of(axes)), number_text(zeros));
  expression.stage("y", type, axes, requantised(call, expression, sum, number_text(double(scale)), 4, type));
  return {expression.result(type, shape)};
}

}  // namespace

std::vector<Row> quantised_rows() {
  const std::string windows = "auto_pad dilations group kernel_shape pads strides";
  return {
      {"QuantizeLinear", 2, 3, "axis block_size output_dtype saturate", quantised},
      {"DequantizeLinear", 2, 3, "axis block_size", dequantised},
      {"DynamicQuantizeLinear", 1, 1, "", quantised_by_range},
      {"ConvInteger", 2, 4, windows, integer_convolution},
      {"QLinearConv", 8, 9, windows, quantised_convolution},
      {"MatMulInteger", 2, 4, "", integer_product},
      {"QLinearMatMul", 8, 8, "", quantised_product},
      {"com.microsoft.QGemm", 6, 9, "alpha transA transB", quantised_general_product},
      {"com.microsoft.QLinearAdd", 7, 8, "", quantised_sum},
      {"com.microsoft.QLinearMul", 7, 8, "", quantised_multiplication},
      {"com.microsoft.QLinearGlobalAveragePool", 4, 5, "channels_last", quantised_means},
  };
}

}  // namespace graft::graph
