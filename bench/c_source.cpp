#include "bench/c_source.h"

#include <fmt/format.h>

#include <cassert>
#include <cmath>
#include <utility>

namespace graft::bench {
namespace {

using namespace codegen;

// What C has no operator or function for, by type. A maximum is NaN if an operand is. An index from memory counts as
// the nearest one inside.
constexpr const char* prelude = R"(#include <math.h>
#include <stdint.h>

#define NUMBER(T, name)                                           \
  static inline T max_##name(T a, T b) { return a > b || a != a ? a : b; }  \
  static inline T min_##name(T a, T b) { return a < b || a != a ? a : b; }
#define INTEGER(T, U, name, low, high)                            \
  NUMBER(T, name)                                                 \
  static inline T abs_##name(T a) { return a < 0 ? -a : a; }      \
  static inline T div_##name(T a, T b) {                          \
    if (b == 0) return 0;                                         \
    if (b == (T)-1) return b < 0 ? (T)(0 - (U)a) : a / b;         \
    T quotient = a / b;                                           \
    return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient; \
  }                                                               \
  static inline T mod_##name(T a, T b) { return b == 0 ? 0 : (T)((U)a - (U)b * (U)div_##name(a, b)); } \
  static inline int bits_##name(T by) { return by < 0 ? 0 : by >= 8 * (int)sizeof(T) ? 8 * (int)sizeof(T) - 1 : (int)by; } \
  static inline T shl_##name(T a, T by) { return (T)((U)a << bits_##name(by)); } \
  static inline T shr_##name(T a, T by) { return a >> bits_##name(by); } \
  static inline T name##_of_f32(float a) {                        \
    return a != a ? 0 : a <= (float)low ? low : a >= (float)high ? high : (T)a; \
  }                                                               \
  static inline T name##_of_f64(double a) {                       \
    return a != a ? 0 : a <= (double)low ? low : a >= (double)high ? high : (T)a; \
  }                                                               \
  static inline T saturate_##name(int64_t a) { return a < (int64_t)low ? low : a > (int64_t)high ? high : (T)a; }
NUMBER(float, f32)
NUMBER(double, f64)
INTEGER(int32_t, uint32_t, i32, INT32_MIN, INT32_MAX)
INTEGER(int8_t, uint8_t, i8, INT8_MIN, INT8_MAX)
INTEGER(uint8_t, uint8_t, u8, 0, UINT8_MAX)
INTEGER(int64_t, uint64_t, i64, INT64_MIN, INT64_MAX)
static inline float rsqrt_f32(float a) { return 1.0f / sqrtf(a); }
static inline double rsqrt_f64(double a) { return 1.0 / sqrt(a); }
static inline float sigmoid_f32(float a) { return 1.0f / (1.0f + expf(-a)); }
static inline double sigmoid_f64(double a) { return 1.0 / (1.0 + exp(-a)); }
/* Numbers of 16 bits are kept as their bits. */
static inline float f32_of_bits(uint32_t bits) { union { uint32_t bits; float number; } u = {bits}; return u.number; }
static inline uint32_t bits_of_f32(float a) { union { float number; uint32_t bits; } u = {a}; return u.bits; }
static inline float f32_of_bf16(uint16_t a) { return f32_of_bits((uint32_t)a << 16); }
static inline uint16_t bf16_of_f32(float a) {
  uint32_t bits = bits_of_f32(a);
  return a != a ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
static inline float f32_of_f16(uint16_t a) {
  uint32_t sign = (uint32_t)(a & 0x8000) << 16, size = (uint32_t)(a & 0x7fff) << 13;
  return f32_of_bits(sign | (size >= 0x0f800000 ? size | 0x7f800000 : bits_of_f32(f32_of_bits(size) * 0x1p112f)));
}
static inline uint16_t f16_of_f32(float a) {
  uint32_t bits = bits_of_f32(a), size = bits & 0x7fffffff, moved = size - 0x38000000;
  uint32_t result = a != a               ? 0x7e00
                    : size >= 0x47800000 ? 0x7c00
                    : size < 0x38800000  ? bits_of_f32(f32_of_bits(size) + 0.5f) - 0x3f000000
                                         : (moved + 0xfff + (moved >> 13 & 1)) >> 13;
  return result | bits >> 16 & 0x8000;
}
static inline int64_t inside(int64_t index, int64_t extent) {
  return index < 0 ? 0 : index >= extent ? extent - 1 : index;
}

)";

std::string_view c_type(DType type) {
  switch (type) {
    case DType::f32:
      return "float";
    case DType::f64:
      return "double";
    case DType::i32:
      return "int32_t";
    case DType::i8:
      return "int8_t";
    case DType::u8:
      return "uint8_t";
    case DType::i64:
      return "int64_t";
    case DType::f16:
    case DType::bf16:
      return "uint16_t";
  }
  return "";
}

std::string number_text(double number, DType type) {
  if (computed_in(type) != type) {
    const std::string bytes = as_bytes({number}, type);
    return fmt::format("0x{:02x}{:02x}", std::uint8_t(bytes[1]), std::uint8_t(bytes[0]));
  }
  if (!is_floating(type)) {
    const std::int64_t within = integer_of(kept(number, type));
    // The least number of 32 or 64 bits cannot be written as one.
    return within < 0 ? fmt::format("({} - 1)", within + 1) : fmt::format("{}", within);
  }
  if (std::isnan(number)) return "NAN";
  if (std::isinf(number)) return number < 0 ? "(-INFINITY)" : "INFINITY";
  return fmt::format("{}{:.17e}{}{}", number < 0 ? "(" : "", number, type == DType::f32 ? "f" : "",
                     number < 0 ? ")" : "");
}

// A function of C's library.
std::string library_call(std::string_view name, DType type, const std::string& arguments) {
  return fmt::format("{}{}({})", name, type == DType::f32 ? "f" : "", arguments);
}
// A function of the prelude.
std::string call(std::string_view name, DType type, const std::string& arguments) {
  return fmt::format("{}_{}({})", name, name_of(type), arguments);
}

std::string converted(const std::string& text, DType from, DType to) {
  if (from == to) return text;
  for (const DType type : {from, to}) {
    const DType wide = computed_in(type);
    if (wide == type) continue;
    return type == from ? converted(fmt::format("{}_of_{}({})", name_of(wide), name_of(type), text), wide, to)
                        : fmt::format("{}_of_{}({})", name_of(type), name_of(wide), converted(text, from, wide));
  }
  if (is_floating(from) && !is_floating(to)) return fmt::format("{}_of_{}({})", name_of(to), name_of(from), text);
  return fmt::format("(({}){})", c_type(to), text);
}

// An operation on operands of this type. C computes in int what is narrower: the result is cast back.
std::string operation_text(Op op, DType type, const std::string& a, const std::string& b, const std::string& c) {
  const bool floating = is_floating(type);
  const auto in_type = [&](const std::string& text) {
    return bytes_of(type) < 4 ? fmt::format("({})({})", c_type(type), text) : "(" + text + ")";
  };
  switch (op) {
    case Op::constant:
    case Op::load:
    case Op::position:
      break;
    case Op::add:
    case Op::sub:
    case Op::mul:
      return in_type(fmt::format("{} {} {}", a, sign_of(op), b));
    case Op::div:
      return floating ? fmt::format("({} / {})", a, b) : call("div", type, a + ", " + b);
    case Op::max:
    case Op::min:
      return call(name_of(op), type, a + ", " + b);
    case Op::neg:
      return in_type("-" + a);
    case Op::abs:
      return floating ? library_call("fabs", type, a) : call("abs", type, a);
    case Op::rsqrt:
    case Op::sigmoid:
      return call(name_of(op), type, a);
    case Op::exp:
    case Op::sqrt:
    case Op::log:
    case Op::tanh:
    case Op::erf:
    case Op::sin:
    case Op::cos:
    case Op::floor:
      return library_call(name_of(op), type, a);
    case Op::round:
      return library_call("rint", type, a);
    case Op::modulo:
      return call("mod", type, a + ", " + b);
    case Op::shift_left:
      return call("shl", type, a + ", " + b);
    case Op::shift_right:
      return call("shr", type, a + ", " + b);
    case Op::bit_and:
      return in_type(fmt::format("{} & {}", a, b));
    case Op::bit_or:
      return in_type(fmt::format("{} | {}", a, b));
    case Op::bit_xor:
      return in_type(fmt::format("{} ^ {}", a, b));
    case Op::saturate_i32:
    case Op::saturate_i8:
    case Op::saturate_u8:
      if (!floating) return call("saturate", *converts_to(op), a);
      return converted(a, type, *converts_to(op));
    case Op::cast_f32:
    case Op::cast_f64:
    case Op::cast_i32:
    case Op::cast_i8:
    case Op::cast_u8:
    case Op::cast_i64:
    case Op::cast_f16:
    case Op::cast_bf16:
      return converted(a, type, *converts_to(op));
    case Op::pow:
      return library_call("pow", type, a + ", " + b);
    case Op::select:
      return fmt::format("({} ? {} : {})", a, b, c);
    case Op::less:
    case Op::less_or_equal:
    case Op::greater:
    case Op::greater_or_equal:
    case Op::equal:
    case Op::not_equal:
      return fmt::format("({} {} {})", a, sign_of(op), b);
  }
  assert(false);
  return "";
}

class Printer {
 public:
  explicit Printer(const LoopProgram& program) : program_(program) {
    for (std::size_t i = 0; i < program.loops.size(); ++i) variables_.push_back(fmt::format("i{}", i));
  }

  std::string function(const std::string& name) {
    std::string parameters, arguments, own;
    int position = 0;
    for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
      const Buffer& buffer = program_.buffers[b];
      if (buffer.role == Role::temporary) {
        own += buffer.is_literal() ? literal_text(buffer, b)
                                   : fmt::format("static {} b{}[{}];\n", c_type(buffer.dtype), b, buffer.elements());
      } else {
        parameters += fmt::format("{}{}* restrict b{}", position == 0 ? "" : ", ", c_type(buffer.dtype), b);
        arguments += fmt::format("{}p[{}]", position == 0 ? "" : ", ", position);
        ++position;
      }
    }
    std::string text = prelude + own;
    for (const auto& [body, suffix] : {std::pair(&program_.prepare, "_prepare"), std::pair(&program_.run, "")}) {
      text += fmt::format("__attribute__((noinline)) static void loops{}({}) {{\n", suffix, parameters);
      walk(*body, 0, int(body->size()), 1, text);
      text += fmt::format("}}\nvoid {0}{1}(void* const* p) {{\n  loops{1}({2});\n}}\n", name, suffix, arguments);
    }
    return text;
  }

 private:
  static std::string literal_text(const Buffer& buffer, std::size_t b) {
    std::string text = fmt::format("static const {} b{}[] = {{", c_type(buffer.dtype), b);
    for (const double number : buffer.values) text += number_text(number, buffer.dtype) + ", ";
    return text + "};\n";
  }

  // `gathered`: the indices that are values.
  std::string element(const Access& access, const std::vector<std::string>& gathered = {}) const {
    const std::vector<std::int64_t>& shape = program_.buffers[std::size_t(access.tensor)].shape;
    std::string place = to_text(offset(program_, access), variables_);
    for (std::size_t g = 0; g < gathered.size(); ++g) {
      const std::size_t dimension = std::size_t(access.gathered[g]);
      std::int64_t stride = 1;
      for (std::size_t d = dimension + 1; d < shape.size(); ++d) stride *= shape[d];
      place += fmt::format(" + {} * inside({}, {})", stride, gathered[g], shape[dimension]);
    }
    return fmt::format("b{}[{}]", access.tensor, place);
  }

  DType type_of(const Access& access) const { return program_.buffers[std::size_t(access.tensor)].dtype; }

  // In the type of its result.
  std::string value(const Store& store, const std::vector<NodeType>& types, int at) const {
    const ValueNode& node = store.value.nodes[std::size_t(at)];
    const NodeType type = types[std::size_t(at)];
    const auto operand = [&](int n) {
      if (n < 0) return std::string();
      const std::string text = value(store, types, n);
      const bool is_condition = is_comparison(store.value.nodes[std::size_t(n)].op);
      return is_condition ? text : converted(text, types[std::size_t(n)].result, type.operands);
    };
    if (node.op == Op::constant) return number_text(node.number, type.result);
    if (node.op == Op::position)
      return fmt::format("(int32_t)({})", to_text(store.value.positions[std::size_t(node.load)], variables_));
    const std::string a = operand(node.a), b = operand(node.b), c = operand(node.c);
    if (node.op != Op::load) return operation_text(node.op, type.operands, a, b, c);
    std::vector<std::string> gathered;
    for (const std::string& index : {a, b, c})
      if (!index.empty()) gathered.push_back(index);
    return element(store.value.loads[std::size_t(node.load)], gathered);
  }

  std::string store_text(const Store& store) const {
    const DType type = type_of(store.target);
    const std::vector<NodeType> types =
        types_of(store.value, type, [&](const Access& access) { return type_of(access); });
    const std::string target = element(store.target);
    const DType combined = store.combine == Combine::none ? type : computed_in(type);
    const std::string right =
        converted(value(store, types, int(store.value.nodes.size()) - 1), types.back().result, combined);
    switch (store.combine) {
      case Combine::none:
        return fmt::format("{} = {};\n", target, right);
      case Combine::sum:
      case Combine::product:
        return fmt::format("{} {} {};\n", target, name_of(store.combine), right);
      case Combine::max:
      case Combine::min: {
        const std::string_view name = store.combine == Combine::max ? "max" : "min";
        const std::string result = call(name, combined, converted(target, type, combined) + ", " + right);
        return fmt::format("{} = {};\n", target, converted(result, combined, type));
      }
    }
    return "";
  }

  void walk(const Body& body, int at, int end, int level, std::string& text) const {
    const std::string indent(std::size_t(2 * level), ' ');
    while (at < end) {
      const Node& node = body[std::size_t(at)];
      if (node.kind == Node::Kind::loop) {
        text += fmt::format("{0}for (long i{1} = 0; i{1} < {2}; ++i{1}) {{\n", indent, node.item,
                            program_.loops[std::size_t(node.item)].extent);
        walk(body, at + 1, node.end, level + 1, text);
        text += indent + "}\n";
      } else {
        text += indent + store_text(program_.stores[std::size_t(node.item)]);
      }
      at = node.end;
    }
  }

  const LoopProgram& program_;
  std::vector<std::string> variables_;
};

}  // namespace

std::string to_c(const LoopProgram& program, const std::string& name) {
  return Printer(program).function(name);
}

}  // namespace graft::bench
