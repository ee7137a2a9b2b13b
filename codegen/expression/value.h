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

// name, the C++ type of an element
#define GRAFT_DTYPES(X) \
  X(f32, float)         \
  X(f64, double)        \
  X(i32, std::int32_t)  \
  X(i8, std::int8_t)    \
  X(u8, std::uint8_t)

enum class DType {
#define X(name, element) name,
  GRAFT_DTYPES(X)
#undef X
};
std::string_view name_of(DType type);
std::optional<DType> dtype_of(std::string_view name);
std::int64_t bytes_of(DType type);
bool is_floating(DType type);
bool is_signed(DType type);

// f(T()) for the C++ type T of an element.
template <class Function>
decltype(auto) with_element_of(DType type, Function f) {
  switch (type) {
#define X(name, element) \
  case DType::name:      \
    return f(element());
    GRAFT_DTYPES(X)
#undef X
  }
  return f(float());
}

// The ends of a type's range; infinities for floating point.
double lowest(DType type);
double highest(DType type);

// The number as a tensor of the type stores it: itself for floating-point types; modulo 2^bits for integers, infinities
// (the start values of max and min) as lowest and highest.
double kept(double number, DType type);

// Numbers to their bytes in memory, little-endian, and back. Each must be within its type's range.
std::string as_bytes(const std::vector<double>& numbers, DType type);
std::vector<double> numbers_from(std::string_view bytes, DType type);

// name, number of operands, the sign between two of them ("": written as a call), the kind under which ArithmeticCounts
// counts it, and the types it works on. Numbers of operations are written nowhere, but new ones are added at the end:
// hashes of features use them.
#define GRAFT_OPS(X)                         \
  X(constant, 0, "", nothing, all)           \
  X(load, 0, "", nothing, all)               \
  X(add, 2, "+", add, all)                   \
  X(sub, 2, "-", add, all)                   \
  X(mul, 2, "*", mul, all)                   \
  X(div, 2, "/", div, all)                   \
  X(max, 2, "", compare, all)                \
  X(min, 2, "", compare, all)                \
  X(neg, 1, "", add, all)                    \
  X(exp, 1, "", special, floating)           \
  X(sqrt, 1, "", special, floating)          \
  X(rsqrt, 1, "", special, floating)         \
  X(log, 1, "", special, floating)           \
  X(pow, 2, "", special, floating)           \
  X(tanh, 1, "", special, floating)          \
  X(sigmoid, 1, "", special, floating)       \
  X(erf, 1, "", special, floating)           \
  X(abs, 1, "", add, all)                    \
  X(floor, 1, "", add, floating)             \
  X(select, 3, "", compare, all)             \
  X(less, 2, "<", compare, all)              \
  X(less_or_equal, 2, "<=", compare, all)    \
  X(greater, 2, ">", compare, all)           \
  X(greater_or_equal, 2, ">=", compare, all) \
  X(equal, 2, "==", compare, all)            \
  X(not_equal, 2, "!=", compare, all)

enum class Op {
#define X(name, operands, sign, counted, types) name,
  GRAFT_OPS(X)
#undef X
};
std::string_view name_of(Op op);
int operands_of(Op op);
std::string_view sign_of(Op op);  // "" for operations written as calls
bool needs_floating(Op op);
// A condition, which only a `select` uses, as its first operand.
bool is_comparison(Op op);
bool holds(Op comparison, double a, double b);

// An element of a tensor (or buffer), by number. `padded`: the number `outside` (of the tensor's type) where an index
// is outside of the shape, instead of being an error; only index expressions have it, lowering resolves it.
struct Access {
  int tensor = 0;
  std::vector<Affine> index;  // one form per dimension
  bool padded = false;
  double outside = 0;
  bool operator==(const Access&) const = default;
};

struct ValueNode {
  Op op = Op::constant;
  int a = -1, b = -1, c = -1;  // operands: positions of earlier nodes
  double number = 0;           // constant
  int load = -1;               // load: position in Value::loads
  bool operator==(const ValueNode&) const = default;
};

// Operands come before their users; the last node is the root. Casts: a load is converted to the type of the stage's
// tensor when it is used, and everything is computed in that type; integers wrap around.
struct Value {
  std::vector<ValueNode> nodes;
  std::vector<Access> loads;  // in order of appearance; equal accesses may appear twice
  bool operator==(const Value&) const = default;

  static Value constant(double number);
  static Value load(Access access);
  static Value apply(Op op, Value a);
  static Value apply(Op op, Value a, Value b);
  static Value apply(Op op, Value a, Value b, Value c);
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
// `value` with each load for which `by` gives a value (over the same variables) replaced by that value.
Value replace_loads(const Value& value, const std::function<std::optional<Value>(const Access&)>& by);
// The number that the value always has, if this follows from its constants (0 times anything is 0).
std::optional<double> constant_value(const Value& value);

// Faults of the nodes themselves, independent of what they load from: operands that are not earlier nodes, a condition
// in place of a number, or a number in place of a condition.
std::optional<std::string> nodes_problem(const Value& value);

// Number of nodes of each arithmetic kind, as GRAFT_OPS says.
struct ArithmeticCounts {
  std::int64_t add = 0, mul = 0, div = 0, compare = 0, special = 0;
};
ArithmeticCounts arithmetic(const Value& value);

// If the root is a product of two loads (or mul of anything): used for fused multiply-add detection.
bool is_product(const Value& value);

}  // namespace graft::codegen
