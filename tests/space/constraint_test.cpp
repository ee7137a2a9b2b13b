#include "codegen/space/constraint.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"

namespace graft::codegen {
namespace {

const std::vector<std::string> names = {"x", "y", "flag", "mode", "ratio"};

bool holds(const std::string& text, std::int64_t x, std::int64_t y = 1) {
  const std::vector<Scalar> values = {x, y, true, std::string("fast"), 0.5};
  std::vector<const Scalar*> pointers;
  for (const Scalar& value : values) pointers.push_back(&value);
  return Constraint(text, names, "test").holds(pointers);
}

std::string refusal(const std::string& text) {
  try {
    const Constraint constraint(text, names, "space.yaml:3");
    return "";
  } catch (const base::UserError& error) {
    return error.what();
  }
}

TEST(Constraint, MeansWhatItMeansInPython) {
  EXPECT_TRUE(holds("x % 32 != 0 or x == 64", 64));
  EXPECT_TRUE(holds("x // -2 == -4", 7));  // rounded down
  EXPECT_TRUE(holds("x % -4 == -1", 7));   // the sign of the divisor
  EXPECT_TRUE(holds("x / 2 == 3.5", 7));
  EXPECT_TRUE(holds("-x ** 2 == -49", 7));  // binds tighter than the sign
  EXPECT_TRUE(holds("2 ** x ** 2 == 16", 2));
  EXPECT_TRUE(holds("1 < x <= 7 and not 1 < x < 7", 7));
  EXPECT_TRUE(holds("not x == 3", 7));
  EXPECT_TRUE(holds("x in [1, 7] and x not in (2, 3,)", 7));
  EXPECT_TRUE(holds("mode == 'fast' and mode != \"slow\" and mode in ['fast']", 1));
  EXPECT_TRUE(holds("flag == True and flag + x == 2", 1));
  EXPECT_TRUE(holds("ratio * x == 1 && !(x > 2)", 2));
  EXPECT_TRUE(holds("min(x, y, 3) == 2 and max(x, y) == 5 and abs(y - x) == 3", 5, 2));
  EXPECT_TRUE(holds("(x if y > 1 else 0) == 5", 5, 2));
  EXPECT_FALSE(holds("x * y <= 1024", 64, 32));
  EXPECT_TRUE(holds("int(x / 2) == 3", 7));
}

TEST(Constraint, KnowsBitsRoundingAndSizes) {
  EXPECT_TRUE(holds("x & (x - 1) == 0 and x | 3 == 67 and x ^ 65 == 1", 64));
  EXPECT_FALSE(holds("x & (x - 1) == 0", 65));
  EXPECT_TRUE(holds("1 << x - 1 == 64 and 1 + 1 << 3 == 16 and -9 >> 1 == -5 and -9 >> 99 == -1", 7));
  EXPECT_TRUE(holds("~x == -8 and 6 & 3 | 8 ^ 1 == 11 and 1 | 2 ^ 3 & 4 == 3", 7));  // as in Python: after | and ^
  EXPECT_TRUE(holds("x & 1 && y | 0 || false", 7));
  EXPECT_TRUE(holds("round(ratio) == 0 and round(3 * ratio) == 2 and round(x / 3) == 2", 7));  // halves to even
  EXPECT_TRUE(holds("floor(-ratio) == -1 and math.ceil(x / 2) == 4 and sqrt(x + 2) == 3 and log2(x + 1) == 3", 7));
  EXPECT_TRUE(holds("x in [1, 2] + [7] and x in range(8) and x not in range(0, 8, 2) + [9]", 7));
  EXPECT_TRUE(holds("4 < x in [5, 7]", 7));
  for (const char* const without :
       {"1 << 70 > 0", "1 << -1 == 0", "ratio & 1 == 0", "sqrt(-x) == 0", "log2(x - 7) < 0", "3 << 62 != 0"})
    EXPECT_FALSE(holds(std::string(without) + " + 0 * x", 7)) << without;
  const std::vector<std::pair<std::string, std::int64_t>> sizes = {{"n", 514}, {"x", 3}};
  const std::vector<Scalar> values = {std::int64_t(257), std::int64_t(1), true, std::string(""), 0.5};
  std::vector<const Scalar*> pointers;
  for (const Scalar& value : values) pointers.push_back(&value);
  EXPECT_TRUE(Constraint("n % x == 0", names, "test", sizes).holds(pointers));  // parameters come first
  EXPECT_EQ(refusal("rond(x) == 2"),
            "space.yaml:3: unknown function 'rond'; did you mean 'round'? (at 1 of 'rond(x) == 2')");
}

// What follows from a constraint for fewer parameters holds wherever it does.
TEST(Constraint, ImpliesNothingThatItDoesNotSay) {
  const auto count = [](const std::string& text, bool integers) {
    return Constraint(text, names, "test").implied(integers).size();
  };
  EXPECT_EQ(count("64 % (x * y) == 0", true), 2u);
  EXPECT_EQ(count("64 % (x * y) == 0", false), 0u);
  EXPECT_EQ(count("64 % (x * y * ratio / 2) == 0", true), 0u);
  EXPECT_EQ(count("x > 2 and y > 3 and x < y", true), 2u);
  EXPECT_EQ(count("x > 2 or y > 3", true), 0u);
  const std::string texts[] = {"64 % (x * y) == 0", "x % (y * y) == 0 and x > 0",
                               "(48 + y) % (2 * x * y) == 0 and y != 2", "x in [2, 4] and 1 < y <= x and x + y != 5"};
  for (const std::string& text : texts) {
    const Constraint whole(text, names, "test");
    const std::vector<Constraint> parts = whole.implied(true);
    EXPECT_FALSE(parts.empty()) << text;
    for (std::int64_t x = -9; x < 70; ++x) {
      for (std::int64_t y = -9; y < 70; ++y) {
        const std::vector<Scalar> values = {x, y};
        const Scalar* const pointers[] = {&values[0], &values[1]};
        for (const Constraint& part : parts) ASSERT_LE(whole.holds(pointers), part.holds(pointers)) << text << x << y;
      }
    }
  }
}

TEST(Constraint, WithoutAValueItDoesNotHold) {
  EXPECT_FALSE(holds("x / (y - 1) > 0", 1));
  EXPECT_FALSE(holds("not x % (y - 1)", 1));
  EXPECT_FALSE(holds("x ** 9 > 0", 1 << 20));
  EXPECT_FALSE(holds("x < mode", 1));
  EXPECT_FALSE(holds("x == mode", 1));
  EXPECT_TRUE(holds("y == 1 or x / (y - 1) > 0", 1));  // the right operand does not matter
}

TEST(Constraint, RefusesInOneLine) {
  EXPECT_EQ(refusal("x * tile <= 4"),
            "space.yaml:3: unknown parameter 'tile'; known: x, y, flag, mode, ratio (at 5 of 'x * tile <= 4')");
  EXPECT_NE(refusal("3 < 4").find("over no parameter"), std::string::npos);
  for (const char* const text :
       {"", "x <", "x = 3", "x < 3)", "(x < 3", "x in 3", "x in [1", "x < 'a", "x ? 3", "x..y < 2", "abs(x, y) > 1",
        "x < 1e999", "x 3", "__import__('os').system('true')", "x if y", "\xff"})
    EXPECT_NE(refusal(text), "") << text;
  EXPECT_NE(refusal("x < " + std::string(500, '(') + "1" + std::string(500, ')')).find("in each other"),
            std::string::npos);
  EXPECT_NE(refusal(std::string(500, '-') + "x").find("in each other"), std::string::npos);
  std::string sum = "x";
  for (int i = 0; i < 10000; ++i) sum += "+x";
  EXPECT_NE(refusal(sum).find("operations"), std::string::npos);
}

TEST(Constraint, ReadsListsOfValues) {
  EXPECT_EQ(values_in("[1, -2, 0.5, 'a b', True]", "p"),
            (std::vector<Scalar>{std::int64_t(1), std::int64_t(-2), 0.5, std::string("a b"), true}));
  EXPECT_EQ(values_in("range(1, 8, 3)", "p"), (std::vector<Scalar>{std::int64_t(1), std::int64_t(4), std::int64_t(7)}));
  for (const char* const text : {"[1, x]", "[1", "range(1, 2, 0)", "range(1000000000)", "[i for i in range(3)]"})
    EXPECT_THROW(values_in(text, "p"), base::UserError) << text;
}

// A random expression as text, and what it is by an evaluator of its own: nothing where it has no value.
struct Made {
  std::string text;
  std::optional<std::int64_t> value;
};

Made made(base::Stream& stream, int depth, std::int64_t x, std::int64_t y) {
  const std::int64_t kind = depth == 0 ? stream.below(3) : 3 + stream.below(9);
  if (kind == 0) return {"x", x};
  if (kind == 1) return {"y", y};
  if (kind == 2) {
    const std::int64_t number = stream.below(9);
    return {std::to_string(number), number};
  }
  const Made a = made(stream, depth - 1, x, y), b = made(stream, depth - 1, x, y);
  const auto text = [&](const char* op) { return "(" + a.text + " " + op + " " + b.text + ")"; };
  const auto both = [&](auto f) {
    return a.value && b.value ? std::optional<std::int64_t>(f(*a.value, *b.value)) : std::nullopt;
  };
  const bool divides = a.value && b.value && *b.value != 0;
  const auto floor_of = [](std::int64_t p, std::int64_t q) {
    std::int64_t down = std::llabs(p) / std::llabs(q);
    if ((p < 0) != (q < 0)) down = -(std::llabs(p) + std::llabs(q) - 1) / std::llabs(q);
    return down;
  };
  switch (kind) {
    case 3:
      return {text("+"), both([](auto p, auto q) { return p + q; })};
    case 4:
      return {text("-"), both([](auto p, auto q) { return p - q; })};
    case 5:
      return {text("*"), both([](auto p, auto q) { return p * q; })};
    case 6:
      return {text("//"), divides ? std::optional(floor_of(*a.value, *b.value)) : std::nullopt};
    case 7:
      return {text("%"), divides ? std::optional(*a.value - *b.value * floor_of(*a.value, *b.value)) : std::nullopt};
    case 8:
      return {text("<"), both([](auto p, auto q) { return std::int64_t(p < q); })};
    case 9:
      return {text("=="), both([](auto p, auto q) { return std::int64_t(p == q); })};
    case 10:
      return {text("and"), !a.value ? std::nullopt : *a.value == 0 ? a.value : b.value};
    default:
      return {text("or"), !a.value ? std::nullopt : *a.value != 0 ? a.value : b.value};
  }
}

TEST(Constraint, AgreesWithAnEvaluatorOfItsOwn) {
  base::Stream stream(7, "constraints");
  int without_value = 0, held = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::int64_t x = stream.below(19) - 9, y = stream.below(19) - 9;
    const Made expression = made(stream, 1 + int(stream.below(4)), x, y);
    const std::string text = expression.text + " + 0 * x";
    const bool expected = expression.value && *expression.value != 0;
    ASSERT_EQ(holds(text, x, y), expected) << text << " at x=" << x << ", y=" << y;
    without_value += !expression.value;
    held += expected;
  }
  EXPECT_GT(without_value, 100);
  EXPECT_GT(held, 500);
}

}  // namespace
}  // namespace graft::codegen
