#include "codegen/space/parameter_space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/hash.h"

namespace graft::codegen {
namespace {

class AnyPoint final : public Judge {
 public:
  base::Result<std::uint64_t> identity(const Candidate& candidate) override { return hash(candidate) | 1; }
};

std::vector<Scalar> integers(std::int64_t from, std::int64_t to) {
  std::vector<Scalar> values;
  for (std::int64_t i = from; i <= to; ++i) values.push_back(i);
  return values;
}

ParameterSpace made(std::vector<Tunable> parameters, const std::vector<std::string>& texts) {
  std::vector<std::string> names;
  for (const Tunable& parameter : parameters) names.push_back(parameter.name);
  std::vector<Constraint> constraints;
  for (const std::string& text : texts) constraints.emplace_back(text, names, "space");
  return ParameterSpace(Workload("table(name=test)"), std::move(parameters), std::move(constraints), "space");
}

std::string refusal(std::vector<Tunable> parameters, const std::vector<std::string>& texts) {
  try {
    made(std::move(parameters), texts);
    return "";
  } catch (const base::UserError& error) {
    return error.what();
  }
}

bool meets_all(const ParameterSpace& space, const Candidate& candidate) {
  const std::vector<Scalar> values = space.values_of(candidate);
  std::vector<const Scalar*> pointers;
  for (const Scalar& value : values) pointers.push_back(&value);
  return std::all_of(space.constraints().begin(), space.constraints().end(),
                     [&](const Constraint& constraint) { return constraint.holds(pointers); });
}

TEST(ParameterSpace, CountsAsTryingAllDoes) {
  // Two components, and a parameter alone.
  const std::vector<std::string> texts = {"a * b <= 24", "b % 2 == 0 or a == 3", "c + d == 9"};
  const ParameterSpace space = made({{"a", integers(1, 12)},
                                     {"b", integers(1, 12)},
                                     {"c", integers(0, 20)},
                                     {"d", integers(0, 20)},
                                     {"e", integers(1, 3)}},
                                    texts);
  std::int64_t expected = 0;
  for (int a = 1; a <= 12; ++a)
    for (int b = 1; b <= 12; ++b)
      for (int c = 0; c <= 20; ++c)
        for (int d = 0; d <= 20; ++d)
          if (a * b <= 24 && (b % 2 == 0 || a == 3) && c + d == 9) expected += 3;
  ASSERT_TRUE(space.size());
  EXPECT_EQ(*space.size(), double(expected));
  EXPECT_EQ(space.combinations(), 12. * 12 * 21 * 21 * 3);
  AnyPoint judge;
  const Space points = space.space(judge);
  EXPECT_EQ(std::int64_t(points.listed().size()), expected);
  for (const Candidate& point : points.listed()) ASSERT_TRUE(meets_all(space, point));
}

// The few that divide a number, among 16 million combinations and among 10 million million.
TEST(ParameterSpace, FindsFactors) {
  EXPECT_EQ(*made({{"a", integers(1, 4096)}, {"b", integers(1, 4096)}}, {"4096 % (a * b) == 0"}).size(), 91.);
  const ParameterSpace three = made({{"a", integers(1, 30000)}, {"b", integers(1, 30000)}, {"c", integers(1, 30000)}},
                                    {"30000 % (a * b * c) == 0", "a >= 2 and b >= a"});
  std::int64_t expected = 0;
  for (int a = 2; a <= 30000; ++a)
    for (int b = a; b <= 30000 / a; ++b)
      if (30000 % a == 0 && 30000 % (a * b) == 0)
        for (int c = 1; c <= 30000 / (a * b); ++c) expected += 30000 / (a * b) % c == 0;
  EXPECT_EQ(*three.size(), double(expected));
}

TEST(ParameterSpace, TakesManyValues) {
  const ParameterSpace space = made({{"a", integers(1, 300000)}, {"b", integers(1, 2)}}, {"a % 1000 == b"});
  EXPECT_EQ(*space.size(), 600.);
  AnyPoint judge;
  for (const Candidate& point : space.space(judge).listed()) ASSERT_TRUE(meets_all(space, point));
  std::vector<Scalar> fractions;
  for (int i = 0; i < 20000; ++i) fractions.push_back(i + 0.5);
  EXPECT_NE(refusal({{"a", fractions}}, {}).find("20000 values that are not all integers; at most 16384 are taken"),
            std::string::npos);
}

TEST(ParameterSpace, DrawsEveryPointOfAListAlikeOften) {
  const ParameterSpace space = made({{"a", integers(1, 4)}, {"b", integers(1, 4)}}, {"a < b"});
  AnyPoint judge;
  const Space points = space.space(judge);
  base::Stream stream(3, "draws");
  std::map<std::uint64_t, int> seen;
  for (int i = 0; i < 6000; ++i) ++seen[hash(points.sample(stream, judge))];
  EXPECT_EQ(seen.size(), 6u);
  for (const auto& [point, count] : seen) EXPECT_NEAR(count, 1000, 150);
}

// About one in 10^6 of 10^14 combinations meets the constraints: draws alone would not find any.
TEST(ParameterSpace, SamplesAndMutatesWhatCannotBeListed) {
  std::vector<Tunable> parameters;
  std::vector<std::string> texts;
  for (int i = 0; i < 14; ++i) {
    parameters.push_back({"p" + std::to_string(i), integers(1, 10)});
    if (i > 0) texts.push_back("(p" + std::to_string(i - 1) + " + p" + std::to_string(i) + ") % 3 == 0");
  }
  texts.push_back("p0 * p13 <= 20");
  const ParameterSpace space = made(parameters, texts);
  EXPECT_EQ(space.combinations(), 1e14);
  AnyPoint judge;
  const Space points = space.space(judge);
  EXPECT_TRUE(points.listed().empty());
  base::Stream stream(5, "large");
  std::set<std::uint64_t> seen;
  Candidate at = points.sample(stream, judge);
  for (int i = 0; i < 200; ++i) {
    const Candidate drawn = points.sample(stream, judge);
    ASSERT_TRUE(meets_all(space, drawn));
    seen.insert(hash(drawn));
    const base::Result<Candidate> mutant = points.mutate(at, stream, judge);
    ASSERT_TRUE(mutant) << mutant.reason().text;
    ASSERT_TRUE(meets_all(space, *mutant));
    EXPECT_NE(hash(*mutant), hash(at));
    const base::Result<Candidate> child = points.crossover(at, drawn, stream, judge);
    ASSERT_TRUE(child) << child.reason().text;
    ASSERT_TRUE(meets_all(space, *child));
    at = *mutant;
  }
  EXPECT_GT(seen.size(), 190u);
}

TEST(ParameterSpace, GivesValuesAndTakesThemBack) {
  const ParameterSpace space = made({{"tile", {std::int64_t(32), std::int64_t(16)}, std::size_t(1)},
                                     {"flags", {std::string("-O2 -g"), std::string("")}, std::size_t(0)},
                                     {"unroll", {false, true}, std::size_t(1)},
                                     {"ratio", {0.5, 2.0}, std::size_t(1)}},
                                    {"tile < 32 or unroll == false"});
  const Candidate standard = space.standard();
  const base::Document document = space.to_document(standard);
  EXPECT_EQ(document.to_json(), R"({"tile":16,"flags":"-O2 -g","unroll":true,"ratio":2.0})");
  EXPECT_EQ(hash(*space.point(document)), hash(standard));
  EXPECT_EQ(hash(*space.same_point(standard)), hash(standard));
  base::Document other = document;
  other.set("tile", 32);
  EXPECT_EQ(space.point(other).reason().text, "not met: tile < 32 or unroll == false");
  EXPECT_THROW((void)space.point(document.to_json() == "" ? document : base::parse_json("{\"tile\":17}", "p")),
               base::UserError);
}

TEST(ParameterSpace, RefusesWhatIsNone) {
  EXPECT_NE(refusal({{"a", integers(1, 9)}, {"b", integers(1, 9)}}, {"a < b", "b < a"})
                .find("space: contradictory: no point meets a < b; b < a"),
            std::string::npos);
  EXPECT_NE(refusal({{"a", {}}}, {}).find("has no value"), std::string::npos);
  EXPECT_NE(refusal({{"a", {std::int64_t(1), 1.0}}}, {}).find("twice"), std::string::npos);
  EXPECT_NE(refusal({{"a", integers(1, 2)}, {"a", integers(1, 2)}}, {}).find("twice"), std::string::npos);
  EXPECT_NE(refusal({{"a b", integers(1, 2)}}, {}).find("not a name"), std::string::npos);
  EXPECT_NE(refusal({}, {}).find("no parameter"), std::string::npos);
  EXPECT_NE(refusal({{"a", integers(1, 2)}}, {"a / 0 > 1"}).find("contradictory"), std::string::npos);
  const ParameterSpace forbidden = made({{"a", integers(1, 9), std::size_t(0)}}, {"a > 3"});
  EXPECT_EQ(forbidden.not_met_by_default(), "a > 3");
  EXPECT_EQ(forbidden.to_document(forbidden.standard()).to_json(), R"({"a":4})");
  std::vector<Tunable> many;
  for (int i = 0; i < 1000000; ++i) many.push_back({"p" + std::to_string(i), {std::int64_t(1)}});
  EXPECT_NE(refusal(many, {}).find("at most"), std::string::npos);
  // Contradictory, and too large to list: refused after a bounded search.
  std::vector<Tunable> large;
  std::string sum = "0";
  for (int i = 0; i < 20; ++i) {
    large.push_back({"p" + std::to_string(i), integers(1, 50)});
    sum += " + p" + std::to_string(i);
  }
  EXPECT_NE(refusal(large, {sum + " < 0"}).find("no point was found"), std::string::npos);
}

}  // namespace
}  // namespace graft::codegen
