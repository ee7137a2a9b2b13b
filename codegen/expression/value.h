// Scalar expressions over loads: the right-hand side of an assignment, in index expressions (loads from tensors at
// forms over axes) and in loop programs (loads from buffers at forms over loops) alike. One list of operations serves
// parser, printer, reference, arithmetic counts and emitter.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/float16.h"
#include "codegen/expression/affine.h"

namespace graft::codegen {

// name, the C++ type of an element
#define GRAFT_DTYPES(X) \
  X(f32, float)         \
  X(f64, double)        \
  X(i32, std::int32_t)  \
  X(i8, std::int8_t)    \
  X(u8, std::uint8_t)   \
  X(i64, std::int64_t)  \
  X(f16, base::F16)     \
  X(bf16, base::BF16)

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
// The type in which its numbers are computed: f32 for f16 and bf16, which are types of storage alone.
DType computed_in(DType type);

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
// The largest finite number of a type.
double largest(DType type);

// The type in which numbers of both types are computed: floating point before integers, more bits before fewer; i8 and
// u8 together are i32; f16 and bf16 are f32.
DType widest(DType a, DType b);

// The number as a tensor of the type stores it: itself for floating-point types; modulo 2^bits for integers, infinities
// (the start values of max and min) as lowest and highest.
double kept(double number, DType type);
// The nearest number of a floating-point type.
double rounded_to(double number, DType type);

// A whole number as an integer; the nearest one of 64 bits beyond their range.
std::int64_t integer_of(double number);

// Numbers to their bytes in memory, little-endian, and back. Each must be within its type's range.
std::string as_bytes(const std::vector<double>& numbers, DType type);
std::vector<double> numbers_from(std::string_view bytes, DType type);

// name, number of operands, the sign between two of them ("": written as a call), the kind under which ArithmeticCounts
// counts it, and the types it works on. Numbers of operations are written nowhere, but new ones are added at the end:
// hashes of features use them. A load has an operand for each dimension that it gathers along (see Access).
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
  X(not_equal, 2, "!=", compare, all)        \
  X(position, 0, "", nothing, all)           \
  X(round, 1, "", add, floating)             \
  X(modulo, 2, "%", div, integers)           \
  X(shift_left, 2, "<<", add, integers)      \
  X(shift_right, 2, ">>", add, integers)     \
  X(cast_f32, 1, "", add, all)               \
  X(cast_f64, 1, "", add, all)               \
  X(cast_i32, 1, "", add, all)               \
  X(cast_i8, 1, "", add, all)                \
  X(cast_u8, 1, "", add, all)                \
  X(cast_i64, 1, "", add, all)               \
  X(saturate_i32, 1, "", compare, all)       \
  X(saturate_i8, 1, "", compare, all)        \
  X(saturate_u8, 1, "", compare, all)        \
  X(cast_f16, 1, "", add, all)               \
  X(cast_bf16, 1, "", add, all)              \
  X(bit_and, 2, "", add, integers)           \
  X(bit_or, 2, "", add, integers)            \
  X(bit_xor, 2, "", add, integers)           \
  X(sin, 1, "", special, floating)           \
  X(cos, 1, "", special, floating)

enum class Op {
#define X(name, operands, sign, counted, types) name,
  GRAFT_OPS(X)
#undef X
};
std::string_view name_of(Op op);
int operands_of(Op op);
std::string_view sign_of(Op op);  // "" for operations written as calls
bool needs_floating(Op op);
bool needs_integers(Op op);
// The type to which cast_T and saturate_T convert; nothing for other operations.
std::optional<DType> converts_to(Op op);
Op cast_to(DType type);
bool saturates(Op op);
// A condition, which only a `select` uses, as its first operand.
bool is_comparison(Op op);
bool holds(Op comparison, double a, double b);

// What a conversion gives, in double precision: from floating point to integers towards zero, to the ends of the range
// beyond them, and 0 for NaN; between integers modulo 2^bits, or with `saturate` the ends of the range beyond them.
double convert(double number, DType from, DType to, bool saturate = false);
// a / b of integers rounds down, a % b has the sign of b, so that a == a / b * b + a % b; both are 0 where b is 0. The
// result of the most negative number / -1 wraps around.
double integer_quotient(double a, double b);
double integer_remainder(double a, double b);
// The number of bits by which integers of the type are shifted: `by`, within 0 .. bits - 1.
int shift_of(double by, DType type);

// An element of a tensor (or buffer), by number. `padded`: the number `outside` (of the tensor's type) where an index
// is outside of the shape, instead of being an error; only index expressions have it, lowering resolves it.
// `gathered`: dimensions, rising, whose index is not the form (which is 0 there) but the value of an operand of the
// load's node, a for the first, b and c for the next: X[T[i], j]. An index outside of the dimension counts as its
// nearest element, so that no value of T leads out of memory.
struct Access {
  int tensor = 0;
  std::vector<Affine> index;  // one form per dimension
  bool padded = false;
  double outside = 0;
  std::vector<int> gathered = {};
  bool operator==(const Access&) const = default;
  bool gathers(std::size_t dimension) const;
};

struct ValueNode {
  Op op = Op::constant;
  int a = -1, b = -1, c = -1;  // operands: positions of earlier nodes
  double number = 0;           // constant
  int load = -1;               // load: position in Value::loads; position: in Value::positions
  bool operator==(const ValueNode&) const = default;
};

// Operands come before their users; the last node is the root. Types: types_of().
struct Value {
  std::vector<ValueNode> nodes;
  std::vector<Access> loads;           // in order of appearance; equal accesses may appear twice
  std::vector<Affine> positions = {};  // forms over axes (or loops) that are used as numbers: select(i < j, ...)
  bool operator==(const Value&) const = default;

  static Value constant(double number);
  static Value position(Affine form);
  static Value load(Access access, const std::vector<Value>& gathered = {});
  static Value apply(Op op, Value a);
  static Value apply(Op op, Value a, Value b);
  static Value apply(Op op, Value a, Value b, Value c);
  const ValueNode& root() const { return nodes.back(); }
};

// The types of a node: what its operands are converted to, and what it gives. A comparison gives a condition, of no
// type.
struct NodeType {
  DType operands = DType::f32, result = DType::f32;
  bool operator==(const NodeType&) const = default;
};
// By node of a value that is written to a tensor of type `target`. Operations work in the widest type of their operands
// and the target, so that sums of products of i8 into i32 are exact; a comparison, an operand of a cast and an index in
// that of their operands alone (an index in i32 at least). Numbers of 16 bits count as f32 wherever they are used.
// Constants are of the type of the operation that uses them, positions are i32. The result of the root is converted
// once, where it is stored.
std::vector<NodeType> types_of(const Value& value, DType target, const std::function<DType(const Access&)>& type_of);

// The same value with every access and every position mapped.
template <class Map, class MapPosition>
Value map_accesses(const Value& value, Map map, MapPosition map_position) {
  Value result{value.nodes, {}, {}};
  result.loads.reserve(value.loads.size());
  for (const Access& access : value.loads) result.loads.push_back(map(access));
  for (const Affine& form : value.positions) result.positions.push_back(map_position(form));
  return result;
}
// The value of one of its nodes.
Value part_of(const Value& value, int node);
// The same value over other variables: variable v becomes by[v].
Value substitute(const Value& value, std::span<const Affine> by);
// `value` with each load for which `by` gives a value (over the same variables) replaced by that value.
Value replace_loads(const Value& value, const std::function<std::optional<Value>(const Access&)>& by);
// The number that the value always has, if this follows from its constants (0 times anything is 0).
std::optional<double> constant_value(const Value& value);
// The integers that a node can have for variables in these ranges; nothing if they depend on what is loaded, or are not
// integers for certain.
std::optional<Interval> integers_of(const Value& value, int node, std::span<const Interval> ranges);

// Faults of the nodes themselves, independent of what they load from: operands that are not earlier nodes, a condition
// in place of a number, or a number in place of a condition.
std::optional<std::string> nodes_problem(const Value& value);
// Faults of types: an operation that does not work on the type that its operands have.
std::optional<std::string> types_problem(const Value& value, const std::vector<NodeType>& types);

// Number of nodes of each arithmetic kind, as GRAFT_OPS says.
struct ArithmeticCounts {
  std::int64_t add = 0, mul = 0, div = 0, compare = 0, special = 0;
};
ArithmeticCounts arithmetic(const Value& value);

// If the root is a product of two loads (or mul of anything): used for fused multiply-add detection.
bool is_product(const Value& value);

}  // namespace graft::codegen
