#include "codegen/expression/value.h"

#include <array>
#include <cassert>
#include <limits>
#include <utility>

namespace graft::codegen {

namespace {

struct DTypeFacts {
  std::string_view name;
  std::int64_t bytes;
  bool floating;
};
constexpr DTypeFacts dtype_facts[] = {
#define X(name, bytes, floating) {#name, bytes, floating},
    GRAFT_DTYPES(X)
#undef X
};

struct OpFacts {
  std::string_view name;
  int operands;
};
constexpr OpFacts op_facts[] = {
#define X(name, operands) {#name, operands},
    GRAFT_OPS(X)
#undef X
};

// Appends the nodes and loads of `from`; returns where its root came to stand.
int append(Value& to, const Value& from) {
  assert(!from.nodes.empty());
  const int nodes = int(to.nodes.size()), loads = int(to.loads.size());
  for (ValueNode node : from.nodes) {
    if (node.a >= 0) node.a += nodes;
    if (node.b >= 0) node.b += nodes;
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

double lowest(DType type) {
  return is_floating(type) ? -std::numeric_limits<double>::infinity() : std::numeric_limits<std::int32_t>::min();
}
double highest(DType type) {
  return is_floating(type) ? std::numeric_limits<double>::infinity() : std::numeric_limits<std::int32_t>::max();
}

std::string_view name_of(Op op) {
  return op_facts[std::size_t(op)].name;
}
int operands_of(Op op) {
  return op_facts[std::size_t(op)].operands;
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

ArithmeticCounts arithmetic(const Value& value) {
  ArithmeticCounts counts;
  for (const ValueNode& node : value.nodes) {
    switch (node.op) {
      case Op::constant:
      case Op::load:
        break;
      case Op::add:
      case Op::sub:
      case Op::neg:
        ++counts.add;
        break;
      case Op::mul:
        ++counts.mul;
        break;
      case Op::div:
        ++counts.div;
        break;
      case Op::max:
      case Op::min:
        ++counts.compare;
        break;
      case Op::exp:
      case Op::sqrt:
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
