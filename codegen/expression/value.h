// Scalar expressions over loads: the right-hand side of an assignment, in index expressions (loads from tensors at
// forms over axes) and in loop programs (loads from buffers at forms over loops) alike. One list of operations serves
// parser, printer, reference, arithmetic counts and emitter.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/expression/affine.h"

namespace graft::codegen {

// name, bytes, is floating point
#define GRAFT_DTYPES(X) \
  X(f32, 4, true)       \
  X(f64, 8, true)       \
  X(i32, 4, false)

enum class DType {
#define X(name, bytes, floating) name,
  GRAFT_DTYPES(X)
#undef X
};
std::string_view name_of(DType type);
std::optional<DType> dtype_of(std::string_view name);
std::int64_t bytes_of(DType type);
bool is_floating(DType type);
// The ends of a type's range; infinities for floating point.
double lowest(DType type);
double highest(DType type);

// name, number of operands. Text form: + - * / infix, the others as calls.
#define GRAFT_OPS(X) \
  X(constant, 0)     \
  X(load, 0)         \
  X(add, 2)          \
  X(sub, 2)          \
  X(mul, 2)          \
  X(div, 2)          \
  X(max, 2)          \
  X(min, 2)          \
  X(neg, 1)          \
  X(exp, 1)          \
  X(sqrt, 1)

enum class Op {
#define X(name, operands) name,
  GRAFT_OPS(X)
#undef X
};
std::string_view name_of(Op op);
int operands_of(Op op);

// An element of a tensor (or buffer), by number. `padded`: the number `outside` (of the tensor's type) where an index
// lies outside of the shape, instead of being an error; only index expressions have it, lowering resolves it.
struct Access {
  int tensor = 0;
  std::vector<Affine> index;  // one form per dimension
  bool padded = false;
  double outside = 0;
  bool operator==(const Access&) const = default;
};

struct ValueNode {
  Op op = Op::constant;
  int a = -1, b = -1;  // operands: positions of earlier nodes
  double number = 0;   // constant
  int load = -1;       // load: position in Value::loads
  bool operator==(const ValueNode&) const = default;
};

// Operands stand before their users; the last node is the root. Casts: a load is converted to the type of the stage's
// tensor when it is used.
struct Value {
  std::vector<ValueNode> nodes;
  std::vector<Access> loads;  // in order of appearance; equal accesses may appear twice
  bool operator==(const Value&) const = default;

  static Value constant(double number);
  static Value load(Access access);
  static Value apply(Op op, Value a);
  static Value apply(Op op, Value a, Value b);
  const ValueNode& root() const { return nodes.back(); }
};

// The same value with every access mapped.
template <class Map>
Value map_accesses(const Value& value, Map map) {
  Value result{value.nodes, {}};
  result.loads.reserve(value.loads.size());
  for (const Access& access : value.loads) result.loads.push_back(map(access));
  return result;
}
// `value` with each load for which `by` gives a value (over the same variables) replaced by that.
Value replace_loads(const Value& value, const std::function<std::optional<Value>(const Access&)>& by);
// The number that the value always is, if that is plain from its constants (0 times anything is 0).
std::optional<double> constant_value(const Value& value);

// Number of nodes of each arithmetic kind: add+sub+neg, mul, div, max+min, exp+sqrt.
struct ArithmeticCounts {
  std::int64_t add = 0, mul = 0, div = 0, compare = 0, special = 0;
};
ArithmeticCounts arithmetic(const Value& value);

// If the root is a product of two loads (or mul of anything): used for fused multiply-add detection.
bool is_product(const Value& value);

}  // namespace graft::codegen
