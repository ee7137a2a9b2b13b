#include "tasks/worker/pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

namespace graft::tasks {
namespace {

struct Calls {
  std::vector<std::atomic<int>> count;
  std::vector<pthread_t> thread;
  explicit Calls(std::size_t n) : count(n), thread(n) {}
  static void one(void* calls, std::int64_t index) {
    Calls& self = *static_cast<Calls*>(calls);
    ++self.count[std::size_t(index)];
    self.thread[std::size_t(index)] = pthread_self();
  }
};

TEST(Pool, CallsEachIndexOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    Pool pool;
    ASSERT_TRUE(pool.start(threads));
    EXPECT_EQ(pool.threads(), threads);
    for (const std::size_t n : {0, 1, 2, 7, 1000}) {
      Calls calls(n);
      Pool::parallel_for(&pool, Calls::one, &calls, std::int64_t(n));
      for (const auto& count : calls.count) ASSERT_EQ(count, 1) << threads << " threads, " << n;
      EXPECT_TRUE(pool.idle());
    }
  }
}

TEST(Pool, TheFirstIndicesAlwaysHaveTheSameThreads) {
  Pool pool;
  ASSERT_TRUE(pool.start(4));
  Calls first(4), second(4);
  pool.run(Calls::one, &first, 4);
  pool.run(Calls::one, &second, 4);
  EXPECT_EQ(first.thread, second.thread);
  EXPECT_TRUE(pthread_equal(first.thread[0], pthread_self()));
  EXPECT_EQ(std::set<pthread_t>(first.thread.begin(), first.thread.end()).size(), 4u);
}

// What one round writes is there for the next, on any thread; some rounds find the threads asleep.
TEST(Pool, RoundsFollowEachOther) {
  Pool pool;
  ASSERT_TRUE(pool.start(3));
  struct Sums {
    std::vector<std::int64_t> value = std::vector<std::int64_t>(6);
    std::int64_t round = 0;
    static void one(void* closure, std::int64_t index) {
      Sums& sums = *static_cast<Sums*>(closure);
      sums.value[std::size_t(index)] += sums.value[std::size_t(index)] == sums.round ? 1 : 1000000;
    }
  } sums;
  for (; sums.round < 3000; ++sums.round) {
    if (sums.round % 500 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    pool.run(Sums::one, &sums, 6);
    std::rotate(sums.value.begin(), sums.value.begin() + 1, sums.value.end());
  }
  EXPECT_EQ(sums.value, std::vector<std::int64_t>(6, 3000));
}

TEST(Pool, StartsAnewWithAnotherNumberOfThreads) {
  Pool pool;
  EXPECT_EQ(pool.threads(), 1);
  for (const int threads : {2, 5, 1, 3}) {
    ASSERT_TRUE(pool.start(threads));
    Calls calls(100);
    pool.run(Calls::one, &calls, 100);
    for (const auto& count : calls.count) ASSERT_EQ(count, 1);
  }
  EXPECT_FALSE(pool.start(0));
  EXPECT_FALSE(pool.start(Pool::most_threads + 1));
  EXPECT_EQ(pool.threads(), 1);
}

}  // namespace
}  // namespace graft::tasks
