// The threads of deployed kernels, which graft's own programs use, too; under ThreadSanitizer as strangers build them.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/process.h"
#include "codegen/deployed/graft_pool.h"
#include "tests/base/support.h"

namespace graft::tasks {
namespace {

using Pool = std::unique_ptr<graft_pool, void (*)(graft_pool*)>;
Pool pool_of(int threads) {
  return {graft_pool_start(threads), graft_pool_stop};
}

void count_one(void* calls, std::int64_t index) {
  ++(*static_cast<std::vector<std::atomic<int>>*>(calls))[std::size_t(index)];
}

TEST(Pool, CallsEachIndexOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    const Pool pool = pool_of(threads);
    ASSERT_TRUE(pool);
    for (const std::size_t n : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> calls(n);
      graft_pool_for(pool.get(), count_one, &calls, std::int64_t(n));
      for (const auto& count : calls) ASSERT_EQ(count, 1) << threads << " threads, " << n;
    }
  }
  std::vector<std::atomic<int>> calls(5);
  graft_pool_for(nullptr, count_one, &calls, 5);
  for (const auto& count : calls) EXPECT_EQ(count, 1);
}

// What one loop writes is there for the next, on any thread; some loops find the threads asleep.
TEST(Pool, LoopsFollowEachOther) {
  const Pool pool = pool_of(3);
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
    graft_pool_for(pool.get(), Sums::one, &sums, 6);
    std::rotate(sums.value.begin(), sums.value.begin() + 1, sums.value.end());
  }
  EXPECT_EQ(sums.value, std::vector<std::int64_t>(6, 3000));
}

// A thread that is in its task for as long as the caller has others to do keeps nobody from doing them.
TEST(Pool, TheCallerTakesWhatNobodyHasBegun) {
  const Pool pool = pool_of(2);
  struct Tasks {
    std::thread::id caller = std::this_thread::get_id();
    std::atomic<int> others{0};
    std::atomic<bool> begun{false};
    static void one(void* closure, std::int64_t) {
      Tasks& tasks = *static_cast<Tasks*>(closure);
      if (std::this_thread::get_id() == tasks.caller) {
        while (!tasks.begun) std::this_thread::yield();
        ++tasks.others;
      } else if (!tasks.begun.exchange(true)) {
        while (tasks.others < 99) std::this_thread::yield();
      }
    }
  } tasks;
  graft_pool_for(pool.get(), Tasks::one, &tasks, 100);
  EXPECT_EQ(tasks.others, 99);
}

TEST(Pool, NestedLoopsAndThoseOfOtherThreadsRunWhereTheyAreCalled) {
  const Pool pool = pool_of(3);
  struct Nested {
    graft_pool* pool;
    std::vector<std::atomic<int>> calls = std::vector<std::atomic<int>>(4);
    static void one(void* closure, std::int64_t) {
      Nested& nested = *static_cast<Nested*>(closure);
      graft_pool_for(nested.pool, count_one, &nested.calls, 4);
    }
  } nested{pool.get()};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (int round = 0; round < 100; ++round) graft_pool_for(pool.get(), Nested::one, &nested, 5);
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& count : nested.calls) EXPECT_EQ(count, 3 * 100 * 5);
}

TEST(Pool, RefusesOtherNumbersOfThreads) {
  EXPECT_FALSE(pool_of(0));
  EXPECT_FALSE(pool_of(-1));
  EXPECT_FALSE(pool_of(257));
}

TEST(Pool, IsCleanUnderThreadSanitizer) {
  const base::Folder folder;
  const std::string source = std::string(GRAFT_SOURCE_DIR) + "/codegen/deployed/", program = (folder / "user").string();
  base::replace_file(folder / "user.c", R"(
#include <pthread.h>
#include <stdio.h>
#include "graft_pool.h"
static long sums[16], others[2][16];
static void add(void* closure, int64_t i) { ((long*)closure)[i] += i; }
static graft_pool* pool;
static void* call(void* own) {
  int k;
  for (k = 0; k < 500; ++k) graft_pool_for(pool, add, own, 16);
  return NULL;
}
int main(void) {
  pthread_t threads[2];
  int k, t, wrong = 0;
  for (t = 0; t < 20; ++t) {
    pool = graft_pool_start(3);
    for (k = 0; k < 500; ++k) graft_pool_for(pool, add, sums, 1 + k % 16);
    for (k = 0; k < 2; ++k) pthread_create(&threads[k], NULL, call, others[k]);
    for (k = 0; k < 2; ++k) pthread_join(threads[k], NULL);
    graft_pool_stop(pool);
  }
  for (k = 0; k < 16; ++k) wrong += others[0][k] != 10000 * k || others[1][k] != 10000 * k;
  printf("%d wrong\n", wrong);
  return wrong;
}
)");
  const std::vector<std::string> command = {"cc",
                                            "-std=c11",
                                            "-Wall",
                                            "-Wextra",
                                            "-pedantic",
                                            "-Werror",
                                            "-O1",
                                            "-g",
                                            "-fsanitize=thread",
                                            "-I" + source,
                                            source + "graft_pool.c",
                                            (folder / "user.c").string(),
                                            "-pthread",
                                            "-o",
                                            program};
  const base::Finished built = base::run_process(command, std::chrono::minutes(1));
  if (built.exit_code != 0) GTEST_SKIP() << "cc does not link ThreadSanitizer here: " << built.err;
  const base::Finished used = base::run_process({program}, std::chrono::minutes(2));
  if (used.err.find("unexpected memory mapping") != std::string::npos)
    GTEST_SKIP() << "ThreadSanitizer does not run under this kernel: " << used.err;
  EXPECT_EQ(used.exit_code, 0) << used.err;
  EXPECT_EQ(used.out, "0 wrong\n");
}

}  // namespace
}  // namespace graft::tasks
