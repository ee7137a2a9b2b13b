#include "codegen/expression/value.h"

#include <fmt/format.h>

#include <algorithm>
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
#define X(name, element) {#name, sizeof(element), !std::is_integral_v<element>, !std::is_unsigned_v<element>},
    GRAFT_DTYPES(X)
#undef X
};

enum class Counted { nothing, add, mul, div, compare, special };
enum class Types { all, floating, integers };

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
  const int nodes = int(to.nodes.size()), loads = int(to.loads.size()), positions = int(to.positions.size());
  for (ValueNode node : from.nodes) {
    if (node.a >= 0) node.a += nodes;
    if (node.b >= 0) node.b += nodes;
    if (node.c >= 0) node.c += nodes;
    if (node.load >= 0) node.load += node.op == Op::position ? positions : loads;
    to.nodes.push_back(node);
  }
  to.loads.insert(to.loads.end(), from.loads.begin(), from.loads.end());
  to.positions.insert(to.positions.end(), from.positions.begin(), from.positions.end());
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

DType computed_in(DType type) {
  return is_floating(type) && bytes_of(type) < 4 ? DType::f32 : type;
}

double lowest(DType type) {
  if (is_floating(type)) return -std::numeric_limits<double>::infinity();
  return with_element_of(type, [](auto zero) { return double(std::numeric_limits<decltype(zero)>::lowest()); });
}
double highest(DType type) {
  if (is_floating(type)) return std::numeric_limits<double>::infinity();
  return with_element_of(type, [](auto zero) { return double(std::numeric_limits<decltype(zero)>::max()); });
}

double largest(DType type) {
  return with_element_of(type, [](auto zero) {
    using Element = decltype(zero);
    if constexpr (std::is_arithmetic_v<Element>)
      return double(std::numeric_limits<Element>::max());
    else
      return Element::largest();
  });
}

DType widest(DType a, DType b) {
  a = computed_in(a), b = computed_in(b);
  if (a == b) return a;
  const auto rank = [](DType type) { return is_floating(type) ? 8 + bytes_of(type) : bytes_of(type); };
  if (rank(a) == rank(b)) return DType::i32;  // i8 and u8
  return rank(a) > rank(b) ? a : b;
}

double kept(double number, DType type) {
  if (is_floating(type)) return number;
  const double low = lowest(type), high = highest(type), values = high - low + 1;
  if (number >= low && number <= high) return number;
  if (std::isinf(number)) return number < 0 ? low : high;
  return number - values * std::floor((number - low) / values);
}

double rounded_to(double number, DType type) {
  return with_element_of(type, [&](auto zero) { return double(decltype(zero)(number)); });
}

std::int64_t integer_of(double number) {
  using Limits = std::numeric_limits<std::int64_t>;
  if (number >= 0x1p63) return Limits::max();
  return number <= -0x1p63 ? Limits::lowest() : std::int64_t(number);
}

std::string as_bytes(const std::vector<double>& numbers, DType type) {
  std::string bytes(numbers.size() * std::size_t(bytes_of(type)), '\0');
  with_element_of(type, [&](auto zero) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      using Element = decltype(zero);
      const Element value = std::is_integral_v<Element> ? Element(integer_of(numbers[i])) : Element(numbers[i]);
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

bool needs_integers(Op op) {
  return facts_of(op).types == Types::integers;
}

std::optional<DType> converts_to(Op op) {
  switch (op) {
#define X(name, element) \
  case Op::cast_##name:  \
    return DType::name;
    GRAFT_DTYPES(X)
#undef X
    case Op::saturate_i32:
      return DType::i32;
    case Op::saturate_i8:
      return DType::i8;
    case Op::saturate_u8:
      return DType::u8;
    default:
      return std::nullopt;
  }
}

Op cast_to(DType type) {
  switch (type) {
#define X(name, element) \
  case DType::name:      \
    return Op::cast_##name;
    GRAFT_DTYPES(X)
#undef X
  }
  return Op::cast_f32;
}

bool saturates(Op op) {
  return op == Op::saturate_i32 || op == Op::saturate_i8 || op == Op::saturate_u8;
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

double convert(double number, DType from, DType to, bool saturate) {
  if (is_floating(to)) return number;
  if (is_floating(from)) {
    if (std::isnan(number)) return 0;
    return std::clamp(std::trunc(number), lowest(to), highest(to));
  }
  return saturate ? std::clamp(number, lowest(to), highest(to)) : kept(number, to);
}

double integer_quotient(double a, double b) {
  return b == 0 ? 0 : std::floor(a / b);
}

double integer_remainder(double a, double b) {
  return b == 0 ? 0 : a - b * integer_quotient(a, b);
}

int shift_of(double by, DType type) {
  return int(std::clamp(by, 0.0, double(8 * bytes_of(type) - 1)));
}

bool Access::gathers(std::size_t dimension) const {
  return std::find(gathered.begin(), gathered.end(), int(dimension)) != gathered.end();
}

Value Value::constant(double number) {
  Value value;
  value.nodes.push_back({.op = Op::constant, .number = number});
  return value;
}

Value Value::position(Affine form) {
  Value value;
  value.nodes.push_back({.op = Op::position, .load = 0});
  value.positions.push_back(std::move(form));
  return value;
}

Value Value::load(Access access, const std::vector<Value>& gathered) {
  assert(gathered.size() == access.gathered.size());
  Value value;
  std::array<int, 3> operands{-1, -1, -1};
  for (std::size_t g = 0; g < gathered.size(); ++g) operands[g] = append(value, gathered[g]);
  value.nodes.push_back(
      {.op = Op::load, .a = operands[0], .b = operands[1], .c = operands[2], .load = int(value.loads.size())});
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

Value part_of(const Value& value, int node) {
  const ValueNode& here = value.nodes[std::size_t(node)];
  Value part;
  ValueNode root = here;
  for (int* operand : {&root.a, &root.b, &root.c})
    if (*operand >= 0) *operand = append(part, part_of(value, *operand));
  if (here.op == Op::load) {
    root.load = int(part.loads.size());
    part.loads.push_back(value.loads[std::size_t(here.load)]);
  } else if (here.op == Op::position) {
    root.load = int(part.positions.size());
    part.positions.push_back(value.positions[std::size_t(here.load)]);
  }
  part.nodes.push_back(root);
  return part;
}

Value substitute(const Value& value, std::span<const Affine> by) {
  return map_accesses(
      value,
      [&](Access access) {
        for (Affine& form : access.index) form = substitute(form, by);
        return access;
      },
      [&](const Affine& form) { return substitute(form, by); });
}

Value replace_loads(const Value& value, const std::function<std::optional<Value>(const Access&)>& by) {
  Value result;
  std::vector<int> moved;  // by old node: its new position
  moved.reserve(value.nodes.size());
  for (ValueNode node : value.nodes) {
    if (node.op == Op::load) {
      const Access& access = value.loads[std::size_t(node.load)];
      if (const std::optional<Value> other = by(access)) {
        assert(access.gathered.empty());
        moved.push_back(append(result, *other));
        continue;
      }
      node.load = int(result.loads.size());
      result.loads.push_back(access);
    }
    if (node.op == Op::position) {
      result.positions.push_back(value.positions[std::size_t(node.load)]);
      node.load = int(result.positions.size()) - 1;
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

std::vector<NodeType> types_of(const Value& value, DType target, const std::function<DType(const Access&)>& type_of) {
  using Perhaps = std::optional<DType>;
  const std::size_t count = value.nodes.size();
  const auto operands = [&](const ValueNode& node) { return std::array{node.a, node.b, node.c}; };
  const auto is_condition = [](const ValueNode& node, std::size_t operand) {
    return node.op == Op::select && operand == 0;
  };
  // What the place of each node asks for, from the root down.
  std::vector<Perhaps> wanted(count);
  wanted.back() = computed_in(target);
  for (std::size_t n = count; n-- > 0;) {
    const ValueNode& node = value.nodes[n];
    for (std::size_t o = 0; o < 3; ++o) {
      const int operand = operands(node)[o];
      if (operand < 0) continue;
      const bool alone = is_comparison(node.op) || converts_to(node.op) || is_condition(node, o);
      wanted[std::size_t(operand)] = node.op == Op::load ? Perhaps(DType::i32) : alone ? Perhaps() : wanted[n];
    }
  }
  // What it works in and gives, from the leaves up. Nothing: constants alone.
  std::vector<Perhaps> works(count), gives(count);
  const auto join = [](Perhaps& type, const Perhaps& other) {
    if (other) type = type ? widest(*type, *other) : computed_in(*other);
  };
  for (std::size_t n = 0; n < count; ++n) {
    const ValueNode& node = value.nodes[n];
    if (node.op == Op::constant) continue;
    if (node.op == Op::position) gives[n] = DType::i32;
    if (node.op == Op::load) gives[n] = type_of(value.loads[std::size_t(node.load)]);
    for (std::size_t o = 0; o < 3; ++o)
      if (const int operand = operands(node)[o]; operand >= 0 && !is_condition(node, o))
        join(works[n], gives[std::size_t(operand)]);
    if (node.op == Op::position || node.op == Op::load) continue;
    if (const Perhaps to = converts_to(node.op)) {
      gives[n] = to;
      continue;
    }
    if (is_comparison(node.op)) continue;
    if (works[n]) join(works[n], wanted[n]);
    gives[n] = works[n];
  }
  // Constants, and what is made of them alone, take the type of what uses them.
  std::vector<NodeType> types(count);
  if (!gives.back() && !is_comparison(value.root().op)) gives.back() = computed_in(target);
  for (std::size_t n = count; n-- > 0;) {
    const ValueNode& node = value.nodes[n];
    if (!works[n]) works[n] = computed_in(gives[n].value_or(DType::f64));  // a comparison of constants
    if (!gives[n]) gives[n] = works[n];
    if (node.op == Op::load) works[n] = widest(works[n].value_or(DType::i32), DType::i32);
    types[n] = {*works[n], *gives[n]};
    for (std::size_t o = 0; o < 3; ++o)
      if (const int operand = operands(node)[o]; operand >= 0 && !gives[std::size_t(operand)])
        if (!is_condition(node, o)) gives[std::size_t(operand)] = node.op == Op::load ? DType::i32 : *works[n];
  }
  return types;
}

std::optional<Interval> integers_of(const Value& value, int node, std::span<const Interval> ranges) {
  const ValueNode& here = value.nodes[std::size_t(node)];
  if (here.op == Op::constant) {
    if (here.number != std::round(here.number) || std::abs(here.number) > 0x1p40) return std::nullopt;
    return Interval{std::int64_t(here.number), std::int64_t(here.number)};
  }
  if (here.op == Op::position) return range(value.positions[std::size_t(here.load)], ranges);
  if (operands_of(here.op) != 2 || is_comparison(here.op)) return std::nullopt;
  const std::optional<Interval> a = integers_of(value, here.a, ranges), b = integers_of(value, here.b, ranges);
  if (!a || !b || a->high < a->low || b->high < b->low) return std::nullopt;
  const auto ends = [&](const auto& of) {
    const std::array all = {of(a->low, b->low), of(a->low, b->high), of(a->high, b->low), of(a->high, b->high)};
    const auto [low, high] = std::minmax_element(all.begin(), all.end());
    const double limit = 0x1p40;  // what follows stays inside 64 bits
    if (double(*low) < -limit || double(*high) > limit) return std::optional<Interval>();
    return std::optional(Interval{std::int64_t(*low), std::int64_t(*high)});
  };
  switch (here.op) {
    case Op::add:
      return ends([](std::int64_t x, std::int64_t y) { return x + y; });
    case Op::sub:
      return ends([](std::int64_t x, std::int64_t y) { return x - y; });
    case Op::mul:
      return ends([](std::int64_t x, std::int64_t y) { return double(x) * double(y); });
    case Op::max:
      return ends([](std::int64_t x, std::int64_t y) { return std::max(x, y); });
    case Op::min:
      return ends([](std::int64_t x, std::int64_t y) { return std::min(x, y); });
    case Op::div:
      if (b->low <= 0 && b->high >= 0) return std::nullopt;
      return ends([](std::int64_t x, std::int64_t y) { return integer_quotient(double(x), double(y)); });
    case Op::modulo:
      if (b->low != b->high || b->low <= 0) return std::nullopt;
      if (a->low >= 0 && a->high < b->low) return a;
      return Interval{0, b->low - 1};
    default:
      return std::nullopt;
  }
}

std::optional<std::string> types_problem(const Value& value, const std::vector<NodeType>& types) {
  for (std::size_t n = 0; n < value.nodes.size(); ++n) {
    const ValueNode& node = value.nodes[n];
    const DType type = types[n].operands;
    if (needs_floating(node.op) && !is_floating(type))
      return fmt::format("{0} needs a floating-point type, not {1}; write {0}(cast_f32(...))", name_of(node.op),
                         name_of(type));
    if (needs_integers(node.op) && is_floating(type))
      return fmt::format("{} needs integers, not {}; write cast_i32(...)", sign_of(node.op), name_of(type));
    if (node.op != Op::load) continue;
    for (const int operand : {node.a, node.b, node.c})
      if (operand >= 0 && is_floating(types[std::size_t(operand)].result))
        return fmt::format("an index of type {}; write cast_i32(...)", name_of(types[std::size_t(operand)].result));
  }
  return std::nullopt;
}

std::optional<std::string> nodes_problem(const Value& value) {
  for (int n = 0; n < int(value.nodes.size()); ++n) {
    const ValueNode& node = value.nodes[std::size_t(n)];
    const int operands[] = {node.a, node.b, node.c};
    const bool is_load = node.op == Op::load;
    const std::size_t leaves = is_load ? value.loads.size() : node.op == Op::position ? value.positions.size() : 0;
    bool well_formed = leaves > 0 ? node.load >= 0 && std::size_t(node.load) < leaves
                                  : node.load < 0 && !is_load && node.op != Op::position;
    const int count =
        is_load && well_formed ? int(value.loads[std::size_t(node.load)].gathered.size()) : operands_of(node.op);
    if (count > 3) return "a load gathers along at most 3 dimensions";
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
