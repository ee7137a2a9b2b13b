#include "tests/base/team.h"

#include <gtest/gtest.h>

#include <atomic>

namespace graft::base {
namespace {

std::vector<float> squares(std::int64_t i) {
  std::vector<float> out;
  for (std::int64_t k = 0; k < i; ++k) out.push_back(float(i * 10 + k));
  return out;  // of another length each, none for 0
}

TEST(Team, AloneIsATeam) {
  Team alone;
  EXPECT_EQ(alone.rank(), 0);
  EXPECT_EQ(alone.size(), 1);
  EXPECT_EQ(alone.gather("x")[0], "x");
  EXPECT_EQ(alone.gather("")[0], "");
  const auto all = divided(alone, 3, 2, squares);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[2], (std::vector<float>{20, 21}));
  EXPECT_TRUE(divided(alone, 0, 2, squares).empty());
}

TEST(Team, EveryoneGetsAllAndEachPieceIsMadeOnce) {
  for (const std::int64_t count : {0, 1, 2, 7}) {
    for (const int size : {2, 3}) {
      std::vector<std::atomic<int>> made(std::size_t(count) + 1);
      test::as_team(size, [&](Team& team) {
        const auto all = divided(team, count, 2, [&](std::int64_t i) {
          EXPECT_EQ(i % size, team.rank());
          ++made[std::size_t(i)];
          return squares(i);
        });
        ASSERT_EQ(all.size(), std::size_t(count));
        for (std::int64_t i = 0; i < count; ++i) EXPECT_EQ(all[std::size_t(i)], squares(i)) << i;
      });
      for (std::int64_t i = 0; i < count; ++i) EXPECT_EQ(made[std::size_t(i)], 1);
    }
  }
}

// Numbers whose sum depends on the order that they are added up in.
std::vector<float> thirds(std::int64_t i) {
  return {1e6f / float(i + 3), -1.0f / float(i + 1), float(i) * 1e-7f};
}

TEST(Summed, HasTheSameBitsForAnyNumberOfRanksAndThreads) {
  Team alone;
  EXPECT_TRUE(summed(alone, 0, 1, thirds).empty());
  EXPECT_EQ(summed(alone, 1, 1, thirds), thirds(0));
  for (const std::int64_t count : {0, 1, 2, 5, 8, 13}) {
    const std::vector<float> one = summed(alone, count, 1, thirds);
    EXPECT_EQ(summed(alone, count, 3, thirds), one);
    for (const int size : {2, 3, 4}) {
      test::as_team(size,
                    [&](Team& team) { EXPECT_EQ(summed(team, count, 2, thirds), one) << count << " on " << size; });
    }
    if (one.empty()) continue;
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += double(thirds(i)[0]);
    EXPECT_NEAR(one[0], sum, 1e-6 * sum);
  }
}

// If the number of ranks is a power of two, each sends one vector.
TEST(Summed, SendsOneVectorForARank) {
  class Counting final : public Team {
   public:
    explicit Counting(Team& team) : team_(team) {}
    int rank() const override { return team_.rank(); }
    int size() const override { return team_.size(); }
    Gathered gather(std::string_view own) override {
      EXPECT_EQ(own.size(), 3 * sizeof(float));
      return team_.gather(own);
    }

   private:
    Team& team_;
  };
  for (const int size : {2, 4}) {
    test::as_team(size, [&](Team& team) {
      Counting counting(team);
      summed(counting, 8, 1, thirds);
    });
  }
}

TEST(TeamMonitor, OneWishIsTheWishOfAll) {
  class Wishes : public Monitor {
   public:
    explicit Wishes(bool first) : first_(first) {}
    bool stop_requested() override { return first_ && ++asked_ == 2; }

   private:
    bool first_;
    int asked_ = 0;
  };
  test::as_team(3, [](Team& team) {
    Wishes own(team.rank() == 1);
    TeamMonitor monitor(team, own);
    EXPECT_FALSE(monitor.stop_requested());
    EXPECT_TRUE(monitor.stop_requested());
    EXPECT_FALSE(monitor.stop_requested());
  });
}

}  // namespace
}  // namespace graft::base
