// A network as a value: what flows (values), what computes (nodes), and weights, each held once. Passes take a graph
// and give a graph (fold.h) or look at it (reference.h). Nodes name their operation as ONNX does; operators.h says what
// that computes. Nothing here knows where a graph came from.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "codegen/expression/foreign.h"
#include "graph/array.h"

namespace graft::graph {

struct Graph;
using Attribute = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>,
                               std::vector<std::string>, Known, std::shared_ptr<const Graph>>;

struct Value {
  // input: given to every run. constant: `known`. computed: by the one node that has it as a result. outer: in a graph
  // that is an attribute, a value of the graph around it, by name.
  enum class Origin { input, constant, computed, outer };
  std::string name;
  Origin origin = Origin::computed;
  // What is not known yet: of computed values until they are folded all that a file does not say.
  std::optional<DType> type = {};
  std::optional<Shape> shape = {};
  Known known = nullptr;  // of a constant, and of an input without elements
  // For inputs and outputs of a model, where `type` has more values: "bool", "int16", "uint16", "uint32", "uint64".
  std::string declared = {};
};

struct Node {
  std::string name;
  std::string operation;  // "Conv"; of another domain than ONNX's own "domain.Name"
  std::map<std::string, Attribute> attributes;
  std::vector<int> operands;  // values; -1: left out
  std::vector<int> results;   // values; -1: not wanted
  // What a function that the file defines computes of its operands.
  std::shared_ptr<const Graph> body = nullptr;
  int version = 0;  // of ONNX's operators; 0: that of its graph
  // A user's function that computes it, whatever the operation: without types and numbers, which follow from operands.
  std::shared_ptr<const codegen::Foreign> foreign = nullptr;
};

struct Graph {
  std::string name;
  int version = 0;  // of ONNX's operators ("opset")
  std::vector<Value> values;
  std::vector<Node> nodes;  // each after those whose results it takes
  std::vector<int> inputs, outputs;
};

// "node 'conv1' (Conv)", or "node 12 (Conv)" for one without a name; fit for a message, whatever the file says.
std::string label(const Graph& graph, const Node& node);
// A name from a file, in quotes, as one short line.
std::string in_quotes(std::string_view foreign);

// Appends a value that is known before a run; its number.
int add_constant(Graph& graph, std::string name, Known array);

// Brings nodes into an order in which they can run. UserError "<place>: ..." for a value that two nodes compute, or
// none; for an operand that is not a value; for nodes that wait for each other.
Graph checked(Graph graph, std::string_view place);

// The graph for inputs that are always the same: `numbers` by name, such as the sampling rate that a model asks for.
// They are constants then, of these shapes. UserError for a name that is not an input, or numbers of another type.
Graph with_constants(Graph graph, const std::map<std::string, Known>& numbers, std::string_view place);

// The same for numbers in the input's own type and shape. UserError also for another number of them, an input whose
// shape is open, and numbers that its type does not hold.
using Numbers = std::map<std::string, std::vector<double>>;
Graph with_numbers(Graph graph, const Numbers& numbers, std::string_view place);

// Nodes of these operations are computed by a user's functions (without types and numbers), in graphs within nodes,
// too. UserError for an operation that no node has, for several results, or a result whose shape the file does not say,
// and for nodes of one operation with different attributes, which a function does not get.
using Functions = std::map<std::string, codegen::Foreign>;
Graph with_functions(Graph graph, const Functions& functions, std::string_view place);

// For people: inputs, constants, a line for each node, outputs.
std::string to_text(const Graph& graph);

}  // namespace graft::graph
