#include "codegen/expression/value.h"

#include <fmt/format.h>

#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace graft::codegen {

namespace {

struct DTypeFacts {
  std::string_view name;
  std::int64_t bytes;
  bool floating, is_signed;
};
constexpr DTypeFacts dtype_facts[] = {
#define X(name, element) {#name, sizeof(element), std::is_floating_point_v<element>, std::is_signed_v<element>},
    GRAFT_DTYPES(X)
#undef X
};

enum class Counted { nothing, add, mul, div, compare, special };
enum class Types { all, floating };

struct OpFacts {
  std::string_view name;
  int operands;
  std::string_view sign;
  Counted counted;
  Types types;
};
constexpr OpFacts op_facts[] = {
#define X(name, operands, sign, counted, types) {#name, operands, sign, Counted::counted, Types::types},
    GRAFT_OPS(X)
#undef X
};
const OpFacts& facts_of(Op op) {
  return op_facts[std::size_t(op)];
}

// Appends the nodes and loads of `from`; returns the position of its root.
int append(Value& to, const Value& from) {
  assert(!from.nodes.empty());
  const int nodes = int(to.nodes.size()), loads = int(to.loads.size());
  for (ValueNode node : from.nodes) {
    if (node.a >= 0) node.a += nodes;
    if (node.b >= 0) node.b += nodes;
    if (node.c >= 0) node.c += nodes;
    if (node.load >= 0) node.load += loads;
    to.nodes.push_back(node);
  }
  to.loads.insert(to.loads.end(), from.loads.begin(), from.loads.end());
  return int(to.nodes.size()) - 1;
}

}  // namespace

std::string_view name_of(DType type) {
  return dtype_facts[std::size_t(type)].name;
}

std::optional<DType> dtype_of(std::string_view name) {
  for (std::size_t i = 0; i < std::size(dtype_facts); ++i)
    if (dtype_facts[i].name == name) return DType(i);
  return std::nullopt;
}

std::int64_t bytes_of(DType type) {
  return dtype_facts[std::size_t(type)].bytes;
}
bool is_floating(DType type) {
  return dtype_facts[std::size_t(type)].floating;
}
bool is_signed(DType type) {
  return dtype_facts[std::size_t(type)].is_signed;
}

double lowest(DType type) {
  return with_element_of(type, [](auto zero) {
    using Limits = std::numeric_limits<decltype(zero)>;
    return Limits::has_infinity ? -std::numeric_limits<double>::infinity() : double(Limits::lowest());
  });
}
double highest(DType type) {
  return with_element_of(type, [](auto zero) {
    using Limits = std::numeric_limits<decltype(zero)>;
    return Limits::has_infinity ? std::numeric_limits<double>::infinity() : double(Limits::max());
  });
}

double kept(double number, DType type) {
  if (is_floating(type)) return number;
  const double low = lowest(type), high = highest(type), values = high - low + 1;
  if (number >= low && number <= high) return number;
  if (std::isinf(number)) return number < 0 ? low : high;
  return number - values * std::floor((number - low) / values);
}

std::string as_bytes(const std::vector<double>& numbers, DType type) {
  std::string bytes(numbers.size() * std::size_t(bytes_of(type)), '\0');
  with_element_of(type, [&](auto zero) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const auto value = decltype(zero)(numbers[i]);
      std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
    }
  });
  return bytes;
}

std::vector<double> numbers_from(std::string_view bytes, DType type) {
  std::vector<double> numbers(bytes.size() / std::size_t(bytes_of(type)));
  with_element_of(type, [&](auto value) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
      numbers[i] = double(value);
    }
  });
  return numbers;
}

std::string_view name_of(Op op) {
  return facts_of(op).name;
}
int operands_of(Op op) {
  return facts_of(op).operands;
}
std::string_view sign_of(Op op) {
  return facts_of(op).sign;
}
bool needs_floating(Op op) {
  return facts_of(op).types == Types::floating;
}

bool is_comparison(Op op) {
  return op >= Op::less && op <= Op::not_equal;
}

bool holds(Op comparison, double a, double b) {
  switch (comparison) {
    case Op::less:
      return a < b;
    case Op::less_or_equal:
      return a <= b;
    case Op::greater:
      return a > b;
    case Op::greater_or_equal:
      return a >= b;
    case Op::equal:
      return a == b;
    case Op::not_equal:
      return a != b;
    default:
      assert(false);
      return false;
  }
}

Value Value::constant(double number) {
  Value value;
  value.nodes.push_back({.op = Op::constant, .number = number});
  return value;
}

Value Value::load(Access access) {
  Value value;
  value.nodes.push_back({.op = Op::load, .load = 0});
  value.loads.push_back(std::move(access));
  return value;
}

Value Value::apply(Op op, Value a) {
  assert(operands_of(op) == 1);
  const int root = int(a.nodes.size()) - 1;
  assert(root >= 0);
  a.nodes.push_back({.op = op, .a = root});
  return a;
}

Value Value::apply(Op op, Value a, Value b) {
  assert(operands_of(op) == 2);
  const int left = int(a.nodes.size()) - 1;
  assert(left >= 0);
  const int right = append(a, b);
  a.nodes.push_back({.op = op, .a = left, .b = right});
  return a;
}

Value Value::apply(Op op, Value a, Value b, Value c) {
  assert(operands_of(op) == 3);
  const int first = int(a.nodes.size()) - 1;
  assert(first >= 0);
  const int second = append(a, b), third = append(a, c);
  a.nodes.push_back({.op = op, .a = first, .b = second, .c = third});
  return a;
}

Value replace_loads(const Value& value, const std::function<std::optional<Value>(const Access&)>& by) {
  Value result;
  std::vector<int> moved;  // by old node: its new position
  moved.reserve(value.nodes.size());
  for (ValueNode node : value.nodes) {
    if (node.op == Op::load) {
      const Access& access = value.loads[std::size_t(node.load)];
      if (const std::optional<Value> other = by(access)) {
        moved.push_back(append(result, *other));
        continue;
      }
      node.load = int(result.loads.size());
      result.loads.push_back(access);
    }
    if (node.a >= 0) node.a = moved[std::size_t(node.a)];
    if (node.b >= 0) node.b = moved[std::size_t(node.b)];
    if (node.c >= 0) node.c = moved[std::size_t(node.c)];
    moved.push_back(int(result.nodes.size()));
    result.nodes.push_back(node);
  }
  return result;
}

std::optional<double> constant_value(const Value& value) {
  std::vector<std::optional<double>> known;
  known.reserve(value.nodes.size());
  for (const ValueNode& node : value.nodes) {
    if (node.op == Op::constant) {
      known.emplace_back(node.number);
    } else if (node.op == Op::mul && (known[std::size_t(node.a)] == 0.0 || known[std::size_t(node.b)] == 0.0)) {
      known.emplace_back(0.0);
    } else {
      known.emplace_back(std::nullopt);
    }
  }
  return known.back();
}

std::optional<std::string> nodes_problem(const Value& value) {
  for (int n = 0; n < int(value.nodes.size()); ++n) {
    const ValueNode& node = value.nodes[std::size_t(n)];
    const int count = operands_of(node.op), operands[] = {node.a, node.b, node.c};
    bool well_formed =
        (node.op == Op::load) == (node.load >= 0) && (node.load < 0 || std::size_t(node.load) < value.loads.size());
    for (int i = 0; i < 3; ++i) well_formed = well_formed && (i < count) == (operands[i] >= 0) && operands[i] < n;
    if (!well_formed) return fmt::format("operation {} of the value is malformed", n);
    for (int i = 0; i < count; ++i) {
      const bool condition = node.op == Op::select && i == 0;
      if (is_comparison(value.nodes[std::size_t(operands[i])].op) != condition)
        return condition ? "the first operand of select must be a comparison"
                         : "a comparison is used as a number; write select(a < b, 1, 0)";
    }
  }
  if (!value.nodes.empty() && is_comparison(value.root().op))
    return "a comparison is used as a number; write select(a < b, 1, 0)";
  return std::nullopt;
}

ArithmeticCounts arithmetic(const Value& value) {
  ArithmeticCounts counts;
  for (const ValueNode& node : value.nodes) {
    switch (facts_of(node.op).counted) {
      case Counted::nothing:
        break;
      case Counted::add:
        ++counts.add;
        break;
      case Counted::mul:
        ++counts.mul;
        break;
      case Counted::div:
        ++counts.div;
        break;
      case Counted::compare:
        ++counts.compare;
        break;
      case Counted::special:
        ++counts.special;
        break;
    }
  }
  return counts;
}

bool is_product(const Value& value) {
  return value.root().op == Op::mul;
}

}  // namespace graft::codegen
