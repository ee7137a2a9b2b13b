// Operators that choose or change elements by numbers of a run, as index expressions: the largest elements by counting
// how many are larger, and updates at indices by looking for the index of each place. Both take work of squares, which
// is bounded.
#include <algorithm>
#include <string>
#include <utility>

#include "graph/operators/call.h"

namespace graft::graph {
namespace {

// Whether element `other` (at j) is before `own` (at `place`): 1 or 0. Equal ones are in the order of their places. A
// NaN is larger than all numbers, as in onnxruntime, so that the order is total.
std::string is_before(DType type, bool is_largest, const std::string& other, const std::string& own,
                      const std::string& place) {
  const std::string earlier = fmt::format("select(j < {}, 1, 0)", place);
  const std::string unordered =
      !codegen::is_floating(type)
          ? "0"
          : fmt::format("select({0} == {0}, select({1} == {1}, 0, {2}), select({1} == {1}, {3}, {4}))", own, other,
                        is_largest ? 1 : 0, is_largest ? 0 : 1, earlier);
  return fmt::format("select({0} {1} {2}, 1, select({0} == {2}, {3}, {4}))", other, is_largest ? ">" : "<", own,
                     earlier, unordered);
}

// The k largest (or least) along an axis, in order, of few: each is compared with each other one.
Meaning largest_elements(const Call& call) {
  const int axis = call.axis(call.integer("axis", -1), call.rank(0));
  const Shape& shape = call.shape(0);
  const std::int64_t extent = shape[std::size_t(axis)], k = call.integers(1).front();
  const bool is_largest = call.integer("largest", 1) != 0;
  Shape result = shape;
  result[std::size_t(axis)] = k;
  const Axes places = axes_over(shape), chosen = axes_over(result);
  const Axes others = {{"j", extent}};
  Index other = index_of(places), chosen_from = index_of(chosen);
  const std::string place = other[std::size_t(axis)], rank = chosen_from[std::size_t(axis)];
  other[std::size_t(axis)] = chosen_from[std::size_t(axis)] = "j";
  Meaning meaning;
  for (const bool is_index : {false, true}) {
    const DType type = is_index ? DType::i64 : call.type(0);
    Expression expression(call);
    const std::string x = expression.operand(0, index_of(places)), compared = expression.operand(0, other);
    expression.stage("R", DType::i32, places, is_before(call.type(0), is_largest, compared, x, place), "+=", others);
    expression.stage("y", type, chosen,
                     fmt::format("select({} == {}, {}, 0)", load("R", chosen_from), rank,
                                 is_index ? "j" : expression.operand(0, chosen_from)),
                     "+=", others);
    meaning.push_back(expression.result(type, result));
  }
  return meaning;
}

// select(first, select(second, then, otherwise), otherwise)
std::string if_all(const std::vector<std::string>& conditions, const std::string& then, const std::string& otherwise) {
  std::string text = then;
  for (auto condition = conditions.rbegin(); condition != conditions.rend(); ++condition)
    text = fmt::format("select({}, {}, {})", *condition, text, otherwise);
  return text;
}

// Operand 0 with updates of the axes `updates`: each is `value`, is its place's where all conditions hold, and has a
// number in their order.
Meaning updated(const Call& call, Expression& expression, const Axes& updates,
                const std::vector<std::string>& conditions, const std::string& number, const std::string& value) {
  const Shape& shape = call.shape(0);
  const DType type = call.type(0);
  const Axes places = axes_over(shape);
  const std::string before = expression.operand(0, index_of(places)), reduction = call.text("reduction", "none");
  std::int64_t count = 1;
  for (const Axis& axis : updates) count *= axis.extent;
  bound_comparisons(shape, count, "updates");
  if (count == 0) return {same_elements(call, shape)};
  if (reduction == "add") {
    expression.stage("S", type, places, if_all(conditions, value, "0"), "+=", updates);
    expression.stage("y", type, places, fmt::format("{} + {}", before, load("S", index_of(places))));
  } else if (reduction == "max" || reduction == "min") {
    expression.stage("S", type, places, if_all(conditions, value, before), reduction + "=", updates);
    expression.stage("y", type, places, fmt::format("{}({}, {})", reduction, before, load("S", index_of(places))));
  } else if (reduction == "mul") {
    expression.stage("S", type, places, if_all(conditions, value, "1"), "*=", updates);
    expression.stage("y", type, places, fmt::format("{} * {}", before, load("S", index_of(places))));
  } else if (reduction == "none") {
    // The last update of a place counts, as in onnxruntime.
    const std::string last = load("L", index_of(places));
    expression.stage("L", DType::i32, places, if_all(conditions, number, "-1"), "max=", updates);
    expression.stage("S", type, places, fmt::format("select({} == {}, {}, 0)", last, number, value), "+=", updates);
    expression.stage("y", type, places,
                     fmt::format("select({} < 0, {}, {})", last, before, load("S", index_of(places))));
  } else {
    throw Unsupported{fmt::format("reduction '{}'", reduction)};
  }
  return {expression.result(type, shape)};
}

// An index from the end of the dimension if it is negative.
std::string is_at(const std::string& index, std::int64_t extent, const std::string& place) {
  return fmt::format("select({0} < 0, {0} + {1}, {0}) == {2}", index, extent, place);
}

Meaning scatter_elements(const Call& call) {
  const int axis = call.axis(call.integer("axis", 0), call.rank(0));
  const Shape &shape = call.shape(0), &indices = call.shape(1);
  if (indices != call.shape(2) || indices.size() != shape.size())
    throw Malformed{"its indices and updates have other shapes than allowed"};
  if (call.type(0) != call.type(2)) throw Malformed{"its updates have another type"};
  const Axes updates = {{"u", indices[std::size_t(axis)]}};
  Index index = index_of(axes_over(shape));
  const std::string place = index[std::size_t(axis)];
  index[std::size_t(axis)] = "u";
  bool is_part = false;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (int(d) == axis) continue;
    if (indices[d] > shape[d]) throw Malformed{"more updates than elements along a dimension"};
    is_part |= indices[d] < shape[d];
  }
  const std::int64_t extent = shape[std::size_t(axis)];
  Expression expression(call);
  // Places beyond the updates have none: an index that is nowhere.
  const auto within = [&](int operand, std::int64_t outside) {
    const std::string own = expression.operand(operand, index);
    return is_part ? fmt::format("pad({}, {})", own, outside) : own;
  };
  return updated(call, expression, updates, {is_at(within(1, 2 * extent + 1), extent, place)}, "u", within(2, 0));
}

Meaning scatter_in_several(const Call& call) {
  const Shape &shape = call.shape(0), &indices = call.shape(1);
  if (indices.empty()) throw Malformed{"its indices are one number"};
  const std::int64_t depth = indices.back();
  if (depth > call.rank(0)) throw Malformed{"its indices have more numbers than dimensions"};
  Shape expected(indices.begin(), indices.end() - 1);
  expected.insert(expected.end(), shape.begin() + std::ptrdiff_t(depth), shape.end());
  if (call.shape(2) != expected)
    throw Malformed{fmt::format("its updates are {} instead of {}", to_text(call.shape(2)), to_text(expected))};
  if (call.type(0) != call.type(2)) throw Malformed{"its updates have another type"};
  Axes updates = axes_over(Shape(indices.begin(), indices.end() - 1), "u");
  std::string number = "0";
  std::int64_t stride = 1;
  for (auto axis = updates.rbegin(); axis != updates.rend(); ++axis) {
    number = fmt::format("{}*{} + {}", stride, axis->name, number);
    stride *= axis->extent;
  }
  const Index places = index_of(axes_over(shape));
  Expression expression(call);
  std::vector<std::string> conditions;
  for (std::int64_t d = 0; d < depth; ++d) {
    Index index = index_of(updates);
    index.push_back(std::to_string(d));
    conditions.push_back(is_at(expression.operand(1, index), shape[std::size_t(d)], places[std::size_t(d)]));
  }
  Index value = index_of(updates);
  value.insert(value.end(), places.begin() + std::ptrdiff_t(depth), places.end());
  if (updates.empty()) updates = {{"u", 1}};
  return updated(call, expression, updates, conditions, number == "0" ? "u" : number, expression.operand(2, value));
}

}  // namespace

std::vector<Row> selection_rows() {
  return {
      {"graft.TopK", 2, 2, "axis largest", largest_elements},
      {"Scatter", 3, 3, "axis", scatter_elements},
      {"ScatterElements", 3, 3, "axis reduction", scatter_elements},
      {"ScatterND", 3, 3, "reduction", scatter_in_several},
  };
}

}  // namespace graft::graph
