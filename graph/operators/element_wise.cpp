// Operators that compute each element of their result of the elements at its place, with broadcasting.
#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "graph/onnx.h"
#include "graph/operators/call.h"

namespace graft::graph {
namespace {

// $0, $1, ... are the operands, $a, $b, ... the row's parameters.
struct Formula {
  std::string_view name;
  int operands = 1;
  std::string_view text;
  bool is_condition = false;  // gives u8: 0 or 1
  struct Parameter {
    std::string_view attribute;
    double otherwise = 0;
  };
  std::vector<Parameter> parameters = {};
};

const std::vector<Formula>& formulas() {
  static const std::vector<Formula> all = {
      {"Abs", 1, "abs($0)"},
      {"Neg", 1, "neg($0)"},
      {"Exp", 1, "exp($0)"},
      {"Log", 1, "log($0)"},
      {"Sqrt", 1, "sqrt($0)"},
      {"Reciprocal", 1, "1 / $0"},
      {"Erf", 1, "erf($0)"},
      {"Sin", 1, "sin($0)"},
      {"Cos", 1, "cos($0)"},
      {"Tan", 1, "sin($0) / cos($0)"},
      {"Sigmoid", 1, "sigmoid($0)"},
      {"Tanh", 1, "tanh($0)"},
      {"Relu", 1, "max($0, 0)"},
      {"Floor", 1, "floor($0)"},
      {"Ceil", 1, "neg(floor(neg($0)))"},
      {"Round", 1, "round($0)"},
      {"Sign", 1, "select($0 > 0, 1, select($0 < 0, -1, $0))"},
      {"Softplus", 1, "max($0, 0) + log(1 + exp(neg(abs($0))))"},
      {"Softsign", 1, "$0 / (1 + abs($0))"},
      {"Mish", 1, "$0 * tanh(max($0, 0) + log(1 + exp(neg(abs($0)))))"},
      {"HardSwish", 1, "$0 * max(0, min(1, $0 / 6 + 0.5))"},
      {"LeakyRelu", 1, "select($0 < 0, $a * $0, $0)", false, {{"alpha", double(0.01f)}}},
      {"Elu", 1, "select($0 < 0, $a * (exp(min($0, 0)) - 1), $0)", false, {{"alpha", 1}}},
      {"Celu", 1, "max($0, 0) + min(0, $a * (exp(min($0, 0) / $a) - 1))", false, {{"alpha", 1}}},
      {"Selu",
       1,
       "$b * select($0 > 0, $0, $a * (exp(min($0, 0)) - 1))",
       false,
       {{"alpha", double(1.67326319217681884765625f)}, {"gamma", double(1.05070102214813232421875f)}}},
      {"ThresholdedRelu", 1, "select($0 > $a, $0, 0)", false, {{"alpha", 1}}},
      {"HardSigmoid", 1, "max(0, min(1, $a * $0 + $b))", false, {{"alpha", double(0.2f)}, {"beta", 0.5}}},
      {"Shrink", 1, "select($0 < neg($b), $0 + $a, select($0 > $b, $0 - $a, 0))", false, {{"bias", 0}, {"lambd", 0.5}}},
      {"Not", 1, "1 - $0"},
      {"BitwiseNot", 1, "bit_xor($0, neg(1))"},
      {"IsNaN", 1, "select($0 != $0, 1, 0)", true},
      {"Add", 2, "$0 + $1"},
      {"Sub", 2, "$0 - $1"},
      {"Mul", 2, "$0 * $1"},
      {"PRelu", 2, "select($0 < 0, $1 * $0, $0)"},
      {"Equal", 2, "select($0 == $1, 1, 0)", true},
      {"Less", 2, "select($0 < $1, 1, 0)", true},
      {"LessOrEqual", 2, "select($0 <= $1, 1, 0)", true},
      {"Greater", 2, "select($0 > $1, 1, 0)", true},
      {"GreaterOrEqual", 2, "select($0 >= $1, 1, 0)", true},
      {"And", 2, "min($0, $1)"},
      {"Or", 2, "max($0, $1)"},
      {"Xor", 2, "select($0 != $1, 1, 0)", true},
      {"BitwiseAnd", 2, "bit_and($0, $1)"},
      {"BitwiseOr", 2, "bit_or($0, $1)"},
      {"BitwiseXor", 2, "bit_xor($0, $1)"},
  };
  return all;
}

std::string filled(std::string_view text, const std::map<char, std::string>& by) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '$')
      result += by.at(text[++i]);
    else
      result += text[i];
  }
  return result;
}

std::vector<Shape> shapes_of(const Call& call) {
  std::vector<Shape> shapes;
  for (int i = 0; i < call.operands(); ++i) shapes.push_back(call.shape(i));
  return shapes;
}

Meaning by_formula(const Formula& row, const Call& call) {
  call.same_types();
  const Shape shape = broadcast(shapes_of(call));
  Expression expression(call);
  std::map<char, std::string> by;
  for (int i = 0; i < row.operands; ++i) by[char('0' + i)] = expression.broadcast(i, axes_over(shape));
  for (std::size_t p = 0; p < row.parameters.size(); ++p)
    by[char('a' + p)] = number_text(call.number(std::string(row.parameters[p].attribute), row.parameters[p].otherwise));
  return {element_wise(expression, row.is_condition ? DType::u8 : call.type(0), shape, filled(row.text, by))};
}

// Integers are divided towards zero; the language rounds down.
Meaning divided(const Call& call) {
  call.same_types();
  const Shape shape = broadcast(shapes_of(call));
  Expression expression(call);
  const std::string a = expression.broadcast(0, axes_over(shape)), b = expression.broadcast(1, axes_over(shape));
  std::string value = fmt::format("{} / {}", a, b);
  if (!codegen::is_floating(call.type(0)) && codegen::is_signed(call.type(0)))
    value = fmt::format(
        "select({0} < 0, select({1} < 0, neg({0}) / neg({1}), neg(neg({0}) / {1})),"
        " select({1} < 0, neg({0} / neg({1})), {0} / {1}))",
        a, b);
  return {element_wise(expression, call.type(0), shape, value)};
}

// As C's fmod: exact for f32 with quotients below 2^57, for f64 with those below 2^53. In double precision a quotient
// of f32 below 2^29 times the divisor is exact, so that large ones are reduced in two steps.
std::string remainder(Expression& expression, const Axes& axes, const std::string& a, const std::string& b) {
  const auto rest = [](const std::string& of, const std::string& by) {
    const std::string first = fmt::format("({0} - floor({0} / {1}) * {1})", of, by);
    return fmt::format("select({0} < {1}, {0}, select({2} < 0, {2} + {1}, select({2} >= {1}, {2} - {1}, {2})))", of, by,
                       first);
  };
  const std::string dividend = fmt::format("abs(cast_f64({}))", a), divisor = fmt::format("abs(cast_f64({}))", b);
  expression.stage("R", DType::f64, axes, rest(dividend, fmt::format("({} * 268435456)", divisor)));
  const std::string size = rest(load("R", index_of(axes)), divisor);
  return fmt::format("select({} < 0, neg({}), {})", a, size, size);
}

Meaning modulo(const Call& call) {
  call.same_types();
  const Shape shape = broadcast(shapes_of(call));
  Expression expression(call);
  const std::string a = expression.broadcast(0, axes_over(shape)), b = expression.broadcast(1, axes_over(shape));
  std::string value = fmt::format("{} % {}", a, b);
  const bool has_sign_of_dividend = call.integer("fmod", 0) != 0;
  if (codegen::is_floating(call.type(0))) {
    value = remainder(expression, axes_over(shape), a, b);
    if (!has_sign_of_dividend) {
      if (call.version() < 28) throw Malformed{"fmod is not 1, for floating point"};
      expression.stage("Remainder", call.type(0), axes_over(shape), value);
      value = fmt::format("select({0} * {1} < 0, {0} + {1}, {0})", load("Remainder", index_of(axes_over(shape))), b);
    }
  } else if (has_sign_of_dividend)
    value = fmt::format("select({0} < 0, neg(neg({0}) % abs({1})), {0} % abs({1}))", a, b);
  return {element_wise(expression, call.type(0), shape, value)};
}

// Powers of integers are exact as far as double precision is; those by a fraction are cut off.
Meaning power(const Call& call) {
  const Shape shape = broadcast(shapes_of(call));
  Expression expression(call);
  const std::string a = expression.broadcast(0, axes_over(shape)), b = expression.broadcast(1, axes_over(shape));
  const bool is_floating = codegen::is_floating(call.type(0));
  std::string value = fmt::format("pow({}, {})", a, b);
  if (!is_floating) {
    // What is not whole but for rounding is cut off.
    expression.stage("P", DType::f64, axes_over(shape), fmt::format("pow(cast_f64({}), cast_f64({}))", a, b));
    value = fmt::format("cast_{1}(select(abs({0} - round({0})) <= abs({0}) * 1e-14, round({0}), {0}))",
                        load("P", index_of(axes_over(shape))), codegen::name_of(call.type(0)));
  }
  return {element_wise(expression, call.type(0), shape, value)};
}

Meaning shifted(const Call& call) {
  call.same_types();
  const std::string direction = call.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") throw Malformed{"direction is neither LEFT nor RIGHT"};
  const Shape shape = broadcast(shapes_of(call));
  Expression expression(call);
  const std::string a = expression.broadcast(0, axes_over(shape)), b = expression.broadcast(1, axes_over(shape));
  return {
      element_wise(expression, call.type(0), shape, fmt::format("{} {} {}", a, direction == "LEFT" ? "<<" : ">>", b))};
}

// Any number of operands, two by two in a tree.
Meaning combined(const Call& call, std::string_view text, bool is_mean = false) {
  call.same_types();
  const Shape shape = broadcast(shapes_of(call));
  Expression expression(call);
  std::vector<std::string> parts;
  for (int i = 0; i < call.operands(); ++i) parts.push_back(expression.broadcast(i, axes_over(shape)));
  while (parts.size() > 1) {
    std::vector<std::string> halves;
    for (std::size_t i = 0; i + 1 < parts.size(); i += 2)
      halves.push_back(filled(text, {{'0', parts[i]}, {'1', parts[i + 1]}}));
    if (parts.size() % 2 != 0) halves.push_back(parts.back());
    parts = std::move(halves);
  }
  if (is_mean) parts.front() = fmt::format("{} / {}", parts.front(), call.operands());
  return {element_wise(expression, call.type(0), shape, parts.front())};
}
Meaning largest(const Call& call) {
  return combined(call, "max($0, $1)");
}
Meaning least(const Call& call) {
  return combined(call, "min($0, $1)");
}
Meaning sum(const Call& call) {
  return combined(call, "($0 + $1)");
}
Meaning mean(const Call& call) {
  return combined(call, "($0 + $1)", true);
}

Meaning chosen(const Call& call) {
  if (call.type(1) != call.type(2)) throw Malformed{"its operands have several types"};
  const Shape shape = broadcast(shapes_of(call));
  Expression expression(call);
  const Axes axes = axes_over(shape);
  const std::string condition = expression.broadcast(0, axes);
  return {element_wise(
      expression, call.type(1), shape,
      fmt::format("select({} != 0, {}, {})", condition, expression.broadcast(1, axes), expression.broadcast(2, axes)))};
}

Meaning clipped(const Call& call) {
  Expression expression(call);
  const Axes axes = axes_over(call.shape(0));
  std::string value = expression.broadcast(0, axes);
  if (call.version() < 11) {
    if (call.has_attribute("min")) value = fmt::format("max({}, {})", value, number_text(call.number("min", 0)));
    if (call.has_attribute("max")) value = fmt::format("min({}, {})", value, number_text(call.number("max", 0)));
  } else {
    const auto limit = [&](int number, std::string_view function) {
      if (!call.has(number)) return;
      // An infinite limit limits nothing.
      if (call.is_known(number) && std::isinf(call.scalar(number))) return;
      value = fmt::format("{}({}, {})", function, value, expression.scalar(number));
    };
    call.same_types();
    limit(1, "max");
    limit(2, "min");
  }
  return {element_wise(expression, call.type(0), call.shape(0), value)};
}

void floating_only(const Call& call) {
  if (!codegen::is_floating(call.type(0))) throw Malformed{"its operand is not of floating point"};
}

// Infinities minus themselves are NaN; so is NaN, which is neither above nor below 0.
Meaning is_infinite(const Call& call) {
  floating_only(call);
  Expression expression(call);
  const std::string x = expression.broadcast(0, axes_over(call.shape(0)));
  const std::string infinite = fmt::format("select({0} - {0} != {0} - {0}, 1, 0)", x);
  const std::string value = fmt::format("select({0} > 0, {1}, select({0} < 0, {2}, 0))", x,
                                        call.integer("detect_positive", 1) != 0 ? infinite : "0",
                                        call.integer("detect_negative", 1) != 0 ? infinite : "0");
  return {element_wise(expression, DType::u8, call.shape(0), value)};
}

// A function in stages: $0 is the operand, a letter what the stage of that letter gave.
struct Staged {
  std::string_view name;
  std::vector<std::pair<char, std::string>> stages;
};

// 1 + c1 * x (1 + c2 * x (...)) with the given factors, the last first.
std::string series_of(std::string_view x, int terms, const std::function<double(int)>& factor) {
  std::string series = "1";
  for (int term = terms; term > 0; --term)
    series = fmt::format("(1 + {} * {} * {})", number_text(factor(term)), x, series);
  return series;
}

// The arc tangent of $z: twice halved, it is its series, to 1e-17.
Staged by_arc_tangent(std::string_view name, std::string_view z, int times = 1) {
  const std::string series =
      series_of("$v * $v", 11, [](int term) { return -double(2 * term - 1) / double(2 * term + 1); });
  return {
      name,
      {{'z', std::string(z)},
       {'t', "select(abs($z) > 1, 1 / $z, $z)"},
       {'u', "$t / (1 + sqrt(1 + $t * $t))"},
       {'v', "$u / (1 + sqrt(1 + $u * $u))"},
       {'s', "4 * $v * " + series},
       {'y', fmt::format("{} * select(abs($z) > 1, select($z > 0, 1.5707963267948966, -1.5707963267948966) - $s, $s)",
                         times)}}};
}

// The logarithm of 1 + $z, with the digits that 1 + $z loses. `end` makes the result of it, $l.
Staged by_logarithm(std::string_view name, std::string_view a, std::string_view z, std::string_view end) {
  return {name,
          {{'a', std::string(a)},
           {'z', std::string(z)},
           {'l', "select($z > 1e18, log($z), select(1 + $z == 1, $z, log(1 + $z) * ($z / ((1 + $z) - 1))))"},
           {'y', std::string(end)}}};
}

const std::vector<Staged>& staged() {
  static const std::string signed_sinh = series_of("$0 * $0", 9, [](int t) { return 1.0 / (2 * t * (2 * t + 1)); });
  static const std::vector<Staged> all = {
      by_arc_tangent("Atan", "$0"),
      by_arc_tangent("Asin", "$0 / sqrt((1 - $0) * (1 + $0))"),
      by_arc_tangent("Acos", "sqrt((1 - $0) / (1 + $0))", 2),
      // e * e does not overflow before the result does.
      {"Cosh", {{'e', "exp(0.5 * abs($0))"}, {'y', "0.5 * $e * $e + 0.5 / $e / $e"}}},
      {"Sinh",
       {{'e', "exp(0.5 * abs($0))"},
        {'b', "0.5 * $e * $e - 0.5 / $e / $e"},
        {'y', fmt::format("select(abs($0) < 1, $0 * {}, select($0 < 0, neg($b), $b))", signed_sinh)}}},
      // The square of more than 1e9 may overflow, and 1 added to it changes nothing.
      by_logarithm("Asinh", "select(abs($0) > 1e9, log(abs($0)) + 0.6931471805599453, 0)",
                   "abs($0) + $0 * $0 / (1 + sqrt(1 + $0 * $0))",
                   "select(abs($0) > 1e9, select($0 < 0, neg($a), $a), select($0 < 0, neg($l), $l))"),
      by_logarithm("Acosh", "$0 - 1", "$a + sqrt($a * ($a + 2))", "select($0 > 1e9, log($0) + 0.6931471805599453, $l)"),
      by_logarithm("Atanh", "abs($0)", "2 * $a / (1 - $a)", "select($0 < 0, -0.5, 0.5) * $l"),
  };
  return all;
}

Meaning in_stages(const Staged& row, const Call& call) {
  floating_only(call);
  Expression expression(call);
  const Axes axes = axes_over(call.shape(0));
  std::map<char, std::string> by = {{'0', expression.broadcast(0, axes)}};
  for (const auto& [letter, text] : row.stages) {
    const std::string tensor(1, letter);
    expression.stage(tensor, call.type(0), axes, filled(text, by));
    by[letter] = load(tensor, index_of(axes));
  }
  return {expression.result(call.type(0), call.shape(0))};
}

Meaning gelu(const Call& call) {
  const std::string approximate = call.text("approximate", "none");
  if (approximate != "none" && approximate != "tanh") throw Malformed{"approximate is neither none nor tanh"};
  Expression expression(call);
  const std::string x = expression.broadcast(0, axes_over(call.shape(0)));
  const std::string inner = approximate == "none"
                                ? fmt::format("erf({} * 0.7071067811865476)", x)
                                : fmt::format("tanh(0.7978845608028654 * ({0} + 0.044715 * {0} * {0} * {0}))", x);
  return {element_wise(expression, call.type(0), call.shape(0), fmt::format("0.5 * {} * (1 + {})", x, inner))};
}

// `after`: what becomes of the number that is converted, $0.
Meaning converted(const Call& call, DType type, bool boolean, std::string_view after = "$0") {
  if (type == call.type(0) && !boolean && after == "$0") return {same_elements(call, call.shape(0))};
  Expression expression(call);
  const std::string x = expression.broadcast(0, axes_over(call.shape(0)));
  std::string value = fmt::format("cast_{}({})", codegen::name_of(type), x);
  if (boolean) {
    value = fmt::format("select({} != 0, 1, 0)", x);
  } else if (codegen::is_floating(call.type(0)) && !codegen::is_floating(type)) {
    // As onnxruntime on x86: the least number for what a conversion to 32 or 64 bits cannot hold; shorter integers are
    // what remains of those of 32 bits.
    const bool is_long = type == DType::i64;
    const std::string wide = fmt::format("select(abs({0}) < {1}, cast_{2}({0}), -{1})", x,
                                         is_long ? "9223372036854775808" : "2147483648", is_long ? "i64" : "i32");
    value = codegen::bytes_of(type) < 4 ? fmt::format("cast_{}({})", codegen::name_of(type), wide) : wide;
  }
  return {element_wise(expression, type, call.shape(0), filled(after, {{'0', value}}))};
}

Meaning cast(const Call& call) {
  const std::int64_t to = call.integer("to", 0);
  const auto type = type_of_onnx(to);
  if (!type) throw Unsupported{fmt::format("type number {}", to)};
  if (!is_wider_here(to)) return converted(call, *type, is_boolean(to));
  // Modulo the number of its values.
  constexpr std::int64_t int16 = 5;
  const std::int64_t count = std::int64_t(1) << (*type == DType::i64 ? 32 : 16);
  return converted(
      call, *type, false,
      to == int16 ? fmt::format("($0 + {0}) % {1} - {0}", count / 2, count) : fmt::format("$0 % {}", count));
}

Meaning cast_like(const Call& call) {
  return converted(call, call.type(1), false);
}

Meaning identity(const Call& call) {
  return {same_elements(call, call.shape(0))};
}

Meaning dropout(const Call& call) {
  if (call.has(2) && call.scalar(2) != 0) throw Unsupported{"training_mode"};
  if (call.version() < 12) call.refuse_result(1, "mask");  // of no type of its own
  Meaning results = {same_elements(call, call.shape(0))};
  if (call.wants(1)) {
    Expression expression(call);
    results.push_back(element_wise(expression, DType::u8, call.shape(0), "1"));
  }
  return results;
}

}  // namespace

std::vector<Row> element_wise_rows() {
  std::vector<Row> rows;
  for (const Formula& formula : formulas()) {
    Row row{formula.name, formula.operands, formula.operands, "", nullptr};
    for (const Formula::Parameter& parameter : formula.parameters)
      row.attributes += fmt::format("{} ", parameter.attribute);
    row.meaning = [&formula](const Call& call) { return by_formula(formula, call); };
    rows.push_back(std::move(row));
  }
  const Row others[] = {
      {"Div", 2, 2, "", divided},
      {"Mod", 2, 2, "fmod", modulo},
      {"Pow", 2, 2, "", power},
      {"BitShift", 2, 2, "direction", shifted},
      {"Max", 1, -1, "", largest},
      {"Min", 1, -1, "", least},
      {"Sum", 1, -1, "", sum},
      {"Mean", 1, -1, "", mean},
      {"Where", 3, 3, "", chosen},
      {"Clip", 1, 3, "min max", clipped},
      {"IsInf", 1, 1, "detect_negative detect_positive", is_infinite},
      {"Gelu", 1, 1, "approximate", gelu},
      {"Cast", 1, 1, "to saturate", cast},
      {"CastLike", 2, 2, "saturate", cast_like},
      {"Identity", 1, 1, "", identity},
      {"Dropout", 1, 3, "ratio seed", dropout},
  };
  for (const Staged& one : staged())
    rows.push_back({one.name, 1, 1, "", [&one](const Call& call) { return in_stages(one, call); }});
  rows.insert(rows.end(), std::begin(others), std::end(others));
  return rows;
}

}  // namespace graft::graph
