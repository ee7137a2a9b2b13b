#include "codegen/space/constraint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/shortened.h"

namespace graft::codegen {
namespace {

using Node = Constraint::Node;
using Kind = Node::Kind;

// The text may come from anywhere.
constexpr std::size_t longest = 65536, most_nodes = 4096;
constexpr int deepest = 64;  // brackets, signs and branches in each other
constexpr std::int64_t most_in_range = 1 << 20;
constexpr double largest_exact = 9007199254740992.;  // 2^53

bool is_letter(char c) {
  return std::isalpha((unsigned char)c) || c == '_' || c == '$';
}

bool is_letter_or_digit(char c) {
  return std::isalnum((unsigned char)c) || c == '_' || c == '.' || c == '$';
}

class Parser {
 public:
  Parser(std::string_view text, std::span<const std::string> parameters, std::string_view place,
         std::span<const std::pair<std::string, std::int64_t>> sizes, Operators operators)
      : text_(text), parameters_(parameters), place_(place), sizes_(sizes), is_c_(operators == Operators::c) {
    if (text.size() > longest) fail(fmt::format("an expression of more than {} characters", longest));
  }

  std::vector<Node> expression(std::vector<Scalar>& constants) {
    choice(0);
    end();
    constants = std::move(constants_);
    return std::move(nodes_);
  }

  // A list of constants, or a range of integers.
  std::vector<Scalar> list() {
    std::vector<Scalar> values;
    part(values);
    end();
    return values;
  }

 private:
  // Appends the values of a range or a list.
  void part(std::vector<Scalar>& values) {
    if (accept_word("range")) {
      expect("(");
      std::vector<std::int64_t> numbers;
      do {
        std::vector<Scalar> number;
        constant(number);
        if (!std::holds_alternative<std::int64_t>(number.back())) fail("a range of integers is expected");
        numbers.push_back(std::get<std::int64_t>(number.back()));
      } while (accept(","));
      expect(")");
      if (numbers.size() == 1) numbers.insert(numbers.begin(), 0);
      if (numbers.size() == 2) numbers.push_back(1);
      if (numbers.size() > 3 || numbers[2] == 0)
        fail("expected range(end), range(begin, end) or range(begin, end, step)");
      const std::int64_t begin = numbers[0], last = numbers[1], step = numbers[2];
      for (std::int64_t at = begin; step > 0 ? at < last : at > last;) {
        if (std::int64_t(values.size()) == most_in_range) fail(fmt::format("more than {} values", most_in_range));
        values.emplace_back(at);
        if (__builtin_add_overflow(at, step, &at)) break;
      }
    } else {
      const std::string_view close = accept("(") ? ")" : "]";
      if (close == "]") expect("[");
      while (!accept(close)) {
        constant(values);
        if (std::int64_t(values.size()) > most_in_range) fail(fmt::format("more than {} values", most_in_range));
        if (!accept(",")) {
          expect(close);
          break;
        }
      }
    }
  }

  [[noreturn]] void fail(std::string_view what) const {
    throw base::UserError(place_, fmt::format("{} (at {} of '{}')", what, at_ + 1, base::shortened(text_)));
  }

  void skip() {
    while (at_ < text_.size() && std::isspace((unsigned char)text_[at_])) ++at_;
  }
  bool accept(std::string_view token) {
    skip();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  bool accept_word(std::string_view word) {
    skip();
    if (!text_.substr(at_).starts_with(word)) return false;
    const std::size_t after = at_ + word.size();
    if (after < text_.size() && is_letter_or_digit(text_[after])) return false;
    at_ = after;
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail(fmt::format("expected '{}'", token));
  }
  void end() {
    skip();
    if (at_ < text_.size()) fail("expected an operator or the end");
  }
  char peek() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  int add(Node node) {
    if (nodes_.size() == most_nodes) fail(fmt::format("more than {} operations", most_nodes));
    nodes_.push_back(std::move(node));
    return int(nodes_.size()) - 1;
  }
  int add(Kind kind, std::vector<int> operands) {
    Node node;
    node.kind = kind;
    node.operands = std::move(operands);
    return add(std::move(node));
  }

  int choice(int depth) {
    if (depth > deepest) fail(fmt::format("more than {} brackets, signs and branches in each other", deepest));
    const int value = either(depth);
    if (!accept_word("if")) return value;
    const int condition = either(depth);
    if (!accept_word("else")) fail("expected 'else'");
    const int other = choice(depth + 1);
    return add(Kind::choice, {condition, value, other});
  }

  int either(int depth) {
    int left = both(depth);
    while (accept_word("or") || accept("||")) {
      const int right = both(depth);
      left = add(Kind::either, {left, right});
    }
    return left;
  }

  int both(int depth) {
    int left = negation(depth);
    while (accept_word("and") || accept("&&")) {
      const int right = negation(depth);
      left = add(Kind::both, {left, right});
    }
    return left;
  }

  int negation(int depth) {
    if (depth > deepest) fail(fmt::format("more than {} brackets, signs and branches in each other", deepest));
    if (accept_word("not") || (!is_c_ && accept_denial())) {
      const int operand = negation(depth + 1);
      return add(Kind::negation, {operand});
    }
    return comparison(depth);
  }

  bool accept_denial() { return peek() == '!' && !text_.substr(at_).starts_with("!=") && accept("!"); }

  std::string comparator() {
    for (const char* const each : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (accept(each)) return each;
    }
    if (accept_word("in")) return "in";
    const std::size_t before = at_;
    if (accept_word("not")) {
      if (accept_word("in")) return "not in";
      at_ = before;
    }
    return "";
  }

  // The nodes of a list or a range after `in`.
  void add_elements(int depth, std::vector<int>& elements) {
    if (peek() == 'r') {
      std::vector<Scalar> values;
      part(values);
      for (Scalar& value : values) elements.push_back(add_constant(std::move(value)));
      return;
    }
    const std::string_view close = accept("(") ? ")" : "]";
    if (close == "]") expect("[");
    while (!accept(close)) {
      elements.push_back(choice(depth + 1));
      if (accept(",")) continue;
      expect(close);
      return;
    }
  }

  int add_constant(Scalar value) {
    Node node;
    node.constant = int(constants_.size());
    constants_.push_back(std::move(value));
    return add(std::move(node));
  }

  // As in C: each gives 1 or 0, < before ==.
  int comparisons_of_two(int depth, bool of_order) {
    int left = of_order ? bits(depth) : comparisons_of_two(depth, true);
    for (;;) {
      const std::size_t before = at_;
      std::string word = comparator();
      if (word.empty() || (word == "==" || word == "!=") == of_order) {
        at_ = before;
        return left;
      }
      if (word.ends_with("in")) fail("expected an operator or the end");
      Node node;
      node.kind = Kind::comparison;
      const int right = of_order ? bits(depth) : comparisons_of_two(depth, true);
      node.operands = {left, right};
      node.words = {std::move(word)};
      node.lists = {{}};
      left = add(std::move(node));
    }
  }

  int comparison(int depth) {
    if (is_c_) return comparisons_of_two(depth, false);
    const int first = bits(depth);
    Node node;
    node.kind = Kind::comparison;
    node.operands = {first};
    for (std::string word; !(word = comparator()).empty();) {
      if (word.ends_with("in")) {
        std::vector<int> elements;
        do add_elements(depth, elements);
        while (accept("+"));
        node.lists.push_back(std::move(elements));
        node.words.push_back(std::move(word));
        break;
      }
      node.lists.emplace_back();
      node.words.push_back(std::move(word));
      node.operands.push_back(bits(depth));
    }
    return node.words.empty() ? first : add(std::move(node));
  }

  // The operators on bits, loosest first.
  int bits(int depth, std::size_t level = 0) {
    struct Level {
      std::vector<std::pair<std::string_view, Kind>> operators;
    };
    static const std::vector<Level> levels = {{{{"|", Kind::bit_or}}},
                                              {{{"^", Kind::bit_xor}}},
                                              {{{"&", Kind::bit_and}}},
                                              {{{"<<", Kind::shift_left}, {">>", Kind::shift_right}}}};
    if (level == levels.size()) return sum(depth);
    int left = bits(depth, level + 1);
    for (bool more = true; more;) {
      more = false;
      for (const auto& [sign, kind] : levels[level].operators) {
        skip();
        const std::string_view rest = text_.substr(at_);
        const bool is_logical = rest.starts_with("||") || rest.starts_with("&&");
        if (is_logical || !accept(sign)) continue;
        const int right = bits(depth, level + 1);
        left = add(kind, {left, right});
        more = true;
      }
    }
    return left;
  }

  int sum(int depth) {
    int left = product(depth);
    for (;;) {
      const bool plus = accept("+");
      if (!plus && !accept("-")) return left;
      const int right = product(depth);
      left = add(plus ? Kind::add : Kind::subtract, {left, right});
    }
  }

  int product(int depth) {
    int left = sign(depth);
    for (;;) {
      skip();
      const std::string_view rest = text_.substr(at_);
      Kind kind = Kind::multiply;
      if (rest.starts_with("//")) {
        kind = Kind::floor_divide, at_ += 2;
      } else if (rest.starts_with("/")) {
        kind = is_c_ ? Kind::truncate_divide : Kind::divide, ++at_;
      } else if (rest.starts_with("%")) {
        kind = is_c_ ? Kind::truncate_remainder : Kind::remainder, ++at_;
      } else if (rest.starts_with("*") && !rest.starts_with("**")) {
        ++at_;
      } else {
        return left;
      }
      const int right = sign(depth);
      left = add(kind, {left, right});
    }
  }

  int sign(int depth) {
    if (depth > deepest) fail(fmt::format("more than {} brackets, signs and branches in each other", deepest));
    const bool is_number = peek() == '-' && at_ + 1 < text_.size() && std::isdigit((unsigned char)text_[at_ + 1]);
    if (!(is_c_ && is_number) && accept("-")) {
      const int operand = sign(depth + 1);
      return add(Kind::minus, {operand});
    }
    if (is_c_ && accept_denial()) {
      const int operand = sign(depth + 1);
      return add(Kind::negation, {operand});
    }
    if (accept("+")) return sign(depth + 1);
    if (accept("~")) {
      const int operand = sign(depth + 1);
      return add(Kind::complement, {operand});
    }
    const int base = atom(depth);
    if (!accept("**")) return base;
    const int exponent = sign(depth + 1);  // to the right, and tighter than a sign to its left
    return add(Kind::power, {base, exponent});
  }

  int atom(int depth) {
    if (accept("(")) {
      const int inside = choice(depth + 1);
      expect(")");
      return inside;
    }
    const char next = peek();
    if (!is_letter(next)) {
      Node node;
      node.constant = int(constants_.size());
      constant(constants_);
      return add(std::move(node));
    }
    constexpr std::pair<std::string_view, Kind> functions[] = {{"min", Kind::least},
                                                               {"max", Kind::greatest},
                                                               {"abs", Kind::magnitude},
                                                               {"int", Kind::integer},
                                                               {"round", Kind::rounded},
                                                               {"floor", Kind::rounded_down},
                                                               {"ceil", Kind::rounded_up},
                                                               {"sqrt", Kind::square_root},
                                                               {"log2", Kind::logarithm},
                                                               {"math.floor", Kind::rounded_down},
                                                               {"math.ceil", Kind::rounded_up},
                                                               {"math.sqrt", Kind::square_root},
                                                               {"math.log2", Kind::logarithm}};
    const std::size_t begin = at_;
    const std::string name = word();
    const int known = position_of(name);
    for (const auto& [function, kind] : functions) {
      if (function != name || known >= 0 || peek() != '(') continue;
      expect("(");
      std::vector<int> operands;
      do operands.push_back(choice(depth + 1));
      while (accept(","));
      expect(")");
      const bool takes_one = kind != Kind::least && kind != Kind::greatest;
      if (takes_one && operands.size() != 1) fail(fmt::format("{} takes one value", name));
      return add(kind, std::move(operands));
    }
    Node node;
    if (known >= 0) {
      node.kind = Kind::parameter;
      node.parameter = known;
      return add(std::move(node));
    }
    for (const auto& [size, value] : sizes_)
      if (size == name) return add_constant(value);
    if (const std::optional<bool> boolean = boolean_of(name)) return add_constant(*boolean);
    const bool is_call = peek() == '(';
    at_ = begin;
    std::vector<std::string> names(parameters_.begin(), parameters_.end());
    for (const auto& [size, value] : sizes_) names.push_back(size);
    if (is_call) {
      names.clear();
      for (const auto& [function, kind] : functions) names.emplace_back(function);
    }
    fail(fmt::format("unknown {} '{}'{}", is_call ? "function" : "parameter", base::shortened(name),
                     base::did_you_mean(name, names)));
  }

  std::string word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_letter_or_digit(text_[at_])) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  int position_of(std::string_view name) const {
    const auto found = std::find(parameters_.begin(), parameters_.end(), name);
    return found == parameters_.end() ? -1 : int(found - parameters_.begin());
  }

  static std::optional<bool> boolean_of(std::string_view word) {
    if (word == "True" || word == "true") return true;
    if (word == "False" || word == "false") return false;
    return std::nullopt;
  }

  // Appends to `to`: of a returned one g++ 12 believes that its text may be uninitialised.
  void constant(std::vector<Scalar>& to) {
    const char next = peek();
    if (next == '"' || next == '\'') {
      to.emplace_back(quoted(next));
      return;
    }
    const bool negative = accept("-");
    skip();
    const char* const begin = text_.data() + at_;
    const char* const end = text_.data() + text_.size();
    if (begin != end && std::isalpha((unsigned char)*begin) && !negative) {
      const std::optional<bool> boolean = boolean_of(word());
      if (boolean) {
        to.emplace_back(*boolean);
        return;
      }
      fail("expected a number, a text in quotes, true or false");
    }
    std::int64_t integer = 0;
    double fraction = 0;
    const auto whole = std::from_chars(begin, end, integer);
    const auto number = std::from_chars(begin, end, fraction);
    if (number.ec == std::errc::invalid_argument ||
        (begin != end && !std::isdigit((unsigned char)*begin) && *begin != '.'))
      fail(begin == end ? "expected a value, not the end" : "expected a value");
    if (number.ec != std::errc() || !std::isfinite(fraction)) fail("a number that is too large");
    at_ += std::size_t(number.ptr - begin);
    if (at_ < text_.size() && is_letter_or_digit(text_[at_])) fail("expected an operator after the number");
    if (whole.ec == std::errc() && whole.ptr == number.ptr) {
      to.emplace_back(negative ? -integer : integer);
    } else {
      to.emplace_back(negative ? -fraction : fraction);
    }
  }

  std::string quoted(char quote) {
    std::string text;
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      text += text_[at_];
    }
    if (at_ >= text_.size()) fail("a text whose quotes are not closed");
    ++at_;
    return text;
  }

  std::string_view text_;
  std::span<const std::string> parameters_;
  std::string_view place_;
  std::span<const std::pair<std::string, std::int64_t>> sizes_;
  const bool is_c_;
  std::size_t at_ = 0;
  std::vector<Node> nodes_;
  std::vector<Scalar> constants_;
};

// What an expression comes to: a Scalar without a copy of a text.
struct Value {
  enum class Type { none, integer, fraction, text } type = Type::none;
  std::int64_t integer = 0;
  double fraction = 0;
  const std::string* text = nullptr;

  bool is_number() const { return type == Type::integer || type == Type::fraction; }
  double number() const { return type == Type::integer ? double(integer) : fraction; }
  bool is_true() const {
    return type == Type::text ? !text->empty() : type == Type::integer ? integer != 0 : fraction != 0;
  }
};

Value of(std::int64_t value) {
  return {Value::Type::integer, value, 0, nullptr};
}
Value of(double value) {
  if (!std::isfinite(value)) return {};
  return {Value::Type::fraction, 0, value, nullptr};
}
Value of(const Scalar& value) {
  if (const bool* const boolean = std::get_if<bool>(&value)) return of(std::int64_t(*boolean));
  if (const std::int64_t* const integer = std::get_if<std::int64_t>(&value)) return of(*integer);
  if (const double* const fraction = std::get_if<double>(&value)) return of(*fraction);
  return {Value::Type::text, 0, 0, &std::get<std::string>(value)};
}

bool are_equal(const Value& a, const Value& b) {
  if (a.type == Value::Type::text && b.type == Value::Type::text) return *a.text == *b.text;
  if (!a.is_number() || !b.is_number()) return false;
  if (a.type == Value::Type::integer && b.type == Value::Type::integer) return a.integer == b.integer;
  return a.number() == b.number();
}

// Less than 0, 0 or more; nullopt where there is no order.
std::optional<int> order(const Value& a, const Value& b) {
  const auto sign = [](auto x, auto y) { return x < y ? -1 : x > y ? 1 : 0; };
  if (a.type == Value::Type::text && b.type == Value::Type::text) return a.text->compare(*b.text);
  if (!a.is_number() || !b.is_number()) return std::nullopt;
  if (a.type == Value::Type::integer && b.type == Value::Type::integer) return sign(a.integer, b.integer);
  return sign(a.number(), b.number());
}

Value power(const Value& a, const Value& b) {
  if (a.type != Value::Type::integer || b.type != Value::Type::integer || b.integer < 0)
    return of(std::pow(a.number(), b.number()));
  std::int64_t result = 1, factor = a.integer;
  for (std::int64_t left = b.integer; left > 0; left /= 2) {
    if (left % 2 != 0 && __builtin_mul_overflow(result, factor, &result)) return {};
    if (left > 1 && __builtin_mul_overflow(factor, factor, &factor)) return {};
  }
  return of(result);
}

// Rounded down, as Python does.
Value floor_divided(const Value& a, const Value& b, bool wants_remainder) {
  if (b.number() == 0) return {};
  if (a.type == Value::Type::integer && b.type == Value::Type::integer) {
    if (b.integer == -1) {
      std::int64_t negated = 0;
      if (wants_remainder) return of(std::int64_t(0));
      return __builtin_sub_overflow(std::int64_t(0), a.integer, &negated) ? Value() : of(negated);
    }
    std::int64_t quotient = a.integer / b.integer, remainder = a.integer % b.integer;
    if (remainder != 0 && (remainder < 0) != (b.integer < 0)) --quotient, remainder += b.integer;
    return of(wants_remainder ? remainder : quotient);
  }
  const double quotient = std::floor(a.number() / b.number());
  return of(wants_remainder ? a.number() - quotient * b.number() : quotient);
}

Value shifted(std::int64_t value, std::int64_t by, bool is_left) {
  if (by < 0) return {};
  if (!is_left) return of(value >> std::min(by, std::int64_t(63)));
  std::int64_t result = value;
  if (value != 0 && (by > 62 || __builtin_mul_overflow(value, std::int64_t(1) << by, &result))) return {};
  return of(result);
}

Value of_bits(Kind kind, const Value& a, const Value& b) {
  if (a.type != Value::Type::integer || b.type != Value::Type::integer) return {};
  switch (kind) {
    case Kind::bit_or:
      return of(a.integer | b.integer);
    case Kind::bit_xor:
      return of(a.integer ^ b.integer);
    case Kind::bit_and:
      return of(a.integer & b.integer);
    default:
      return shifted(a.integer, b.integer, kind == Kind::shift_left);
  }
}

// A function of one number.
Value of_one(Kind kind, const Value& value) {
  if (!value.is_number()) return {};
  const double number = value.number();
  if (kind == Kind::square_root) return of(std::sqrt(number));
  if (kind == Kind::logarithm) return of(std::log2(number));
  if (value.type == Value::Type::integer) return value;
  const double whole = kind == Kind::rounded        ? std::nearbyint(number)
                       : kind == Kind::rounded_down ? std::floor(number)
                       : kind == Kind::rounded_up   ? std::ceil(number)
                                                    : std::trunc(number);
  return std::abs(whole) > largest_exact ? Value() : of(std::int64_t(whole));
}

// Rounded to 0, as C does.
Value truncated(const Value& a, const Value& b, bool wants_remainder) {
  if (b.integer == 0 || (b.integer == -1 && a.integer == INT64_MIN)) return {};
  return of(wants_remainder ? a.integer % b.integer : a.integer / b.integer);
}

Value computed(Kind kind, const Value& a, const Value& b) {
  if (!a.is_number() || !b.is_number()) return {};
  const bool integers = a.type == Value::Type::integer && b.type == Value::Type::integer;
  std::int64_t result = 0;
  switch (kind) {
    case Kind::truncate_divide:
    case Kind::truncate_remainder:
      return integers ? truncated(a, b, kind == Kind::truncate_remainder) : Value();
    case Kind::add:
      if (!integers) return of(a.number() + b.number());
      return __builtin_add_overflow(a.integer, b.integer, &result) ? Value() : of(result);
    case Kind::subtract:
      if (!integers) return of(a.number() - b.number());
      return __builtin_sub_overflow(a.integer, b.integer, &result) ? Value() : of(result);
    case Kind::multiply:
      if (!integers) return of(a.number() * b.number());
      return __builtin_mul_overflow(a.integer, b.integer, &result) ? Value() : of(result);
    case Kind::divide:
      return b.number() == 0 ? Value() : of(a.number() / b.number());
    case Kind::floor_divide:
    case Kind::remainder:
      return floor_divided(a, b, kind == Kind::remainder);
    case Kind::power:
      return power(a, b);
    default:
      return of_bits(kind, a, b);
  }
}

class Evaluation {
 public:
  Evaluation(const std::vector<Node>& nodes, const std::vector<Scalar>& constants,
             std::span<const Scalar* const> values, Operators operators)
      : nodes_(nodes), constants_(constants), values_(values), is_c_(operators == Operators::c) {}

  Value at(int position) const {
    const Node& node = nodes_[std::size_t(position)];
    const auto operand = [&](std::size_t i) { return at(node.operands[i]); };
    switch (node.kind) {
      case Kind::constant:
        return of(constants_[std::size_t(node.constant)]);
      case Kind::parameter:
        return of(*values_[std::size_t(node.parameter)]);
      case Kind::choice: {
        const Value condition = operand(0);
        if (condition.type == Value::Type::none) return {};
        return operand(condition.is_true() ? 1 : 2);
      }
      case Kind::either:
      case Kind::both: {
        const Value left = operand(0);
        if (left.type == Value::Type::none) return {};
        const Value result = left.is_true() == (node.kind == Kind::either) ? left : operand(1);
        return is_c_ && result.type != Value::Type::none ? of(std::int64_t(result.is_true())) : result;
      }
      case Kind::negation: {
        const Value value = operand(0);
        return value.type == Value::Type::none ? Value() : of(std::int64_t(!value.is_true()));
      }
      case Kind::comparison:
        return compared(node);
      case Kind::minus:
        return computed(Kind::subtract, of(std::int64_t(0)), operand(0));
      case Kind::least:
      case Kind::greatest: {
        Value best = operand(0);
        for (std::size_t i = 1; i < node.operands.size() && best.type != Value::Type::none; ++i) {
          const Value next = operand(i);
          const std::optional<int> found = order(next, best);
          if (!found) return {};
          if (node.kind == Kind::least ? *found < 0 : *found > 0) best = next;
        }
        return best;
      }
      case Kind::magnitude: {
        const Value value = operand(0);
        return value.is_number() && value.number() < 0 ? computed(Kind::subtract, of(std::int64_t(0)), value)
               : value.is_number()                     ? value
                                                       : Value();
      }
      case Kind::complement:
        return of_bits(Kind::bit_xor, operand(0), of(std::int64_t(-1)));
      case Kind::integer:
      case Kind::rounded:
      case Kind::rounded_down:
      case Kind::rounded_up:
      case Kind::square_root:
      case Kind::logarithm:
        return of_one(node.kind, operand(0));
      default:
        return computed(node.kind, operand(0), operand(1));
    }
  }

 private:
  Value compared(const Node& node) const {
    Value left = at(node.operands.front());
    for (std::size_t i = 0; i < node.words.size(); ++i) {
      if (left.type == Value::Type::none) return {};
      const std::string& word = node.words[i];
      if (word.ends_with("in")) {
        bool found = false;
        for (std::size_t e = 0; e < node.lists[i].size() && !found; ++e) {
          const Value element = at(node.lists[i][e]);
          if (element.type == Value::Type::none) return {};
          found = are_equal(left, element);
        }
        return of(std::int64_t(found == (word == "in")));
      }
      const Value right = at(node.operands[i + 1]);
      if (right.type == Value::Type::none) return {};
      bool holds = are_equal(left, right);
      if (word == "!=") {
        holds = !holds;
      } else if (word != "==") {
        const std::optional<int> found = order(left, right);
        if (!found) return {};
        holds = word.front() == '<' ? *found < 0 : *found > 0;
        if (word.size() == 2) holds = holds || *found == 0;
      }
      if (!holds) return of(std::int64_t(0));
      left = right;
    }
    return of(std::int64_t(1));
  }

  const std::vector<Node>& nodes_;
  const std::vector<Scalar>& constants_;
  std::span<const Scalar* const> values_;
  const bool is_c_;
};

// As C writes it; "": a constant, "$": a parameter.
std::string operator_of(const Node& node) {
  constexpr std::pair<Kind, const char*> operators[] = {{Kind::constant, ""},
                                                        {Kind::parameter, "$"},
                                                        {Kind::negation, "!"},
                                                        {Kind::minus, "neg"},
                                                        {Kind::both, "&&"},
                                                        {Kind::either, "||"},
                                                        {Kind::add, "+"},
                                                        {Kind::subtract, "-"},
                                                        {Kind::multiply, "*"},
                                                        {Kind::truncate_divide, "/"},
                                                        {Kind::truncate_remainder, "%"}};
  if (node.kind == Kind::comparison) return node.words.front();
  for (const auto& [kind, sign] : operators)
    if (kind == node.kind) return sign;
  return fmt::format("operation {}", int(node.kind));
}

}  // namespace

std::string scalar_text(const Scalar& value) {
  if (const bool* const boolean = std::get_if<bool>(&value)) return *boolean ? "true" : "false";
  if (const std::int64_t* const integer = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *integer);
  if (const double* const fraction = std::get_if<double>(&value)) {
    const bool is_whole = *fraction == std::floor(*fraction) && std::abs(*fraction) < largest_exact;
    return is_whole ? fmt::format("{}", std::int64_t(*fraction)) : fmt::format("{}", *fraction);
  }
  return std::get<std::string>(value);
}

std::optional<double> scalar_number(const Scalar& value) {
  if (std::holds_alternative<std::string>(value)) return std::nullopt;
  return of(value).number();
}

Constraint::Constraint(std::string_view text, std::span<const std::string> parameters, std::string_view place,
                       std::span<const std::pair<std::string, std::int64_t>> sizes, Operators operators)
    : text_(text),
      nodes_(Parser(text_, parameters, place, sizes, operators).expression(constants_)),
      operators_(operators) {
  for (const Node& node : nodes_) {
    if (node.kind == Kind::parameter) parameters_.push_back(node.parameter);
  }
  std::sort(parameters_.begin(), parameters_.end());
  parameters_.erase(std::unique(parameters_.begin(), parameters_.end()), parameters_.end());
  if (parameters_.empty())
    throw base::UserError(place, fmt::format("a constraint over no parameter: '{}'", base::shortened(text_)));
}

std::optional<bool> Constraint::truth(std::span<const Scalar* const> values) const {
  const Value value = Evaluation(nodes_, constants_, values, operators_).at(int(nodes_.size()) - 1);
  return value.type == Value::Type::none ? std::nullopt : std::optional(value.is_true());
}

// That of binary and unary operations on integers is stored by users of spaces of schedules: it stays as it is.
std::uint64_t Constraint::hash() const {
  std::uint64_t value = nodes_.size();
  for (const Node& node : nodes_) {
    const auto operand = [&](std::size_t i) {
      return i < node.operands.size() ? std::uint64_t(node.operands[i] + 1) : std::uint64_t(0);
    };
    value = base::hash_combine(value, base::hash_bytes(operator_of(node)));
    value = base::hash_combine(value, base::hash_combine(operand(0), operand(1)));
    for (std::size_t i = 2; i < node.operands.size(); ++i) value = base::hash_combine(value, operand(i));
    const Scalar* const constant = node.kind == Kind::constant ? &constants_[std::size_t(node.constant)] : nullptr;
    const std::int64_t* const number = constant == nullptr ? nullptr : std::get_if<std::int64_t>(constant);
    value = base::hash_combine(value, number != nullptr     ? std::uint64_t(*number)
                                      : constant != nullptr ? base::hash_bytes(scalar_text(*constant))
                                                            : std::uint64_t(std::max(node.parameter, 0)));
    for (std::size_t i = 1; i < node.words.size(); ++i)
      value = base::hash_combine(value, base::hash_bytes(node.words[i]));
  }
  return value;
}

Constraint Constraint::part(const std::vector<Node>& nodes, int root) const {
  std::vector<int> moved(nodes.size(), -1);
  std::vector<bool> is_used(nodes.size(), false);
  is_used[std::size_t(root)] = true;
  Constraint out;
  for (int n = root; n >= 0; --n) {  // operands come before their users
    const Node& node = nodes[std::size_t(n)];
    if (!is_used[std::size_t(n)]) continue;
    for (const int operand : node.operands) is_used[std::size_t(operand)] = true;
    for (const std::vector<int>& list : node.lists)
      for (const int element : list) is_used[std::size_t(element)] = true;
  }
  for (int n = 0; n <= root; ++n) {
    if (!is_used[std::size_t(n)]) continue;
    Node node = nodes[std::size_t(n)];
    for (int& operand : node.operands) operand = moved[std::size_t(operand)];
    for (std::vector<int>& list : node.lists)
      for (int& element : list) element = moved[std::size_t(element)];
    if (node.kind == Kind::parameter) out.parameters_.push_back(node.parameter);
    moved[std::size_t(n)] = int(out.nodes_.size());
    out.nodes_.push_back(std::move(node));
  }
  std::sort(out.parameters_.begin(), out.parameters_.end());
  out.parameters_.erase(std::unique(out.parameters_.begin(), out.parameters_.end()), out.parameters_.end());
  out.text_ = text_;
  out.constants_ = constants_;
  out.operators_ = operators_;
  return out;
}

std::vector<Constraint> Constraint::implied(bool all_integers) const {
  constexpr std::size_t most_nodes_of_one = 256, most = 32;
  std::vector<Constraint> out;
  if (nodes_.size() > most_nodes_of_one) return out;
  const auto add = [&](const std::vector<Node>& nodes, int root) {
    if (out.size() == most) return;
    Constraint each = part(nodes, root);
    if (!each.parameters_.empty() && each.parameters_.size() < parameters_.size()) out.push_back(std::move(each));
  };
  const auto is_zero = [&](int n) {
    const Node& node = nodes_[std::size_t(n)];
    return node.kind == Kind::constant && constants_[std::size_t(node.constant)] == Scalar(std::int64_t(0));
  };
  std::vector<int> conjuncts{int(nodes_.size()) - 1};
  for (std::size_t i = 0; i < conjuncts.size(); ++i) {
    const Node& node = nodes_[std::size_t(conjuncts[i])];
    if (node.kind == Kind::both) {
      conjuncts.insert(conjuncts.end(), node.operands.begin(), node.operands.end());
      continue;
    }
    add(nodes_, conjuncts[i]);
    const bool is_equation = node.kind == Kind::comparison && node.words == std::vector<std::string>{"=="};
    if (!all_integers || !is_equation || !is_zero(node.operands[1])) continue;
    const Node& rest = nodes_[std::size_t(node.operands[0])];
    if (rest.kind != Kind::remainder) continue;
    std::vector<int> factors{rest.operands[1]};
    for (std::size_t f = 0; f < factors.size(); ++f) {
      const Node& factor = nodes_[std::size_t(factors[f])];
      if (factor.kind == Kind::multiply) factors.insert(factors.end(), factor.operands.begin(), factor.operands.end());
    }
    const bool are_integers = std::all_of(factors.begin(), factors.end(), [&](int f) {
      const Node& factor = nodes_[std::size_t(f)];
      return factor.kind == Kind::multiply || factor.kind == Kind::parameter ||
             (factor.kind == Kind::constant &&
              std::holds_alternative<std::int64_t>(constants_[std::size_t(factor.constant)]));
    });
    for (std::size_t f = 1; f < factors.size() && are_integers; ++f) {
      std::vector<Node> nodes = nodes_;
      Node remainder = rest, equation = node;
      remainder.operands[1] = factors[f];
      equation.operands[0] = int(nodes.size());
      nodes.push_back(std::move(remainder));
      nodes.push_back(std::move(equation));
      add(nodes, int(nodes.size()) - 1);
    }
  }
  return out;
}

std::vector<Scalar> values_in(std::string_view text, std::string_view place) {
  return Parser(text, {}, place, {}, Operators::python).list();
}

}  // namespace graft::codegen
