#include "codegen/space/space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>

#include "codegen/schedule/candidate_program.h"
#include "tests/schedule/support.h"
#include "tests/support/judged_space.h"

namespace graft::codegen {
namespace {

using namespace test;

SketchSpace sketch_space(const std::string& text, std::vector<Domain> domains) {
  return {std::make_shared<const Sketch>(parse_sketch(text, "test")), std::move(domains)};
}

const char* const tiled = "sketch tiled\ntile C i $i1 $i2\ntile C j $j\norder C $o{i.0 j.0|j.0 i.0} l.0 i.1 i.2 j.1\n";

Workload small() {
  return parse_workload("matmul(m=12,n=8,k=4)");
}

// Two sketches of 3 * 2 * 2 and 2 points.
JudgedSpace two_sketches(const Target& target = target_with(0, 16)) {
  std::vector<SketchSpace> sketches;
  sketches.push_back(sketch_space(
      tiled, {{"i", {0, 1}, {{12, 4}, {6, 3}, {4, 4}}}, {"j", {2}, {{4}, {8}}}, {"order", {3}, {{0}, {1}}}}));
  sketches.push_back(sketch_space("sketch plain\norder C $o{i.0 j.0 l.0|l.0 i.0 j.0}\n", {{"order", {0}, {{0}, {1}}}}));
  return JudgedSpace(small(), target, std::move(sketches));
}

const SketchSpace& part_of(const JudgedSpace& space, const Candidate& candidate) {
  for (const SketchSpace& sketch : space.sketches()) {
    if (*sketch.sketch == *candidate.sketch) return sketch;
  }
  throw std::logic_error("a sketch of another space");
}

std::vector<std::int64_t> values_of(const Domain& domain, const Candidate& candidate) {
  std::vector<std::int64_t> values;
  for (const int argument : domain.arguments) values.push_back(candidate.arguments[std::size_t(argument)]);
  return values;
}

TEST(Space, SizeCountsPointsAndSamplingReachesThemAll) {
  const JudgedSpace space = two_sketches();
  EXPECT_EQ(space.size(), 14);
  base::Stream stream(1, "space");
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    const Candidate candidate = space.sample(stream);
    EXPECT_TRUE(space.valid(candidate));
    for (const Domain& domain : part_of(space, candidate).domains) {
      const auto values = values_of(domain, candidate);
      EXPECT_NE(std::find(domain.values.begin(), domain.values.end(), values), domain.values.end()) << domain.name;
    }
    seen.insert(hash(candidate));
  }
  EXPECT_EQ(seen.size(), 14u);
}

TEST(Space, HashIsOfWorkloadSketchesAndDomains) {
  EXPECT_EQ(two_sketches().hash(), two_sketches().hash());
  EXPECT_EQ(two_sketches().hash(), two_sketches(target_with(128, 16)).hash());
  const auto plain = [](const char* workload, std::int64_t size) {
    return JudgedSpace(parse_workload(workload), target_with(0, 16),
                       {sketch_space("sketch s\ntile C i $i\n", {{"i", {0}, {{size}}}})})
        .hash();
  };
  EXPECT_NE(plain("matmul(m=12,n=8,k=4)", 4), plain("matmul(m=12,n=8,k=5)", 4));
  EXPECT_NE(plain("matmul(m=12,n=8,k=4)", 4), plain("matmul(m=12,n=8,k=4)", 6));
}

TEST(Space, MutationChangesOneDomainOrTheSketch) {
  const JudgedSpace space = two_sketches();
  base::Stream stream(2, "mutate");
  int other_sketches = 0;
  Candidate candidate = space.sample(stream);
  for (int i = 0; i < 500; ++i) {
    const Candidate mutant = space.mutate(candidate, stream).value();
    EXPECT_TRUE(space.valid(mutant));
    if (!(*mutant.sketch == *candidate.sketch)) {
      ++other_sketches;
    } else {
      int changed = 0;
      for (const Domain& domain : part_of(space, mutant).domains) {
        changed += values_of(domain, mutant) != values_of(domain, candidate);
      }
      // A fresh sample of the same sketch is as rare as a change of sketch.
      if (changed != 1) ++other_sketches;
    }
    candidate = mutant;
  }
  EXPECT_GT(other_sketches, 5);
  EXPECT_LT(other_sketches, 80);
}

TEST(Space, MutationOfASingleSketchChangesExactlyOneDomain) {
  const JudgedSpace both = two_sketches();
  const JudgedSpace space(small(), both.target(), {both.sketches()[0]});
  base::Stream stream(3, "mutate");
  Candidate candidate = space.sample(stream);
  for (int i = 0; i < 200; ++i) {
    const Candidate mutant = space.mutate(candidate, stream).value();
    int changed = 0;
    for (const Domain& domain : space.sketches()[0].domains) {
      changed += values_of(domain, mutant) != values_of(domain, candidate);
    }
    EXPECT_EQ(changed, 1) << i;
    candidate = mutant;
  }
}

TEST(Space, WithoutAChoiceThereIsNoMutation) {
  const JudgedSpace space = judged_space(parse_workload("matmul(m=1,n=1,k=1)"), target_with(256, 16));
  EXPECT_EQ(space.size(), 1);
  base::Stream stream(4, "mutate");
  const Candidate candidate = space.sample(stream);
  EXPECT_TRUE(candidate.arguments.empty());
  const auto mutant = space.mutate(candidate, stream);
  ASSERT_FALSE(mutant.ok());
  EXPECT_EQ(mutant.reason().text, "sketch C_scalar: nothing to mutate: no domain has a choice");
}

TEST(Space, CrossoverTakesEveryDomainFromAParent) {
  const JudgedSpace space = two_sketches();
  base::Stream stream(5, "crossover");
  int children = 0, strangers = 0;
  for (int i = 0; i < 300; ++i) {
    const Candidate a = space.sample(stream), b = space.sample(stream);
    const base::Result<Candidate> child = space.crossover(a, b, stream);
    ASSERT_EQ(child.ok(), *a.sketch == *b.sketch) << i;
    if (!child) {
      EXPECT_TRUE(contains(child.reason().text, "the parents' sketches differ: ")) << child.reason().text;
      ++strangers;
      continue;
    }
    ++children;
    for (const Domain& domain : part_of(space, *child).domains) {
      const auto values = values_of(domain, *child);
      EXPECT_TRUE(values == values_of(domain, a) || values == values_of(domain, b)) << domain.name;
    }
  }
  EXPECT_GT(children, 0);
  EXPECT_GT(strangers, 0);
}

TEST(Space, ChoicesApartAreTheDomainsThatDiffer) {
  const JudgedSpace space = two_sketches();
  base::Stream stream(8, "apart");
  int strangers = 0;
  for (int i = 0; i < 100; ++i) {
    const Candidate a = space.sample(stream), b = space.sample(stream);
    EXPECT_EQ(space.choices_apart(a, a), 0);
    EXPECT_EQ(space.choices_apart(a, b), space.choices_apart(b, a));
    if (!(*a.sketch == *b.sketch)) {
      EXPECT_EQ(space.choices_apart(a, b), std::numeric_limits<int>::max());
      ++strangers;
      continue;
    }
    int expected = 0;
    for (const Domain& domain : part_of(space, a).domains) expected += values_of(domain, a) != values_of(domain, b);
    EXPECT_EQ(space.choices_apart(a, b), expected);
  }
  EXPECT_GT(strangers, 0);
}

// A candidate of its own space is nearest to itself; one of another shape keeps what this shape has, too.
TEST(Space, NearestKeepsWhatTheOtherSpaceHas) {
  const Target target = target_with(256, 16);
  for (const auto& [there, here] :
       {std::pair{"matmul(m=512,n=512,k=512)", "matmul(m=384,n=640,k=100)"},
        {"conv2d(c=64,h=56,w=56,k=64,r=3,s=3,pad=1)", "conv2d(c=96,h=28,w=28,k=160,r=3,s=3,pad=1)"}}) {
    const JudgedSpace other = judged_space(parse_workload(there), target),
                      space = judged_space(parse_workload(here), target);
    base::Stream stream(4, "nearest");
    for (int i = 0; i < 20; ++i) {
      const Candidate candidate = other.sample(stream);
      const auto itself = other.nearest(candidate);
      ASSERT_TRUE(itself);
      EXPECT_EQ(hash(*itself), hash(candidate));
      const auto found = space.nearest(candidate);
      ASSERT_TRUE(found) << found.reason().text;
      EXPECT_TRUE(space.valid(*found));
      EXPECT_EQ(found->workload, space.workload());
      EXPECT_EQ(found->sketch->name, candidate.sketch->name);
    }
  }
}

TEST(Space, NearestIsTheLeastSumOfLogarithmsThatLowers) {
  std::vector<SketchSpace> sketches;
  sketches.push_back(sketch_space(
      tiled, {{"i", {0, 1}, {{12, 4}, {6, 3}, {4, 4}, {4, 2}}}, {"j", {2}, {{2}, {8}}}, {"order", {3}, {{0}, {1}}}}));
  const JudgedSpace space(small(), target_with(0, 16), std::move(sketches));
  const auto tiles = [&](std::vector<std::int64_t> arguments) {
    const Candidate from{parse_workload("matmul(m=64,n=64,k=4)"),
                         std::make_shared<const Sketch>(parse_sketch(tiled, "test")), std::move(arguments)};
    return space.nearest(from)->arguments;
  };
  EXPECT_EQ(tiles({12, 3, 3, 1}), (std::vector<std::int64_t>{12, 4, 2, 1}));
  EXPECT_EQ(tiles({5, 2, 64, 0}), (std::vector<std::int64_t>{4, 2, 8, 0}));
}

TEST(Space, NothingIsNearToAnotherOperatorsCandidate) {
  const JudgedSpace space = two_sketches();
  const Candidate other{
      small(), std::make_shared<const Sketch>(parse_sketch("sketch other\ntile C i $x\n", "test")), {4}};
  const auto found = space.nearest(other);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.reason().text, "sketch other: nothing like it in this space");
}

TEST(Space, ChildrenThatDoNotLowerAreNone) {
  // Sizes of one axis in two domains: 6 4 and 9 2 are not chains.
  const JudgedSpace space(
      small(), target_with(0, 16),
      {sketch_space("sketch s\ntile C i $a $b\n", {{"a", {0}, {{8}, {6}}}, {"b", {1}, {{4}, {3}}}})});
  const auto sketch = space.sketches()[0].sketch;
  const Candidate a{small(), sketch, {8, 4}}, b{small(), sketch, {6, 3}};
  base::Stream stream(6, "crossover");
  for (int i = 0; i < 100; ++i) {
    const auto child = space.crossover(a, b, stream);
    ASSERT_TRUE(child.ok());
    EXPECT_TRUE(child->arguments == a.arguments || child->arguments == b.arguments);
    const auto mutant = space.mutate(a, stream);
    ASSERT_FALSE(mutant.ok()) << "8 3 and 6 4 are not chains";
    EXPECT_TRUE(contains(mutant.reason().text, "nothing to mutate: 32 tries, the last one: ")) << mutant.reason().text;
  }
  const Candidate wrong{small(), sketch, {8, 3}};
  const auto child = space.crossover(wrong, wrong, stream);
  ASSERT_FALSE(child.ok());
  EXPECT_EQ(child.reason().text, "sketch s: no child in 32 tries, the last one: tile C i 8 3: 3 does not divide 8");
  EXPECT_EQ(space.refusal(wrong)->text, "tile C i 8 3: 3 does not divide 8");
  EXPECT_FALSE(space.refusal(a));
}

TEST(Space, AMutationIsAnotherProgram) {
  // The order of loops that vanish changes nothing: only the tile does.
  const JudgedSpace space(small(), target_with(0, 16),
                          {sketch_space("sketch s\ntile C i $i\ntile C j 8\norder C $o{i.0 j.0|j.0 i.0} i.1 j.1 l.0\n",
                                        {{"i", {0}, {{12}, {6}}}, {"o", {1}, {{0}, {1}}}})});
  const auto sketch = space.sketches()[0].sketch;
  base::Stream stream(8, "mutate");
  for (int i = 0; i < 50; ++i) {
    const auto mutant = space.mutate({small(), sketch, {12, 0}}, stream);
    ASSERT_TRUE(mutant.ok());
    EXPECT_EQ(mutant->arguments, (std::vector<std::int64_t>{6, 0}));
  }
}

TEST(Space, ConditionsAreKept) {
  std::vector<SketchSpace> sketches = {sketch_space(
      tiled, {{"i", {0, 1}, {{12, 4}, {6, 3}, {4, 4}}}, {"j", {2}, {{4}, {8}}}, {"order", {3}, {{0}, {1}}}})};
  const JudgedSpace all(small(), target_with(0, 16), sketches);
  sketches[0].forbids.push_back(*Condition::on(*sketches[0].sketch, "$i2 * $j > 24 && $o == 0", "test", {}));
  const JudgedSpace some(small(), target_with(0, 16), sketches);
  EXPECT_NE(all.hash(), some.hash());
  EXPECT_EQ(some.size(), 12) << "points are counted before conditions";
  const Candidate forbidden{small(), sketches[0].sketch, {12, 4, 8, 0}};
  EXPECT_TRUE(all.valid(forbidden));
  ASSERT_FALSE(some.valid(forbidden));
  EXPECT_EQ(some.refusal(forbidden)->text, "forbid $i2 * $j > 24 && $o == 0");
  base::Stream stream(9, "conditions");
  std::set<std::uint64_t> seen;
  Candidate candidate = some.sample(stream);
  for (int i = 0; i < 300; ++i) {
    const Candidate sampled = some.sample(stream);
    candidate = some.mutate(candidate, stream).value();
    for (const Candidate& one : {sampled, candidate, some.crossover(sampled, candidate, stream).value()}) {
      EXPECT_FALSE(one.arguments[1] * one.arguments[2] > 24 && one.arguments[3] == 0);
      seen.insert(hash(one));
    }
  }
  EXPECT_EQ(seen.size(), 10u);
}

TEST(Space, CandidatesOfOtherSpacesAreRefusedAndMutateIntoThisOne) {
  const JudgedSpace both = two_sketches();
  const JudgedSpace space(small(), both.target(), {both.sketches()[0]});
  const Candidate stranger{small(), both.sketches()[1].sketch, {0}};
  EXPECT_EQ(space.refusal(stranger)->text, "sketch plain: of another space");
  base::Stream stream(10, "stranger");
  EXPECT_EQ(space.mutate(stranger, stream)->sketch, both.sketches()[0].sketch);
}

TEST(Space, SketchesAreDrawnByTheBitsOfTheirSizes) {
  // 1 + floor(log2) of 12 and of 2 points: 4 and 2.
  const JudgedSpace space = two_sketches();
  base::Stream stream(11, "weights");
  int tiles = 0;
  for (int i = 0; i < 3000; ++i) tiles += space.sample(stream).sketch == space.sketches()[0].sketch;
  EXPECT_NEAR(tiles, 2000, 120);
}

TEST(Space, NothingWithinLimitsIsTheUsersToKnow) {
  const JudgedSpace space(
      small(), target_with(0, 16),
      {sketch_space("sketch s\ntile C i $a\ntile C $b{i|q} 4\n", {{"a", {0}, {{4}, {6}}}, {"b", {1}, {{0}, {1}}}})});
  base::Stream stream(7, "sample");
  const std::string message = refusal([&] { return space.sample(stream); });
  EXPECT_TRUE(contains(message, small().text())) << message;
  EXPECT_TRUE(contains(message, "none of 10000 points")) << message;
  EXPECT_TRUE(contains(message, "tile C i 4: i is already tiled (")) << message;
  EXPECT_TRUE(contains(message, "tile C q 4: C has no axis q (")) << message;
}

// In a restricted space all results are its points, and other candidates map to the nearest of their sketch.
TEST(Space, OfSomePointsOnlyHasNoOthers) {
  const JudgedSpace all = two_sketches();
  const std::shared_ptr<const Sketch>&tiles = all.sketches()[0].sketch, plain = all.sketches()[1].sketch;
  const std::vector<Candidate> points{{small(), tiles, {12, 4, 4, 0}},
                                      {small(), tiles, {4, 4, 8, 1}},
                                      {small(), plain, {1}},
                                      {small(), plain, {1}},
                                      {small(), tiles, {5, 5, 4, 0}},  // in no row of its domain
                                      {parse_workload("matmul(m=5,n=5,k=5)"), tiles, {12, 4, 4, 0}}};
  const JudgedSpace some = all.only(std::span(points).first(5));
  EXPECT_EQ(some.size(), 3);
  EXPECT_NE(some.hash(), all.hash());
  std::set<std::uint64_t> listed, sampled, mutated;
  for (const std::size_t i : {0u, 1u, 2u}) listed.insert(hash(points[i]));
  base::Stream stream(1, "some points");
  for (int i = 0; i < 200; ++i) {
    const Candidate candidate = some.sample(stream);
    EXPECT_TRUE(some.valid(candidate));
    sampled.insert(hash(candidate));
    if (const auto mutant = some.mutate(candidate, stream)) mutated.insert(hash(*mutant));
    const auto child = some.crossover(points[0], points[1], stream);
    ASSERT_TRUE(child);
    EXPECT_TRUE(listed.contains(hash(*child)));
  }
  EXPECT_EQ(sampled, listed);
  EXPECT_EQ(mutated, listed);
  const Candidate between{small(), tiles, {6, 3, 4, 0}};
  EXPECT_FALSE(some.valid(between));
  EXPECT_EQ(hash(*some.admitted(between)), hash(points[0]));
  EXPECT_EQ(hash(*some.nearest(between)), hash(points[0]));
  EXPECT_EQ(hash(*some.admitted(points[1])), hash(points[1]));
  EXPECT_EQ(hash(*all.admitted(between)), hash(between));
  EXPECT_THROW(all.only(std::span(points).subspan(4, 1)), base::UserError);
}

TEST(Space, ASketchWithoutOneOfTheOnlyPointsIsLeft) {
  const JudgedSpace all = two_sketches();
  const std::vector<Candidate> points{{small(), all.sketches()[1].sketch, {1}}};
  const JudgedSpace one = all.only(points);
  const Candidate tiles{small(), all.sketches()[0].sketch, {12, 4, 4, 0}};
  base::Stream stream(2, "left");
  EXPECT_EQ(hash(one.sample(stream)), hash(points[0]));
  EXPECT_FALSE(one.admitted(tiles));
  EXPECT_FALSE(one.crossover(tiles, tiles, stream));
  for (int i = 0; i < 40; ++i) {
    const auto mutant = one.mutate(tiles, stream);
    if (mutant) {
      EXPECT_EQ(hash(*mutant), hash(points[0]));
    }
  }
}

TEST(Candidate, HashIsOfWorkloadSketchAndArguments) {
  const JudgedSpace space = two_sketches();
  const auto tiles = space.sketches()[0].sketch, plain = space.sketches()[1].sketch;
  const Candidate candidate{small(), tiles, {12, 4, 8, 1}};
  const auto copy = std::make_shared<const Sketch>(*tiles);
  EXPECT_EQ(hash(candidate), hash(Candidate{small(), copy, {12, 4, 8, 1}}));
  EXPECT_NE(hash(candidate), hash(Candidate{small(), tiles, {12, 4, 8, 0}}));
  EXPECT_NE(hash(candidate), hash(Candidate{small(), tiles, {4, 12, 8, 1}}));
  EXPECT_NE(hash(candidate), hash(Candidate{parse_workload("matmul(m=12,n=8,k=5)"), tiles, {12, 4, 8, 1}}));
  EXPECT_NE(hash(Candidate{small(), tiles, {}}), hash(Candidate{small(), plain, {}}));
}

TEST(Candidate, ProgramIsTheScheduleLoweredWithinLimits) {
  const JudgedSpace space = two_sketches();
  const Candidate candidate{small(), space.sketches()[0].sketch, {12, 4, 8, 1}};
  const auto program = codegen::program(candidate, space.target());
  ASSERT_TRUE(program.ok()) << program.reason().text;
  const auto lowered = lower(computed(small().text()), *schedule(candidate), 1);
  EXPECT_EQ(*program, *lowered);
  const auto refused = codegen::program({small(), candidate.sketch, {5, 4, 8, 1}}, space.target());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.reason().text, "tile C i 5 4: 4 does not divide 5");
  const auto unrolled = sketch_space("sketch s\nunroll C i.0 j.0 l.0\n", {}).sketch;
  const auto large = codegen::program({parse_workload("matmul(m=64,n=64,k=4)"), unrolled, {}}, space.target());
  ASSERT_FALSE(large.ok());
  EXPECT_TRUE(contains(large.reason().text, "limits: ")) << large.reason().text;
}

// Values of a table's column are as far apart as their numbers, where all are numbers, and conditions see them.
TEST(Space, ColumnsOfATableAreTheirValues) {
  const auto sketch = std::make_shared<const Sketch>(
      Sketch::of_columns("t", {{"block", {"16", "32", "512"}}, {"order", {"ij", "ji"}}}));
  const Domain block{"block", {0}, {{0}, {1}, {2}}}, order{"order", {1}, {{0}, {1}}};
  const SketchSpace part{sketch, {block, order}};
  EXPECT_NEAR(distance(part, block, 0, 1), std::log2(33.0 / 17.0), 1e-12);
  EXPECT_NEAR(distance(part, block, 0, 2), std::log2(513.0 / 17.0), 1e-12);
  EXPECT_EQ(distance(part, order, 0, 1), 1);
  SketchSpace conditional = part;
  conditional.forbids = {*Condition::on(*sketch, "$block > 100 && $order == 1", "test", {})};
  const JudgedSpace space(Workload("table(name=t)"), target_with(0, 16), {conditional});
  const auto at = [&](std::int64_t b, std::int64_t o) { return space.valid({space.workload(), sketch, {b, o}}); };
  EXPECT_TRUE(at(2, 0));
  EXPECT_TRUE(at(1, 1));
  EXPECT_FALSE(at(2, 1));
}

}  // namespace
}  // namespace graft::codegen
