// Operators that move elements and compute nothing.
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "graph/operators/body.h"

namespace graft::graph {
namespace {

constexpr std::size_t most_new_axes = 32;

Meaning reshape(const Call& call) {
  const auto wanted = call.list("shape", 1, 5);
  if (!wanted) throw Malformed{"its shape is missing"};
  Shape shape = *wanted;
  const bool zero_is_zero = call.integer("allowzero", 0) != 0;
  int open = -1;
  std::int64_t others = 1;
  const std::int64_t elements = elements_of(call.shape(0));
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0 && !zero_is_zero) {
      if (int(d) >= call.rank(0)) throw Malformed{fmt::format("shape {} keeps a dimension {}", to_text(*wanted), d)};
      shape[d] = call.shape(0)[d];
    }
    if (shape[d] == -1 && open < 0) {
      open = int(d);
      continue;
    }
    if (shape[d] < 0) throw Malformed{fmt::format("its shape is {}", to_text(*wanted))};
    if (shape[d] > 0 && others > elements / shape[d] && elements > 0)
      others = elements + 1;  // too many, whatever else
    else
      others *= shape[d];
  }
  if (open >= 0) shape[std::size_t(open)] = others == 0 ? 0 : elements / others;
  if (elements_of(shape) != elements)
    throw Malformed{fmt::format("{} has other elements than {}", to_text(call.shape(0)), to_text(*wanted))};
  return {same_elements(call, shape)};
}

Meaning flatten(const Call& call) {
  const std::int64_t given = call.integer("axis", 1), rank = call.rank(0);
  const int axis = given == rank ? int(rank) : call.axis(given, rank);
  const Shape& shape = call.shape(0);
  return {same_elements(call, {product(shape, 0, std::size_t(axis)), product(shape, std::size_t(axis), shape.size())})};
}

Meaning squeeze(const Call& call) {
  Shape shape;
  const auto given = call.list("axes", 1, 13);
  const std::vector<int> axes = given ? call.axes(*given, call.rank(0)) : std::vector<int>();
  for (int d = 0; d < call.rank(0); ++d) {
    const std::int64_t extent = call.shape(0)[std::size_t(d)];
    const bool is_named = std::binary_search(axes.begin(), axes.end(), d);
    if (is_named && extent != 1) throw Malformed{fmt::format("dimension {} is {}, not 1", d, extent)};
    if (!is_named && (given || extent != 1)) shape.push_back(extent);
  }
  return {same_elements(call, shape)};
}

Meaning unsqueeze(const Call& call) {
  const auto given = call.list("axes", 1, 13);
  if (!given) throw Malformed{"its axes are missing"};
  if (given->size() > most_new_axes) throw Unsupported{fmt::format("more than {} new axes", most_new_axes)};
  const std::vector<int> axes = call.axes(*given, call.rank(0) + std::int64_t(given->size()));
  Shape shape = call.shape(0);
  for (const int axis : axes) shape.insert(shape.begin() + axis, 1);
  return {same_elements(call, shape)};
}

// One load of the operand at a form of the result's axes.
Meaning copied(const Call& call, const Shape& shape, const Index& index) {
  Expression expression(call);
  return {element_wise(expression, call.type(0), shape, expression.operand(0, index))};
}

Meaning transpose(const Call& call) {
  const std::size_t rank = call.shape(0).size();
  std::vector<std::int64_t> order(rank);
  std::iota(order.rbegin(), order.rend(), 0);
  order = call.list("perm").value_or(order);
  if (order.size() != rank || call.axes(order, call.rank(0)).size() != rank)
    throw Malformed{fmt::format("perm is {}", to_text(order))};
  Shape shape;
  Index index(rank);
  bool is_view = true;  // dimensions of one element may go anywhere
  int last = -1;
  for (std::size_t d = 0; d < rank; ++d) {
    const int from = call.axis(order[d], call.rank(0));
    shape.push_back(call.shape(0)[std::size_t(from)]);
    index[std::size_t(from)] = fmt::format("i{}", d);
    if (shape.back() == 1) continue;
    is_view = is_view && from > last;
    last = from;
  }
  if (is_view) return {same_elements(call, shape)};
  return copied(call, shape, index);
}

Meaning expand(const Call& call) {
  const std::vector<std::int64_t> wanted = call.integers(1);
  for (const std::int64_t extent : wanted)
    if (extent < 0) throw Malformed{fmt::format("its shape is {}", to_text(wanted))};
  const Shape shape = broadcast({call.shape(0), wanted});
  if (shape == call.shape(0)) return {same_elements(call, shape)};
  Expression expression(call);
  return {element_wise(expression, call.type(0), shape, expression.broadcast(0, axes_over(shape)))};
}

Meaning tile(const Call& call) {
  const std::vector<std::int64_t> repeats = call.integers(1);
  if (int(repeats.size()) != call.rank(0)) throw Malformed{fmt::format("repeats are {}", to_text(repeats))};
  Shape shape;
  Axes axes;
  Index index, element;
  for (std::size_t d = 0; d < repeats.size(); ++d) {
    const std::int64_t extent = call.shape(0)[d];
    if (repeats[d] < 0 || repeats[d] > (std::int64_t(1) << 31))
      throw Malformed{fmt::format("repeats are {}", to_text(repeats))};
    shape.push_back(extent * repeats[d]);
    const std::string i = fmt::format("i{}", d), r = fmt::format("r{}", d);
    if (repeats[d] != 1) axes.push_back({r, repeats[d]});
    axes.push_back({i, extent});
    index.push_back(i);
    element.push_back(repeats[d] != 1 ? fmt::format("{} + {}", form(extent, r), i) : i);
  }
  if (shape == call.shape(0)) return {same_elements(call, shape)};
  Expression expression(call);
  expression.stage("y", call.type(0), axes, expression.operand(0, index), "=", {}, element);
  return {expression.result(call.type(0), shape)};
}

// select(at < end of the left half, left, right), as a tree: each part padded, so that it may be read anywhere.
std::string concatenated(const std::vector<std::string>& loads, const std::vector<std::int64_t>& ends,
                         const std::string& at, std::size_t begin, std::size_t end) {
  if (end - begin == 1) return loads[begin];
  const std::size_t middle = (begin + end) / 2;
  return fmt::format("select({} < {}, {}, {})", at, ends[middle - 1], concatenated(loads, ends, at, begin, middle),
                     concatenated(loads, ends, at, middle, end));
}

Meaning concatenation(const Call& call) {
  call.same_types();
  if (!call.has_attribute("axis") && call.version() >= 4) throw Malformed{"its axis is missing"};
  const int axis = call.axis(call.integer("axis", 1), call.rank(0));
  Shape shape = call.shape(0);
  std::int64_t& extent = shape[std::size_t(axis)];
  std::vector<int> parts;
  std::vector<std::int64_t> ends;
  extent = 0;
  for (int i = 0; i < call.operands(); ++i) {
    Shape other = call.shape(i);
    if (int(other.size()) != call.rank(0)) throw Malformed{"its operands have different numbers of dimensions"};
    const std::int64_t own = other[std::size_t(axis)];
    other[std::size_t(axis)] = extent;
    if (other != shape)
      throw Malformed{fmt::format("operands {} and {} do not fit", to_text(call.shape(0)), to_text(call.shape(i)))};
    extent += own;
    if (own > 0) parts.push_back(i), ends.push_back(extent);
  }
  if (parts.empty()) return {constant(known(call.type(0), shape, std::span<const std::int64_t>()))};
  if (parts.size() == 1) return {same_elements(call, shape, parts.front())};
  const Axes axes = axes_over(shape);
  Expression expression(call);
  std::vector<std::string> loads;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    Index index = index_of(axes);
    index[std::size_t(axis)] = form(1, index[std::size_t(axis)], p == 0 ? 0 : -ends[p - 1]);
    loads.push_back(fmt::format("pad({})", expression.operand(parts[p], index)));
  }
  return {element_wise(expression, call.type(0), shape,
                       concatenated(loads, ends, axes[std::size_t(axis)].name, 0, loads.size()))};
}

Meaning split(const Call& call) {
  const int axis = call.axis(call.integer("axis", 0), call.rank(0));
  const std::int64_t extent = call.shape(0)[std::size_t(axis)], count = call.integer("num_outputs", call.results());
  std::vector<std::int64_t> sizes;
  if (const auto given = call.list("split", 1, 13)) {
    sizes = *given;
  } else {
    if (count < 1 || count > (1 << 20)) throw Malformed{fmt::format("it has {} results", count)};
    const std::int64_t each = (extent + count - 1) / count;
    if (each * count != extent && !call.has_attribute("num_outputs"))
      throw Malformed{fmt::format("{} cannot be split into {} equal parts", extent, count)};
    for (std::int64_t i = 0; i < count; ++i) sizes.push_back(std::clamp<std::int64_t>(extent - i * each, 0, each));
  }
  Meaning results;
  std::int64_t begin = 0;
  for (const std::int64_t size : sizes) {
    if (size < 0 || size > extent - begin) throw Malformed{fmt::format("parts {} of {}", to_text(sizes), extent)};
    Shape shape = call.shape(0);
    shape[std::size_t(axis)] = size;
    Index index = index_of(axes_over(shape));
    index[std::size_t(axis)] = form(1, index[std::size_t(axis)], begin);
    results.push_back(copied(call, shape, index).front());
    begin += size;
  }
  if (begin != extent) throw Malformed{fmt::format("parts {} of {}", to_text(sizes), extent)};
  return results;
}

Meaning slice(const Call& call) {
  const auto starts = call.list("starts", 1, 10), ends = call.list("ends", 2, 10);
  if (!starts || !ends || starts->size() != ends->size()) throw Malformed{"its starts and ends do not fit"};
  std::vector<std::int64_t> order(starts->size());
  std::iota(order.begin(), order.end(), 0);
  const std::vector<std::int64_t> axes = call.list("axes", 3, 10).value_or(order);
  std::vector<std::int64_t> steps(starts->size(), 1);
  if (call.version() >= 10 && call.has(4)) steps = call.integers(4);
  if (axes.size() != starts->size() || steps.size() != starts->size() || axes.size() > call.shape(0).size())
    throw Malformed{"its starts, ends, axes and steps do not fit"};
  (void)call.axes(axes, call.rank(0));
  Shape shape = call.shape(0);
  Index index = index_of(axes_over(shape));
  for (std::size_t a = 0; a < axes.size(); ++a) {
    const std::size_t d = std::size_t(call.axis(axes[a], call.rank(0)));
    const std::int64_t extent = shape[d], step = std::clamp(steps[a], -extent - 1, extent + 1);
    if (steps[a] == 0) throw Malformed{"a step is 0"};
    if (extent == 0) continue;
    const auto place = [&](std::int64_t at, std::int64_t least, std::int64_t most) {
      return std::clamp(at < 0 ? std::max(at, -extent - 1) + extent : at, least, most);
    };
    const std::int64_t begin = step > 0 ? place((*starts)[a], 0, extent) : place((*starts)[a], 0, extent - 1);
    const std::int64_t end = step > 0 ? place((*ends)[a], 0, extent) : place((*ends)[a], -1, extent - 1);
    const std::int64_t length = step > 0 ? end - begin : begin - end;
    shape[d] = length <= 0 ? 0 : (length + std::abs(step) - 1) / std::abs(step);
    index[d] = form(step, index[d], begin);
  }
  if (shape == call.shape(0) && index == index_of(axes_over(shape))) return {same_elements(call, shape)};
  return copied(call, shape, index);
}

// Dimension by dimension, a stage for each that is padded otherwise than by a number.
bool is_open(const Call& call) {
  return call.version() >= 10 && ((call.has(1) && !call.is_known(1)) || (call.has(2) && !call.is_known(2)));
}

// For places that only a run knows, along one axis: as many rows as there can be, and how many count (counted.cpp).
Graph sliced_by_run(const Call& call) {
  const auto axes = call.list("axes", 3, 10).value_or(std::vector<std::int64_t>{0});
  const std::vector<std::int64_t> steps = call.has(4) ? call.integers(4) : std::vector<std::int64_t>{1};
  if (steps.size() != axes.size()) throw Malformed{"its axes and steps do not fit"};
  if (axes.size() != 1 || elements_of(call.shape(1)) != 1 || elements_of(call.shape(2)) != 1)
    throw Unsupported{fmt::format("operand {} {}, along several axes", call.is_known(1) ? 2 : 1, not_constant)};
  const int axis = call.axis(axes.front(), call.rank(0));
  const std::int64_t extent = call.shape(0)[std::size_t(axis)], step = steps.front();
  if (step == 0 || step < -extent || step > extent) throw Unsupported{"a step of no row or more than all"};
  if (extent > most_counted_rows) throw Unsupported{fmt::format("more than {} rows to choose from", most_counted_rows)};
  Body body(call);
  const auto number = [&](std::int64_t one) { return body.integers({one}); };
  const auto limited = [&](Part x, Part least, Part most) {
    return body.node("Min", {body.node("Max", {x, least}), most});
  };
  const auto place = [&](int operand, std::int64_t least, std::int64_t most) {
    // No sum of it overflows.
    const Part at = limited(body.reshaped(body.cast(body.operand(operand), DType::i64), {1}), number(-extent - 1),
                            number(extent + 1));
    const Part counted = body.node("Where", {body.node("Less", {at, number(0)}), at + number(extent), at});
    return limited(counted, number(least), number(most));
  };
  const Part begin = step > 0 ? place(1, 0, extent) : place(1, 0, extent - 1),
             end = step > 0 ? place(2, 0, extent) : place(2, -1, extent - 1),
             length = step > 0 ? end - begin : begin - end;
  const std::int64_t each = std::abs(step), rows = (extent + each - 1) / each;
  const Part count = body.node("Max", {(length + number(each - 1)) / number(each), number(0)});
  std::vector<std::int64_t> all(std::size_t(rows), 0);
  std::iota(all.begin(), all.end(), 0);
  const Part row = body.node("Min", {body.integers(all), body.node("Max", {count - number(1), number(0)})});
  const Part at = limited(begin + row * number(step), number(0), number(extent - 1));
  const Part y = body.node("Gather", {body.operand(0), at}, {{"axis", std::int64_t(axis)}});
  return std::move(body).results({y, body.reshaped(count, {})});
}

Meaning pad(const Call& call) {
  const auto given = call.list(call.version() < 2 ? "paddings" : "pads", 1, 11);
  const std::int64_t rank = call.rank(0);
  std::vector<std::int64_t> order(std::size_t(call.rank(0)));
  std::iota(order.begin(), order.end(), 0);
  if (call.has(3)) order = call.integers(3);
  if (!given || given->size() != 2 * order.size()) throw Malformed{"its pads do not fit"};
  (void)call.axes(order, rank);
  std::vector<std::int64_t> begins(std::size_t(rank), 0), ends = begins;
  Shape shape = call.shape(0);
  for (std::size_t a = 0; a < order.size(); ++a) {
    const std::size_t d = std::size_t(call.axis(order[a], rank));
    begins[d] = (*given)[a];
    ends[d] = (*given)[order.size() + a];
    for (const std::int64_t each : {begins[d], ends[d]})
      if (each > (std::int64_t(1) << 31) || each < -shape[d])
        throw Malformed{fmt::format("its pads are {}", to_text(*given))};
    shape[d] += begins[d] + ends[d];
    if (shape[d] < 0) throw Malformed{fmt::format("its pads are {}", to_text(*given))};
  }
  if (shape == call.shape(0) && std::all_of(begins.begin(), begins.end(), [](auto b) { return b == 0; }))
    return {same_elements(call, shape)};
  const std::string mode = call.text("mode", "constant");
  const DType type = call.type(0);
  Expression expression(call);
  if (mode == "constant") {
    double number = call.version() < 11 ? call.number("value", 0) : call.has(2) ? call.scalar(2) : 0;
    Index index;
    for (std::size_t d = 0; d < shape.size(); ++d) index.push_back(form(1, fmt::format("i{}", d), -begins[d]));
    const bool is_empty = elements_of(call.shape(0)) == 0;
    const std::string outside = std::isinf(number) ? (number < 0 ? "-inf" : "inf") : fmt::format("{}", number);
    if (std::isnan(number)) throw Unsupported{"NaN as its value"};
    return {element_wise(expression, type, shape,
                         is_empty ? outside : fmt::format("pad({}, {})", expression.operand(0, index), outside))};
  }
  if (mode != "reflect" && mode != "edge" && mode != "wrap")
    throw Malformed{fmt::format("mode is {}", in_quotes(mode))};
  Shape done = call.shape(0);
  std::string before;
  std::size_t left = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) left += begins[d] != 0 || ends[d] != 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (begins[d] == 0 && ends[d] == 0) continue;
    const std::int64_t extent = done[d];
    done[d] = shape[d];
    if (extent == 0) throw Malformed{"a dimension without elements is padded"};
    if (mode == "reflect" && std::max(begins[d], ends[d]) >= extent)
      throw Malformed{fmt::format("{} elements are reflected of {}", std::max(begins[d], ends[d]), extent)};
    Index index = index_of(axes_over(done));
    const std::string at = form(1, index[d], -begins[d]);
    index[d] = mode == "edge"   ? fmt::format("max(min({}, {}), 0)", at, extent - 1)
               : mode == "wrap" ? fmt::format("({}) % {}", at, extent)
                                : fmt::format("{0} - abs({0} - abs({1}))", extent - 1, at);
    const std::string value = before.empty() ? expression.operand(0, index) : load(before, index);
    before = --left == 0 ? "y" : fmt::format("P{}", d);
    expression.stage(before, type, axes_over(done), value);
  }
  return {expression.result(type, shape)};
}

// An index as a value: counted from the end if it is negative. Constants are looked at: they must be within the extent.
std::string index_value(const Call& call, Expression& expression, int number, const Index& index, std::int64_t extent) {
  bool may_be_negative = true;
  if (call.is_known(number)) {
    const std::vector<std::int64_t> all = call.integers(number);
    for (const std::int64_t each : all)
      if (each < -extent || each >= extent) throw Malformed{fmt::format("index {} of {} elements", each, extent)};
    may_be_negative = std::any_of(all.begin(), all.end(), [](std::int64_t each) { return each < 0; });
  }
  const std::string at = expression.operand(number, index);
  return may_be_negative ? fmt::format("select({0} < 0, {0} + {1}, {0})", at, extent) : at;
}

void check_indices(const Call& call) {
  if (call.type(1) != DType::i64 && call.type(1) != DType::i32) throw Malformed{"its indices are not integers"};
}

Meaning gather(const Call& call) {
  check_indices(call);
  const int axis = call.axis(call.integer("axis", 0), call.rank(0));
  const Shape &data = call.shape(0), &indices = call.shape(1);
  Shape shape(data.begin(), data.begin() + axis);
  shape.insert(shape.end(), indices.begin(), indices.end());
  shape.insert(shape.end(), data.begin() + axis + 1, data.end());
  const Index all = index_of(axes_over(shape));
  const auto first = all.begin() + axis, last = first + std::ptrdiff_t(indices.size());
  Index index(all.begin(), first);
  Expression expression(call);
  // One constant index is an offset.
  if (call.is_known(1) && elements_of(indices) == 1) {
    const std::int64_t at = call.integers(1).front(), extent = data[std::size_t(axis)];
    if (at < -extent || at >= extent) throw Malformed{fmt::format("index {} of {} elements", at, extent)};
    index.push_back(std::to_string(at < 0 ? at + extent : at));
  } else {
    index.push_back(index_value(call, expression, 1, {first, last}, data[std::size_t(axis)]));
  }
  index.insert(index.end(), last, all.end());
  return {element_wise(expression, call.type(0), shape, expression.operand(0, index))};
}

Meaning gather_elements(const Call& call) {
  check_indices(call);
  const int axis = call.axis(call.integer("axis", 0), call.rank(0));
  const Shape& shape = call.shape(1);
  if (int(shape.size()) != call.rank(0)) throw Malformed{"its indices have another number of dimensions"};
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (int(d) != axis && shape[d] > call.shape(0)[d])
      throw Malformed{fmt::format("indices {} of {}", to_text(shape), to_text(call.shape(0)))};
  Expression expression(call);
  Index index = index_of(axes_over(shape));
  const std::string at = index_value(call, expression, 1, index, call.shape(0)[std::size_t(axis)]);
  index[std::size_t(axis)] = at;
  return {element_wise(expression, call.type(0), shape, expression.operand(0, index))};
}

Meaning gather_in_several(const Call& call) {
  check_indices(call);
  const std::int64_t batch = call.integer("batch_dims", 0);
  const Shape &data = call.shape(0), &indices = call.shape(1);
  if (batch < 0 || batch >= call.rank(0) || batch >= call.rank(1))
    throw Malformed{fmt::format("batch_dims is {}", batch)};
  const std::int64_t depth = indices.back();
  if (depth < 1 || depth > call.rank(0) - batch) throw Malformed{fmt::format("{} indices of {}", depth, to_text(data))};
  if (depth > 3) throw Unsupported{"more than 3 indices"};
  Shape shape(indices.begin(), indices.end() - 1);
  shape.insert(shape.end(), data.begin() + batch + depth, data.end());
  const Index all = index_of(axes_over(shape));
  const auto outer = all.begin() + std::ptrdiff_t(indices.size()) - 1;
  Expression expression(call);
  Index index(all.begin(), all.begin() + batch);
  for (std::int64_t k = 0; k < depth; ++k) {
    Index at(all.begin(), outer);
    at.push_back(std::to_string(k));
    const std::string value = expression.operand(1, at);
    index.push_back(fmt::format("select({0} < 0, {0} + {1}, {0})", value, data[std::size_t(batch + k)]));
  }
  index.insert(index.end(), outer, all.end());
  return {element_wise(expression, call.type(0), shape, expression.operand(0, index))};
}

Meaning depth_to_space(const Call& call) {
  const std::int64_t block = call.integer("blocksize", 0);
  const std::string mode = call.text("mode", "DCR");
  if (call.rank(0) != 4) throw Malformed{fmt::format("its input is {}", to_text(call.shape(0)))};
  if (block < 1 || block > (1 << 20) || call.shape(0)[1] % (block * block) != 0)
    throw Malformed{fmt::format("{} channels in blocks of {}", call.shape(0)[1], block)};
  if (mode != "DCR" && mode != "CRD") throw Malformed{fmt::format("mode is {}", in_quotes(mode))};
  const Shape& from = call.shape(0);
  const std::int64_t channels = from[1] / (block * block);
  const Axes axes = {{"b", from[0]}, {"c", channels}, {"y", from[2]}, {"p", block}, {"x", from[3]}, {"q", block}};
  Expression expression(call);
  const std::string channel = mode == "DCR"
                                  ? fmt::format("{} + {} + c", form(block * channels, "p"), form(channels, "q"))
                                  : fmt::format("{} + {} + q", form(block * block, "c"), form(block, "p"));
  expression.stage("y", call.type(0), axes, expression.operand(0, {"b", channel, "y", "x"}), "=", {},
                   {"b", "c", form(block, "y") + " + p", form(block, "x") + " + q"});
  return {expression.result(call.type(0), {from[0], channels, from[2] * block, from[3] * block})};
}

Meaning space_to_depth(const Call& call) {
  const std::int64_t block = call.integer("blocksize", 0);
  if (call.rank(0) != 4) throw Malformed{fmt::format("its input is {}", to_text(call.shape(0)))};
  const Shape& from = call.shape(0);
  if (block < 1 || block > (1 << 20) || from[2] % block != 0 || from[3] % block != 0)
    throw Malformed{fmt::format("{} in blocks of {}", to_text(from), block)};
  const Axes axes = {{"b", from[0]}, {"p", block},           {"q", block},
                     {"c", from[1]}, {"y", from[2] / block}, {"x", from[3] / block}};
  Expression expression(call);
  expression.stage("y", call.type(0), axes,
                   expression.operand(0, {"b", "c", form(block, "y") + " + p", form(block, "x") + " + q"}), "=", {},
                   {"b", fmt::format("{} + {} + c", form(block * from[1], "p"), form(from[1], "q")), "y", "x"});
  return {expression.result(call.type(0), {from[0], from[1] * block * block, from[2] / block, from[3] / block})};
}

Meaning triangle(const Call& call) {
  if (call.rank(0) < 2) throw Malformed{fmt::format("its input is {}", to_text(call.shape(0)))};
  std::int64_t diagonal = call.has(1) ? std::int64_t(call.scalar(1)) : 0;
  diagonal = std::clamp<std::int64_t>(diagonal, -(std::int64_t(1) << 30), std::int64_t(1) << 30);
  const Axes axes = axes_over(call.shape(0));
  Expression expression(call);
  const std::string x = expression.operand(0, index_of(axes));
  return {element_wise(
      expression, call.type(0), call.shape(0),
      fmt::format("select({} {} position({}), {}, 0)", axes.back().name,
                  call.integer("upper", 1) != 0 ? ">=" : "<=", form(1, axes[axes.size() - 2].name, diagonal), x))};
}

Meaning one_hot(const Call& call) {
  const std::int64_t depth = std::int64_t(call.scalar(1));
  if (depth < 1 || depth > (std::int64_t(1) << 31)) throw Malformed{fmt::format("depth is {}", depth)};
  if (elements_of(call.shape(2)) != 2) throw Malformed{"its values are not two"};
  const int axis = call.axis(call.integer("axis", -1), call.rank(0) + 1);
  Shape shape = call.shape(0);
  shape.insert(shape.begin() + axis, depth);
  const Axes axes = axes_over(shape);
  Index index = index_of(axes);
  const std::string place = index[std::size_t(axis)];
  index.erase(index.begin() + axis);
  Expression expression(call);
  const std::string at = expression.operand(0, index);
  return {element_wise(expression, call.type(2), shape,
                       fmt::format("select(select({0} < 0, {0} + {1}, {0}) == {2}, {3}, {4})", at, depth, place,
                                   expression.operand(2, {"1"}), expression.operand(2, {"0"})))};
}

// The first steps of each sequence of a batch, as many as its length says, from the last to the first.
Meaning reverse_sequence(const Call& call) {
  const int time = call.axis(call.integer("time_axis", 0), call.rank(0));
  const int batch = call.axis(call.integer("batch_axis", 1), call.rank(0));
  if (time == batch) throw Malformed{"its axes are the same"};
  const Axes axes = axes_over(call.shape(0));
  if (call.shape(1) != Shape{axes[std::size_t(batch)].extent})
    throw Malformed{fmt::format("its lengths are {}, its input {}", to_text(call.shape(1)), to_text(call.shape(0)))};
  Expression expression(call);
  const std::string length = expression.operand(1, {axes[std::size_t(batch)].name});
  Index index = index_of(axes);
  std::string& step = index[std::size_t(time)];
  step = fmt::format("select({0} < {1}, {1} - 1 - {0}, {0})", step, length);
  return {element_wise(expression, call.type(0), call.shape(0), expression.operand(0, index))};
}

// The middle of the operand, or the operand in the middle of zeros, along each axis.
Meaning centre_crop_pad(const Call& call) {
  const std::vector<std::int64_t> wanted = call.integers(1);
  std::vector<std::int64_t> order(std::size_t(call.rank(0)));
  std::iota(order.begin(), order.end(), 0);
  order = call.list("axes").value_or(order);
  if (wanted.size() != order.size() || call.axes(order, call.rank(0)).size() != order.size())
    throw Malformed{fmt::format("its shape {} does not fit its axes", to_text(wanted))};
  Shape shape = call.shape(0);
  Index index = index_of(axes_over(shape));
  bool pads = false;
  for (std::size_t a = 0; a < order.size(); ++a) {
    const std::size_t d = std::size_t(call.axis(order[a], call.rank(0)));
    if (wanted[a] < 1 || wanted[a] > (std::int64_t(1) << 31))
      throw Malformed{fmt::format("its shape is {}", to_text(wanted))};
    const std::int64_t more = wanted[a] - shape[d];
    index[d] = form(1, index[d], more > 0 ? -(more / 2) : -more / 2);
    pads = pads || more > 0;
    shape[d] = wanted[a];
  }
  if (shape == call.shape(0)) return {same_elements(call, shape)};
  Expression expression(call);
  const std::string value = expression.operand(0, index);
  return {element_wise(expression, call.type(0), shape, pads ? fmt::format("pad({})", value) : value)};
}

// Blocks are put to where they were taken from, and summed where they overlap.
Meaning columns_to_image(const Call& call) {
  const std::vector<std::int64_t> image = call.integers(1), block = call.integers(2);
  const std::size_t rank = image.size();
  const std::vector<std::int64_t> ones(rank, 1),
      strides = call.list("strides").value_or(ones), dilations = call.list("dilations").value_or(ones),
      pads = call.list("pads").value_or(std::vector<std::int64_t>(2 * rank, 0));
  if (call.rank(0) != 3 || rank == 0 || block.size() != rank || strides.size() != rank || dilations.size() != rank ||
      pads.size() != 2 * rank)
    throw Malformed{"its operands and attributes are of different numbers of dimensions"};
  constexpr std::int64_t most = std::int64_t(1) << 20;
  for (const auto* const list : {&image, &block, &strides, &dilations})
    for (const std::int64_t each : *list)
      if (each < 1 || each > most) throw Malformed{fmt::format("it has {}", to_text(*list))};
  Axes axes = {{"n", call.shape(0)[0]}, {"c", 1}}, reduced;
  std::string row, column, outside;
  std::int64_t rows = 1, columns = 1;
  for (std::size_t d = rank; d-- > 0;) {
    if (std::abs(pads[d]) > most || std::abs(pads[rank + d]) > most || rows > most || columns > most)
      throw Malformed{fmt::format("its pads are {}, its blocks {}", to_text(pads), to_text(block))};
    const std::string k = fmt::format("k{}", d);
    const std::string from = fmt::format("(i{} + {} - {})", d, number_text(double(pads[d])), form(dilations[d], k));
    const std::int64_t room = image[d] + pads[d] + pads[rank + d] - dilations[d] * (block[d] - 1) - 1;
    const std::int64_t places = room < 0 ? 0 : room / strides[d] + 1;
    row += fmt::format(" + {}", form(rows, k));
    column += fmt::format("{}{} / {} * {}", column.empty() ? "" : " + ", from, strides[d], columns);
    outside += fmt::format("{0}select({1} < 0, 1, select({1} % {2} != 0, 1, select({1} / {2} >= {3}, 1, 0)))",
                           outside.empty() ? "" : " + ", from, strides[d], places);
    rows *= block[d], columns *= places;
    reduced.insert(reduced.begin(), {k, block[d]});
  }
  if (call.shape(0)[1] % rows != 0 || call.shape(0)[2] != columns)
    throw Malformed{
        fmt::format("its input is {}, for {} places of blocks of {}", to_text(call.shape(0)), columns, rows)};
  axes[1].extent = call.shape(0)[1] / rows;
  Shape shape = {axes[0].extent, axes[1].extent};
  for (std::size_t d = 0; d < rank; ++d) {
    axes.push_back({fmt::format("i{}", d), image[d]});
    shape.push_back(image[d]);
  }
  Expression expression(call);
  const std::string x = expression.operand(0, {"n", form(rows, "c") + row, column});
  expression.stage("y", call.type(0), axes, fmt::format("select({} > 0, 0, pad({}))", outside, x), "+=", reduced);
  return {expression.result(call.type(0), shape)};
}

}  // namespace

std::vector<Row> movement_rows() {
  return {
      {"Reshape", 1, 2, "allowzero shape", reshape},
      {"Flatten", 1, 1, "axis", flatten},
      {"Squeeze", 1, 2, "axes", squeeze},
      {"Unsqueeze", 1, 2, "axes", unsqueeze},
      {"Transpose", 1, 1, "perm", transpose},
      {"Expand", 2, 2, "", expand},
      {"Tile", 2, 2, "", tile},
      {"Concat", 1, -1, "axis", concatenation},
      {"Split", 1, 2, "axis num_outputs split", split},
      {"Slice", 1, 5, "axes ends starts", slice, sliced_by_run, 1, is_open},
      {"Pad", 1, 4, "mode pads value", pad},
      {"Gather", 2, 2, "axis", gather},
      {"GatherND", 2, 2, "batch_dims", gather_in_several},
      {"GatherElements", 2, 2, "axis", gather_elements},
      {"DepthToSpace", 1, 1, "blocksize mode", depth_to_space},
      {"SpaceToDepth", 1, 1, "blocksize", space_to_depth},
      {"Trilu", 1, 2, "upper", triangle},
      {"OneHot", 3, 3, "axis", one_hot},
      {"ReverseSequence", 2, 2, "batch_axis time_axis", reverse_sequence},
      {"Col2Im", 3, 3, "dilations pads strides", columns_to_image},
      {"CenterCropPad", 2, 2, "axes", centre_crop_pad},
  };
}

}  // namespace graft::graph
