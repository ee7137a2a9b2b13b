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
#include "graph/few_bits.h"
#include "graph/operators.h"
#include "graph/reference.h"

namespace graft::graph {
namespace {

constexpr std::size_t most_named = 30;  // kinds of unsupported nodes in a message
constexpr std::int64_t most_rounds = 100'000;
constexpr std::int64_t most_open_rounds = 1024;  // of loops that end when a run says so
constexpr std::int64_t most_steps = 64;          // of one recurrent layer
constexpr std::size_t most_in_sequences = std::size_t(1) << 26;
constexpr std::size_t most_together = 64;  // values that one node puts together

bool is_of_sequences(const std::string& operation) {
  static const std::set<std::string> names = {"ConcatFromSequence", "SequenceAt",    "SequenceConstruct",
                                              "SequenceEmpty",      "SequenceErase", "SequenceInsert",
                                              "SequenceLength",     "SequenceMap",   "SplitToSequence"};
  return names.contains(operation);
}

// A graph whose nodes are being gone through, and where its values are in the result.
struct Scope {
  const Graph& graph;
  const Scope* around = nullptr;
  std::string suffix = {};   // of its values' names: a round of a loop has values of its own
  std::vector<int> to = {};  // by value; -1: not there yet; less: a sequence (Folder::sequence_of)
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
    const auto declare = [&](const std::vector<int>& from, const std::vector<int>& to) {
      for (std::size_t v = 0; v < from.size(); ++v)
        result_.values[std::size_t(to[v])].declared = graph.values[std::size_t(from[v])].declared;
    };
    declare(graph.inputs, result_.inputs);
    declare(graph.outputs, result_.outputs);
    result_.outputs.insert(result_.outputs.end(), counts_.begin(), counts_.end());
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

  // `operands` of the node, in the result.
  void not_supported(const Graph& graph, const Node& node, const std::string& reason,
                     const std::vector<int>& operands = {}) {
    Kind& kind = unsupported_[{in_quotes(node.operation), reason}];
    if (kind.count++ > 0) return;
    kind.first = label(graph, node);
    if (reason.find(not_constant) != std::string::npos) kind.first += what_makes_constant(operands);
  }

  // The inputs that operands after the first follow from, or the first one if it is the only one that is not constant.
  std::string what_makes_constant(const std::vector<int>& operands) const {
    std::set<int> open;
    for (std::size_t o = operands.size(); o-- > 0;)
      if (operands[o] >= 0 && !result_.values[std::size_t(operands[o])].known && (o > 0 || open.empty()))
        open.insert(operands[o]);
    for (auto node = result_.nodes.rbegin(); node != result_.nodes.rend(); ++node) {
      const bool is_before = std::any_of(node->results.begin(), node->results.end(),
                                         [&](int result) { return result >= 0 && open.contains(result); });
      if (is_before) open.insert(node->operands.begin(), node->operands.end());
    }
    constexpr std::int64_t most_given = 64;  // numbers that a user could write
    std::vector<std::string> names;
    bool can_be_given = true;
    for (const int input : result_.inputs) {
      const Value& value = result_.values[std::size_t(input)];
      if (value.known || !open.contains(input)) continue;
      names.push_back(in_quotes(value.name));
      can_be_given = can_be_given && value.shape && elements_of(*value.shape) <= most_given;
    }
    if (names.empty()) return "";
    return fmt::format(
        ", which follows from {} {} ({})", names.size() == 1 ? "input" : "inputs", fmt::join(names, ", "),
        can_be_given ? "make it a constant, or cut the model before the node" : "cut the model before the node");
  }

  int added(Value value) {
    result_.values.push_back(std::move(value));
    return int(result_.values.size()) - 1;
  }

  // A graph within another has the inputs `given`; -1: left out.
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
      const bool is_left_out = around != nullptr && value.origin == Value::Origin::input;
      if (has_origin && scope.to[v] == -1 && !is_left_out) scope.to[v] = added(value);
      if (value.origin == Value::Origin::input && scope.to[v] >= 0 && value.shape &&
          elements_of(*value.shape) == 0)  // nothing to wait for
        result_.values[std::size_t(scope.to[v])].known =
            known(*value.type, *value.shape, std::span<const std::int64_t>());
      if (value.origin != Value::Origin::outer) continue;
      for (const Scope* outer = around; outer; outer = outer->around)
        if (const auto found = outer->by_name.find(value.name); found != outer->by_name.end()) {
          scope.to[v] = outer->to[std::size_t(found->second)];
          break;
        }
      if (scope.to[v] == -1)
        fail(fmt::format("{} is used in a graph within, and not known there", in_quotes(value.name)));
    }
    return scope;
  }

  void go_through(Scope& scope) {
    for (const Node& node : scope.graph.nodes) {
      Node moved = node;
      for (int& operand : moved.operands)
        if (operand >= 0) operand = scope.to[std::size_t(operand)];
      if (node.foreign)
        compute(scope, node, std::move(moved));
      else if (node.body)
        write_out(scope, node, moved.operands, *node.body);
      else if (node.operation == "If")
        branch(scope, node, moved);
      else if (node.operation == "Loop")
        loop(scope, node, moved);
      else if (node.operation == "Scan")
        scan(scope, node, moved);
      else if (is_of_sequences(node.operation) ||
               std::any_of(moved.operands.begin(), moved.operands.end(), is_sequence))
        sequences(scope, node, moved);
      else if (!compose(scope, node, moved) && !recurrent(scope, node, moved) && !element_of_outer(scope, node, moved))
        compute(scope, node, std::move(moved));
    }
  }

  // Results of which nothing is known, so that the walk can go on and find all that is not supported.
  void leave_open(Scope& scope, const Node& node) {
    for (const int value : node.results)
      if (value >= 0)
        scope.to[std::size_t(value)] = added({.name = scope.graph.values[std::size_t(value)].name + scope.suffix});
  }

  // ---- values that are made on the way

  int constant(Known array) {
    return add_constant(result_, fmt::format("constant.{}", result_.values.size()), std::move(array));
  }

  // The outputs of a graph for these values (of the result), which are its inputs; gone through like any other.
  std::vector<int> outputs_of(const Graph& graph, const Scope& around, const std::string& suffix,
                              const std::vector<int>& given) {
    Scope inner = scope_of(graph, &around, suffix, given);
    go_through(inner);
    std::vector<int> outputs;
    for (const int output : graph.outputs) {
      outputs.push_back(inner.to[std::size_t(output)]);
      if (outputs.back() == -1)
        fail(fmt::format("{} is an output of a graph within, and left out",
                         in_quotes(graph.values[std::size_t(output)].name)));
    }
    return outputs;
  }

  // What a node gives for these values (of the result; -1: left out), by result; -1: not wanted.
  std::vector<int> results_made(const Scope& scope, const Node& of, const std::string& operation,
                                const std::map<std::string, Attribute>& attributes, const std::vector<int>& operands,
                                const std::vector<bool>& is_wanted) {
    Graph graph;
    graph.version = scope.graph.version;
    Node node{of.name, operation, attributes, {}, {}};
    std::vector<int> given;
    for (const int operand : operands) {
      node.operands.push_back(operand == -1 ? -1 : int(given.size()));
      if (operand == -1) continue;
      graph.inputs.push_back(int(given.size()));
      graph.values.push_back({.name = std::to_string(given.size()), .origin = Value::Origin::input});
      given.push_back(operand);
    }
    for (const bool wanted : is_wanted) {
      node.results.push_back(wanted ? int(graph.values.size()) : -1);
      if (!wanted) continue;
      graph.outputs.push_back(int(graph.values.size()));
      graph.values.push_back(
          {.name = fmt::format("{}.{}.{}.{}", of.name, operation, result_.values.size(), node.results.size())});
    }
    graph.nodes.push_back(std::move(node));
    const std::vector<int> outputs = outputs_of(graph, scope, "", given);
    std::vector<int> results(is_wanted.size(), -1);
    std::size_t next = 0;
    for (std::size_t r = 0; r < results.size(); ++r)
      if (is_wanted[r]) results[r] = outputs[next++];
    return results;
  }

  int made(const Scope& scope, const Node& of, const std::string& operation,
           const std::map<std::string, Attribute>& attributes, const std::vector<int>& operands) {
    return results_made(scope, of, operation, attributes, operands, {true}).front();
  }

  // The same elements in another shape.
  int reshaped(const Scope& scope, const Node& of, int value, const Shape& shape) {
    const std::optional<Shape>& own = result_.values[std::size_t(value)].shape;
    if (!own || *own == shape) return value;  // what is not supported is named elsewhere
    return made(scope, of, "Reshape", {{"allowzero", std::int64_t(1)}}, {value, constant(known_vector(shape))});
  }

  // Values in order along an axis: many are put together in several steps.
  int concatenated(const Scope& scope, const Node& of, std::vector<int> values, std::int64_t axis) {
    while (values.size() > 1) {
      std::vector<int> together;
      for (std::size_t begin = 0; begin < values.size(); begin += most_together) {
        const std::size_t end = std::min(begin + most_together, values.size());
        together.push_back(made(scope, of, "Concat", {{"axis", axis}},
                                {values.begin() + std::ptrdiff_t(begin), values.begin() + std::ptrdiff_t(end)}));
      }
      values = std::move(together);
    }
    return values.front();
  }

  // One value of equal ones, along a new first dimension.
  int stacked(const Scope& scope, const Node& of, const std::vector<int>& parts) {
    std::vector<int> rows;
    for (const int part : parts) {
      if (is_sequence(part)) fail(fmt::format("{}: stacks a sequence", label(scope.graph, of)));
      if (!result_.values[std::size_t(part)].shape) return part;  // what is not supported is named elsewhere
      Shape shape = *result_.values[std::size_t(part)].shape;
      shape.insert(shape.begin(), 1);
      rows.push_back(reshaped(scope, of, part, shape));
    }
    return concatenated(scope, of, std::move(rows), 0);
  }

  // Dimension `from` becomes dimension `to`.
  int with_axis_at(const Scope& scope, const Node& of, int value, std::int64_t from, std::int64_t to) {
    const std::optional<Shape>& shape = result_.values[std::size_t(value)].shape;
    if (!shape || from == to) return value;
    std::vector<std::int64_t> order;
    for (std::int64_t d = 0; d < std::int64_t(shape->size()); ++d)
      if (d != from) order.push_back(d);
    order.insert(order.begin() + to, from);
    return made(scope, of, "Transpose", {{"perm", std::move(order)}}, {value});
  }

  std::int64_t axis_of(const Scope& scope, const Node& node, std::int64_t axis, std::int64_t rank) const {
    if (axis < -rank || axis >= rank)
      fail(fmt::format("{}: axis {} of {} dimensions", label(scope.graph, node), axis, rank));
    return axis < 0 ? axis + rank : axis;
  }

  // Elements from `begin` to `end` along an axis.
  int part_of(const Scope& scope, const Node& of, int value, std::int64_t axis, std::int64_t begin, std::int64_t end) {
    const auto list = [](std::int64_t one) { return std::vector<std::int64_t>{one}; };
    if (scope.graph.version < 10)
      return made(scope, of, "Slice", {{"axes", list(axis)}, {"ends", list(end)}, {"starts", list(begin)}}, {value});
    const auto operand = [&](std::int64_t one) { return constant(known_vector(list(one))); };
    return made(scope, of, "Slice", {}, {value, operand(begin), operand(end), operand(axis)});
  }

  // Element `place` along an axis, without that dimension.
  int element(const Scope& scope, const Node& of, int value, std::int64_t axis, std::int64_t place) {
    const int at = constant(known(DType::i64, {}, std::span(&place, 1)));
    return made(scope, of, "Gather", {{"axis", axis}}, {value, at});
  }

  // UserError for an attribute of another kind.
  template <class T>
  T attribute_of(const Scope& scope, const Node& node, const std::string& name, T otherwise) const {
    const auto found = node.attributes.find(name);
    if (found == node.attributes.end()) return otherwise;
    if (const T* value = std::get_if<T>(&found->second)) return *value;
    fail(fmt::format("{}: attribute '{}' is of another kind", label(scope.graph, node), name));
  }

  // ---- control flow

  void refused(Scope& scope, const Node& node, const std::string& reason, const std::vector<int>& operands = {}) {
    not_supported(scope.graph, node, reason, operands);
    leave_open(scope, node);
  }

  void branch(Scope& scope, const Node& node, const Node& moved) {
    const auto operands = operands_of(result_, moved);
    const std::string name = label(scope.graph, node);
    if (moved.operands.size() != 1 || moved.operands[0] == -1) fail(fmt::format("{}: its condition is missing", name));
    if (!operands) return leave_open(scope, node);
    if (!(*operands)[0] || elements_of((*operands)[0]->shape) != 1)
      fail(fmt::format("{}: its condition is not one element", name));
    if (const Known& condition = (*operands)[0]->known) {
      const std::vector<int> results =
          results_of_branch(scope, node, condition->number(0) != 0 ? "then_branch" : "else_branch");
      for (std::size_t r = 0; r < node.results.size(); ++r) give(scope, node, r, results[r]);
      return;
    }
    // Branches change nothing but their results: both are computed.
    const std::vector<int> yes = results_of_branch(scope, node, "then_branch"),
                           no = results_of_branch(scope, node, "else_branch");
    for (std::size_t r = 0; r < node.results.size(); ++r) {
      if (node.results[r] < 0) continue;
      if (choose_rows(scope, node, r, moved.operands[0], yes[r], no[r])) continue;
      if (const std::string differs = difference(yes[r], no[r]); !differs.empty())
        return refused(scope, node,
                       "a condition that is not a constant, and branches of different " + differs +
                           "; give the inputs that it depends on");
    }
    for (std::size_t r = 0; r < node.results.size(); ++r)
      if (node.results[r] >= 0 && scope.to[std::size_t(node.results[r])] == -1)
        give(scope, node, r, chosen(scope, node, moved.operands[0], yes[r], no[r]));
  }

  // Whether result `r` is one of two values of different extents along one axis, which has as many rows as the longer
  // and says how many count (operators/counted.cpp). Nothing but the model's user may take it.
  bool choose_rows(Scope& scope, const Node& node, std::size_t r, int condition, int yes, int no) {
    const int value = node.results[r];
    if (is_sequence(yes) || is_sequence(no) || !scope.is_model() || is_taken(scope.graph, value)) return false;
    const Value a = result_.values[std::size_t(yes)], b = result_.values[std::size_t(no)];
    if (!a.shape || !b.shape || *a.type != *b.type || a.shape->size() != b.shape->size()) return false;
    const auto [one, other] = std::mismatch(a.shape->begin(), a.shape->end(), b.shape->begin());
    if (one == a.shape->end() || !std::equal(one + 1, a.shape->end(), other + 1) || *one == 0 || *other == 0)
      return false;
    const std::int64_t axis = one - a.shape->begin(), most = std::max(*one, *other);
    if (most > most_counted_rows) return false;
    const auto extended = [&](int part, std::int64_t extent) {
      std::vector<std::int64_t> rows;
      for (std::int64_t row = 0; row < most; ++row) rows.push_back(std::min(row, extent - 1));
      return extent == most ? part
                            : made(scope, node, "Gather", {{"axis", axis}}, {part, constant(known_vector(rows))});
    };
    const auto number = [&](std::int64_t extent) { return constant(known(DType::i64, {}, std::span(&extent, 1))); };
    give(scope, node, r, chosen(scope, node, condition, extended(yes, *one), extended(no, *other)));
    add_count(scope, value, chosen(scope, node, condition, number(*one), number(*other)));
    return true;
  }

  static bool is_taken(const Graph& graph, int value) {
    return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
      return std::find(node.operands.begin(), node.operands.end(), value) != node.operands.end();
    });
  }

  std::vector<int> results_of_branch(const Scope& scope, const Node& node, const std::string& attribute) {
    const Graph& graph = graph_of(scope, node, attribute);
    if (graph.outputs.size() < node.results.size())
      fail(fmt::format("{}: its branch has {}", label(scope.graph, node),
                       base::counted(graph.outputs.size(), "output")));
    return outputs_of(graph, scope, scope.suffix, {});
  }

  // Why two values cannot take each other's place; "" if they can, or if one of them is not known.
  std::string difference(int one, int other) const {
    if (one == other) return "";
    if (is_sequence(one) != is_sequence(other)) return "kinds (a tensor and a sequence)";
    if (is_sequence(one)) {
      const std::vector<int>&a = sequence_of(one), &b = sequence_of(other);
      if (a.size() != b.size()) return fmt::format("lengths ({} and {})", a.size(), b.size());
      for (std::size_t e = 0; e < a.size(); ++e)
        if (std::string differs = difference(a[e], b[e]); !differs.empty()) return differs;
      return "";
    }
    const Value &a = result_.values[std::size_t(one)], &b = result_.values[std::size_t(other)];
    if (!a.shape || !b.shape) return "";
    if (*a.type != *b.type)
      return fmt::format("types ({} and {})", codegen::name_of(*a.type), codegen::name_of(*b.type));
    return *a.shape == *b.shape ? "" : fmt::format("shapes ({} and {})", to_text(*a.shape), to_text(*b.shape));
  }

  // One of two values that do not differ so, by a condition of one element.
  int chosen(const Scope& scope, const Node& of, int condition, int yes, int no) {
    if (yes == no) return yes;
    if (!is_sequence(yes)) return made(scope, of, "Where", {}, {reshaped(scope, of, condition, {}), yes, no});
    std::vector<int> all;
    for (std::size_t e = 0; e < sequence_of(yes).size(); ++e)
      all.push_back(chosen(scope, of, condition, sequence_of(yes)[e], sequence_of(no)[e]));
    return sequence(scope, of, std::move(all));
  }

  // What a Loop has come to.
  struct Rounds {
    std::int64_t most = most_rounds + 1, done = 0;
    // Whether there is another round: what `running` says in a run, or, if that is -1, `goes_on`.
    bool goes_on = true;
    int running = -1;
    bool is_count_open = false;  // `running` has decided about a round
    int count = -1;              // of the rounds, if that is open
    bool is_open = false;        // something is not supported, which is named elsewhere
    std::vector<int> states;
    std::vector<std::vector<int>> stacked;  // by result: of each round; of those after the last one, what that gave
  };

  // A loop of a known number of rounds is written out. A round takes its number, the condition and the state, and gives
  // the condition and the state of the next one, and what is stacked of all rounds. Where a run alone knows the
  // condition, all rounds that there may be are computed, and those after the last one change nothing.
  void loop(Scope& scope, const Node& node, const Node& moved) {
    const Graph& body = graph_of(scope, node, "body");
    const std::size_t states = moved.operands.size() < 2 ? 0 : moved.operands.size() - 2;
    if (moved.operands.size() < 2 || body.inputs.size() != states + 2 || body.outputs.size() < states + 1 ||
        node.results.size() > body.outputs.size() - 1)
      fail(fmt::format("{}: its operands, its results and those of its body do not fit", label(scope.graph, node)));
    Rounds rounds;
    rounds.states.assign(moved.operands.begin() + 2, moved.operands.end());
    rounds.stacked.resize(body.outputs.size() - 1 - states);
    if (std::find(rounds.states.begin(), rounds.states.end(), -1) != rounds.states.end())
      fail(fmt::format("{}: a state is missing", label(scope.graph, node)));
    const auto operands = operands_of(result_, moved);
    if (!operands) return leave_open(scope, node);
    const std::optional<Operand>&count = (*operands)[0], &condition = (*operands)[1];
    for (std::size_t i = 0; i < 2; ++i)
      if ((*operands)[i] && elements_of((*operands)[i]->shape) != 1)
        fail(fmt::format("{}: operand {} is not one element", label(scope.graph, node), i));
    if (count && !count->known)
      return refused(scope, node, "a number of rounds that is not a constant; give the inputs that it depends on");
    if (count) rounds.most = count->known->integer(0);
    if (condition && condition->known) rounds.goes_on = condition->known->number(0) != 0;
    if (condition && !condition->known) rounds.running = reshaped(scope, node, moved.operands[1], {});
    while (rounds.goes_on && rounds.done < rounds.most) {
      if (rounds.done == most_rounds) return refused(scope, node, fmt::format("more than {} rounds", most_rounds));
      if (rounds.running >= 0 && rounds.most > most_open_rounds)
        return refused(
            scope, node,
            fmt::format("a number of rounds that depends on data, and may be more than {}", most_open_rounds));
      const std::string reason = add_round(scope, node, body, rounds);
      if (!reason.empty()) return refused(scope, node, reason);
      if (rounds.is_open) return leave_open(scope, node);
    }
    for (std::size_t r = states; r < node.results.size(); ++r) {
      if (node.results[r] < 0 || !rounds.is_count_open) continue;
      if (!scope.is_model() || is_taken(scope.graph, node.results[r]))
        return refused(scope, node,
                       "a number of rounds that depends on data, whose results are stacked for other nodes");
      add_count(scope, node.results[r], named(rounds.count, "count"));
    }
    std::vector<int> given = given_to_round(0);
    given.insert(given.end(), rounds.states.begin(), rounds.states.end());
    for (std::size_t r = 0; r < node.results.size(); ++r)
      if (node.results[r] >= 0)
        give(scope, node, r,
             r < states ? rounds.states[r] : stack_of(scope, node, body, given, 1 + r, rounds.stacked[r - states]));
  }

  std::vector<int> given_to_round(std::int64_t round) {
    const std::int64_t yes = 1;
    return {constant(known(DType::i64, {}, std::span(&round, 1))), constant(known(DType::u8, {}, std::span(&yes, 1)))};
  }

  // Why that cannot be done; "" if it is.
  std::string add_round(const Scope& scope, const Node& node, const Graph& body, Rounds& rounds) {
    std::vector<int> given = given_to_round(rounds.done);
    given.insert(given.end(), rounds.states.begin(), rounds.states.end());
    const std::vector<int> outputs = outputs_of(body, scope, fmt::format("{}.{}", scope.suffix, rounds.done), given);
    if (is_sequence(outputs[0])) return "a sequence as a condition";
    const Value condition = result_.values[std::size_t(outputs[0])];
    rounds.is_open = !condition.shape;
    if (rounds.is_open) return "";
    if (elements_of(*condition.shape) != 1) return "a condition that is not one element";
    for (std::size_t s = 0; s < rounds.states.size(); ++s) {
      int& state = rounds.states[s];
      const int next = outputs[1 + s];
      if (rounds.running >= 0)
        if (const std::string differs = difference(state, next); !differs.empty())
          return "a number of rounds that depends on data, and states of different " + differs;
      state = rounds.running < 0 ? next : chosen(scope, node, rounds.running, next, state);
    }
    for (std::size_t s = 0; s < rounds.stacked.size(); ++s) {
      int part = outputs[1 + rounds.states.size() + s];
      if (rounds.running >= 0 && !rounds.stacked[s].empty()) {
        if (const std::string differs = difference(rounds.stacked[s].back(), part); !differs.empty())
          return "a number of rounds that depends on data, and results of different " + differs;
        part = chosen(scope, node, rounds.running, part, rounds.stacked[s].back());
      }
      rounds.stacked[s].push_back(part);
    }
    rounds.is_count_open = rounds.is_count_open || rounds.running >= 0;
    const auto number = [&](std::int64_t one) { return constant(known(DType::i64, {}, std::span(&one, 1))); };
    const int before = rounds.count >= 0 ? rounds.count : number(rounds.done);
    ++rounds.done;
    if (rounds.running >= 0) rounds.count = chosen(scope, node, rounds.running, number(rounds.done), before);
    if (condition.known) {
      rounds.goes_on = condition.known->number(0) != 0;
      return "";
    }
    const int again = reshaped(scope, node, outputs[0], {});
    rounds.running = rounds.running < 0 ? again : made(scope, node, "And", {}, {rounds.running, again});
    return "";
  }

  // What all rounds give as one output of the body. If there are none, what a round would give for values like `given`
  // says what there is none of.
  int stack_of(const Scope& scope, const Node& node, const Graph& body, const std::vector<int>& given,
               std::size_t output, const std::vector<int>& rounds) {
    if (!rounds.empty()) return stacked(scope, node, rounds);
    const int one = outputs_of(body, scope, scope.suffix + ".none", given)[output];
    if (is_sequence(one)) fail(fmt::format("{}: stacks a sequence", label(scope.graph, node)));
    const Value& like = result_.values[std::size_t(one)];
    if (!like.shape) return one;
    Shape shape = *like.shape;
    shape.insert(shape.begin(), 0);
    return constant(known(*like.type, shape, std::span<const std::int64_t>()));
  }

  // ONNX's lists of axes and directions, 0 by default.
  std::vector<std::int64_t> list_of(const Scope& scope, const Node& node, const std::string& name, std::size_t size) {
    std::vector<std::int64_t> list = attribute_of(scope, node, name, std::vector<std::int64_t>());
    if (list.empty()) list.assign(size, 0);
    if (list.size() != size)
      fail(fmt::format("{}: attribute '{}' has {}", label(scope.graph, node), name,
                       base::counted(list.size(), "number")));
    return list;
  }

  // A Scan is a loop over elements of values along an axis of each: states, then what is scanned.
  void scan(Scope& scope, const Node& node, const Node& moved) {
    const Graph& body = graph_of(scope, node, "body");
    if (scope.graph.version < 9) return refused(scope, node, "version 8 of operators, where it is known from 9 on");
    const std::size_t all = moved.operands.size();
    const std::size_t inputs = std::size_t(attribute_of(scope, node, "num_scan_inputs", std::int64_t(0)));
    const bool is_given = std::all_of(moved.operands.begin(), moved.operands.end(), [](int v) { return v >= 0; });
    if (inputs < 1 || inputs > all || body.inputs.size() != all || body.outputs.size() < all - inputs ||
        node.results.size() > body.outputs.size() || !is_given)
      fail(fmt::format("{}: its operands, its results and those of its body do not fit", label(scope.graph, node)));
    const std::size_t states = all - inputs, outputs = body.outputs.size() - states;
    const auto axes = list_of(scope, node, "scan_input_axes", inputs),
               is_backward = list_of(scope, node, "scan_input_directions", inputs),
               output_axes = list_of(scope, node, "scan_output_axes", outputs),
               is_output_backward = list_of(scope, node, "scan_output_directions", outputs);
    const auto operands = operands_of(result_, moved);
    if (!operands) return leave_open(scope, node);
    std::int64_t rounds = -1;
    std::vector<int> scanned, given(moved.operands.begin(), moved.operands.begin() + std::ptrdiff_t(states)), like;
    for (std::size_t i = 0; i < inputs; ++i) {
      Shape shape = (*operands)[states + i]->shape;
      const std::int64_t axis = axis_of(scope, node, axes[i], std::int64_t(shape.size()));
      const std::int64_t extent = shape[std::size_t(axis)];
      if (rounds >= 0 && extent != rounds)
        fail(fmt::format("{}: scans {} and {} elements", label(scope.graph, node), rounds, extent));
      rounds = extent;
      scanned.push_back(with_axis_at(scope, node, moved.operands[states + i], axis, 0));
      shape.erase(shape.begin() + axis);
      like.push_back(added({.name = "none", .type = (*operands)[states + i]->type, .shape = std::move(shape)}));
    }
    if (rounds > most_rounds) return refused(scope, node, fmt::format("more than {} rounds", most_rounds));
    std::vector<std::vector<int>> all_rounds(outputs);
    for (std::int64_t round = 0; round < rounds; ++round) {
      given.resize(states);
      for (std::size_t i = 0; i < inputs; ++i)
        given.push_back(element(scope, node, scanned[i], 0, is_backward[i] != 0 ? rounds - 1 - round : round));
      const std::vector<int> results = outputs_of(body, scope, fmt::format("{}.{}", scope.suffix, round), given);
      given.assign(results.begin(), results.begin() + std::ptrdiff_t(states));
      for (std::size_t o = 0; o < outputs; ++o) all_rounds[o].push_back(results[states + o]);
    }
    std::vector<int> none = given;
    none.resize(states);
    none.insert(none.end(), like.begin(), like.end());
    for (std::size_t r = 0; r < node.results.size(); ++r) {
      if (node.results[r] < 0) continue;
      if (r < states) {
        give(scope, node, r, given[r]);
        continue;
      }
      std::vector<int>& parts = all_rounds[r - states];
      if (is_output_backward[r - states] != 0) std::reverse(parts.begin(), parts.end());
      const int value = stack_of(scope, node, body, none, r, parts);
      const std::optional<Shape>& shape = result_.values[std::size_t(value)].shape;
      if (!shape) return leave_open(scope, node);
      const std::int64_t to = axis_of(scope, node, output_axes[r - states], std::int64_t(shape->size()));
      give(scope, node, r, with_axis_at(scope, node, value, 0, to));
    }
  }

  // Whether a round of a loop takes one element, along an axis that is not the first one, of a value from around it. Of
  // the value with that axis first, elements are runs of memory, so that rounds are the same kernels.
  bool element_of_outer(Scope& scope, const Node& node, const Node& moved) {
    if (node.operation != "Gather" || scope.suffix.empty() || node.operands.size() != 2 || node.results.size() != 1 ||
        node.operands[0] < 0 || node.operands[1] < 0 ||
        scope.graph.values[std::size_t(node.operands[0])].origin != Value::Origin::outer)
      return false;
    const Value &from = result_.values[std::size_t(moved.operands[0])],
                &at = result_.values[std::size_t(moved.operands[1])];
    if (!from.shape || from.known || !at.known || !at.shape->empty()) return false;
    const Shape& shape = *from.shape;
    const std::int64_t place = at.known->integer(0),
                       axis = axis_of(scope, node, attribute_of(scope, node, "axis", std::int64_t(0)),
                                      std::int64_t(shape.size()));
    if (elements_of({shape.begin(), shape.begin() + axis}) <= 1) return false;
    const auto [first, is_new] = first_.try_emplace({moved.operands[0], axis}, -1);
    if (is_new) first->second = with_axis_at(scope, node, moved.operands[0], axis, 0);
    give(scope, node, 0, element(scope, node, first->second, 0, place));
    return true;
  }

  // ---- recurrent layers

  // Whether a layer of many steps became consecutive layers of few; one of two directions is two layers.
  bool recurrent(Scope& scope, const Node& node, const Node& moved) {
    if (node.operation != "LSTM" && node.operation != "GRU" && node.operation != "RNN") return false;
    const auto operands = operands_of(result_, moved);
    const std::size_t most_operands = node.operation == "LSTM" ? 8 : 6, most_results = node.operation == "LSTM" ? 3 : 2;
    if (!operands || operands->size() < 3 || operands->size() > most_operands || node.results.size() > most_results ||
        !(*operands)[0] || (*operands)[0]->shape.size() != 3)
      return false;
    const bool is_batch_first = attribute_of(scope, node, "layout", std::int64_t(0)) != 0;
    const std::int64_t steps = (*operands)[0]->shape[is_batch_first ? 1 : 0];
    if (steps <= most_steps) return false;
    std::vector<std::string> directions = {attribute_of(scope, node, "direction", std::string("forward"))};
    if (directions.front() == "bidirectional") directions = {"forward", "reverse"};
    // One function takes the parameters that others leave.
    const bool has_parameters =
        node.attributes.contains("activation_alpha") || node.attributes.contains("activation_beta");
    if (directions.size() == 2 && has_parameters) return false;
    std::vector<std::vector<int>> results(node.results.size());
    for (std::size_t d = 0; d < directions.size(); ++d) {
      Node layer = moved;
      layer.attributes["direction"] = directions[d];
      if (directions.size() == 2) take_direction(scope, node, layer, std::int64_t(d), is_batch_first ? 1 : 0);
      const std::vector<int> own = layers_of(scope, node, layer, steps, is_batch_first ? 1 : 0);
      for (std::size_t r = 0; r < results.size(); ++r) results[r].push_back(own[r]);
    }
    for (std::size_t r = 0; r < results.size(); ++r) {
      const std::int64_t axis = r == 0 ? (is_batch_first ? 2 : 1) : (is_batch_first ? 1 : 0);
      if (node.results[r] >= 0) give(scope, node, r, concatenated(scope, node, results[r], axis));
    }
    return true;
  }

  // One direction of two.
  void take_direction(const Scope& scope, const Node& node, Node& layer, std::int64_t direction,
                      std::int64_t of_states) {
    for (std::size_t o = 1; o < layer.operands.size(); ++o)
      if (o != 4 && layer.operands[o] != -1)
        layer.operands[o] =
            part_of(scope, node, layer.operands[o], o == 5 || o == 6 ? of_states : 0, direction, direction + 1);
    const auto found = layer.attributes.find("activations");
    if (found == layer.attributes.end()) return;
    const auto all = attribute_of(scope, node, "activations", std::vector<std::string>());
    const auto half = std::ptrdiff_t(all.size() / 2), first = direction == 0 ? 0 : half;
    found->second = std::vector<std::string>(all.begin() + first, direction == 0 ? all.begin() + half : all.end());
  }

  // Layers of equal numbers of steps have equal kernels.
  static std::int64_t steps_of_each(std::int64_t steps) {
    for (std::int64_t each = most_steps; each > most_steps / 2; --each)
      if (steps % each == 0) return each;
    const std::int64_t count = (steps + most_steps - 1) / most_steps;
    return (steps + count - 1) / count;
  }

  // The results of a layer of one direction, by its results.
  std::vector<int> layers_of(const Scope& scope, const Node& node, const Node& layer, std::int64_t steps,
                             std::int64_t of_steps) {
    const bool is_lstm = node.operation == "LSTM",
               is_reverse = attribute_of(scope, layer, "direction", std::string()) == "reverse";
    std::vector<bool> is_wanted(is_lstm ? 3 : 2, true);
    is_wanted[0] = !node.results.empty() && node.results[0] >= 0;
    std::vector<int> given = layer.operands, states, last;
    given.resize(is_lstm ? 8 : 6, -1);
    const std::int64_t each = steps_of_each(steps), count = (steps + each - 1) / each;
    for (std::int64_t c = 0; c < count; ++c) {
      const std::int64_t begin = (is_reverse ? count - 1 - c : c) * each, end = std::min(begin + each, steps);
      given[0] = part_of(scope, node, layer.operands[0], of_steps, begin, end);
      if (given[4] != -1 && begin > 0) given[4] = lengths_from(scope, node, layer.operands[4], begin);
      if (begin == 0) given[4] = layer.operands.size() > 4 ? layer.operands[4] : -1;
      last = results_made(scope, node, node.operation, layer.attributes, given, is_wanted);
      if (is_wanted[0]) states.insert(is_reverse ? states.begin() : states.end(), last[0]);
      std::copy(last.begin() + 1, last.end(), given.begin() + 5);
    }
    if (is_wanted[0]) last[0] = concatenated(scope, node, states, of_steps);
    return last;
  }

  // What is left of sequences from a step on; -1 if nothing is, since a whole sequence of 0 steps is another matter.
  int lengths_from(const Scope& scope, const Node& node, int lengths, std::int64_t begin) {
    const auto number = [&](std::int64_t one) { return constant(known(DType::i32, {}, std::span(&one, 1))); };
    const int left = made(scope, node, "Sub", {}, {lengths, number(begin)});
    return made(scope, node, "Where", {}, {made(scope, node, "Greater", {}, {left, number(0)}), left, number(-1)});
  }

  // ---- sequences: of known lengths, so that none is left

  // Numbers of sequences in place of numbers of values.
  static bool is_sequence(int value) { return value < -1; }
  const std::vector<int>& sequence_of(int value) const { return sequences_[std::size_t(-2 - value)]; }
  int sequence(const Scope& scope, const Node& of, std::vector<int> values) {
    if (std::any_of(values.begin(), values.end(), [](int value) { return value < 0; }))
      fail(fmt::format("{}: an element of its sequence is missing, or a sequence", label(scope.graph, of)));
    elements_of_sequences_ += values.size();
    if (elements_of_sequences_ > most_in_sequences)
      fail(fmt::format("{}: sequences of more than {} elements", label(scope.graph, of), most_in_sequences));
    sequences_.push_back(std::move(values));
    return -1 - int(sequences_.size());
  }

  void sequences(Scope& scope, const Node& node, const Node& moved) {
    const std::string& operation = node.operation;
    const auto malformed = [&](const std::string& what) {
      fail(fmt::format("{}: {}", label(scope.graph, node), what));
    };
    if (node.results.empty() || (node.results.size() > 1 && operation != "SequenceMap")) malformed("has other results");
    if (operation == "SequenceEmpty") return give(scope, node, 0, sequence(scope, node, {}));
    if (moved.operands.empty()) malformed("has no operands");
    const auto operands = operands_of(result_, moved);
    if (!operands) return leave_open(scope, node);
    const int first = moved.operands[0];
    if (operation == "Identity") return give(scope, node, 0, first);
    if (operation == "SplitToSequence") return split(scope, node, moved, *operands);
    if (operation == "SequenceConstruct") return give(scope, node, 0, sequence(scope, node, moved.operands));
    if (!is_of_sequences(operation)) return refused(scope, node, "a sequence as an operand");
    if (!is_sequence(first)) malformed("its first operand is not a sequence");
    if (operation == "SequenceMap") return map(scope, node, moved);
    std::vector<int> values = sequence_of(first);
    const std::int64_t length = std::int64_t(values.size());
    if (operation == "SequenceLength")
      return give(scope, node, 0, constant(known(DType::i64, {}, std::span(&length, 1))));
    if (operation == "ConcatFromSequence") return concatenate(scope, node, values);
    const bool is_insert = operation == "SequenceInsert";
    const std::size_t number = is_insert ? 2 : 1;  // of the operand that is a place
    std::int64_t at = is_insert ? length : length - 1;
    if (number < operands->size() && (*operands)[number]) {
      const Known& place = (*operands)[number]->known;
      if (!place) return refused(scope, node, "a place in a sequence that is not a constant");
      if (place->size() != 1) malformed("its place is not one element");
      at = place->integer(0);
    }
    if (at < 0) at += length;
    if (at < 0 || at >= length + is_insert) malformed(fmt::format("place {} of {}", at, length));
    if (operation == "SequenceAt") return give(scope, node, 0, values[std::size_t(at)]);
    if (is_insert && (moved.operands.size() < 2 || moved.operands[1] == -1)) malformed("its value is missing");
    if (is_insert)
      values.insert(values.begin() + at, moved.operands[1]);
    else
      values.erase(values.begin() + at);
    give(scope, node, 0, sequence(scope, node, std::move(values)));
  }

  void split(Scope& scope, const Node& node, const Node& moved, const Operands& operands) {
    const auto malformed = [&](const std::string& what) {
      fail(fmt::format("{}: {}", label(scope.graph, node), what));
    };
    if (!operands[0]) malformed("its operand is not a tensor");
    const Shape& shape = operands[0]->shape;
    const std::int64_t axis =
        axis_of(scope, node, attribute_of(scope, node, "axis", std::int64_t(0)), std::int64_t(shape.size()));
    const std::int64_t extent = shape[std::size_t(axis)];
    const bool is_in_ones = operands.size() < 2 || !operands[1];
    const bool keeps = !is_in_ones || attribute_of(scope, node, "keepdims", std::int64_t(1)) != 0;
    if (!is_in_ones && !operands[1]->known) return refused(scope, node, "lengths of parts that are not constants");
    const bool is_equal = is_in_ones || operands[1]->shape.empty();
    std::vector<std::int64_t> lengths = is_in_ones ? std::vector<std::int64_t>{1} : operands[1]->known->integers();
    std::vector<int> parts;
    std::int64_t begin = 0;
    for (std::size_t p = 0; is_equal ? begin < extent : p < lengths.size(); ++p) {
      const std::int64_t length = lengths[is_equal ? 0 : p];
      if (length < 0 || (is_equal && length == 0)) malformed(fmt::format("a part has the length {}", length));
      if (!is_equal && length > extent - begin) malformed(fmt::format("its parts are more than the extent {}", extent));
      const std::int64_t end = begin + std::min(length, extent - begin);
      parts.push_back(keeps ? part_of(scope, node, moved.operands[0], axis, begin, end)
                            : element(scope, node, moved.operands[0], axis, begin));
      begin = end;
    }
    if (begin != extent) malformed(fmt::format("its parts are less than the extent {}", extent));
    give(scope, node, 0, sequence(scope, node, std::move(parts)));
  }

  void concatenate(Scope& scope, const Node& node, const std::vector<int>& values) {
    if (values.empty()) fail(fmt::format("{}: an empty sequence", label(scope.graph, node)));
    const std::int64_t axis = attribute_of(scope, node, "axis", std::int64_t(0));
    const bool is_new = attribute_of(scope, node, "new_axis", std::int64_t(0)) != 0;
    const int value = is_new ? stacked(scope, node, values) : concatenated(scope, node, values, axis);
    const std::optional<Shape>& shape = result_.values[std::size_t(value)].shape;
    if (!is_new || !shape) return give(scope, node, 0, value);
    give(scope, node, 0, with_axis_at(scope, node, value, 0, axis_of(scope, node, axis, std::int64_t(shape->size()))));
  }

  // A graph for each element.
  void map(Scope& scope, const Node& node, const Node& moved) {
    const Graph& body = graph_of(scope, node, "body");
    const std::size_t length = sequence_of(moved.operands[0]).size();
    if (body.inputs.size() != moved.operands.size() || body.outputs.size() < node.results.size())
      fail(fmt::format("{}: its operands, its results and those of its body do not fit", label(scope.graph, node)));
    std::vector<std::vector<int>> results(body.outputs.size());
    for (std::size_t e = 0; e < length; ++e) {
      std::vector<int> given = moved.operands;
      for (int& operand : given) {
        if (operand == -1 || (is_sequence(operand) && sequence_of(operand).size() != length))
          fail(fmt::format("{}: its sequences have different lengths", label(scope.graph, node)));
        if (is_sequence(operand)) operand = sequence_of(operand)[e];
      }
      const std::vector<int> outputs = outputs_of(body, scope, fmt::format("{}.{}", scope.suffix, e), given);
      for (std::size_t o = 0; o < outputs.size(); ++o) results[o].push_back(outputs[o]);
    }
    for (std::size_t r = 0; r < node.results.size(); ++r)
      give(scope, node, r, sequence(scope, node, std::move(results[r])));
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
    if (!scope.is_model() || !is_output_[std::size_t(node.results[r])]) return;
    if (is_sequence(to))
      not_supported(scope.graph, node, "a sequence as an output of the model; cut the model before it");
    else
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

  // A node whose place a graph takes: its inputs are the node's operands.
  std::vector<int> write_out(Scope& scope, const Node& node, const std::vector<int>& operands, const Graph& body) {
    if (operands.size() > body.inputs.size() || node.results.size() > body.outputs.size())
      fail(fmt::format("{}: has {} and {}; it takes {} and gives {}", label(scope.graph, node),
                       base::counted(operands.size(), "operand"), base::counted(node.results.size(), "result"),
                       body.inputs.size(), body.outputs.size()));
    const auto first = std::find_if(node.results.begin(), node.results.end(), [](int result) { return result >= 0; });
    if (first == node.results.end()) return {};
    const std::string suffix = "." + scope.graph.values[std::size_t(*first)].name + scope.suffix;
    const std::vector<int> outputs = outputs_of(body, scope, suffix, operands);
    for (std::size_t r = 0; r < node.results.size(); ++r) {
      if (node.results[r] >= 0 && outputs[r] == -1)
        fail(fmt::format("{}: its result {} is an operand that is left out", label(scope.graph, node), r));
      give(scope, node, r, outputs[r]);
    }
    return outputs;
  }

  // Whether other operators compute the node.
  bool compose(Scope& scope, const Node& node, const Node& moved) {
    const auto operands = operands_of(result_, moved);
    if (!operands || !is_composed(scope.graph, node, *operands)) return false;
    const auto body = body_of(scope.graph, node, *operands, place_);
    if (!body) {
      refused(scope, node, body.reason().text, moved.operands);
      return true;
    }
    for (const Value& value : body->values)
      if (value.known) bytes_in_bodies_ += std::int64_t(value.known->bytes.size());
    if (bytes_in_bodies_ > limits_.most_bytes)
      fail(fmt::format("{}: constants of more than {} bytes", label(scope.graph, node), limits_.most_bytes));
    const std::vector<int> outputs = write_out(scope, node, moved.operands, *body);
    const int before = results_before_count(node.operation);
    const bool is_part = node.operation == "Slice";
    if (is_part && (!scope.is_model() || is_taken(scope.graph, node.results.front()))) {
      refused(scope, node, fmt::format("for other nodes, a place {}", not_constant), moved.operands);
      return true;
    }
    const auto first = std::find_if(node.results.begin(), node.results.end(), [](int result) { return result >= 0; });
    if (before >= 0 && int(outputs.size()) > before && scope.is_model() && first != node.results.end())
      add_count(scope, *first, outputs.back());
    return true;
  }

  // How many rows of a value of the model count is an output of its own.
  void add_count(const Scope& scope, int value, int count) {
    if (result_.values[std::size_t(count)].known) return;
    result_.values[std::size_t(count)].name = scope.graph.values[std::size_t(value)].name + ".count";
    counts_.push_back(count);
  }

  void compute(Scope& scope, const Node& node, Node moved) {
    const auto operands = operands_of(result_, moved);
    if (!operands) {
      if (!is_known(node.operation)) not_supported(scope.graph, node, why_not_known(node.operation));
      return leave_open(scope, node);
    }
    const auto results = results_of(scope.graph, node, *operands, place_);
    if (!results) {
      not_supported(scope.graph, node, results.reason().text, moved.operands);
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
    if (!is_needed) return;
    if (scope.graph.version != result_.version) moved.version = scope.graph.version;
    result_.nodes.push_back(std::move(moved));
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
    if (result.foreign) return nullptr;
    for (const codegen::Tensor& tensor : result.computation->tensors) {
      const int number = operand_of(tensor);
      if (number < 0) continue;
      const Known& known = operands[std::size_t(number)]->known;
      if (!known || known->has_inexact()) return nullptr;
    }
    const bool is_one_loop = is_of_known_bytes(node, operands);
    if (!pays_for(bytes, is_one_loop ? 0 : work_of(*result.computation))) return nullptr;
    if (is_one_loop) return dequantised(node, operands);
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
  std::size_t elements_of_sequences_ = 0;
  std::vector<std::vector<int>> sequences_;                          // values
  std::map<std::pair<int, std::int64_t>, int> first_;                // by value and axis: with that axis first
  std::vector<bool> is_output_;                                      // of the model
  std::map<std::pair<std::string, std::string>, Kind> unsupported_;  // by operator and reason
  std::vector<int> counts_;                                          // further outputs: how many rows of others count
  std::int64_t bytes_ = 0, bytes_in_bodies_ = 0, walked_ = 0;
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

// What `Constant` nodes, and what passes their results on, give is known: others look at scales and shapes.
Graph with_known_values(Graph graph, std::string_view place, const FoldLimits&) {
  std::vector<Node> left;
  for (Node& node : graph.nodes) {
    const bool is_constant = node.operation == "Constant", is_passed_on = node.operation == "Identity";
    const auto operands = is_constant || is_passed_on ? operands_of(graph, node) : std::nullopt;
    if (!operands || node.foreign || node.results.size() != 1 || node.results[0] < 0 ||
        (is_passed_on && (operands->size() != 1 || !(*operands)[0] || !(*operands)[0]->known))) {
      left.push_back(std::move(node));
      continue;
    }
    const auto results = is_constant ? results_of(graph, node, *operands, place)
                                     : base::Result<std::vector<Result>>(std::vector<Result>());
    const Known known = is_passed_on ? (*operands)[0]->known : results ? results->front().known : nullptr;
    Value& value = graph.values[std::size_t(node.results[0])];
    const bool is_output =
        std::find(graph.outputs.begin(), graph.outputs.end(), node.results[0]) != graph.outputs.end();
    if (!known || is_output) {
      left.push_back(std::move(node));
      continue;
    }
    value.origin = Value::Origin::constant;
    value.type = known->type, value.shape = known->shape, value.known = known;
  }
  graph.nodes = std::move(left);
  return graph;
}

struct Step {
  std::string_view name;
  Graph (*apply)(Graph graph, std::string_view place, const FoldLimits& limits);
};
template <Graph (*apply)(Graph)>
Graph alone(Graph graph, std::string_view, const FoldLimits&) {
  return apply(std::move(graph));
}
constexpr Step steps[] = {
    {"results that nothing takes", alone<with_wanted_results>},
    {"values of Constant nodes", with_known_values},
    {"products of few bits",
     [](Graph graph, std::string_view, const FoldLimits&) { return with_few_bits(std::move(graph)); }},
    {"operators of integers", alone<with_integer_operators>},
    {"constants, control flow and composed operators",
     [](Graph graph, std::string_view place, const FoldLimits& limits) { return Folder(place, limits).folded(graph); }},
    {"equal nodes", alone<with_equal_nodes_once>},
    {"scales in weights", alone<with_scales_in_weights>},
    {"zero points in weights", alone<with_zero_points_in_weights>},
    {"windows in groups", alone<with_windows_in_groups>},
    {"what is not used", [](Graph graph, std::string_view, const FoldLimits&) { return without_unused(graph); }},
};

std::map<std::string, std::int64_t> counts_of(const Graph& graph) {
  std::map<std::string, std::int64_t> counts;
  for (const Node& node : graph.nodes) ++counts[node.operation];
  return counts;
}

}  // namespace

Graph folded(const Graph& graph, std::string_view place, const FoldLimits& limits, std::vector<Pass>* passes) {
  Graph now = graph;
  for (const Step& step : steps) {
    std::map<std::string, std::int64_t> change = passes == nullptr ? decltype(change)() : counts_of(now);
    now = step.apply(std::move(now), place, limits);
    if (passes == nullptr) continue;
    for (auto& [operation, count] : change) count = -count;
    for (const auto& [operation, count] : counts_of(now)) change[operation] += count;
    std::erase_if(change, [](const auto& each) { return each.second == 0; });
    passes->push_back({std::string(step.name), now.nodes.size(), std::move(change)});
  }
  return now;
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
