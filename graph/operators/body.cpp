#include "graph/operators/body.h"

#include <utility>

namespace graft::graph {
namespace {

constexpr int version = 21;  // of the operators in bodies

Part pair(std::string operation, Part a, Part b) {
  return a.body->node(std::move(operation), {a, b});
}

}  // namespace

Part operator+(Part a, Part b) {
  return pair("Add", a, b);
}
Part operator-(Part a, Part b) {
  return pair("Sub", a, b);
}
Part operator*(Part a, Part b) {
  return pair("Mul", a, b);
}
Part operator/(Part a, Part b) {
  return pair("Div", a, b);
}

Body::Body(const Call& call) : call_(call) {
  graph_.version = version;
  for (int number = 0; number < call.operands(); ++number)
    graph_.inputs.push_back(value({.name = fmt::format("x{}", number), .origin = Value::Origin::input}).value);
}

Part Body::value(Value value) {
  graph_.values.push_back(std::move(value));
  return {this, int(graph_.values.size()) - 1};
}

Part Body::operand(int number) {
  return {this, call_.has(number) ? graph_.inputs[std::size_t(number)] : -1};
}

Part Body::constant(Known known) {
  return {this, add_constant(graph_, fmt::format("c{}", graph_.values.size()), std::move(known))};
}

Part Body::number(double value, DType type) {
  return constant(known(type, {}, codegen::Elements(std::vector<double>{value})));
}

Part Body::integers(const std::vector<std::int64_t>& all) {
  return constant(known_vector(all));
}

std::vector<Part> Body::nodes(std::string operation, const std::vector<Part>& operands, std::size_t results,
                              Attributes attributes) {
  Node node{"", std::move(operation), std::move(attributes), {}, {}};
  for (const Part& operand : operands) node.operands.push_back(operand.value);
  std::vector<Part> parts;
  for (std::size_t r = 0; r < results; ++r) {
    parts.push_back(value({.name = fmt::format("v{}", graph_.values.size())}));
    node.results.push_back(parts.back().value);
  }
  graph_.nodes.push_back(std::move(node));
  return parts;
}

Part Body::node(std::string operation, const std::vector<Part>& operands, Attributes attributes) {
  return nodes(std::move(operation), operands, 1, std::move(attributes)).front();
}

Part Body::reshaped(Part x, const Shape& shape) {
  return node("Reshape", {x, integers(shape)}, {{"allowzero", std::int64_t(1)}});
}

Part Body::transposed(Part x, const std::vector<std::int64_t>& order) {
  return node("Transpose", {x}, {{"perm", order}});
}

Part Body::concatenated(const std::vector<Part>& parts, std::int64_t axis) {
  return node("Concat", parts, {{"axis", axis}});
}

Part Body::part(Part x, std::int64_t axis, std::int64_t begin, std::int64_t end, std::int64_t step) {
  return node("Slice", {x, integers({begin}), integers({end}), integers({axis}), integers({step})});
}

Part Body::cast(Part x, DType type) {
  return node("CastLike", {x, number(0, type)});
}

Part Body::mean(Part x, const std::vector<std::int64_t>& axes) {
  return node("ReduceMean", {x, integers(axes)});
}

Graph Body::results(const std::vector<Part>& results) && {
  for (const Part& result : results) graph_.outputs.push_back(result.value);
  return std::move(graph_);
}

Body::Attributes kept(const Call& call, std::initializer_list<const char*> names) {
  Body::Attributes attributes;
  for (const char* const name : names)
    if (const Attribute* attribute = call.attribute(name)) attributes.emplace(name, *attribute);
  return attributes;
}

Row composed(std::string_view name, int least, int most, std::string attributes,
             std::function<Graph(const Call& call)> body) {
  return {name, least, most, std::move(attributes), nullptr, std::move(body)};
}

}  // namespace graft::graph
