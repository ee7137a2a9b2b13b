// Sums, maxima and the like over some axes, positions of maxima, and running sums.
#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "graph/operators/call.h"

namespace graft::graph {
namespace {

// $x: an element of the operand; $t: the reduced value; $n: the number of elements.
struct Reduction {
  std::string_view name, element, combine, end;
  int axes_are_operand_since = 18;
  bool is_real = false;  // of integers it is computed in f64, and cut off
};

constexpr Reduction reductions[] = {
    {"ReduceSum", "$x", "+=", "", 13},        {"ReduceMean", "$x", "+=", "$t / $n", 18, true},
    {"ReduceMax", "$x", "max=", ""},          {"ReduceMin", "$x", "min=", ""},
    {"ReduceL1", "abs($x)", "+=", ""},        {"ReduceL2", "$x * $x", "+=", "sqrt($t)", 18, true},
    {"ReduceSumSquare", "$x * $x", "+=", ""}, {"ReduceLogSum", "$x", "+=", "log($t)", 18, true},
    {"ReduceProd", "$x", "*=", ""},
};

std::string replaced(std::string text, std::string_view word, const std::string& by) {
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + by.size()))
    text.replace(at, word.size(), by);
  return text;
}

// The axes that are reduced: all, if none are given. Nothing if the operator is to leave its operand as it is.
std::optional<std::vector<int>> reduced_axes(const Call& call, int operand_since) {
  const auto given = call.list("axes", 1, operand_since);
  if (given && !given->empty()) return call.axes(*given, call.rank(0));
  if (call.integer("noop_with_empty_axes", 0) != 0) return std::nullopt;
  std::vector<int> all(std::size_t(call.rank(0)));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// The axes of a reduction of operand 0.
struct Split {
  Shape shape;  // of the result
  Axes kept, reduced;
  Index index;  // of the operand, over both
  std::int64_t count = 1;
};

Split split(const Shape& shape, const std::vector<int>& axes, bool keeps_dimensions) {
  Split result;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const bool is_reduced = std::binary_search(axes.begin(), axes.end(), int(d));
    result.index.push_back(fmt::format("{}{}", is_reduced ? 'r' : 'i', d));
    if (is_reduced) {
      result.reduced.push_back({result.index.back(), shape[d]});
      result.count *= shape[d];
    }
    if (is_reduced && !keeps_dimensions) continue;
    result.kept.push_back({fmt::format("i{}", d), is_reduced ? 1 : shape[d]});
    result.shape.push_back(result.kept.back().extent);
  }
  return result;
}

// Sums of bytes would not be of their type.
void no_bytes(const Call& call) {
  if (call.type(0) == DType::u8 || call.type(0) == DType::i8) throw Unsupported{"sums of bytes"};
}

std::string cut(DType type, const std::string& value) {
  return fmt::format("cast_{}({})", codegen::name_of(type), value);
}

Meaning reduced(const Call& call, const Reduction& reduction) {
  const auto axes = reduced_axes(call, reduction.axes_are_operand_since);
  if (!axes || (axes->empty() && call.rank(0) == 0 && reduction.element == "$x" && reduction.end.empty()))
    return {same_elements(call, call.shape(0))};
  const bool is_cut = reduction.is_real && !codegen::is_floating(call.type(0));
  if (is_cut) no_bytes(call);
  const Split parts = split(call.shape(0), *axes, call.integer("keepdims", 1) != 0);
  Expression expression(call);
  const std::string element = replaced(std::string(reduction.element), "$x", expression.operand(0, parts.index));
  const bool ends = reduction.end.empty();
  expression.stage(ends ? "y" : "T", call.type(0), parts.kept, element, parts.reduced.empty() ? "=" : reduction.combine,
                   parts.reduced);
  if (!ends) {
    const std::string total = load("T", index_of(parts.kept));
    std::string value = replaced(std::string(reduction.end), "$n", std::to_string(parts.count));
    // For integers the logarithm of a negative sum is the least integer, like that of 0.
    const bool has_least = is_cut && reduction.end == "log($t)";
    const std::string least = has_least ? fmt::format("max({}, 0)", total) : total;
    value = replaced(value, "$t", is_cut ? fmt::format("cast_f64({})", least) : total);
    expression.stage("y", call.type(0), parts.kept, is_cut ? cut(call.type(0), value) : value);
  }
  return {expression.result(call.type(0), parts.shape)};
}

// The largest element is taken out, so that no sum of powers overflows, if it is finite.
Meaning log_of_sum_of_powers(const Call& call) {
  const auto axes = reduced_axes(call, 18);
  if (!axes || axes->empty()) return {same_elements(call, call.shape(0))};
  const Split parts = split(call.shape(0), *axes, call.integer("keepdims", 1) != 0);
  const bool is_cut = !codegen::is_floating(call.type(0));
  if (is_cut) no_bytes(call);
  const DType type = is_cut ? DType::f64 : call.type(0);
  Expression expression(call);
  const std::string operand = expression.operand(0, parts.index);
  const std::string x = is_cut ? fmt::format("cast_f64({})", operand) : operand;
  const std::string largest = load("M", index_of(parts.kept)), shift = load("S", index_of(parts.kept));
  expression.stage("M", type, parts.kept, x, "max=", parts.reduced);
  expression.stage("S", type, parts.kept, fmt::format("select({0} - {0} == 0, {0}, 0)", largest));
  expression.stage("T", type, parts.kept, fmt::format("exp({} - {})", x, shift), "+=", parts.reduced);
  const std::string value = fmt::format("log({}) + {}", load("T", index_of(parts.kept)), shift);
  expression.stage("y", call.type(0), parts.kept, is_cut ? cut(call.type(0), value) : value);
  return {expression.result(call.type(0), parts.shape)};
}

Meaning position_of(const Call& call, std::string_view combine) {
  const int axis = call.axis(call.integer("axis", 0), call.rank(0));
  const Split parts = split(call.shape(0), {axis}, call.integer("keepdims", 1) != 0);
  const bool is_last = call.integer("select_last_index", 0) != 0;
  Expression expression(call);
  const std::string x = expression.operand(0, parts.index);
  const std::string& place = parts.reduced.front().name;
  expression.stage("M", call.type(0), parts.kept, x, combine, parts.reduced);
  const std::string otherwise = std::to_string(is_last ? -1 : parts.count);
  expression.stage("y", DType::i64, parts.kept,
                   fmt::format("select({} == {}, {}, {})", x, load("M", index_of(parts.kept)), place,
                               codegen::is_floating(call.type(0))  // NaN equals nothing
                                   ? fmt::format("select({0} != {0}, {1}, {2})", x, place, otherwise)
                                   : otherwise),
                   is_last ? "max=" : "min=", parts.reduced);
  return {expression.result(DType::i64, parts.shape)};
}
Meaning position_of_largest(const Call& call) {
  return position_of(call, "max=");
}
Meaning position_of_least(const Call& call) {
  return position_of(call, "min=");
}

Meaning running_sum(const Call& call) {
  const std::vector<std::int64_t> given = call.integers(1);
  if (given.size() != 1) throw Malformed{"its axis is not one number"};
  const int axis = call.axis(given.front(), call.rank(0));
  const bool is_exclusive = call.integer("exclusive", 0) != 0, is_reverse = call.integer("reverse", 0) != 0;
  const Axes axes = axes_over(call.shape(0));
  Index index = index_of(axes);
  const std::string here = index[std::size_t(axis)];
  index[std::size_t(axis)] = "r";
  Expression expression(call);
  const std::string sign = fmt::format("{}{}", is_reverse ? '>' : '<', is_exclusive ? "" : "=");
  expression.stage("y", call.type(0), axes,
                   fmt::format("select(r {} {}, {}, 0)", sign, here, expression.operand(0, index)),
                   "+=", {{"r", call.shape(0)[std::size_t(axis)]}});
  return {expression.result(call.type(0), call.shape(0))};
}

}  // namespace

std::vector<Row> reduction_rows() {
  std::vector<Row> rows = {
      {"ReduceLogSumExp", 1, 2, "axes keepdims noop_with_empty_axes", log_of_sum_of_powers},
      {"ArgMax", 1, 1, "axis keepdims select_last_index", position_of_largest},
      {"ArgMin", 1, 1, "axis keepdims select_last_index", position_of_least},
      {"CumSum", 2, 2, "exclusive reverse", running_sum},
  };
  for (const Reduction& reduction : reductions)
    rows.push_back({reduction.name, 1, 2, "axes keepdims noop_with_empty_axes",
                    [&reduction](const Call& call) { return reduced(call, reduction); }});
  return rows;
}

}  // namespace graft::graph
