#include "meta/support.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"

namespace graft::meta {
namespace {

// Programs on three far-apart spots, of unequal numbers: 90, 9, 1.
features::Encoded spots() {
  base::Stream stream(1, "spots");
  base::Matrix rows(100, 3);
  for (std::int64_t r = 0; r < 100; ++r) {
    const int spot = r < 90 ? 0 : r < 99 ? 1 : 2;
    rows.at(r, 0) = float((spot == 1 ? 50 : 0) + 0.1 * stream.normal());
    rows.at(r, 1) = float((spot == 2 ? 50 : 0) + 0.1 * stream.normal());
    rows.at(r, 2) = 7;  // a constant says nothing
  }
  return features::one_row_each(std::move(rows));
}

class EveryChoice : public testing::TestWithParam<SupportChoice> {};
INSTANTIATE_TEST_SUITE_P(Support, EveryChoice,
                         testing::Values(SupportChoice::random, SupportChoice::kmeans, SupportChoice::d_optimal,
                                         SupportChoice::uncertain),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

TEST_P(EveryChoice, GivesDistinctProgramsBySeed) {
  const features::Encoded programs = spots();
  for (const std::int64_t count : {0, 1, 7, 100, 200}) {
    const auto chosen = chosen_support(GetParam(), programs, count, base::Stream(2, "support"));
    EXPECT_EQ(std::int64_t(chosen.size()), std::min<std::int64_t>(count, 100));
    EXPECT_EQ(std::set<std::int64_t>(chosen.begin(), chosen.end()).size(), chosen.size());
    EXPECT_EQ(chosen, chosen_support(GetParam(), programs, count, base::Stream(2, "support")));
  }
}

TEST_P(EveryChoice, TakesProgramsThatAreAllAlike) {
  base::Matrix rows(20, 3);
  for (float& value : rows.values) value = 4;
  const auto chosen =
      chosen_support(GetParam(), features::one_row_each(std::move(rows)), 5, base::Stream(2, "support"));
  EXPECT_EQ(std::set<std::int64_t>(chosen.begin(), chosen.end()).size(), 5u);
}

// Three programs: one of each spot, which chance does not give. A linear model needs none where most programs are, near
// the mean.
TEST_P(EveryChoice, CoversWhatThereIs) {
  int covered = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    std::set<int> seen;
    for (const std::int64_t p : chosen_support(GetParam(), spots(), 3, base::Stream(seed, "support")))
      seen.insert(p < 90 ? 0 : p < 99 ? 1 : 2);
    covered += GetParam() == SupportChoice::d_optimal ? seen.contains(1) && seen.contains(2) : seen.size() == 3;
  }
  if (GetParam() == SupportChoice::random) {
    EXPECT_LE(covered, 3);
  } else {
    EXPECT_GE(covered, 9);
  }
}

TEST(Support, NamesAreKnown) {
  EXPECT_EQ(support_choice_named("kmeans"), SupportChoice::kmeans);
  EXPECT_THROW(support_choice_named("k-means"), base::UserError);
}

}  // namespace
}  // namespace graft::meta
