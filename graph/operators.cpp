#include "graph/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "graph/operators/call.h"

namespace graft::graph {
namespace {

// Expressions of more would take a time that grows with the square of their number.
constexpr std::size_t most_operands = 1024, most_dimensions = 32;

const std::map<std::string_view, Row>& table() {
  static const std::map<std::string_view, Row> rows = [] {
    std::map<std::string_view, Row> all;
    for (const auto part :
         {element_wise_rows, product_rows, window_rows, reduction_rows, normalisation_rows, movement_rows, shape_rows,
          selection_rows, resize_rows, recurrent_rows, quantised_rows, composed_rows, attention_rows,
          quantised_composed_rows, few_bits_rows, sampling_rows, signal_rows, counted_rows, random_rows})
      for (const Row& row : part()) all.emplace(row.name, row);
    return all;
  }();
  return rows;
}

// The first version in which operators are what version 7 has, if that is earlier. Those of other meanings before, as
// Add without broadcasting and BatchNormalization that trains, are known from version 7 on.
struct Since {
  int version;
  std::string_view names;
};
constexpr Since earlier[] = {
    {1,
     "ArgMax ArgMin Constant Conv ConvTranspose DepthToSpace Flatten Gather GlobalAveragePool GlobalMaxPool Hardmax"
     " Identity LRN LogSoftmax MatMul MaxPool Not ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean"
     " ReduceMin ReduceProd ReduceSum ReduceSumSquare Shape Size Slice Softmax Softplus Softsign SpaceToDepth Squeeze"
     " Transpose Unsqueeze"},
    {2, "Pad Split"},
    {4, "Concat"},
    {5, "Reshape"},
    {6,
     "Abs Cast Ceil Clip Elu Exp Floor HardSigmoid InstanceNormalization LeakyRelu Log Max Mean Min Neg Reciprocal Relu"
     " Selu Sigmoid Sqrt Sum Tanh Tile"},
};

int first_version(std::string_view operation) {
  for (const Since& since : earlier) {
    const std::vector<std::string_view> names = base::words(since.names);
    if (std::find(names.begin(), names.end(), operation) != names.end()) return since.version;
  }
  return 7;
}

int version_of(const Graph& graph, const Node& node) {
  return node.version != 0 ? node.version : graph.version;
}

// Refuses what no row allows.
void check(const Row& row, const Graph& graph, const Node& node, const Operands& operands) {
  const int version = version_of(graph, node);
  if (const int first = version < 7 ? first_version(node.operation) : 0; version < first)
    throw Unsupported{fmt::format("version {} of operators, where it is known from {} on", version, first)};
  std::size_t given = operands.size();
  while (given > 0 && !operands[given - 1]) --given;
  if (int(given) < row.least || (row.most >= 0 && int(given) > row.most))
    throw Malformed{fmt::format("has {}", base::counted(given, "operand"))};
  if (operands.size() > most_operands) throw Unsupported{fmt::format("more than {} operands", most_operands)};
  for (const std::optional<Operand>& operand : operands)
    if (operand && operand->shape.size() > most_dimensions)
      throw Unsupported{fmt::format("operands of more than {} dimensions", most_dimensions)};
  const std::vector<std::string_view> allowed = base::words(row.attributes);
  for (const auto& [name, attribute] : node.attributes)
    if (std::find(allowed.begin(), allowed.end(), name) == allowed.end())
      throw Unsupported{fmt::format("attribute {}", in_quotes(name))};
}

std::size_t wanted_of(const Node& node) {
  std::size_t wanted = node.results.size();
  while (wanted > 0 && node.results[wanted - 1] < 0) --wanted;
  return wanted;
}

Meaning meaning_of(const Row& row, const Graph& graph, const Node& node, const Operands& operands) {
  if (!row.meaning) throw Unsupported{"an operator that folding takes apart"};
  Meaning results = row.meaning(Call(node, operands, version_of(graph, node)));
  const std::size_t wanted = wanted_of(node);
  if (results.size() < wanted) throw Malformed{fmt::format("has {}", base::counted(wanted, "result"))};
  for (Result& result : results) {
    const std::int64_t elements = elements_of(result.shape);
    if (elements < 0) throw Malformed{fmt::format("its result {} is too large", to_text(result.shape))};
    if (elements == 0 && !result.known)
      result = constant(known(result.type, result.shape, std::span<const std::int64_t>()));
  }
  return results;
}

Graph written_out(const Row& row, const Graph& graph, const Node& node, const Operands& operands) {
  Graph body = row.body(Call(node, operands, version_of(graph, node)));
  if (const std::size_t wanted = wanted_of(node); body.outputs.size() < wanted)
    throw Malformed{fmt::format("has {}", base::counted(wanted, "result"))};
  for (Node& each : body.nodes) each.name = node.name;
  return body;
}

// What `use` makes of the row of a node.
template <class T, class Use>
base::Result<T> by_row(const Graph& graph, const Node& node, const Operands& operands, std::string_view place,
                       const Use& use) {
  const auto row = table().find(node.foreign ? "graft.Function" : node.operation);
  if (row == table().end()) return base::Reason{why_not_known(node.operation)};
  try {
    check(row->second, graph, node, operands);
    return use(row->second, graph, node, operands);
  } catch (const Malformed& malformed) {
    throw base::UserError(place, fmt::format("{}: {}", label(graph, node), malformed.what));
  } catch (const Unsupported& unsupported) {
    return base::Reason{unsupported.what};
  }
}

}  // namespace

base::Result<std::vector<Result>> results_of(const Graph& graph, const Node& node, const Operands& operands,
                                             std::string_view place) {
  return by_row<Meaning>(graph, node, operands, place, meaning_of);
}

bool is_composed(const Graph& graph, const Node& node, const Operands& operands) {
  const auto row = table().find(node.operation);
  if (node.foreign || row == table().end() || !row->second.body) return false;
  return !row->second.needs_body || row->second.needs_body(Call(node, operands, version_of(graph, node)));
}

int results_before_count(const std::string& operation) {
  return table().at(operation).results;
}

base::Result<Graph> body_of(const Graph& graph, const Node& node, const Operands& operands, std::string_view place) {
  return by_row<Graph>(graph, node, operands, place, written_out);
}

std::string why_not_known(const std::string& operation) {
  const std::size_t dot = operation.rfind('.');
  if (dot == std::string::npos)
    return "an operator that is not known; export the model with other operators, or give a C function that computes "
           "it";
  return fmt::format(
      "an operator that is not known, of the domain {}; export the model with ONNX's own operators, or with this one as"
      " a function of the model, or give a C function that computes it",
      in_quotes(operation.substr(0, dot)));
}

std::optional<Operands> operands_of(const Graph& graph, const Node& node) {
  Operands operands;
  for (const int number : node.operands) {
    if (number < 0) {
      operands.emplace_back();
      continue;
    }
    const Value& value = graph.values[std::size_t(number)];
    if (!value.type || !value.shape) return std::nullopt;
    operands.push_back(Operand{*value.type, *value.shape, value.known});
  }
  return operands;
}

bool is_known(const std::string& operation) {
  return table().contains(operation);
}

std::vector<std::string> known_operators() {
  std::vector<std::string> names;
  for (const auto& [name, row] : table())
    if (!name.starts_with("graft.")) names.emplace_back(name);
  return names;
}

int operand_of(const codegen::Tensor& tensor) {
  if (tensor.role != codegen::Role::input && tensor.role != codegen::Role::constant) return -1;
  int number = -1;
  std::from_chars(tensor.name.data() + 1, tensor.name.data() + tensor.name.size(), number);
  return number;
}

}  // namespace graft::graph
