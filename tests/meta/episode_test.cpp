#include "meta/episode.h"

#include <gtest/gtest.h>

namespace graft::meta {
namespace {

using Rows = std::vector<std::int64_t>;

TEST(EpisodeOf, GivesTheFirstRowsAndAsksTheNext) {
  const Rows rows = {4, 0, 3, 1, 2, 5};
  const auto all = episode_of(rows, 2), few = episode_of(rows, 2, 3), half = episode_of(rows, 5),
             none = episode_of(rows, 0);
  EXPECT_EQ(all.support, (Rows{4, 0}));
  EXPECT_EQ(all.query, (Rows{3, 1, 2, 5}));
  EXPECT_EQ(few.query, (Rows{3, 1, 2}));
  EXPECT_EQ(half.support, (Rows{4, 0, 3}));  // what is asked must not run out
  EXPECT_EQ(half.query, (Rows{1, 2, 5}));
  EXPECT_EQ(none.support, Rows());
  EXPECT_EQ(none.query, rows);
  EXPECT_EQ(episode_of({}, 3).query, Rows());
}

}  // namespace
}  // namespace graft::meta
