#include "study/flows/validate.h"

#include <gtest/gtest.h>

#include "tests/study/support.h"

namespace graft::study {
namespace {

// Programs by their hash, with these seconds.
Pass pass_of(const std::vector<std::pair<std::uint64_t, double>>& seconds) {
  base::Stream stream(1, "candidates");
  Pass pass;
  for (const auto& [program, time] : seconds) pass.emplace(program, trial_of(stream, 0, program, time));
  return pass;
}

TEST(Comparison, HoldsTheFastestTimesOfWhatWentWellInAllPasses) {
  const std::vector<Pass> passes = {pass_of({{1, 5.0}, {2, 2.0}, {3, 9.0}}), pass_of({{1, 4.0}, {3, 8.0}, {7, 1.0}}),
                                    pass_of({{1, 6.0}, {2, 1.0}, {3, 7.0}})};
  const Comparison one = comparison_of("native:v3", "w", passes);
  EXPECT_EQ(one.platform, "native:v3");
  EXPECT_EQ(one.measured, (std::vector<double>{4.0, 7.0}));
  EXPECT_EQ(one.candidates.size(), 2U);
  ASSERT_TRUE(one.repeated.has_value());
  EXPECT_EQ(one.repeated->programs, 2U);
  EXPECT_DOUBLE_EQ(one.repeated->spearman, 1);  // passes 1 and 3: 5, 7; pass 2: 4, 8
}

TEST(Comparison, OfOnePassKnowsNothingOfNoise) {
  const Comparison one = comparison_of("native:v3", "w", {pass_of({{1, 5.0}, {2, 2.0}})});
  EXPECT_FALSE(one.repeated.has_value());
  EXPECT_EQ(one.measured, (std::vector<double>{5.0, 2.0}));
  const base::Document document = to_document({one});
  const base::Document& row = document.as_list().front();
  EXPECT_EQ(row.at("platform").as_string(), "native:v3");
  EXPECT_EQ(row.find("repeated_spearman"), nullptr);
}

}  // namespace
}  // namespace graft::study
