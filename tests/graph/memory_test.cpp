#include "graph/memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

namespace {

using namespace graft::graph;

void expect_apart(const std::vector<Lifetime>& buffers, const Places& places) {
  ASSERT_EQ(places.offsets.size(), buffers.size());
  for (std::size_t a = 0; a < buffers.size(); ++a) {
    EXPECT_EQ(places.offsets[a] % 64, 0);
    EXPECT_GE(places.offsets[a], 0);
    EXPECT_LE(places.offsets[a] + buffers[a].bytes, places.bytes);
    for (std::size_t b = 0; b < a; ++b) {
      if (buffers[a].last < buffers[b].first || buffers[b].last < buffers[a].first) continue;
      EXPECT_TRUE(places.offsets[a] + buffers[a].bytes <= places.offsets[b] ||
                  places.offsets[b] + buffers[b].bytes <= places.offsets[a])
          << a << " and " << b;
    }
  }
}

TEST(Memory, ThatNobodyNeedsAnyMoreIsUsedAgain) {
  // A chain: each is read by the next call only.
  const std::vector<Lifetime> chain = {{640, 0, 1}, {640, 1, 2}, {640, 2, 3}, {640, 3, 4}};
  const Places places = placed(chain);
  expect_apart(chain, places);
  EXPECT_EQ(places.bytes, 1280);
  EXPECT_EQ(peak_bytes(chain), 1280);
}

TEST(Memory, WhatLivesUntilTheEndIsNotInTheWay) {
  const std::vector<Lifetime> buffers = {{64, 0, 9}, {1000, 0, 1}, {1000, 2, 3}, {2000, 4, 5}};
  const Places places = placed(buffers);
  expect_apart(buffers, places);
  EXPECT_EQ(places.bytes, 64 + 2048);
}

TEST(Memory, NothingNeedsNothing) {
  EXPECT_EQ(placed({}).bytes, 0);
  EXPECT_EQ(peak_bytes({}), 0);
  const std::vector<Lifetime> empty = {{0, 0, 3}, {100, 1, 2}};
  expect_apart(empty, placed(empty));
  EXPECT_EQ(placed(empty).bytes, 128);
}

TEST(Memory, IsSeldomMoreThanThePeak) {
  std::mt19937_64 random(7);
  double most = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> buffers;
    for (int c = 0; c < 60; ++c) {
      const int last = c + 1 + int(random() % 4 == 0 ? random() % 10 : 0);
      buffers.push_back({std::int64_t(64 << (random() % 8)) + std::int64_t(random() % 50), c, last});
    }
    const Places places = placed(buffers);
    expect_apart(buffers, places);
    EXPECT_GE(places.bytes, peak_bytes(buffers));
    most = std::max(most, double(places.bytes) / double(peak_bytes(buffers)));
  }
  EXPECT_LE(most, 1.15);
}

}  // namespace
