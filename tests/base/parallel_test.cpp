#include "base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/base/support.h"

namespace graft::base {
namespace {

TEST(Parallel, there_is_a_thread) {
  EXPECT_GE(hardware_threads(), 1);
}

TEST(Parallel, calls_each_index_once) {
  for (const int threads : {0, 1, 2, 7, 64}) {
    std::vector<std::atomic<int>> calls(1000);
    parallel_for(1000, threads, [&](std::int64_t i) { ++calls[std::size_t(i)]; });
    for (const auto& count : calls) ASSERT_EQ(count, 1) << threads << " threads";
  }
  parallel_for(0, 4, [](std::int64_t) { FAIL(); });
  parallel_for(-3, 4, [](std::int64_t) { FAIL(); });
}

TEST(Parallel, uses_the_threads_that_it_may) {
  std::mutex guard;
  std::set<std::thread::id> seen;
  std::atomic<int> inside = 0;
  parallel_for(3, 3, [&](std::int64_t) {
    ++inside;
    while (inside < 3) std::this_thread::yield();  // ends only if three are at work at once
    const std::lock_guard lock(guard);
    seen.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_TRUE(seen.contains(std::this_thread::get_id()));
  const std::thread::id caller = std::this_thread::get_id();
  parallel_for(5, 1, [&](std::int64_t) { EXPECT_EQ(std::this_thread::get_id(), caller); });
}

TEST(Parallel, throws_the_first_exception_by_index) {
  const std::string alone = refusal<std::runtime_error>([] {
    parallel_for(100, 1, [](std::int64_t i) {
      if (i >= 13) throw std::runtime_error(std::to_string(i));
    });
  });
  EXPECT_EQ(alone, "13");
  // Whichever comes first in time.
  for (const int first : {0, 1}) {
    std::atomic<int> begun = 0;
    std::atomic<bool> thrown = false;
    const std::string message = refusal<std::runtime_error>([&] {
      parallel_for(2, 2, [&](std::int64_t i) {
        ++begun;
        while (begun < 2 || (i != first && !thrown)) std::this_thread::yield();
        if (i != first) std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the other's is on its way out
        thrown = true;
        throw std::runtime_error(std::to_string(i));
      });
    });
    EXPECT_EQ(message, "0") << first << " first";
  }
}

TEST(Parallel, stops_after_an_exception) {
  std::atomic<int> calls = 0;
  EXPECT_THROW(parallel_for(1'000'000, 2,
                            [&](std::int64_t) {
                              ++calls;
                              throw Failure("no");
                            }),
               Failure);
  EXPECT_LT(calls, 1000);
}

TEST(Parallel, keeps_its_threads) {
  const auto two_at_once = [] {
    std::atomic<int> inside = 0;
    parallel_for(2, 2, [&](std::int64_t) {
      ++inside;
      while (inside < 2) std::this_thread::yield();
    });
  };
  const auto threads = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  two_at_once();
  const auto before = threads();
  for (int call = 0; call < 50; ++call) two_at_once();
  EXPECT_EQ(threads(), before);
}

TEST(Parallel, nests) {
  std::atomic<int> calls = 0;
  parallel_for(4, 2, [&](std::int64_t) { parallel_for(8, 2, [&](std::int64_t) { ++calls; }); });
  EXPECT_EQ(calls, 32);
  // As many at once as were asked for, however they nest.
  std::atomic<int> inside = 0;
  parallel_for(2, 2, [&](std::int64_t) {
    parallel_for(2, 2, [&](std::int64_t) {
      ++inside;
      while (inside < 4) std::this_thread::yield();
    });
  });
  EXPECT_EQ(inside, 4);
}

TEST(Parallel, begins_nothing_more_once_its_monitor_asks_to_stop) {
  class StopAfter final : public Monitor {
   public:
    bool stop_requested() override { return ++asked_ > 5; }

   private:
    int asked_ = 0;  // not atomic: one thread asks at a time
  };
  for (const int threads : {1, 4}) {
    StopAfter monitor;
    std::atomic<int> begun = 0;
    EXPECT_THROW(parallel_for(1000, threads, monitor, [&](std::int64_t) { ++begun; }), Stopped);
    EXPECT_EQ(begun, 5) << threads << " threads";
  }
  Monitor nobody;
  std::atomic<int> calls = 0;
  parallel_for(100, 4, nobody, [&](std::int64_t) { ++calls; });
  EXPECT_EQ(calls, 100);
}

TEST(RelayMonitor, passes_reports_on_and_brings_the_answer_back) {
  class Heard final : public Monitor {
   public:
    void progress(std::string_view what, std::int64_t done, std::int64_t total) override {
      said += std::string(what) + " " + std::to_string(done) + "/" + std::to_string(total) + "; ";
    }
    void note(std::string_view line) override { said += std::string(line) + "; "; }
    bool stop_requested() override { return stop; }
    std::string said;
    bool stop = false;
  } heard;
  RelayMonitor relay;
  std::thread([&] {
    relay.progress("a", 1, 9);
    relay.note("b");
    relay.progress("a", 2, 9);
  }).join();
  EXPECT_FALSE(relay.pass_on(heard));
  EXPECT_EQ(heard.said, "b; a 2/9; ");
  EXPECT_FALSE(relay.pass_on(heard));
  EXPECT_EQ(heard.said, "b; a 2/9; ");
  heard.stop = true;
  EXPECT_FALSE(relay.stop_requested());
  EXPECT_TRUE(relay.pass_on(heard));
  heard.stop = false;
  EXPECT_TRUE(relay.pass_on(heard)) << "once it has said so";
  EXPECT_TRUE(relay.stop_requested());
}

}  // namespace
}  // namespace graft::base
