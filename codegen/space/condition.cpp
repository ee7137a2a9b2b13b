#include "codegen/space/condition.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/hash.h"

namespace graft::codegen {
namespace {

// The text may come from anywhere.
constexpr int deepest = 64;  // brackets and signs in each other
constexpr std::size_t most_nodes = 1000;

// Binary operators by precedence, loosest first; of two that begin alike the longer one first.
const std::array<std::vector<std::string>, 6> levels = {{
    {"||"},
    {"&&"},
    {"==", "!="},
    {"<=", ">=", "<", ">"},
    {"+", "-"},
    {"*", "/", "%"},
}};

class Parser {
 public:
  Parser(base::Cursor& cursor, const std::map<std::string, std::int64_t>& constants)
      : cursor_(cursor), constants_(constants) {}

  Condition condition() {
    cursor_.peek();  // after the spaces
    const base::Cursor start = cursor_;
    const std::string_view text = base::trim(cursor_.rest());
    binary(0, 0);
    if (!cursor_.at_end()) cursor_.fail("expected an operator or the end of the condition");
    if (condition_.names.empty()) start.fail("a condition over no argument ('$name') forbids everything or nothing");
    condition_.text = text;
    return std::move(condition_);
  }

 private:
  int add(std::string operation, int a, int b, std::int64_t number = 0) {
    if (condition_.nodes.size() == most_nodes) cursor_.fail(fmt::format("more than {} operations", most_nodes));
    condition_.nodes.push_back({std::move(operation), a, b, number});
    return int(condition_.nodes.size()) - 1;
  }

  int binary(std::size_t level, int depth) {
    if (level == levels.size()) return unary(depth);
    int result = binary(level + 1, depth);
    for (;;) {
      const auto& operators = levels[level];
      const auto found =
          std::find_if(operators.begin(), operators.end(), [&](const std::string& op) { return cursor_.accept(op); });
      if (found == operators.end()) return result;
      const int right = binary(level + 1, depth);
      result = add(*found, result, right);
    }
  }

  int unary(int depth) {
    if (depth > deepest) cursor_.fail(fmt::format("more than {} brackets and signs in each other", deepest));
    if (cursor_.accept("!")) {
      const int operand = unary(depth + 1);
      return add("!", operand, -1);
    }
    if (cursor_.accept("(")) {
      const int inside = binary(0, depth + 1);
      cursor_.expect(")");
      return inside;
    }
    if (cursor_.accept("$")) return argument();
    if (cursor_.at_number()) return add("", -1, -1, cursor_.integer());
    if (cursor_.accept("-")) {
      const int operand = unary(depth + 1);
      return add("neg", operand, -1);
    }
    const base::Cursor start = cursor_;
    const std::string name = cursor_.identifier();
    const auto known = constants_.find(name);
    if (known == constants_.end()) {
      std::vector<std::string> names;
      for (const auto& [constant, value] : constants_) names.push_back(constant);
      start.fail(fmt::format("unknown constant '{}' (arguments are written ${}){}", name, name,
                             base::did_you_mean(name, names)));
    }
    return add("", -1, -1, known->second);
  }

  int argument() {
    const std::string name = cursor_.identifier();
    const auto known = std::find(condition_.names.begin(), condition_.names.end(), name);
    const std::int64_t position = known - condition_.names.begin();
    if (known == condition_.names.end()) condition_.names.push_back(name);
    return add("$", -1, -1, position);
  }

  base::Cursor& cursor_;
  const std::map<std::string, std::int64_t>& constants_;
  Condition condition_;
};

std::optional<std::int64_t> computed(const std::string& op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (op == "+") return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  if (op == "-") return __builtin_sub_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  if (op == "*") return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  if (op == "/" || op == "%") {
    if (b == 0 || (b == -1 && a == INT64_MIN)) return std::nullopt;
    return op == "/" ? a / b : a % b;
  }
  if (op == "==") return a == b;
  if (op == "!=") return a != b;
  if (op == "<") return a < b;
  if (op == "<=") return a <= b;
  if (op == ">") return a > b;
  if (op == ">=") return a >= b;
  assert(false);
  return std::nullopt;
}

std::optional<std::int64_t> value_at(const Condition& condition, int at, std::span<const std::int64_t> arguments) {
  const Condition::Node& node = condition.nodes[std::size_t(at)];
  const std::string& op = node.operation;
  if (op.empty()) return node.number;
  if (op == "$") {
    const std::int64_t argument = arguments[std::size_t(condition.arguments[std::size_t(node.number)])];
    const std::vector<std::int64_t>& values = condition.values[std::size_t(node.number)];
    if (values.empty()) return argument;
    if (argument < 0 || argument >= std::int64_t(values.size())) return std::nullopt;
    return values[std::size_t(argument)];
  }
  const std::optional<std::int64_t> a = value_at(condition, node.a, arguments);
  if (!a) return std::nullopt;
  if (op == "!") return *a == 0;
  if (op == "neg") return computed("-", 0, *a);
  if (op == "&&" && *a == 0) return 0;
  if (op == "||" && *a != 0) return 1;
  const std::optional<std::int64_t> b = value_at(condition, node.b, arguments);
  if (!b) return std::nullopt;
  if (op == "&&" || op == "||") return *b != 0;
  return computed(op, *a, *b);
}

}  // namespace

Condition parse_condition(base::Cursor& cursor, const std::map<std::string, std::int64_t>& constants) {
  return Parser(cursor, constants).condition();
}

std::optional<Condition> bound(const Condition& condition, const Sketch& sketch) {
  Condition result = condition;
  result.arguments.clear();
  result.values.clear();
  for (const std::string& name : condition.names) {
    const int argument = sketch.argument_named(name);
    if (argument < 0) return std::nullopt;
    result.arguments.push_back(argument);
    std::vector<std::int64_t>& values = result.values.emplace_back();
    for (const double number : numbers_of(sketch, std::size_t(argument))) {
      constexpr double largest = 9e15;  // whole numbers up to it are exact
      if (number != std::floor(number) || std::abs(number) > largest) {
        values.clear();
        break;
      }
      values.push_back(std::int64_t(number));
    }
  }
  return result;
}

std::optional<std::int64_t> value_of(const Condition& condition, std::span<const std::int64_t> arguments) {
  return value_at(condition, int(condition.nodes.size()) - 1, arguments);
}

bool forbids(const Condition& condition, std::span<const std::int64_t> arguments) {
  const std::optional<std::int64_t> value = value_of(condition, arguments);
  return !value || *value != 0;
}

std::uint64_t hash(const Condition& condition) {
  std::uint64_t value = condition.nodes.size();
  for (const Condition::Node& node : condition.nodes) {
    value = base::hash_combine(value, base::hash_bytes(node.operation));
    value = base::hash_combine(value, base::hash_combine(std::uint64_t(node.a + 1), std::uint64_t(node.b + 1)));
    const bool argument = node.operation == "$";
    value = base::hash_combine(value,
                               std::uint64_t(argument ? condition.arguments[std::size_t(node.number)] : node.number));
  }
  return value;
}

}  // namespace graft::codegen
