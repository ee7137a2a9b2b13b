#include "codegen/expression/affine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/expression/support.h"

namespace graft::codegen {
namespace {

// Calls `body` with every point of the box.
template <class Body>
void for_each_point(const std::vector<Interval>& box, Body body) {
  std::vector<std::int64_t> at;
  for (const Interval& side : box) at.push_back(side.low);
  for (;;) {
    body(at);
    std::size_t a = box.size();
    while (a > 0 && ++at[a - 1] > box[a - 1].high) {
      at[a - 1] = box[a - 1].low;
      --a;
    }
    if (a == 0) return;
  }
}

bool is_normal(const Affine& form) {
  for (std::size_t t = 0; t < form.terms.size(); ++t)
    if (form.terms[t].coefficient == 0 || (t > 0 && form.terms[t - 1].variable >= form.terms[t].variable)) return false;
  return true;
}

TEST(Affine, keeps_terms_sorted_and_without_zeros) {
  const Affine form = Affine::variable(3, 2) + Affine::variable(1) + Affine(5) + Affine::variable(3, -2);
  EXPECT_EQ(form, Affine(5) + Affine::variable(1));
  EXPECT_EQ(form.coefficient(1), 1);
  EXPECT_EQ(form.coefficient(3), 0);
  EXPECT_FALSE(form.is_constant());
  EXPECT_TRUE(Affine::variable(7, 0).is_constant());
  EXPECT_EQ(form * 0, Affine(0));
}

TEST(Affine, sums_and_multiples_evaluate_like_integers) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    base::Stream stream(seed, "affine");
    const Affine a = random_form(stream, 4), b = random_form(stream, 4);
    const std::int64_t factor = stream.below(7) - 3;
    EXPECT_TRUE(is_normal(a + b)) << "seed " << seed;
    EXPECT_TRUE(is_normal(a * factor)) << "seed " << seed;
    for_each_point(std::vector<Interval>(4, {-1, 2}), [&](const std::vector<std::int64_t>& at) {
      ASSERT_EQ(evaluate(a + b, at), evaluate(a, at) + evaluate(b, at)) << "seed " << seed;
      ASSERT_EQ(evaluate(a * factor, at), evaluate(a, at) * factor) << "seed " << seed;
    });
  }
}

TEST(Affine, forms_longer_than_the_object_holds_are_values_too) {
  Affine sum(1);
  for (int v = 0; v < 40; ++v) {
    const Affine before = sum;
    sum.add(Affine::variable(39 - v), v + 1);
    EXPECT_EQ(before.terms.size(), std::size_t(v));
    Affine copy = sum, moved = std::move(copy);
    EXPECT_EQ(moved, sum);
    EXPECT_TRUE(is_normal(moved));
    copy = before;
    EXPECT_EQ(copy, before);
    moved = std::move(copy);
    EXPECT_EQ(moved, before);
  }
  for (int v = 0; v < 40; ++v) EXPECT_EQ(sum.coefficient(v), 40 - v);
  sum += sum;
  EXPECT_EQ(sum.coefficient(0), 80);
  sum.add(sum, -1);
  EXPECT_EQ(sum, Affine(0));
}

TEST(Affine, range_is_what_enumeration_finds) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    base::Stream stream(seed, "range");
    const Affine form = random_form(stream, 3);
    std::vector<Interval> box;
    for (int v = 0; v < 3; ++v) {
      const std::int64_t low = stream.below(7) - 3;
      box.push_back({low, low + stream.below(4)});
    }
    Interval found{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
    for_each_point(box, [&](const std::vector<std::int64_t>& at) {
      const std::int64_t value = evaluate(form, at);
      found = {std::min(found.low, value), std::max(found.high, value)};
    });
    EXPECT_EQ(range(form, box), found) << "seed " << seed << ": " << found.low << ".." << found.high;
  }
}

TEST(Affine, range_over_nothing_is_empty) {
  const std::vector<Interval> ranges{{0, 3}, {2, 1}};
  EXPECT_LE(range(Affine::variable(0) + Affine::variable(1), ranges).width(), 0);
  EXPECT_EQ(range(Affine::variable(0), ranges).width(), 4);
}

TEST(Affine, substitution_then_evaluation_is_evaluation_of_the_parts) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    base::Stream stream(seed, "substitute");
    const Affine form = random_form(stream, 3);
    const std::vector<Affine> by{random_form(stream, 2), random_form(stream, 2), random_form(stream, 2)};
    const Affine substituted = substitute(form, by);
    EXPECT_TRUE(is_normal(substituted)) << "seed " << seed;
    for_each_point({{-2, 2}, {-2, 2}}, [&](const std::vector<std::int64_t>& at) {
      const std::vector<std::int64_t> inner{evaluate(by[0], at), evaluate(by[1], at), evaluate(by[2], at)};
      ASSERT_EQ(evaluate(substituted, at), evaluate(form, inner)) << "seed " << seed;
    });
  }
}

TEST(Affine, prints_like_a_person_writes) {
  const std::vector<std::string> names{"i.0", "i.1", "j"};
  EXPECT_EQ(to_text(Affine(), names), "0");
  EXPECT_EQ(to_text(Affine(-7), names), "-7");
  EXPECT_EQ(to_text(Affine::variable(0, 4) + Affine::variable(1) + Affine(-1), names), "4*i.0 + i.1 - 1");
  EXPECT_EQ(to_text(Affine::variable(0, -1) + Affine::variable(2, -3) + Affine(2), names), "-i.0 - 3*j + 2");
}

}  // namespace
}  // namespace graft::codegen
