#include "codegen/expression/value_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace graft::codegen {

namespace {

constexpr int deepest = 200;
constexpr std::size_t longest = 4096;  // nodes

// Binding strength, as in C: comparisons 0, << >> 1, + - 2, * / % 3, everything else 4.
int strength_of(Op op) {
  if (is_comparison(op)) return 0;
  switch (op) {
    case Op::shift_left:
    case Op::shift_right:
      return 1;
    case Op::add:
    case Op::sub:
      return 2;
    case Op::mul:
    case Op::div:
    case Op::modulo:
      return 3;
    default:
      return 4;
  }
}

bool is_function(Op op) {
  return operands_of(op) > 0 && sign_of(op).empty();
}

constexpr Op all_ops[] = {
#define X(name, operands, sign, counted, types) Op::name,
    GRAFT_OPS(X)
#undef X
};

class Writer {
 public:
  Writer(const Value& value, const LeafTexts& leaves, std::string_view comma)
      : value_(value), leaves_(leaves), comma_(comma) {}

  std::string text(int position) const {
    const ValueNode& node = value_.nodes[std::size_t(position)];
    if (node.op == Op::constant) return fmt::format("{}", node.number);
    if (node.op == Op::position) return leaves_.position(value_.positions[std::size_t(node.load)]);
    if (node.op == Op::load) {
      std::vector<std::string> gathered;
      for (const int operand : {node.a, node.b, node.c})
        if (operand >= 0) gathered.push_back(text(operand));
      return leaves_.load(value_.loads[std::size_t(node.load)], gathered);
    }
    if (const std::string_view sign = sign_of(node.op); !sign.empty()) {
      // Brackets on the right at equal strength keep the order of the operations, which is part of the value.
      const int strength = strength_of(node.op);
      return fmt::format("{} {} {}", operand(node.a, strength), sign, operand(node.b, strength + 1));
    }
    std::string operands = text(node.a);
    for (const int operand : {node.b, node.c})
      if (operand >= 0) operands += fmt::format("{}{}", comma_, text(operand));
    return fmt::format("{}({})", name_of(node.op), operands);
  }

 private:
  std::string operand(int position, int least) const {
    const std::string inner = text(position);
    return strength_of(value_.nodes[std::size_t(position)].op) < least ? "(" + inner + ")" : inner;
  }

  const Value& value_;
  const LeafTexts& leaves_;
  std::string_view comma_;
};

}  // namespace

std::string to_text(const Value& value, const LeafTexts& leaves, std::string_view comma) {
  return Writer(value, leaves, comma).text(int(value.nodes.size()) - 1);
}

std::string access_text(std::string_view tensor, const Access& access, std::span<const std::string> names,
                        std::span<const std::string> gathered) {
  std::vector<std::string> indices;
  std::size_t next = 0;
  for (std::size_t d = 0; d < access.index.size(); ++d)
    indices.push_back(access.gathers(d) ? gathered[next++] : to_text(access.index[d], names));
  return fmt::format("{}[{}]", tensor, fmt::join(indices, ","));
}

std::string position_text(const Affine& form, std::span<const std::string> names) {
  const std::string text = to_text(form, names);
  const bool plain = form.constant == 0 && form.terms.size() == 1 && form.terms[0].coefficient == 1;
  return plain ? text : fmt::format("position({})", text);
}

Value ValueReader::sum(int depth) {
  Value value = terms(depth);
  for (;;) {
    if (cursor_.accept("<<"))
      value = joined(Op::shift_left, std::move(value), terms(depth));
    else if (cursor_.accept(">>"))
      value = joined(Op::shift_right, std::move(value), terms(depth));
    else
      return value;
  }
}

Value ValueReader::terms(int depth) {
  Value value = product(depth);
  for (;;) {
    if (cursor_.accept("+"))
      value = joined(Op::add, std::move(value), product(depth));
    else if (cursor_.accept("-"))
      value = joined(Op::sub, std::move(value), product(depth));
    else
      return value;
  }
}

Value ValueReader::product(int depth) {
  Value value = factor(depth);
  for (;;) {
    if (cursor_.accept("*"))
      value = joined(Op::mul, std::move(value), factor(depth));
    else if (cursor_.accept("/"))
      value = joined(Op::div, std::move(value), factor(depth));
    else if (cursor_.accept("%"))
      value = joined(Op::modulo, std::move(value), factor(depth));
    else
      return value;
  }
}

Value ValueReader::factor(int depth) {
  guard(depth);
  if (!cursor_.accept("(")) return leaf(depth);
  Value value = sum(depth + 1);
  cursor_.expect(")");
  return value;
}

Value ValueReader::operation(Op op, int depth) {
  if (op == Op::select) return selection(depth);
  Value value = sum(depth);
  if (operands_of(op) == 2) {
    cursor_.expect(",");
    value = joined(op, std::move(value), sum(depth));
  } else {
    value = Value::apply(op, std::move(value));
  }
  cursor_.expect(")");
  return value;
}

// select(a and b or c, x, y) is select(a, select(b, x, select(c, x, y)), select(c, x, y)).
Value ValueReader::selection(int depth) {
  const auto accepts = [&](std::string_view word, std::string_view sign) {
    const std::string_view rest = cursor_.peek() == 0 ? "" : cursor_.rest();
    const bool is_word = rest.starts_with(word) && rest.size() > word.size() && rest[word.size()] == ' ';
    return is_word ? cursor_.accept(word) : cursor_.accept(sign);
  };
  std::vector<std::vector<Value>> any;  // of which all hold
  do {
    std::vector<Value>& all = any.emplace_back();
    do all.push_back(condition(depth));
    while (accepts("and", "&&"));
  } while (accepts("or", "||"));
  cursor_.expect(",");
  const Value second = sum(depth);
  cursor_.expect(",");
  Value value = sum(depth);
  cursor_.expect(")");
  for (auto all = any.rbegin(); all != any.rend(); ++all) {
    const Value third = value;
    value = second;
    for (auto each = all->rbegin(); each != all->rend(); ++each) {
      limit(each->nodes.size() + value.nodes.size() + third.nodes.size());
      value = Value::apply(Op::select, std::move(*each), std::move(value), third);
    }
  }
  return value;
}

Value ValueReader::condition(int depth) {
  Value left = sum(depth);
  // If two signs have the same beginning, the longer one is read.
  const Op* found = nullptr;
  for (const Op& op : all_ops)
    if (is_comparison(op) && cursor_.rest().starts_with(sign_of(op)) &&
        (!found || sign_of(op).size() > sign_of(*found).size()))
      found = &op;
  if (!found) cursor_.fail("expected a comparison (<, <=, >, >=, == or !=)");
  cursor_.expect(sign_of(*found));
  return joined(*found, std::move(left), sum(depth));
}

Value ValueReader::joined(Op op, Value a, Value b) const {
  limit(a.nodes.size() + b.nodes.size());
  return Value::apply(op, std::move(a), std::move(b));
}

void ValueReader::limit(std::size_t operands) const {
  if (operands >= longest) cursor_.fail(fmt::format("a value of more than {} operations", longest));
}

Op ValueReader::function_named(std::string_view name) {
  for (const Op op : all_ops)
    if (is_function(op) && name_of(op) == name) return op;
  return Op::load;
}

std::string ValueReader::unknown_function(std::string_view name, std::vector<std::string> others) {
  for (const Op op : all_ops)
    if (is_function(op)) others.emplace_back(name_of(op));
  std::string remedy = base::did_you_mean(name, others);
  if (remedy.ends_with('?')) remedy += fmt::format(" known: {}", fmt::join(others, ", "));
  return fmt::format("unknown function '{}'{}", name, remedy);
}

void ValueReader::guard(int depth) const {
  if (depth > deepest) cursor_.fail(fmt::format("nested deeper than {} levels", deepest));
}

}  // namespace graft::codegen
