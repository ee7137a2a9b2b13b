#include "codegen/expression/value.h"

#include <gtest/gtest.h>

#include <limits>

namespace graft::codegen {
namespace {

Value load(int tensor, Affine index = 0) {
  return Value::load({.tensor = tensor, .index = {std::move(index)}});
}

TEST(DType, names_sizes_and_kinds) {
  EXPECT_EQ(name_of(DType::f64), "f64");
  EXPECT_EQ(dtype_of("i32"), DType::i32);
  EXPECT_EQ(dtype_of("f8"), std::nullopt);
  EXPECT_EQ(bytes_of(DType::f32), 4);
  EXPECT_EQ(bytes_of(DType::f64), 8);
  EXPECT_TRUE(is_floating(DType::f32));
  EXPECT_FALSE(is_floating(DType::i32));
  EXPECT_EQ(bytes_of(DType::u8), 1);
  EXPECT_TRUE(is_signed(DType::i8));
  EXPECT_FALSE(is_signed(DType::u8));
  for (const DType type : {DType::f16, DType::bf16}) {
    EXPECT_EQ(bytes_of(type), 2);
    EXPECT_TRUE(is_floating(type));
    EXPECT_TRUE(is_signed(type));
    EXPECT_EQ(computed_in(type), DType::f32);
    EXPECT_EQ(highest(type), std::numeric_limits<double>::infinity());
  }
  EXPECT_EQ(computed_in(DType::f64), DType::f64);
  EXPECT_EQ(computed_in(DType::i8), DType::i8);
  EXPECT_EQ(rounded_to(257, DType::bf16), 256);
  EXPECT_EQ(rounded_to(257, DType::f16), 257);
}

TEST(DType, integers_keep_a_number_modulo_their_range) {
  EXPECT_EQ(kept(300, DType::u8), 44);
  EXPECT_EQ(kept(-1, DType::u8), 255);
  EXPECT_EQ(kept(128, DType::i8), -128);
  EXPECT_EQ(kept(-129, DType::i8), 127);
  EXPECT_EQ(kept(127, DType::i8), 127);
  EXPECT_EQ(kept(0x1p31, DType::i32), -0x1p31);
  EXPECT_EQ(kept(1e30, DType::f32), 1e30);
  EXPECT_EQ(kept(-std::numeric_limits<double>::infinity(), DType::i8), -128);
  EXPECT_EQ(kept(std::numeric_limits<double>::infinity(), DType::u8), 255);
}

TEST(DType, numbers_come_back_from_their_bytes) {
  for (const DType type : {DType::f32, DType::f64, DType::i32, DType::i8, DType::u8}) {
    const std::vector<double> numbers{0, is_signed(type) ? -7.0 : 200.0, 100};
    const std::string bytes = as_bytes(numbers, type);
    ASSERT_EQ(std::int64_t(bytes.size()), 3 * bytes_of(type));
    EXPECT_EQ(numbers_from(bytes, type), numbers) << name_of(type);
  }
  EXPECT_EQ(as_bytes({255}, DType::u8), as_bytes({-1}, DType::i8));
}

TEST(Op, names_and_operands) {
  EXPECT_EQ(name_of(Op::sqrt), "sqrt");
  EXPECT_EQ(operands_of(Op::load), 0);
  EXPECT_EQ(operands_of(Op::neg), 1);
  EXPECT_EQ(operands_of(Op::max), 2);
}

TEST(Value, apply_puts_operands_before_users_and_the_root_last) {
  // max(t0 * t1 + 2, t2)
  const Value value = Value::apply(
      Op::max, Value::apply(Op::add, Value::apply(Op::mul, load(0), load(1)), Value::constant(2)), load(2));
  ASSERT_EQ(value.nodes.size(), 7u);
  EXPECT_EQ(value.root().op, Op::max);
  EXPECT_EQ(value.nodes[std::size_t(value.root().a)].op, Op::add);
  for (std::size_t i = 0; i < value.nodes.size(); ++i) {
    EXPECT_LT(value.nodes[i].a, int(i));
    EXPECT_LT(value.nodes[i].b, int(i));
  }
  ASSERT_EQ(value.loads.size(), 3u);
  for (int t = 0; t < 3; ++t) EXPECT_EQ(value.loads[std::size_t(t)].tensor, t);
  EXPECT_EQ(value.loads[std::size_t(value.nodes[std::size_t(value.root().b)].load)].tensor, 2);
}

TEST(Value, map_accesses_reaches_every_load_and_position) {
  const auto value = [](int tensor, int variable) {
    Access gathered{tensor, {Affine(0)}, false};
    gathered.gathered = {0};
    return Value::apply(Op::add, Value::load(gathered, {load(tensor + 1)}),
                        Value::position(Affine::variable(variable)));
  };
  const Value mapped = map_accesses(
      value(0, 0),
      [](Access access) {
        access.tensor += 10;
        return access;
      },
      [](const Affine&) { return Affine::variable(3); });
  EXPECT_EQ(mapped, value(10, 3));
}

TEST(Value, part_of_is_what_the_part_was_made_of) {
  const Value left = Value::apply(Op::mul, load(0), Value::position(Affine::variable(1))),
              right = Value::apply(Op::exp, Value::apply(Op::add, load(1), Value::position(Affine::variable(2))));
  const Value both = Value::apply(Op::add, left, right);
  EXPECT_EQ(part_of(both, both.root().a), left);
  EXPECT_EQ(part_of(both, both.root().b), right);
  EXPECT_EQ(part_of(both, int(both.nodes.size()) - 1), both);
}

TEST(Value, replace_loads_equals_building_with_the_replacement) {
  const Value by = Value::apply(Op::exp, Value::apply(Op::sub, load(5), load(6)));
  const auto build = [](const Value& part) {
    return Value::apply(Op::add, Value::apply(Op::mul, part, load(1)), Value::apply(Op::neg, part));
  };
  const auto of = [&](int tensor) {
    return [&, tensor](const Access& access) { return access.tensor == tensor ? std::optional(by) : std::nullopt; };
  };
  EXPECT_EQ(replace_loads(build(load(0)), of(0)), build(by));
  EXPECT_EQ(replace_loads(build(load(0)), of(9)), build(load(0)));
  EXPECT_EQ(replace_loads(load(0), of(0)), by);
}

TEST(Value, constant_value_follows_zero_through_products_only) {
  const Value zero = Value::constant(0), two = Value::constant(2);
  EXPECT_EQ(constant_value(two), 2.0);
  EXPECT_EQ(constant_value(Value::apply(Op::mul, load(0), zero)), 0.0);
  EXPECT_EQ(constant_value(Value::apply(Op::mul, Value::apply(Op::mul, zero, load(0)), load(1))), 0.0);
  EXPECT_EQ(constant_value(Value::apply(Op::add, load(0), zero)), std::nullopt);
  EXPECT_EQ(constant_value(load(0)), std::nullopt);
}

TEST(Value, arithmetic_counts_by_kind) {
  const Value sum = Value::apply(Op::sub, Value::apply(Op::add, load(0), load(1)), Value::apply(Op::neg, load(0)));
  const Value value = Value::apply(
      Op::max, Value::apply(Op::div, sum, Value::apply(Op::sqrt, load(2))),
      Value::apply(Op::min, Value::apply(Op::mul, load(0), load(0)), Value::apply(Op::exp, Value::constant(1))));
  const ArithmeticCounts counts = arithmetic(value);
  EXPECT_EQ(counts.add, 3);
  EXPECT_EQ(counts.mul, 1);
  EXPECT_EQ(counts.div, 1);
  EXPECT_EQ(counts.compare, 2);
  EXPECT_EQ(counts.special, 2);
}

TEST(Value, functions_count_as_what_costs_alike) {
  const Value condition = Value::apply(Op::less, load(0), load(1));
  const Value value = Value::apply(Op::select, condition, Value::apply(Op::abs, Value::apply(Op::tanh, load(0))),
                                   Value::apply(Op::floor, Value::apply(Op::pow, load(0), load(1))));
  const ArithmeticCounts counts = arithmetic(value);
  EXPECT_EQ(counts.add, 2);      // abs and floor
  EXPECT_EQ(counts.compare, 2);  // the comparison and the choice
  EXPECT_EQ(counts.special, 2);
}

TEST(Value, third_operands_move_with_their_value) {
  const Value condition = Value::apply(Op::equal, load(0), load(1));
  const Value value = Value::apply(Op::add, load(2), Value::apply(Op::select, condition, load(3), load(4)));
  EXPECT_EQ(nodes_problem(value), std::nullopt);
  const Value replaced = replace_loads(value, [&](const Access& access) -> std::optional<Value> {
    if (access.tensor != 2) return std::nullopt;
    return Value::apply(Op::add, load(5), load(6));
  });
  EXPECT_EQ(replaced, Value::apply(Op::add, Value::apply(Op::add, load(5), load(6)),
                                   Value::apply(Op::select, condition, load(3), load(4))));
}

TEST(Value, conditions_are_no_numbers) {
  const Value condition = Value::apply(Op::less, load(0), load(1));
  EXPECT_EQ(nodes_problem(condition), "a comparison is used as a number; write select(a < b, 1, 0)");
  EXPECT_EQ(nodes_problem(Value::apply(Op::add, condition, load(0))),
            "a comparison is used as a number; write select(a < b, 1, 0)");
  EXPECT_EQ(nodes_problem(Value::apply(Op::select, load(0), load(1), load(2))),
            "the first operand of select must be a comparison");
  Value value = Value::apply(Op::select, condition, load(1), load(2));
  EXPECT_EQ(nodes_problem(value), std::nullopt);
  value.nodes.back().c = -1;
  EXPECT_EQ(nodes_problem(value), "operation 5 of the value is malformed");
}

TEST(Value, product_is_told_by_its_root) {
  EXPECT_TRUE(is_product(Value::apply(Op::mul, load(0), load(1))));
  EXPECT_FALSE(is_product(Value::apply(Op::add, load(0), Value::apply(Op::mul, load(0), load(1)))));
  EXPECT_FALSE(is_product(load(0)));
}

}  // namespace
}  // namespace graft::codegen
