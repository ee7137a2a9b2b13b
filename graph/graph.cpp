#include "graph/graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/one_line.h"
#include "base/text.h"

namespace graft::graph {
namespace {

constexpr std::size_t longest_name = 80;
constexpr std::size_t most_shown = 8;  // elements of lists

std::string type_text(const Value& value) {
  return fmt::format("{} {}", value.type ? codegen::name_of(*value.type) : "?",
                     value.shape ? to_text(*value.shape) : "[?]");
}

template <class T>
std::string list_text(const std::vector<T>& list) {
  const bool long_one = list.size() > most_shown;
  const std::vector<T> begin(list.begin(), list.begin() + std::ptrdiff_t(long_one ? most_shown : list.size()));
  return fmt::format("[{}{}]", fmt::join(begin, ","), long_one ? ",..." : "");
}

std::string attribute_text(const Attribute& attribute) {
  return std::visit(
      [](const auto& value) -> std::string {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::string>)
          return in_quotes(value);
        else if constexpr (std::is_same_v<T, Known>)
          return fmt::format("{} {}", codegen::name_of(value->type), to_text(value->shape));
        else if constexpr (std::is_same_v<T, std::shared_ptr<const Graph>>)
          return fmt::format("graph of {} nodes", value->nodes.size());
        else if constexpr (std::is_same_v<T, std::vector<std::string>>)
          return fmt::format("{} texts", value.size());
        else if constexpr (std::is_arithmetic_v<T>)
          return fmt::format("{}", value);
        else
          return list_text(value);
      },
      attribute);
}

std::string value_text(const Graph& graph, int value) {
  return value < 0 ? "-" : base::one_line(graph.values[std::size_t(value)].name, longest_name);
}

std::string values_text(const Graph& graph, const std::vector<int>& values) {
  std::vector<std::string> names;
  for (const int value : values) names.push_back(value_text(graph, value));
  return fmt::format("{}", fmt::join(names, ", "));
}

// Names of values around it that a node's graphs use.
void collect_outer(const Node& node, std::vector<std::string_view>& names) {
  for (const auto& [name, attribute] : node.attributes) {
    const auto* graph = std::get_if<std::shared_ptr<const Graph>>(&attribute);
    if (!graph) continue;
    for (const Value& value : (*graph)->values)
      if (value.origin == Value::Origin::outer) names.push_back(value.name);
  }
}

}  // namespace

std::string in_quotes(std::string_view foreign) {
  return fmt::format("'{}'", base::one_line(foreign, longest_name));
}

std::string label(const Graph& graph, const Node& node) {
  const std::string operation = base::one_line(node.operation, longest_name);
  if (!node.name.empty()) return fmt::format("node {} ({})", in_quotes(node.name), operation);
  if (!graph.nodes.empty() && &node >= graph.nodes.data() && &node < graph.nodes.data() + graph.nodes.size())
    return fmt::format("node {} ({})", &node - graph.nodes.data(), operation);
  return fmt::format("node without a name ({})", operation);
}

int add_constant(Graph& graph, std::string name, Known array) {
  graph.values.push_back({.name = std::move(name),
                          .origin = Value::Origin::constant,
                          .type = array->type,
                          .shape = array->shape,
                          .known = std::move(array)});
  return int(graph.values.size()) - 1;
}

Graph checked(Graph graph, std::string_view place) {
  const std::size_t count = graph.values.size();
  const auto valid = [&](int value) { return value >= 0 && std::size_t(value) < count; };
  const auto fail = [&](const std::string& message) { throw base::UserError(place, message); };
  std::vector<int> writer(count, -1);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    for (const int operand : node.operands)
      if (operand != -1 && !valid(operand)) fail(fmt::format("{}: an operand is not a value", label(graph, node)));
    for (const int result : node.results) {
      if (result == -1) continue;
      if (!valid(result)) fail(fmt::format("{}: a result is not a value", label(graph, node)));
      const Value& value = graph.values[std::size_t(result)];
      if (value.origin != Value::Origin::computed)
        fail(fmt::format("{}: computes {}, which is given already", label(graph, node), in_quotes(value.name)));
      if (writer[std::size_t(result)] >= 0)
        fail(fmt::format("{}: computes {}, as {} does", label(graph, node), in_quotes(value.name),
                         label(graph, graph.nodes[std::size_t(writer[std::size_t(result)])])));
      writer[std::size_t(result)] = int(n);
    }
  }
  const auto has_origin = [&](int value) {
    return graph.values[std::size_t(value)].origin != Value::Origin::computed || writer[std::size_t(value)] >= 0;
  };
  std::unordered_map<std::string_view, int> by_name;
  for (std::size_t v = 0; v < count; ++v) by_name.emplace(graph.values[v].name, int(v));
  // Nodes in order of the file as far as their operands, and what their graphs use, allow it.
  std::vector<int> waits(graph.nodes.size());
  std::vector<std::vector<int>> readers(count);
  std::vector<int> ready;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    std::vector<int> needed = graph.nodes[n].operands;
    std::vector<std::string_view> outer;
    collect_outer(graph.nodes[n], outer);
    for (const std::string_view name : outer)
      if (const auto found = by_name.find(name); found != by_name.end()) needed.push_back(found->second);
    for (const int operand : needed) {
      if (operand == -1) continue;
      if (!has_origin(operand))
        fail(fmt::format("{}: operand {} is neither given nor computed", label(graph, graph.nodes[n]),
                         in_quotes(graph.values[std::size_t(operand)].name)));
      if (writer[std::size_t(operand)] < 0) continue;
      readers[std::size_t(operand)].push_back(int(n));
      ++waits[n];
    }
  }
  for (std::size_t n = graph.nodes.size(); n-- > 0;)
    if (waits[n] == 0) ready.push_back(int(n));
  std::vector<int> order;
  while (!ready.empty()) {
    const int n = ready.back();
    ready.pop_back();
    order.push_back(n);
    const std::vector<int>& results = graph.nodes[std::size_t(n)].results;
    for (auto result = results.rbegin(); result != results.rend(); ++result) {
      if (*result == -1) continue;
      const std::vector<int>& waiting = readers[std::size_t(*result)];
      for (auto reader = waiting.rbegin(); reader != waiting.rend(); ++reader)
        if (--waits[std::size_t(*reader)] == 0) ready.push_back(*reader);
    }
  }
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    if (waits[n] > 0)
      fail(fmt::format("{}: waits for its own result: the graph has a cycle, or a node after one",
                       label(graph, graph.nodes[n])));
  for (const int input : graph.inputs)
    if (!valid(input)) fail("an input is not a value");
  for (const int output : graph.outputs) {
    if (!valid(output)) fail("an output is not a value");
    if (!has_origin(output))
      fail(fmt::format("output {} is neither given nor computed", in_quotes(graph.values[std::size_t(output)].name)));
  }
  std::vector<Node> nodes;
  nodes.reserve(order.size());
  for (const int n : order) nodes.push_back(std::move(graph.nodes[std::size_t(n)]));
  graph.nodes = std::move(nodes);
  return graph;
}

Graph with_constants(Graph graph, const std::map<std::string, Known>& numbers, std::string_view place) {
  std::vector<std::string> names;
  for (const int input : graph.inputs) names.push_back(graph.values[std::size_t(input)].name);
  for (const auto& [name, known] : numbers)
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw base::UserError(place, fmt::format("'{}' is not an input{}", name, base::did_you_mean(name, names)));
  std::vector<int> kept;
  for (const int input : graph.inputs) {
    Value& value = graph.values[std::size_t(input)];
    const auto given = numbers.find(value.name);
    if (given == numbers.end()) {
      kept.push_back(input);
      continue;
    }
    if (value.type && *value.type != given->second->type)
      throw base::UserError(place, fmt::format("input {}: its type is {}; {} is given", in_quotes(value.name),
                                               codegen::name_of(*value.type), codegen::name_of(given->second->type)));
    value.origin = Value::Origin::constant;
    value.type = given->second->type;
    value.shape = given->second->shape;
    value.known = given->second;
  }
  graph.inputs = std::move(kept);
  return graph;
}

Graph with_numbers(Graph graph, const Numbers& numbers, std::string_view place) {
  std::map<std::string, Known> all;
  for (const auto& [name, given] : numbers) {
    const auto input = std::find_if(graph.inputs.begin(), graph.inputs.end(),
                                    [&](int value) { return graph.values[std::size_t(value)].name == name; });
    if (input == graph.inputs.end()) {
      all[name] = nullptr;  // with_constants says what the inputs are
      continue;
    }
    const Value& value = graph.values[std::size_t(*input)];
    const auto refuse = [&](const std::string& what) {
      throw base::UserError(place, fmt::format("input {}: {}", in_quotes(name), what));
    };
    if (!value.type || !value.shape) refuse("its shape is open");
    if (elements_of(*value.shape) != std::int64_t(given.size()))
      refuse(fmt::format("its shape is {}; {} is given", to_text(*value.shape), base::counted(given.size(), "number")));
    for (const double number : given) {
      const bool holds = codegen::is_floating(*value.type) ||
                         (number == std::floor(number) && number >= codegen::lowest(*value.type) &&
                          number <= codegen::highest(*value.type));
      if (!holds) refuse(fmt::format("{} is not a number of {}", number, codegen::name_of(*value.type)));
    }
    all[name] = known(*value.type, *value.shape, codegen::Elements(given));
  }
  return with_constants(std::move(graph), all, place);
}

namespace {

class Functional {
 public:
  Functional(const Functions& functions, std::string_view place) : functions_(functions), place_(place) {}

  void take(Graph& graph) {
    for (Node& node : graph.nodes) {
      operations_.push_back(node.operation);
      for (auto& [name, attribute] : node.attributes)
        if (auto* const inner = std::get_if<std::shared_ptr<const Graph>>(&attribute)) *inner = taken(**inner);
      if (node.body) node.body = taken(*node.body);
      if (const auto function = functions_.find(node.operation); function != functions_.end())
        take(graph, node, function->second);
    }
  }

  void check() const {
    for (const auto& [operation, function] : functions_)
      if (!attributes_.contains(operation))
        throw base::UserError(place_, fmt::format("no node is a '{}', which function '{}' is to compute{}", operation,
                                                  function.function, base::did_you_mean(operation, operations_)));
  }

 private:
  std::shared_ptr<const Graph> taken(Graph graph) {
    take(graph);
    return std::make_shared<const Graph>(std::move(graph));
  }

  void take(const Graph& graph, Node& node, const codegen::Foreign& function) {
    const auto fail = [&](const std::string& what) {
      throw base::UserError(place_, fmt::format("{}: {}", label(graph, node), what));
    };
    const auto [first, is_new] = attributes_.try_emplace(node.operation, node.attributes);
    if (!is_new && first->second != node.attributes)
      fail("has other attributes than one before, and the function that computes both gets none of them");
    if (node.results.size() != 1 || node.results[0] < 0) fail("a function computes one result");
    const Value& result = graph.values[std::size_t(node.results[0])];
    if (!result.type || !result.shape)
      fail(
          fmt::format("the file does not say the type and shape of {}, which a function computes; write them there "
                      "(value_info)",
                      in_quotes(result.name)));
    node.attributes = {{"shape", *result.shape}, {"type", std::string(codegen::name_of(*result.type))}};
    node.body = nullptr;
    node.foreign = std::make_shared<const codegen::Foreign>(function);
  }

  const Functions& functions_;
  const std::string_view place_;
  std::map<std::string, std::map<std::string, Attribute>> attributes_;  // by operation that is found
  std::vector<std::string> operations_;
};

}  // namespace

Graph with_functions(Graph graph, const Functions& functions, std::string_view place) {
  Functional all(functions, place);
  all.take(graph);
  all.check();
  return graph;
}

std::string to_text(const Graph& graph) {
  std::string text;
  const auto line = [&](std::string_view head, int value) {
    text += fmt::format("{} {}: {}\n", head, value_text(graph, value), type_text(graph.values[std::size_t(value)]));
  };
  for (const int input : graph.inputs) line("input", input);
  for (std::size_t v = 0; v < graph.values.size(); ++v)
    if (graph.values[v].origin == Value::Origin::constant) line("constant", int(v));
  for (const Node& node : graph.nodes) {
    std::vector<std::string> attributes;
    for (const auto& [name, attribute] : node.attributes)
      attributes.push_back(fmt::format("{}={}", base::one_line(name, longest_name), attribute_text(attribute)));
    std::vector<std::string> types;
    for (const int result : node.results)
      if (result >= 0) types.push_back(type_text(graph.values[std::size_t(result)]));
    text += fmt::format("{}: {} = {}({}){}{}\n", values_text(graph, node.results), fmt::join(types, ", "),
                        base::one_line(node.operation, longest_name), values_text(graph, node.operands),
                        attributes.empty() ? "" : " ", fmt::join(attributes, " "));
  }
  for (const int output : graph.outputs) line("output", output);
  return text;
}

}  // namespace graft::graph
