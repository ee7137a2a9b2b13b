#include "graph/fold.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "graph/operators.h"
#include "graph/reference.h"

namespace graft::graph {
namespace {

constexpr std::size_t most_named = 30;  // kinds of unsupported nodes in a message
constexpr std::int64_t most_rounds = 1024;

// A graph whose nodes are being gone through, and where its values are in the result.
struct Scope {
  const Graph& graph;
  const Scope* around = nullptr;
  std::string suffix = {};   // of its values' names: a round of a loop has values of its own
  std::vector<int> to = {};  // by value; -1: not there yet
  std::unordered_map<std::string_view, int> by_name = {};
  bool is_model() const { return around == nullptr; }
};

class Folder {
 public:
  Folder(std::string_view place, const FoldLimits& limits) : place_(place), limits_(limits) {}

  Graph folded(const Graph& graph) {
    result_.name = graph.name;
    result_.version = graph.version;
    Scope scope = scope_of(graph, nullptr, "");
    is_output_.assign(graph.values.size(), false);
    for (const int output : graph.outputs) is_output_[std::size_t(output)] = true;
    for (const int input : graph.inputs) result_.inputs.push_back(scope.to[std::size_t(input)]);
    go_through(scope);
    if (!unsupported_.empty()) refuse();
    for (const int output : graph.outputs) result_.outputs.push_back(scope.to[std::size_t(output)]);
    return std::move(result_);
  }

 private:
  struct Kind {
    std::int64_t count = 0;
    std::string first;
  };

  [[noreturn]] void fail(const std::string& message) const { throw base::UserError(place_, message); }

  [[noreturn]] void refuse() const {
    std::vector<std::string> kinds;
    std::int64_t count = 0;
    for (const auto& [kind, nodes] : unsupported_) {
      count += nodes.count;
      kinds.push_back(fmt::format("{} x {}: {}, as {}", nodes.count, kind.first, kind.second, nodes.first));
    }
    const std::size_t all = kinds.size();
    if (all > most_named) {
      kinds.resize(most_named);
      kinds.push_back(fmt::format("{} more kinds", all - most_named));
    }
    fail(fmt::format("{} cannot be computed: {}", base::counted(count, "node"), fmt::join(kinds, "; ")));
  }

  void not_supported(const Graph& graph, const Node& node, const std::string& reason) {
    Kind& kind = unsupported_[{in_quotes(node.operation), reason}];
    if (kind.count++ == 0) kind.first = label(graph, node);
  }

  int added(Value value) {
    result_.values.push_back(std::move(value));
    return int(result_.values.size()) - 1;
  }

  // A graph within another has the inputs `given`.
  Scope scope_of(const Graph& graph, const Scope* around, const std::string& suffix,
                 const std::vector<int>& given = {}) {
    walked_ += std::int64_t(graph.values.size() + graph.nodes.size()) + 1;
    if (walked_ > limits_.most_parts)
      fail(fmt::format("written out, its loops have more than {} parts", limits_.most_parts));
    Scope scope{graph, around, suffix};
    scope.to.assign(graph.values.size(), -1);
    for (std::size_t i = 0; i < std::min(given.size(), graph.inputs.size()); ++i)
      scope.to[std::size_t(graph.inputs[i])] = given[i];
    for (std::size_t v = 0; v < graph.values.size(); ++v) {
      const Value& value = graph.values[v];
      if (value.origin != Value::Origin::outer) scope.by_name.emplace(value.name, int(v));
      const bool has_origin = value.origin == Value::Origin::input || value.origin == Value::Origin::constant;
      if (has_origin && scope.to[v] < 0) scope.to[v] = added(value);
      if (value.origin == Value::Origin::input && value.shape && elements_of(*value.shape) == 0)  // nothing to wait for
        result_.values[std::size_t(scope.to[v])].known =
            known(*value.type, *value.shape, std::span<const std::int64_t>());
      if (value.origin != Value::Origin::outer) continue;
      for (const Scope* outer = around; outer && scope.to[v] < 0; outer = outer->around)
        if (const auto found = outer->by_name.find(value.name); found != outer->by_name.end())
          scope.to[v] = outer->to[std::size_t(found->second)];
      if (scope.to[v] < 0)
        fail(fmt::format("{} is used in a graph within, and not known there", in_quotes(value.name)));
    }
    return scope;
  }

  void go_through(Scope& scope) {
    for (const Node& node : scope.graph.nodes) {
      Node moved = node;
      for (int& operand : moved.operands)
        if (operand >= 0) operand = scope.to[std::size_t(operand)];
      if (node.operation == "If")
        branch(scope, node, moved);
      else if (node.operation == "Loop")
        loop(scope, node, moved);
      else
        compute(scope, node, std::move(moved));
    }
  }

  // Results of which nothing is known, so that the walk can go on and find all that is not supported.
  void leave_open(Scope& scope, const Node& node) {
    for (const int value : node.results)
      if (value >= 0)
        scope.to[std::size_t(value)] = added({.name = scope.graph.values[std::size_t(value)].name + scope.suffix});
  }

  void branch(Scope& scope, const Node& node, const Node& moved) {
    const auto operands = operands_of(result_, moved);
    const std::string name = label(scope.graph, node);
    if (moved.operands.size() != 1 || moved.operands[0] < 0) fail(fmt::format("{}: its condition is missing", name));
    if (!operands) return leave_open(scope, node);
    const Known& condition = (*operands)[0]->known;
    if (!condition || condition->size() != 1) {
      not_supported(scope.graph, node, "a condition that is not a constant");
      return leave_open(scope, node);
    }
    const Graph& graph = graph_of(scope, node, condition->number(0) != 0 ? "then_branch" : "else_branch");
    Scope inner = scope_of(graph, &scope, scope.suffix);
    go_through(inner);
    if (graph.outputs.size() < node.results.size())
      fail(fmt::format("{}: its branch has {}", name, base::counted(graph.outputs.size(), "output")));
    for (std::size_t r = 0; r < node.results.size(); ++r) give(scope, node, r, inner.to[std::size_t(graph.outputs[r])]);
  }

  // A loop of a known number of rounds is written out. A round takes its number, the condition and the state, and gives
  // the condition and the state of the next one, and what is stacked of all rounds.
  void loop(Scope& scope, const Node& node, const Node& moved) {
    const std::string name = label(scope.graph, node);
    const Graph& body = graph_of(scope, node, "body");
    const std::size_t states = moved.operands.size() < 2 ? 0 : moved.operands.size() - 2;
    if (moved.operands.size() < 2 || body.inputs.size() != states + 2 || body.outputs.size() < states + 1 ||
        node.results.size() > body.outputs.size() - 1)
      fail(fmt::format("{}: its operands, its results and those of its body do not fit", name));
    const auto operands = operands_of(result_, moved);
    if (!operands) return leave_open(scope, node);
    const auto refused = [&](const std::string& reason) {
      not_supported(scope.graph, node, reason);
      leave_open(scope, node);
    };
    for (std::size_t i = 0; i < 2; ++i) {
      const std::optional<Operand>& operand = (*operands)[i];
      if (operand && !operand->known) return refused("a number of rounds that is not a constant");
      if (operand && operand->known->size() != 1) fail(fmt::format("{}: operand {} is not one element", name, i));
    }
    const std::int64_t rounds = (*operands)[0] ? (*operands)[0]->known->integer(0) : most_rounds + 1;
    bool goes_on = !(*operands)[1] || (*operands)[1]->known->number(0) != 0;
    std::vector<int> state(moved.operands.begin() + 2, moved.operands.end());
    std::vector<std::vector<int>> stacked(body.outputs.size() - 1 - states);
    if (std::find(state.begin(), state.end(), -1) != state.end()) fail(fmt::format("{}: a state is missing", name));
    for (std::int64_t round = 0; goes_on && round < rounds; ++round) {
      if (round == most_rounds) return refused(fmt::format("more than {} rounds", most_rounds));
      const std::int64_t yes = 1;
      std::vector<int> given = {add_constant(result_, "round", known(DType::i64, {}, std::span(&round, 1))),
                                add_constant(result_, "condition", known(DType::u8, {}, std::span(&yes, 1)))};
      given.insert(given.end(), state.begin(), state.end());
      Scope inner = scope_of(body, &scope, fmt::format("{}.{}", scope.suffix, round), given);
      go_through(inner);
      const auto output = [&](std::size_t number) { return inner.to[std::size_t(body.outputs[number])]; };
      const Value& condition = result_.values[std::size_t(output(0))];
      if (!condition.shape) return leave_open(scope, node);
      if (!condition.known || condition.known->size() != 1) return refused("a number of rounds that is not a constant");
      goes_on = condition.known->number(0) != 0;
      for (std::size_t s = 0; s < states; ++s) state[s] = output(1 + s);
      for (std::size_t s = 0; s < stacked.size(); ++s) stacked[s].push_back(output(1 + states + s));
    }
    for (std::size_t r = 0; r < node.results.size(); ++r) {
      if (node.results[r] < 0) continue;
      if (r >= states && stacked[r - states].empty()) return refused("no rounds, whose results would be stacked");
      give(scope, node, r, r < states ? state[r] : stack(scope, node, stacked[r - states]));
    }
  }

  // One value of equal ones, along a new first dimension: a graph of its own, gone through like any other.
  int stack(const Scope& scope, const Node& node, const std::vector<int>& parts) {
    Graph graph;
    graph.version = scope.graph.version;
    const auto value = [&](Value one) {
      graph.values.push_back(std::move(one));
      return int(graph.values.size()) - 1;
    };
    Node concat{node.name, "Concat", {{"axis", std::int64_t(0)}}, {}, {}};
    for (const int part : parts) {
      const Value& of = result_.values[std::size_t(part)];
      if (!of.shape) return part;  // what is not supported is named elsewhere
      Shape shape = *of.shape;
      shape.insert(shape.begin(), 1);
      graph.inputs.push_back(value({.name = of.name, .origin = Value::Origin::input}));
      const Known to = known_vector(shape);
      const int to_shape = value({.name = of.name + ".shape",
                                  .origin = Value::Origin::constant,
                                  .type = to->type,
                                  .shape = to->shape,
                                  .known = to});
      concat.operands.push_back(value({.name = of.name + ".row"}));
      graph.nodes.push_back({node.name, "Reshape", {}, {graph.inputs.back(), to_shape}, {concat.operands.back()}});
    }
    concat.results = {value({.name = node.name + ".stacked"})};
    graph.outputs = concat.results;
    graph.nodes.push_back(std::move(concat));
    Scope inner = scope_of(graph, &scope, scope.suffix, parts);
    go_through(inner);
    return inner.to[std::size_t(graph.outputs[0])];
  }

  const Graph& graph_of(const Scope& scope, const Node& node, const std::string& attribute) const {
    const auto found = node.attributes.find(attribute);
    const auto* graph =
        found == node.attributes.end() ? nullptr : std::get_if<std::shared_ptr<const Graph>>(&found->second);
    if (!graph) fail(fmt::format("{}: its graph '{}' is missing", label(scope.graph, node), attribute));
    return **graph;
  }

  // Result `r` of the node is this value.
  void give(Scope& scope, const Node& node, std::size_t r, int value) {
    if (node.results[r] < 0) return;
    int& to = scope.to[std::size_t(node.results[r])];
    to = value;
    if (scope.is_model() && is_output_[std::size_t(node.results[r])])
      to = named(to, scope.graph.values[std::size_t(node.results[r])].name);
  }

  // The same value by the name of an output.
  int named(int value, const std::string& name) {
    Value copy = result_.values[std::size_t(value)];
    copy.name = name;
    const bool is_constant = copy.origin == Value::Origin::constant;
    if (!is_constant) copy.origin = Value::Origin::computed;
    const int to = added(std::move(copy));
    if (!is_constant) result_.nodes.push_back({name, "Identity", {}, {value}, {to}});
    return to;
  }

  void compute(Scope& scope, const Node& node, Node moved) {
    const auto operands = operands_of(result_, moved);
    if (!operands) {
      if (!is_known(node.operation)) not_supported(scope.graph, node, "an operator that is not known");
      return leave_open(scope, node);
    }
    const auto results = results_of(scope.graph, node, *operands, place_);
    if (!results) {
      not_supported(scope.graph, node, results.reason().text);
      return leave_open(scope, node);
    }
    bool is_needed = false;
    for (std::size_t r = 0; r < node.results.size(); ++r) {
      if (node.results[r] < 0) continue;
      const Result& result = (*results)[r];
      int& to = scope.to[std::size_t(node.results[r])];
      const std::string name = scope.graph.values[std::size_t(node.results[r])].name + scope.suffix;
      const int same = result.same_as < 0 ? -1 : moved.operands[std::size_t(result.same_as)];
      if (Known known = known_of(scope.graph, node, *operands, result)) {
        to = add_constant(result_, name, std::move(known));
        moved.results[r] = -1;
      } else if (same >= 0 && result.shape == *result_.values[std::size_t(same)].shape &&
                 !(scope.is_model() && is_output_[std::size_t(node.results[r])])) {
        to = same;
        moved.results[r] = -1;
      } else {
        to = moved.results[r] = added({.name = name, .type = result.type, .shape = result.shape});
        is_needed = true;
      }
    }
    if (is_needed) result_.nodes.push_back(std::move(moved));
  }

  // The numbers of a result, if they are known; nullptr if not.
  Known known_of(const Graph& graph, const Node& node, const Operands& operands, const Result& result) {
    const std::int64_t bytes = elements_of(result.shape) * codegen::bytes_of(result.type);
    if (result.known) {
      bytes_ += bytes;
      if (bytes_ > limits_.most_bytes)
        fail(fmt::format("{}: constants of more than {} bytes", label(graph, node), limits_.most_bytes));
      return result.known;
    }
    if (result.same_as >= 0) {
      const Known& known = operands[std::size_t(result.same_as)]->known;
      if (!known || known->shape == result.shape) return known;
      if (!pays_for(bytes, 0)) return nullptr;
      return std::make_shared<const Array>(Array{known->type, result.shape, known->bytes});
    }
    for (const codegen::Tensor& tensor : result.computation->tensors) {
      const int number = operand_of(tensor);
      if (number < 0) continue;
      const Known& known = operands[std::size_t(number)]->known;
      if (!known || known->has_inexact()) return nullptr;
    }
    if (!pays_for(bytes, work_of(*result.computation))) return nullptr;
    return known(result.type, result.shape, evaluated(*result.computation, [&](int number) {
                   return operands[std::size_t(number)]->known->elements();
                 }));
  }

  bool pays_for(std::int64_t bytes, double work) {
    if (bytes_ + bytes > limits_.most_bytes || work_ + work > limits_.most_work) return false;
    bytes_ += bytes;
    work_ += work;
    return true;
  }

  const std::string_view place_;
  const FoldLimits limits_;
  Graph result_;
  std::vector<bool> is_output_;                                      // of the model
  std::map<std::pair<std::string, std::string>, Kind> unsupported_;  // by operator and reason
  std::int64_t bytes_ = 0, walked_ = 0;
  double work_ = 0;
};

// What graphs within a node take from around it, by name.
void add_outer(const Node& node, std::set<std::string>& names) {
  for (const auto& [key, attribute] : node.attributes) {
    const auto* const inner = std::get_if<std::shared_ptr<const Graph>>(&attribute);
    if (inner == nullptr) continue;
    for (const Value& value : (*inner)->values) {
      if (value.origin == Value::Origin::outer) names.insert(value.name);
    }
    for (const Node& each : (*inner)->nodes) add_outer(each, names);
  }
}

// A result that nothing takes is not wanted, though the file names it: the mask of a Dropout, for example.
Graph with_wanted_results(Graph graph) {
  std::vector<bool> is_wanted(graph.values.size());
  std::set<std::string> outer;
  for (const int output : graph.outputs) is_wanted[std::size_t(output)] = true;
  for (const Node& node : graph.nodes) {
    for (const int operand : node.operands)
      if (operand >= 0) is_wanted[std::size_t(operand)] = true;
    add_outer(node, outer);
  }
  for (Node& node : graph.nodes) {
    for (int& result : node.results) {
      if (result >= 0 && !is_wanted[std::size_t(result)] && !outer.contains(graph.values[std::size_t(result)].name))
        result = -1;
    }
  }
  return graph;
}

}  // namespace

Graph folded(const Graph& graph, std::string_view place, const FoldLimits& limits) {
  const Graph all = Folder(place, limits).folded(with_integer_operators(with_wanted_results(graph)));
  return without_unused(with_windows_in_groups(with_zero_points_in_weights(with_scales_in_weights(all))));
}

Graph without_unused(const Graph& graph) {
  std::vector<bool> is_used(graph.values.size());
  for (const int output : graph.outputs) is_used[std::size_t(output)] = true;
  for (const int input : graph.inputs) is_used[std::size_t(input)] = true;
  std::vector<const Node*> kept;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const auto used = [&](int value) { return value >= 0 && is_used[std::size_t(value)]; };
    if (!std::any_of(node->results.begin(), node->results.end(), used)) continue;
    kept.push_back(&*node);
    for (const int operand : node->operands)
      if (operand >= 0) is_used[std::size_t(operand)] = true;
  }
  Graph result;
  result.name = graph.name;
  result.version = graph.version;
  std::vector<int> to(graph.values.size(), -1);
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    if (!is_used[v]) continue;
    to[v] = int(result.values.size());
    result.values.push_back(graph.values[v]);
  }
  const auto moved = [&](std::vector<int> values) {
    for (int& value : values)
      if (value >= 0) value = to[std::size_t(value)];
    return values;
  };
  for (auto node = kept.rbegin(); node != kept.rend(); ++node) {
    result.nodes.push_back(**node);
    result.nodes.back().operands = moved((*node)->operands);
    result.nodes.back().results = moved((*node)->results);
  }
  result.inputs = moved(graph.inputs);
  result.outputs = moved(graph.outputs);
  return result;
}

}  // namespace graft::graph
