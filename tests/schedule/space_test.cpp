#include "codegen/schedule/space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "tests/schedule/support.h"

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
Space two_sketches(const Target& target = target_with(0, 16)) {
  std::vector<SketchSpace> sketches;
  sketches.push_back(sketch_space(
      tiled, {{"i", {0, 1}, {{12, 4}, {6, 3}, {4, 4}}}, {"j", {2}, {{4}, {8}}}, {"order", {3}, {{0}, {1}}}}));
  sketches.push_back(sketch_space("sketch plain\norder C $o{i.0 j.0 l.0|l.0 i.0 j.0}\n", {{"order", {0}, {{0}, {1}}}}));
  return Space(small(), target, std::move(sketches));
}

const SketchSpace& part_of(const Space& space, const Candidate& candidate) {
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
  const Space space = two_sketches();
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

TEST(Space, HashIsOfWorkloadTargetSketchesAndDomains) {
  EXPECT_EQ(two_sketches().hash(), two_sketches().hash());
  EXPECT_NE(two_sketches().hash(), two_sketches(target_with(128, 16)).hash());
  const auto plain = [](const char* workload, std::int64_t size) {
    return Space(parse_workload(workload), target_with(0, 16),
                 {sketch_space("sketch s\ntile C i $i\n", {{"i", {0}, {{size}}}})})
        .hash();
  };
  EXPECT_NE(plain("matmul(m=12,n=8,k=4)", 4), plain("matmul(m=12,n=8,k=5)", 4));
  EXPECT_NE(plain("matmul(m=12,n=8,k=4)", 4), plain("matmul(m=12,n=8,k=4)", 6));
}

TEST(Space, MutationChangesOneDomainOrTheSketch) {
  const Space space = two_sketches();
  base::Stream stream(2, "mutate");
  int other_sketches = 0;
  Candidate candidate = space.sample(stream);
  for (int i = 0; i < 500; ++i) {
    const Candidate mutant = space.mutate(candidate, stream);
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
  const Space both = two_sketches();
  const Space space(small(), both.target(), {both.sketches()[0]});
  base::Stream stream(3, "mutate");
  Candidate candidate = space.sample(stream);
  for (int i = 0; i < 200; ++i) {
    const Candidate mutant = space.mutate(candidate, stream);
    int changed = 0;
    for (const Domain& domain : space.sketches()[0].domains) {
      changed += values_of(domain, mutant) != values_of(domain, candidate);
    }
    EXPECT_EQ(changed, 1) << i;
    candidate = mutant;
  }
}

TEST(Space, WithoutAChoiceAMutationIsTheCandidateItself) {
  const Space space = derive_space(parse_workload("matmul(m=1,n=1,k=1)"), target_with(256, 16));
  EXPECT_EQ(space.size(), 1);
  base::Stream stream(4, "mutate");
  const Candidate candidate = space.sample(stream);
  EXPECT_TRUE(candidate.arguments.empty());
  EXPECT_EQ(hash(space.mutate(candidate, stream)), hash(candidate));
}

TEST(Space, CrossoverTakesEveryDomainFromAParent) {
  const Space space = two_sketches();
  base::Stream stream(5, "crossover");
  int children = 0, strangers = 0;
  for (int i = 0; i < 300; ++i) {
    const Candidate a = space.sample(stream), b = space.sample(stream);
    const std::optional<Candidate> child = space.crossover(a, b, stream);
    ASSERT_EQ(child.has_value(), *a.sketch == *b.sketch) << i;
    if (!child) {
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

TEST(Space, ChildrenThatDoNotLowerAreNone) {
  // Sizes of one axis in two domains: 6 4 is no chain.
  const Space space(small(), target_with(0, 16),
                    {sketch_space("sketch s\ntile C i $a $b\n", {{"a", {0}, {{12}, {6}}}, {"b", {1}, {{4}, {3}}}})});
  const auto sketch = space.sketches()[0].sketch;
  const Candidate a{small(), sketch, {12, 4}}, b{small(), sketch, {6, 3}};
  base::Stream stream(6, "crossover");
  int none = 0;
  for (int i = 0; i < 100; ++i) {
    const auto child = space.crossover(a, b, stream);
    none += !child;
    if (child) {
      EXPECT_NE(child->arguments, (std::vector<std::int64_t>{6, 4}));
    }
  }
  EXPECT_GT(none, 0);
}

TEST(Space, NothingWithinLimitsIsTheUsersToKnow) {
  const Space space(small(), target_with(0, 16), {sketch_space("sketch s\ntile C q $a\n", {{"a", {0}, {{4}}}})});
  base::Stream stream(7, "sample");
  const std::string message = refusal([&] { return space.sample(stream); });
  EXPECT_TRUE(contains(message, small().text)) << message;
  EXPECT_TRUE(contains(message, "none of 10000 schedules")) << message;
}

TEST(Candidate, HashIsOfWorkloadSketchAndArguments) {
  const Space space = two_sketches();
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
  const Space space = two_sketches();
  const Candidate candidate{small(), space.sketches()[0].sketch, {12, 4, 8, 1}};
  const auto program = codegen::program(candidate, space.target());
  ASSERT_TRUE(program.ok()) << program.reason().text;
  const auto lowered = lower(computed(small().text), *schedule(candidate), 1);
  EXPECT_EQ(*program, *lowered);
  const auto refused = codegen::program({small(), candidate.sketch, {5, 4, 8, 1}}, space.target());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.reason().text, "tile C i 5 4: 4 does not divide 5");
  const auto unrolled = sketch_space("sketch s\nunroll C i.0 j.0 l.0\n", {}).sketch;
  const auto large = codegen::program({parse_workload("matmul(m=64,n=64,k=4)"), unrolled, {}}, space.target());
  ASSERT_FALSE(large.ok());
  EXPECT_TRUE(contains(large.reason().text, "limits: ")) << large.reason().text;
}

}  // namespace
}  // namespace graft::codegen
