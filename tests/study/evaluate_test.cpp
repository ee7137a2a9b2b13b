#include "study/evaluate.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"

namespace graft::study {
namespace {

TEST(Folds, HoldEveryPlatformOnceAndAreDecidedByTheSeed) {
  const std::vector<std::string> platforms{"a", "b", "c", "d", "e"};
  const auto folds = folds_of(platforms, 2, 7);
  ASSERT_EQ(folds.size(), 2U);
  EXPECT_EQ(folds[0].size(), 3U);
  EXPECT_EQ(folds[1].size(), 2U);
  std::set<std::string> all(folds[0].begin(), folds[0].end());
  all.insert(folds[1].begin(), folds[1].end());
  EXPECT_EQ(all.size(), 5U);
  EXPECT_EQ(folds_of(platforms, 2, 7), folds);
}

TEST(Folds, RefusesANumberThatLeavesAFoldEmptyOrNothingToLearnFrom) {
  EXPECT_THROW(folds_of({"a", "b"}, 1, 0), base::UserError);
  EXPECT_THROW(folds_of({"a", "b"}, 3, 0), base::UserError);
}

}  // namespace
}  // namespace graft::study
