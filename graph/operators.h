// What nodes compute: the table of ONNX operators that are known. Each row gives for a node, with the types and shapes
// of its operands and the numbers of those that are constants, the types and shapes of its results and how each comes
// about: as a constant, as the same elements in another shape, or by an index expression (codegen/expression); or it
// gives a graph of other operators. No code
// outside of graph/operators/ and fold.cpp knows the name of an operator.
//
// All versions of the operators are meant in which they compute what version 7 does, or later ones do (Graph::version):
// what became an operand, as Clip's limits, is read from attributes in older ones.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "codegen/expression/computation.h"
#include "codegen/expression/foreign.h"
#include "graph/graph.h"

namespace graft::graph {

struct Operand {
  DType type = DType::f32;
  Shape shape;
  Known known = nullptr;  // of a constant
};
using Operands = std::vector<std::optional<Operand>>;  // nothing for those left out

// One result of a node: exactly one of known, same_as and computation; `foreign` with the computation that it has.
struct Result {
  DType type = DType::f32;
  Shape shape;
  Known known = nullptr;
  int same_as = -1;  // the operand whose elements it has, in row-major order
  // Its operands are tensors named x0, x1, ... by number, those that it reads; the output is y.
  std::optional<codegen::Computation> computation = {};
  std::shared_ptr<const codegen::Foreign> foreign = nullptr;
};

// By result of the node. A Reason for what is not supported: an operator that is not in the table, an attribute, a
// type. UserError "<place>: node ...: ..." for what ONNX does not allow: wrong ranks, extents that do not match.
base::Result<std::vector<Result>> results_of(const Graph& graph, const Node& node, const Operands& operands,
                                             std::string_view place);

// Operators that others compute have a graph in place of results: for a node with these operands, which are its inputs.
// Reasons and errors as above.
bool is_composed(const Graph& graph, const Node& node, const Operands& operands);
// The number of results before a further one that says how many of their rows count; -1: there is none.
int results_before_count(const std::string& operation);
base::Result<Graph> body_of(const Graph& graph, const Node& node, const Operands& operands, std::string_view place);

// The largest number of rows of a result where only a run knows how many count: for each there is a constant.
constexpr std::int64_t most_counted_rows = std::int64_t(1) << 24;

// What reasons say of an operand that only a run knows.
constexpr std::string_view not_constant = "that is not a constant";

// The node's operands as its graph knows them. Nothing if the type or shape of one is not known.
std::optional<Operands> operands_of(const Graph& graph, const Node& node);

// Whether the table has the operator, whatever its operands are.
bool is_known(const std::string& operation);
std::string why_not_known(const std::string& operation);  // and what its user can do
std::vector<std::string> known_operators();               // in alphabetical order

// The operand of the node that a tensor of the computation is; -1 for the output and what is in between.
int operand_of(const codegen::Tensor& tensor);

}  // namespace graft::graph
