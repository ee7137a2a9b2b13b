// Constants, and the arithmetic of shapes that operators of their own do. The rest of it (Gather, Concat, Mul, ...) is
// computed like everything else once its operands are constants (fold.h).
#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "graph/onnx.h"
#include "graph/operators/call.h"

namespace graft::graph {
namespace {

constexpr std::int64_t most_elements = std::int64_t(1) << 27;  // of a constant that a few numbers make

Known floats(Shape shape, const std::vector<double>& numbers) {
  return known(DType::f32, std::move(shape), codegen::Elements(numbers));
}

Meaning stored(const Call& call) {
  if (const Attribute* value = call.attribute("value")) {
    if (const Known* array = std::get_if<Known>(value)) return {constant(*array)};
    throw Malformed{"attribute 'value' is not a tensor"};
  }
  if (call.has_attribute("value_float")) return {constant(floats({}, {call.number("value_float", 0)}))};
  if (call.has_attribute("value_int")) {
    const std::int64_t value = call.integer("value_int", 0);
    return {constant(known(DType::i64, {}, std::span(&value, 1)))};
  }
  if (const auto all = call.number_list("value_floats")) return {constant(floats({std::int64_t(all->size())}, *all))};
  if (const auto all = call.list("value_ints")) return {constant(known_vector(*all))};
  throw Malformed{"it has no value"};
}

Meaning shape_of(const Call& call) {
  const std::int64_t rank = call.rank(0);
  const auto place = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const std::int64_t begin = place(call.integer("start", 0)), end = place(call.integer("end", rank));
  const Shape& shape = call.shape(0);
  return {constant(known_vector(Shape(shape.begin() + begin, shape.begin() + std::max(begin, end))))};
}

Meaning size_of(const Call& call) {
  const std::int64_t size = elements_of(call.shape(0));
  return {constant(known(DType::i64, {}, std::span(&size, 1)))};
}

Meaning constant_of_shape(const Call& call) {
  const Shape shape = call.integers(0);
  for (const std::int64_t extent : shape)
    if (extent < 0) throw Malformed{fmt::format("its shape is {}", to_text(shape))};
  const std::int64_t elements = elements_of(shape);
  if (elements < 0 || elements > most_elements) throw Unsupported{"a constant of more than 2^27 elements"};
  const Attribute* value = call.attribute("value");
  if (!value) return {constant(floats(shape, std::vector<double>(std::size_t(elements), 0)))};
  const Known* array = std::get_if<Known>(value);
  if (!array || (*array)->size() != 1) throw Malformed{"attribute 'value' is not a tensor of one element"};
  auto filled = std::make_shared<Array>(Array{(*array)->type, shape, {}});
  for (std::int64_t e = 0; e < elements; ++e) filled->bytes += (*array)->bytes;
  return {constant(filled)};
}

Meaning range(const Call& call) {
  call.same_types();
  const DType type = call.type(0);
  const double begin = call.scalar(0), end = call.scalar(1), step = call.scalar(2);
  if (step == 0) throw Malformed{"its step is 0"};
  const double count = std::max(0.0, std::ceil((end - begin) / step));
  if (!(count <= double(most_elements))) throw Unsupported{"a range of more than 2^27 elements"};
  codegen::Elements numbers(type, std::int64_t(count));
  for (std::size_t e = 0; e < numbers.size(); ++e) {
    const double number = begin + double(e) * step;
    if (!codegen::is_floating(type) && std::abs(number) > 0x1p53) throw Unsupported{"integers beyond 2^53"};
    numbers.set(e, number);
  }
  return {constant(known(type, {std::int64_t(count)}, numbers))};
}

// Weights of the samples of a frame: a sum of cosines.
struct Cosines {
  std::string_view name;
  double level, first, second;
};
constexpr Cosines cosines[] = {
    {"HannWindow", 0.5, 0.5, 0}, {"HammingWindow", 25.0 / 46, 21.0 / 46, 0}, {"BlackmanWindow", 0.42, 0.5, 0.08}};

Meaning frame_weights(const Call& call, const Cosines& of) {
  const std::vector<std::int64_t> given = call.integers(0);
  if (given.size() != 1 || given.front() < 1 || given.front() > most_elements)
    throw Malformed{fmt::format("its size is {}", to_text(given))};
  const auto type = type_of_onnx(call.integer("output_datatype", 1));
  if (!type || !codegen::is_floating(*type)) throw Unsupported{"a type other than floating point"};
  const std::int64_t size = given.front(), steps = call.integer("periodic", 1) != 0 ? size : size - 1;
  if (steps == 0) throw Unsupported{"a symmetric window of one element"};
  std::vector<double> numbers;
  for (std::int64_t n = 0; n < size; ++n) {
    const double angle = 2 * std::numbers::pi * double(n) / double(steps);
    numbers.push_back(of.level - of.first * std::cos(angle) + of.second * std::cos(2 * angle));
  }
  return {constant(known(*type, {size}, codegen::Elements(numbers)))};
}

}  // namespace

std::vector<Row> shape_rows() {
  std::vector<Row> rows = {
      {"Constant", 0, 0, "value value_float value_floats value_int value_ints", stored},
      {"Shape", 1, 1, "end start", shape_of},
      {"Size", 1, 1, "", size_of},
      {"ConstantOfShape", 1, 1, "value", constant_of_shape},
      {"Range", 3, 3, "", range},
  };
  for (const Cosines& each : cosines)
    rows.push_back(
        {each.name, 1, 1, "output_datatype periodic", [&each](const Call& call) { return frame_weights(call, each); }});
  return rows;
}

}  // namespace graft::graph
