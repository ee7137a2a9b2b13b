// Operators that foreign functions compute (codegen/expression/foreign.h). Of most of them only a run knows how many
// results there are: their results have as many rows as there can be, and
// the last result of their bodies says how many of these count. The remaining rows repeat the last one that counts, so
// that what is gathered at its places, and scattered there again, stays right (codegen/deployed/graft_foreign.h).
#include <algorithm>
#include <utility>

#include "graph/operators/body.h"

namespace graft::graph {
namespace {

using List = std::vector<std::int64_t>;

constexpr std::int64_t header = 8;   // of results of foreign functions: the number of rows, and what aligns them
constexpr std::int64_t boolean = 9;  // of ONNX's types

Meaning result_of(const Call& call, const codegen::Foreign& foreign, const std::optional<Shape>& shape = {}) {
  auto computation = codegen::computation_of(foreign);
  if (!computation) throw Unsupported{computation.reason().text};
  const auto& tensors = computation->tensors;
  if (call.operands() != int(tensors.size()) - 1) throw Malformed{"the function takes other operands"};
  for (int o = 0; o < call.operands(); ++o)
    if (call.type(o) != tensors[std::size_t(o)].dtype ||
        elements_of(call.shape(o)) != tensors[std::size_t(o)].elements())
      throw Malformed{fmt::format("operand {} is not what the function takes", o)};
  Result result{.type = tensors.back().dtype, .shape = shape.value_or(tensors.back().shape)};
  result.computation = std::move(computation).value();
  result.foreign = std::make_shared<const codegen::Foreign>(foreign);
  return {std::move(result)};
}

// What a foreign function gives for these operands: the attributes name it and its numbers.
Meaning foreign(const Call& call) {
  return result_of(call, {call.text("function", ""), call.list("numbers").value_or(List())});
}

// The same of a user's function: the attributes say what its result is.
Meaning function_of_user(const Call& call) {
  codegen::Foreign foreign = *call.function();
  foreign.numbers = {call.operands() + 1};
  const auto add = [&](DType type, const Shape& shape) {
    foreign.types.push_back(type);
    foreign.numbers.push_back(std::int64_t(shape.size()));
    foreign.numbers.insert(foreign.numbers.end(), shape.begin(), shape.end());
  };
  for (int o = 0; o < call.operands(); ++o) add(call.type(o), call.shape(o));
  const Shape shape = call.list("shape").value_or(Shape());
  add(codegen::dtype_of(call.text("type", "")).value(), shape);
  return result_of(call, foreign, shape);
}

Part called(Body& body, const char* function, const std::vector<Part>& operands, List numbers) {
  return body.node("graft.Foreign", operands, {{"function", std::string(function)}, {"numbers", std::move(numbers)}});
}

Part rows_of(Body& body, Part result, std::int64_t first, const Shape& shape) {
  return body.reshaped(body.part(result, 0, header + first, header + first + elements_of(shape)), shape);
}
Part count_of(Body& body, Part result) {
  return body.reshaped(body.part(result, 0, 0, 1), {});
}

Part nothing(Body& body, const Shape& shape) {
  return body.constant(known(DType::i64, shape, std::span<const std::int64_t>()));
}
Part zero(Body& body) {
  return body.constant(known(DType::i64, {}, List{0}));
}

Graph suppressed(const Call& call) {
  if (call.rank(0) != 3 || call.rank(1) != 3 || call.shape(0)[2] != 4 || call.shape(0)[0] != call.shape(1)[0] ||
      call.shape(0)[1] != call.shape(1)[2])
    throw Malformed{fmt::format("boxes {} do not fit scores {}", to_text(call.shape(0)), to_text(call.shape(1)))};
  const std::int64_t batches = call.shape(1)[0], classes = call.shape(1)[1], boxes = call.shape(1)[2];
  const List given = call.has(2) ? call.integers(2) : List{0};
  if (given.size() != 1) throw Malformed{"its largest number of boxes is not one number"};
  const std::int64_t most = std::clamp<std::int64_t>(given.front(), 0, boxes), rows = batches * classes * most;
  Body body(call);
  if (rows == 0) return std::move(body).results({nothing(body, {0, 3}), zero(body)});
  const auto threshold = [&](int number) {
    return call.has(number) ? body.operand(number) : body.number(0, DType::f32);
  };
  const Part result =
      called(body, "graft_non_max_suppression", {body.operand(0), body.operand(1), threshold(3), threshold(4)},
             {batches, classes, boxes, most, call.integer("center_point_box", 0) != 0, call.has(4)});
  return std::move(body).results({rows_of(body, result, 0, {rows, 3}), count_of(body, result)});
}

// Places of elements that are not 0, a column for each.
List known_places(const std::vector<double>& numbers, const Shape& shape) {
  List rows(0);
  std::vector<List> columns;
  for (std::size_t e = 0; e < numbers.size(); ++e) {
    if (numbers[e] == 0) continue;
    List at(shape.size());
    std::int64_t rest = std::int64_t(e);
    for (std::size_t d = shape.size(); d-- > 0;) at[d] = rest % shape[d], rest /= shape[d];
    columns.push_back(std::move(at));
  }
  for (std::size_t d = 0; d < shape.size(); ++d)
    for (const List& column : columns) rows.push_back(column[d]);
  return rows;
}

// Those of a tensor that only a run knows, and how many there are.
std::pair<Part, Part> places(Body& body, Part x, const Shape& shape) {
  const std::int64_t rank = std::int64_t(shape.size()), elements = elements_of(shape);
  List numbers = {rank, elements};
  numbers.insert(numbers.end(), shape.begin(), shape.end());
  const Part mask = body.node("Cast", {x}, {{"to", boolean}});
  const Part result = called(body, "graft_non_zero", {mask}, std::move(numbers));
  return {rows_of(body, result, 0, {rank, elements}), count_of(body, result)};
}

Graph not_zero(const Call& call) {
  const Shape& shape = call.shape(0);
  const std::int64_t rank = call.rank(0);
  Body body(call);
  if (call.is_known(0)) {
    const List rows = known_places(call.numbers(0), shape);
    const std::int64_t columns = rank == 0 ? 0 : std::int64_t(rows.size()) / rank;
    return std::move(body).results({body.constant(known(DType::i64, {rank, columns}, rows))});
  }
  if (rank == 0) throw Unsupported{"places in a tensor without dimensions"};
  if (elements_of(shape) == 0) return std::move(body).results({nothing(body, {rank, 0})});
  const auto [rows, count] = places(body, body.operand(0), shape);
  return std::move(body).results({rows, count});
}

// The parts along an axis, or the elements, for which a condition is not 0.
Graph compressed(const Call& call) {
  const bool is_flat = !call.has_attribute("axis");
  const std::int64_t axis = is_flat ? 0 : call.axis(call.integer("axis", 0), call.rank(0));
  const std::int64_t extent = is_flat ? elements_of(call.shape(0)) : call.shape(0)[std::size_t(axis)];
  const std::int64_t conditions = elements_of(call.shape(1));
  if (conditions > extent) throw Malformed{fmt::format("a condition of {} elements for {}", conditions, extent)};
  Body body(call);
  const Part x = is_flat ? body.reshaped(body.operand(0), {extent}) : body.operand(0);
  const auto gathered = [&](Part at) { return body.node("Gather", {x, at}, {{"axis", axis}}); };
  if (call.is_known(1) || conditions == 0) {
    const List kept = conditions == 0 ? List() : known_places(call.numbers(1), {conditions});
    return std::move(body).results({gathered(body.integers(kept))});
  }
  const auto [rows, count] = places(body, body.operand(1), {conditions});
  return std::move(body).results({gathered(body.reshaped(rows, {conditions})), count});
}

Graph unique(const Call& call) {
  const bool is_flat = !call.has_attribute("axis");
  const std::int64_t rank = call.rank(0), axis = is_flat ? 0 : call.axis(call.integer("axis", 0), rank);
  const std::int64_t elements = elements_of(call.shape(0));
  if (elements == 0) throw Unsupported{"a tensor without elements"};
  const std::int64_t rows = is_flat ? elements : call.shape(0)[std::size_t(axis)];
  Body body(call);
  Part x = is_flat ? body.reshaped(body.operand(0), {elements}) : body.operand(0), ordered = x;
  if (axis > 0) {
    List order = {axis};
    for (std::int64_t d = 0; d < rank; ++d)
      if (d != axis) order.push_back(d);
    ordered = body.transposed(x, order);
  }
  const bool are_integers = !codegen::is_floating(call.type(0));
  const Part result = called(body, "graft_unique", {body.cast(ordered, are_integers ? DType::i64 : DType::f64)},
                             {rows, elements / rows, are_integers, call.integer("sorted", 1) != 0});
  const Part first = rows_of(body, result, 0, {rows});
  return std::move(body).results({body.node("Gather", {x, first}, {{"axis", axis}}), first,
                                  rows_of(body, result, rows, {rows}), rows_of(body, result, 2 * rows, {rows}),
                                  count_of(body, result)});
}

// The k largest (or least) along an axis, in order: of few elements by comparing all, in loops that are tuned.
constexpr std::int64_t most_comparisons = 1 << 20;

Graph largest_elements(const Call& call) {
  const int axis = call.axis(call.integer("axis", -1), call.rank(0));
  const auto given = call.list("k", 1, 10);
  if (!given || given->size() != 1) throw Malformed{"its number k is missing"};
  const Shape& shape = call.shape(0);
  const std::int64_t extent = shape[std::size_t(axis)], elements = elements_of(shape), k = given->front();
  if (k < 0 || k > extent) throw Malformed{fmt::format("k is {}, the axis has {} elements", k, extent)};
  const bool is_largest = call.integer("largest", 1) != 0;
  Body body(call);
  const Part x = body.operand(0);
  if (elements == 0 || k == 0 || elements * extent <= most_comparisons)
    return std::move(body).results(body.nodes("graft.TopK", {x, body.integers({k})}, 2,
                                              {{"axis", std::int64_t(axis)}, {"largest", std::int64_t(is_largest)}}));
  const bool are_integers = !codegen::is_floating(call.type(0));
  List order, back(shape.size());
  for (std::int64_t d = 0; d < call.rank(0); ++d)
    if (d != axis) order.push_back(d);
  order.push_back(axis);
  for (std::size_t d = 0; d < order.size(); ++d) back[std::size_t(order[d])] = std::int64_t(d);
  Shape chosen;
  for (const std::int64_t d : order) chosen.push_back(d == axis ? k : shape[std::size_t(d)]);
  const Part result =
      called(body, "graft_top_k", {body.cast(body.transposed(x, order), are_integers ? DType::i64 : DType::f64)},
             {elements / extent, extent, k, are_integers, is_largest});
  const Part places = body.transposed(rows_of(body, result, 0, chosen), back);
  return std::move(body).results({body.node("GatherElements", {x, places}, {{"axis", std::int64_t(axis)}}), places});
}

Row counted(std::string_view name, int least, int most, std::string attributes, int results,
            std::function<Graph(const Call& call)> body) {
  Row row = composed(name, least, most, std::move(attributes), std::move(body));
  row.results = results;
  return row;
}

}  // namespace

std::vector<Row> counted_rows() {
  return {
      {"graft.Foreign", 1, -1, "function numbers", foreign},
      {"graft.Function", 1, -1, "shape type", function_of_user},
      counted("NonMaxSuppression", 2, 5, "center_point_box", 1, suppressed),
      counted("NonZero", 1, 1, "", 1, not_zero),
      counted("Compress", 2, 2, "axis", 1, compressed),
      counted("Unique", 1, 1, "axis sorted", 4, unique),
      composed("TopK", 1, 2, "axis k largest sorted", largest_elements),
  };
}

}  // namespace graft::graph
