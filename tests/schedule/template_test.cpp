#include "codegen/schedule/template.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "codegen/schedule/rules.h"
#include "codegen/schedule/splits.h"
#include "tests/schedule/support.h"
#include "tests/support/judged_space.h"

namespace graft::codegen {
namespace {

using namespace test;
using Rows = std::vector<std::vector<std::int64_t>>;

const Workload& small() {
  static const Workload workload = parse_workload("matmul(m=12,n=8,k=4)");
  return workload;
}

JudgedSpace parsed(const std::string& text, const Workload& workload = small()) {
  return judged_space(text, "mine.space", workload, target_with(256, 16));
}

const Domain& domain(const JudgedSpace& space, const std::string& name, std::size_t sketch = 0) {
  for (const Domain& domain : space.sketches()[sketch].domains) {
    if (domain.name == name) return domain;
  }
  throw std::logic_error("no domain " + name);
}

// The values that an argument may have in its domain.
std::set<std::int64_t> possible(const JudgedSpace& space, const std::string& argument, std::size_t sketch = 0) {
  std::set<std::int64_t> result;
  const int position = space.sketches()[sketch].sketch->argument_named(argument);
  for (const Domain& domain : space.sketches()[sketch].domains) {
    for (std::size_t i = 0; i < domain.arguments.size(); ++i) {
      if (domain.arguments[i] != position) continue;
      for (const auto& row : domain.values) result.insert(row[i]);
    }
  }
  return result;
}

const std::string blocked =
    "# a file\n"
    "sketch blocked   # with a comment\n"
    "tile C i $i1 $i2\n"
    "tile C j $j 2\n"
    "\n"
    "order C $outer{i.0 j.0|j.0 i.0} l.0 i.1 j.1 i.2 j.2\n"
    "unroll C j.2\n"
    "$packing{|pack C B above l.0}\n";

TEST(Template, WithoutDomainsEverythingThatFitsIsTried) {
  const JudgedSpace space = parsed(blocked);
  ASSERT_EQ(space.sketches().size(), 1u);
  EXPECT_EQ(to_text(*space.sketches()[0].sketch), to_text(parse_sketch(blocked, "test")));
  EXPECT_EQ(domain(space, "outer").values, (Rows{{0}, {1}}));
  EXPECT_EQ(domain(space, "packing").values, (Rows{{0}, {1}}));
  // Sizes of a tile step are chains around those that it gives: multiples of 2 up to all of the axis.
  EXPECT_EQ(domain(space, "C_j").values, (Rows{{2}, {4}, {8}}));
  EXPECT_EQ(domain(space, "C_i").values,
            chains(12, std::vector<std::optional<std::int64_t>>(2), SplitPolicy::usual, 99));
  EXPECT_EQ(possible(space, "i2"), (std::set<std::int64_t>{1, 2, 3, 4, 6, 12}));
  base::Stream stream(1, "template");
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 50; ++i) seen.insert(hash(space.sample(stream)));
  EXPECT_GT(seen.size(), 20u);
}

TEST(Template, DomainsSayWhatArgumentsMayBe) {
  const JudgedSpace space = parsed(blocked +
                                   "domain i1 i2 = (12, 4) (6 2)\n"
                                   "domain j = 2 4 lanes C.j   # 8 twice\n"
                                   "domain outer = {j.0   i.0}\n"
                                   "domain packing = all\n");
  EXPECT_EQ(domain(space, "i1 i2").values, (Rows{{12, 4}, {6, 2}}));
  EXPECT_EQ(domain(space, "j").values, (Rows{{2}, {4}, {8}, {8}}));
  EXPECT_EQ(domain(space, "outer").values, (Rows{{1}}));
  EXPECT_EQ(domain(space, "packing").values, (Rows{{0}, {1}}));
  EXPECT_EQ(parsed(blocked + "domain i1 i2 = splits(C.i; factors)\n").sketches()[0].domains[0].values,
            (Rows{{1, 1},
                  {2, 1},
                  {2, 2},
                  {3, 1},
                  {3, 3},
                  {4, 1},
                  {4, 2},
                  {4, 4},
                  {6, 1},
                  {6, 2},
                  {6, 3},
                  {6, 6},
                  {12, 1},
                  {12, 2},
                  {12, 3},
                  {12, 4},
                  {12, 6},
                  {12, 12}}));
  EXPECT_EQ(parsed(blocked + "domain j = splits(6; powers)\n").sketches()[0].domains[0].values,
            (Rows{{1}, {2}, {4}, {6}}));
}

TEST(Template, ConditionsOnOneDomainThinItOutAndOthersAreKept) {
  const JudgedSpace space = parsed(blocked +
                                   "forbid $i1 < 12 || $i2 > 4\n"
                                   "forbid $i2 * $j > registers && $outer == 0\n");
  EXPECT_EQ(possible(space, "i1"), (std::set<std::int64_t>{12}));
  EXPECT_EQ(possible(space, "i2"), (std::set<std::int64_t>{1, 2, 3, 4}));
  ASSERT_EQ(space.sketches()[0].forbids.size(), 1u);
  EXPECT_EQ(space.sketches()[0].forbids[0].text(), "$i2 * $j > registers && $outer == 0");
  base::Stream stream(2, "template");
  bool large = false;
  for (int i = 0; i < 100; ++i) {
    const Candidate candidate = space.sample(stream);
    const std::int64_t area = candidate.arguments[1] * candidate.arguments[2];
    large |= area > 16;
    EXPECT_FALSE(area > 16 && candidate.arguments[3] == 0);
  }
  EXPECT_TRUE(large);
}

TEST(Template, TheDerivedSpaceIsFixedExtendedAndForbidden) {
  const Workload workload = parse_workload("conv2d(n=2,c=8,h=34,w=34,k=16,r=3,s=3,stride=2)");
  const JudgedSpace derived = judged_space(workload, target_with(256, 16));
  ASSERT_EQ(derived.sketches().size(), 2u);
  EXPECT_EQ(parsed("from rules\n", workload).hash(), derived.hash());

  const JudgedSpace one = parsed("from rules Y_by_x\nfix Y_x_4 = lanes\nforbid $Y_o_3 > 2\n", workload);
  ASSERT_EQ(one.sketches().size(), 1u);
  EXPECT_EQ(*one.sketches()[0].sketch, *derived.sketches()[1].sketch);
  EXPECT_EQ(possible(one, "Y_x_4"), (std::set<std::int64_t>{8}));
  EXPECT_EQ(possible(one, "Y_o_3"), (std::set<std::int64_t>{1, 2}));
  EXPECT_GT(possible(derived, "Y_o_3", 1).size(), 2u);

  // A knob more for both; what one of them has not does not concern it.
  const JudgedSpace two = parsed(
      "from rules\n$spread{|parallel Y b.0}\nfix Y_x_4 = lanes\nfix spread = {parallel Y b.0}\n"
      "fix Y_order_s0 = {b.0 o.0 y.0 x.0}\n",
      workload);
  ASSERT_EQ(two.sketches().size(), 2u);
  for (std::size_t s = 0; s < 2; ++s) {
    EXPECT_EQ(possible(two, "spread", s), (std::set<std::int64_t>{1}));
    EXPECT_EQ(two.sketches()[s].domains.size(), derived.sketches()[s].domains.size() + 1);
  }
  base::Stream stream(3, "template");
  EXPECT_TRUE(contains(to_text(*schedule(two.sample(stream))), "parallel Y b.0\n"));
  // A derived domain is replaced as a whole.
  const JudgedSpace tiles = parsed("from rules Y_by_x\ndomain Y_o_1 Y_o_2 Y_o_3 = (16 8 2) (16 4 4)\n", workload);
  EXPECT_EQ(domain(tiles, "Y_o_1 Y_o_2 Y_o_3").values, (Rows{{16, 8, 2}, {16, 4, 4}}));
  EXPECT_EQ(tiles.sketches()[0].domains.size(), derived.sketches()[1].domains.size());
}

TEST(Template, SketchesOfBothKindsStandInOneFile) {
  const JudgedSpace space =
      parsed(blocked + "domain i1 i2 = (12 4)\nfrom rules\nsketch other\nunroll C $which{i.0|j.0}\n");
  ASSERT_EQ(space.sketches().size(), 3u);
  EXPECT_EQ(space.sketches()[0].sketch->name, "blocked");
  EXPECT_EQ(*space.sketches()[1].sketch, *judged_space(small(), target_with(256, 16)).sketches()[0].sketch);
  EXPECT_EQ(space.sketches()[2].sketch->name, "other");
}

TEST(Template, TheExampleOfTheRepositoryIsASpace) {
  const std::string text = base::read_file(std::string(GRAFT_SOURCE_DIR) + "/examples/matmul.space");
  for (const std::int64_t vector_bits : {128, 512}) {
    const Target target = target_with(vector_bits, 32);
    const JudgedSpace space = judged_space(text, "matmul.space", parse_workload("matmul(m=100,n=256,k=64)"), target);
    ASSERT_EQ(space.sketches().size(), 2u);
    base::Stream stream(4, "example");
    std::set<std::string> names;
    for (int i = 0; i < 30; ++i) names.insert(space.sample(stream).sketch->name);
    EXPECT_EQ(names.size(), 2u);
  }
}

TEST(Template, RefusalsNameThePlaceAndTheRemedy) {
  const std::pair<std::string, const char*> refusals[] = {
      {"", "mine.space: no sketch; begin with 'sketch NAME' or 'from rules'"},
      {"\n  domain a = 1\n", "mine.space:2:3: expected 'sketch NAME' or 'from rules' first"},
      {"from rule\n", "mine.space:1:1: expected 'from rules' or 'from rules SKETCH'"},
      {"from rules C_by_k\n",
       "mine.space:1:1: matmul(m=12,n=8,k=4,dtype=f32) has no sketch 'C_by_k'; did you mean 'C_by_j'?"},
      {"from rules C_by_j now\n", "mine.space:1:19: expected the end of the line"},
      {"from rules\nfrom rules\n", "mine.space:2:1: a second sketch 'C_by_j'"},
      {blocked + "tiel C l 4\n", "mine.space:9:1: unknown word 'tiel'; did you mean 'tile'?"},
      {blocked + "forbit $j > 4\n", "mine.space:9:1: unknown word 'forbit'; did you mean 'forbid'?"},
      {blocked + "  {x}\n", "mine.space:9:3: expected a step or a statement"},
      {blocked + "tile C l $outer\n", "mine.space:9: '$outer' has 0 alternatives here and 2 before"},
      {blocked + "domain outr = all\n", "mine.space:9:1: no sketch here has an argument 'outr'; did you mean 'outer'?"},
      {blocked + "domain = 4\n", "mine.space:9:8: expected an argument's name"},
      {blocked + "domain j 4\n", "mine.space:9:10: expected '=', got '4'"},
      {blocked + "domain j =\n", "mine.space:9:11: expected values"},
      {blocked + "domain j = all\n", "mine.space:9:12: 'j' is a number without alternatives"},
      {blocked + "domain j = lane\n", "mine.space:9:12: unknown constant 'lane'; did you mean 'lanes'?"},
      {blocked + "domain j = 2 4x\n", "mine.space:9:15: unknown constant 'x'"},
      {blocked + "domain outer = 2\n", "mine.space:9:16: 'outer' has the alternatives 0 to 1"},
      {blocked + "domain outer = {i.0 j.1}\n",
       "mine.space:9:16: 'outer' has no alternative 'i.0 j.1'; did you mean 'i.0 j.0'?"},
      {blocked + "domain outer = {i.0\n", "mine.space:9:16: '{' is never closed"},
      {blocked + "domain i1 i2 = 4 2\n", "mine.space:9:16: expected '(', got '4'"},
      {blocked + "domain i1 i2 = (4)\n", "mine.space:9:18: expected 2 values in a row"},
      {blocked + "domain i1 i2 = all\n", "mine.space:9:16: 'all' is for one argument"},
      {blocked + "domain i1 i2 = splits(C.q)\n", "mine.space:9:23: unknown constant 'C.q'; did you mean"},
      {blocked + "domain i1 i2 = splits(0)\n", "mine.space:9:23: an extent must be 1 to"},
      {blocked + "domain i1 i2 = splits(9; factor)\n",
       "mine.space:9:26: unknown policy 'factor'; did you mean 'factors'?"},
      {blocked + "domain j = 2\ndomain j = 4\n", "mine.space:10:1: a second domain of 'j'"},
      {"from rules\ndomain C_i_1 = 4\n",
       "mine.space:2:1: 'C_i_1' and 'C_i_2' have one domain: name all of its arguments, or use fix"},
      {"from rules\nfix C_i_3 = 5\n",
       "mine.space:2:1: sketch C_by_j: 'C_i_3' is none of these; possible: 1 2 3 4 6 12"},
      {"from rules\nfix C_i_3 C_i_2 = 5\n", "mine.space:2:1: fix takes one argument"},
      {blocked + "forbid $i1 > 0\n", "mine.space:9:1: sketch blocked: forbids everything that is left of domain C_i"},
      {blocked + "forbid $i4 > 0\n", "mine.space:9:1: no sketch here has an argument 'i4'; did you mean"},
      {blocked + "forbid 1 > 0\n", "mine.space:9:8: a condition over no argument"},
      {blocked + "forbid $j >\n", "mine.space:9:8: condition: expected a value, not the end (at 5 of '$j >')"},
      {blocked + "forbid ($j > 1\n", "mine.space:9:8: condition: expected ')' (at 8 of '($j > 1')"},
      {blocked + "forbid $j > 1 2\n",
       "mine.space:9:8: condition: expected an operator or the end (at 8 of '$j > 1 2')"},
      {blocked + "forbid j > $i1\n", "mine.space:9:8: condition: unknown parameter 'j'; did you mean '$j'?"},
      {"sketch s\ntile C $axis{i|j} $a\n", "mine.space:1:1: 'a' of sketch s has no domain; add 'domain a = ...'"},
      {"sketch s\ntile C i $a 7 2\n", "mine.space:1:1: no sizes fit 'tile C i' of sketch s"},
  };
  for (const auto& [text, expected] : refusals) {
    const std::string message = refusal([&] { return parsed(text); });
    EXPECT_TRUE(message.starts_with(expected)) << message << "\nnot " << expected << "\nin\n" << text;
  }
  // As deep and as long as anyone writes, not as deep as the stack is.
  EXPECT_TRUE(
      contains(refusal([] { return parsed(blocked + "forbid " + std::string(10000, '(') + "$j"); }), "more than 64"));
  std::string sum = blocked + "forbid $j";
  for (int i = 0; i < 20000; ++i) sum += "+1";
  EXPECT_TRUE(contains(refusal([&] { return parsed(sum); }), "more than 4096 operations"));
  EXPECT_TRUE(contains(refusal([] {
                         return parsed("sketch s\ntile C i $a $b $c $d $e $f $g $h\n",
                                       parse_workload("matmul(m=5040,n=1,k=1)"));
                       }),
                       "more than 200000 chains of 8 sizes split 5040"));
}

TEST(Condition, ValuesAreThoseOfC) {
  const Sketch sketch = parse_sketch("sketch s\ntile C i $a $b $c\n", "test");
  const auto value = [&](const char* text, std::vector<std::int64_t> arguments) {
    const std::vector<std::pair<std::string, std::int64_t>> constants = {{"C.i", 12}};
    const auto condition = Condition::on(sketch, text, "test", constants);
    EXPECT_TRUE(condition.has_value()) << text;
    return condition->truth(arguments);
  };
  for (std::int64_t a : {-7, 0, 1, 3, 8}) {
    for (std::int64_t b : {-2, 1, 3}) {
      const std::int64_t c = a * b + 1;
      const std::vector<std::int64_t> at = {a, b, c};
      for (std::int64_t is : {-22, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 15}) {
        const std::string equals = fmt::format(" == {}", is);
        EXPECT_EQ(value(("$a + $b * $c - 2 - 1" + equals).c_str(), at), a + b * c - 2 - 1 == is);
        EXPECT_EQ(value(("($a + $b) * $c" + equals).c_str(), at), (a + b) * c == is);
        EXPECT_EQ(value(("$a / $b % 3" + equals).c_str(), at), a / b % 3 == is);
        EXPECT_EQ(value(("-$a - -3" + equals).c_str(), at), -a + 3 == is);
        EXPECT_EQ(value(("($a && $b) + ($a || $b) + !$a" + equals).c_str(), at), (a && b) + (a || b) + !a == is);
        EXPECT_EQ(value(("!$a" + equals).c_str(), at), (!a) == is);
      }
      EXPECT_EQ(value("$a<$b", at), a < b);
      EXPECT_EQ(value("$a <= $b == ($c > 1)", at), (a <= b) == (c > 1));
      EXPECT_EQ(value("$a != $b && $a >= 1 || !$c", at), (a != b && a >= 1) || !c);
      EXPECT_EQ(value("$a > C.i - 10", at), a > 2);
    }
  }
}

TEST(Condition, WhatCannotBeToldIsForbidden) {
  const Sketch sketch = parse_sketch("sketch s\ntile C i $a $b\n", "test");
  const auto parsed_condition = [&](const char* text) { return *Condition::on(sketch, text, "test", {}); };
  const std::vector<std::int64_t> zero = {8, 0}, two = {8, 2}, large = {INT64_MAX, 2};
  const Condition division = parsed_condition("$a % $b == 1");
  EXPECT_EQ(division.truth(zero), std::nullopt);
  EXPECT_TRUE(division.forbids(zero));
  EXPECT_FALSE(division.forbids(two));
  EXPECT_FALSE(parsed_condition("$b != 0 && $a % $b == 1").forbids(zero));
  EXPECT_TRUE(parsed_condition("$b == 0 || $a % $b == 1").forbids(zero));
  EXPECT_EQ(parsed_condition("$a * $b").truth(large), std::nullopt);
  EXPECT_EQ(parsed_condition("$a + $b").truth(large), std::nullopt);
  EXPECT_FALSE(
      Condition::on(parse_sketch("sketch s\ntile C i $a $d\n", "test"), division.text(), "test", {}).has_value());
}

TEST(Splits, MultiplesFollowThePolicy) {
  using Sizes = std::vector<std::int64_t>;
  EXPECT_EQ(multiples(1, 12, SplitPolicy::factors), (Sizes{1, 2, 3, 4, 6, 12}));
  EXPECT_EQ(multiples(1, 12, SplitPolicy::powers), (Sizes{1, 2, 4, 8, 12}));
  EXPECT_EQ(multiples(1, 12, SplitPolicy::tails), (Sizes{1, 2, 3, 4, 6, 8, 12}));
  // Powers of two join where divisors leave little choice.
  EXPECT_EQ(multiples(1, 12), (Sizes{1, 2, 3, 4, 6, 12}));
  EXPECT_EQ(multiples(1, 13), (Sizes{1, 2, 4, 8, 13}));
  EXPECT_EQ(multiples(8, 13), (Sizes{8, 16}));
  EXPECT_EQ(multiples(5, 12, SplitPolicy::factors), Sizes{});
}

TEST(Splits, ChainsAreMultiplesOfTheNext) {
  const std::optional<std::int64_t> open;
  for (const SplitPolicy policy : {SplitPolicy::usual, SplitPolicy::factors, SplitPolicy::powers, SplitPolicy::tails}) {
    const auto all = chains(60, std::vector{open, open, open}, policy, 1000000);
    EXPECT_GT(all.size(), 10u);
    EXPECT_EQ(std::set(all.begin(), all.end()).size(), all.size());
    for (const auto& chain : all) {
      for (std::size_t i = 0; i < 3; ++i) {
        const std::vector<std::int64_t> next = multiples(i < 2 ? chain[i + 1] : 1, 60, policy);
        EXPECT_NE(std::find(next.begin(), next.end(), chain[i]), next.end());
      }
    }
  }
  EXPECT_EQ(chains(12, std::vector{open, std::optional<std::int64_t>(4)}, SplitPolicy::usual, 99),
            (Rows{{4, 4}, {8, 4}, {12, 4}}));
  EXPECT_EQ(chains(12, std::vector{open}, SplitPolicy::usual, 3).size(), 4u) << "one more than asked for says: more";
}

}  // namespace
}  // namespace graft::codegen
