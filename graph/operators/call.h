// Private to the operators: a node with its operands, as the rows of the table see it, and what writes index
// expressions.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/operators.h"

namespace graft::graph {

// Thrown by rows: what ONNX does not allow, and what is not supported. results_of makes a UserError and a Reason of
// them.
struct Malformed {
  std::string what;
};
struct Unsupported {
  std::string what;
};

class Call {
 public:
  Call(const Node& node, const Operands& operands, int version) : node_(node), operands_(operands), version_(version) {}

  const std::string& name() const { return node_.name; }  // of the node
  const codegen::Foreign* function() const { return node_.foreign.get(); }
  int version() const { return version_; }
  int operands() const { return int(operands_.size()); }
  int results() const { return int(node_.results.size()); }
  bool wants(int result) const;
  void refuse_result(int result, std::string_view name) const;  // Unsupported if it is wanted

  bool has(int operand) const;
  const Operand& operand(int number) const;  // Malformed if it is left out
  const Shape& shape(int number) const { return operand(number).shape; }
  DType type(int number) const { return operand(number).type; }
  int rank(int number) const { return int(shape(number).size()); }
  bool is_known(int number) const { return has(number) && operand(number).known != nullptr; }
  // The numbers of an operand that must be a constant: Unsupported otherwise.
  std::vector<std::int64_t> integers(int number) const;
  std::vector<double> numbers(int number) const;
  double scalar(int number) const;  // one element
  // All operands have the type of the first.
  void same_types() const;

  bool has_attribute(std::string_view name) const;
  std::int64_t integer(const std::string& name, std::int64_t otherwise) const;
  double number(const std::string& name, double otherwise) const;
  std::string text(const std::string& name, const std::string& otherwise) const;
  std::optional<std::vector<std::int64_t>> list(const std::string& name) const;
  std::optional<std::vector<double>> number_list(const std::string& name) const;
  const Attribute* attribute(const std::string& name) const;  // nullptr if it is not there
  // An attribute before a version, an operand from it on; nothing if neither is there.
  std::optional<std::vector<std::int64_t>> list(const std::string& name, int operand, int since) const;

  // An axis counted from the end if it is negative; Malformed outside of `rank`.
  int axis(std::int64_t axis, std::int64_t rank) const;
  std::vector<int> axes(const std::vector<std::int64_t>& axes, std::int64_t rank) const;  // rising, each once

 private:
  const Node& node_;
  const Operands& operands_;
  const int version_;
};

// An axis of a stage.
struct Axis {
  std::string name;
  std::int64_t extent = 1;
};
using Axes = std::vector<Axis>;
using Index = std::vector<std::string>;  // forms, one for each dimension

// i0, i1, ... over a shape.
Axes axes_over(const Shape& shape, std::string_view letter = "i");
Index index_of(const Axes& axes);        // their names
std::string number_text(double number);  // in parentheses if negative; Unsupported if not finite
std::string form(std::int64_t factor, std::string_view axis, std::int64_t plus = 0);  // 2*i + 1

// An index expression as it is written: operands are declared when they are first read.
class Expression {
 public:
  explicit Expression(const Call& call) : call_(call), declared_(std::size_t(call.operands())) {}

  // A load of operand `number`. One without elements may be read where nothing is: in a sum and the like over nothing.
  std::string operand(int number, const Index& index);
  // The same, broadcast to `axes`, which are those of the result: its dimensions are the last ones. A constant of one
  // element is written as the number.
  std::string broadcast(int number, const Axes& axes);
  // An operand of one element; Malformed if it has others.
  std::string scalar(int number);
  void literal(std::string_view tensor, DType type, const Shape& shape, const std::vector<double>& numbers);
  // tensor[axes | reduced] combine value; over nothing it is 0, or infinity for minima. The tensor "y" is the output.
  // With `element` it writes that instead.
  void stage(std::string_view tensor, DType type, const Axes& axes, std::string_view value,
             std::string_view combine = "=", const Axes& reduced = {}, const Index& element = {});
  // What the stages until here make, the last of which wrote y. Known if it has no elements, whatever they read.
  Result result(DType type, Shape shape) const;

 private:
  const Call& call_;
  std::vector<bool> declared_;
  int empty_ = -1;  // an operand without elements that a stage reads
  std::string declarations_, stages_;
};

std::string load(std::string_view tensor, const Index& index);
Result same_elements(const Call& call, Shape shape, int operand = 0);
Result constant(Known known);
// Element by element, `value` over the axes of the result's shape.
Result element_wise(Expression& expression, DType type, const Shape& shape, std::string_view value);

// Unsupported if each element is compared with more than a run has time for.
void bound_comparisons(const Shape& shape, std::int64_t each, std::string_view what);

// Malformed if they do not match.
Shape broadcast(const std::vector<Shape>& shapes);
std::int64_t product(const Shape& shape, std::size_t begin, std::size_t end);

using Meaning = std::vector<Result>;
struct Row {
  std::string_view name;
  int least = 1, most = 1;  // operands; -1: any number
  std::string attributes;   // that are known, separated by spaces
  // What computes the results, or other operators that do (body.h): if there are both, those where `needs_body`.
  std::function<Meaning(const Call& call)> meaning = nullptr;
  std::function<Graph(const Call& call)> body = nullptr;
  int results = -1;  // of a body that may have one more: how many of the others' rows count (counted.cpp)
  bool (*needs_body)(const Call& call) = nullptr;
};
std::vector<Row> element_wise_rows();
std::vector<Row> product_rows();
std::vector<Row> window_rows();
std::vector<Row> reduction_rows();
std::vector<Row> normalisation_rows();
std::vector<Row> movement_rows();
std::vector<Row> shape_rows();
std::vector<Row> selection_rows();
std::vector<Row> resize_rows();
std::vector<Row> recurrent_rows();
std::vector<Row> quantised_rows();
std::vector<Row> composed_rows();
std::vector<Row> few_bits_rows();
std::vector<Row> attention_rows();
std::vector<Row> quantised_composed_rows();
std::vector<Row> sampling_rows();
std::vector<Row> signal_rows();
std::vector<Row> counted_rows();
std::vector<Row> random_rows();

}  // namespace graft::graph
