// Private to the operators: those that other operators compute. Such a row gives a graph, as an exporter writes the
// operator out, and folding puts the graph in the place of the node. So a fused kernel arises, or a constant is made,
// wherever it would for the plain operators.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/operators/call.h"

namespace graft::graph {

class Body;

// A value of a body; +, -, * and / are nodes.
struct Part {
  Body* body = nullptr;
  int value = -1;  // -1: an operand that is left out
  explicit operator bool() const { return value >= 0; }
};
Part operator+(Part a, Part b);
Part operator-(Part a, Part b);
Part operator*(Part a, Part b);
Part operator/(Part a, Part b);

class Body {
 public:
  // Its inputs are the operands of the call.
  explicit Body(const Call& call);
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;

  const Call& call() const { return call_; }
  Part operand(int number);
  Part constant(Known known);
  Part number(double value, DType type);                // a scalar
  Part integers(const std::vector<std::int64_t>& all);  // of 64 bits, one dimension

  using Attributes = std::map<std::string, Attribute>;
  Part node(std::string operation, const std::vector<Part>& operands, Attributes attributes = {});
  std::vector<Part> nodes(std::string operation, const std::vector<Part>& operands, std::size_t results,
                          Attributes attributes = {});

  Part reshaped(Part x, const Shape& shape);
  Part transposed(Part x, const std::vector<std::int64_t>& order);
  Part concatenated(const std::vector<Part>& parts, std::int64_t axis);
  Part part(Part x, std::int64_t axis, std::int64_t begin, std::int64_t end, std::int64_t step = 1);
  Part cast(Part x, DType type);
  Part mean(Part x, const std::vector<std::int64_t>& axes);  // which stay as 1

  Graph results(const std::vector<Part>& results) &&;

 private:
  Part value(Value value);

  const Call& call_;
  Graph graph_;
};

// Attributes of the call by these names, as they are.
Body::Attributes kept(const Call& call, std::initializer_list<const char*> names);

// A row of an operator that others compute.
Row composed(std::string_view name, int least, int most, std::string attributes,
             std::function<Graph(const Call& call)> body);

}  // namespace graft::graph
