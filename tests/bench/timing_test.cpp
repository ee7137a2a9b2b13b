// Taking turns, threads, and what is said of the figures.
#include "bench/timing.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>

#include "bench/kernels.h"
#include "bench/problem.h"
#include "bench/threads.h"
#include "tests/support/refusal.h"

namespace graft::bench {
namespace {

using codegen::contains;

TEST(Timing, OneOrTwoRepetitionsHaveNoSpread) {
  EXPECT_EQ(spread_text(spread_of(std::vector{2.0})), "-");
  EXPECT_EQ(spread_text(spread_of(std::vector{2.0, 3.0})), "-");
  EXPECT_EQ(spread_text(spread_of(std::vector{1.0, 2.0, 3.0})), "50.0%");
  EXPECT_EQ(spread_text(spread_of(std::vector{2.0, 2.0, 2.0})), "0.0%");
}

TEST(Timing, TakesTurnsAndLeavesOutWhatIsWrong) {
  std::string order;
  const auto contender = [&](const char* name, bool right) {
    return Contender{.name = name, .call = [&order, name] { order += name; }, .check = [right] { return right; }};
  };
  std::vector<Contender> contenders{contender("a", true), contender("b", false), contender("c", true)};
  measure_in_turn(contenders, {.repetitions = 3, .minimum_seconds = 0});
  EXPECT_EQ(order, "aabccacacac");  // checked, warmed, then in turn
  EXPECT_TRUE(contenders[0].timing.right);
  EXPECT_FALSE(contenders[1].timing.right);
  EXPECT_EQ(contenders[0].timing.repetitions, 3);
  EXPECT_EQ(contenders[1].timing.repetitions, 0);
  EXPECT_LE(contenders[0].timing.best, contenders[0].timing.median);
  EXPECT_LE(contenders[0].timing.median, contenders[0].timing.worst);
}

TEST(Timing, RepeatsSlowOnesThreeTimes) {
  int calls = 0;
  std::vector<Contender> contenders{{.name = "slow", .call = [&] { ++calls; }, .check = [] { return true; }}};
  measure_in_turn(contenders, {.repetitions = 9, .minimum_seconds = 0, .slow_seconds = 0});
  EXPECT_EQ(contenders[0].timing.repetitions, 3);
  EXPECT_EQ(calls, 1 + 3);
}

TEST(Timing, AWrongKernelIsReportedAsWrong) {
  const Problem problem(codegen::parse_workload("matmul(m=4,n=6,k=5)"));
  std::vector<Contender> contenders{{.name = "graft",
                                     .call = [&] { problem.values(2)[0] = 0; },  // leaves all others as they are
                                     .check = [&] { return problem.outputs_right(); },
                                     .clear = [&] { problem.clear_outputs(); }}};
  measure_in_turn(contenders, {.repetitions = 3, .minimum_seconds = 0});
  EXPECT_FALSE(contenders[0].timing.right);
  EXPECT_FALSE(to_document(contenders[0].timing).at("right").as_bool());
}

TEST(ThreadPool, RunsEveryIndexOnce) {
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    const Parallel parallel = pool.parallel();
    for (const std::int64_t n : {0, 1, 2, 100}) {
      std::vector<std::atomic<int>> counts(std::size_t(n) + 1);
      for (int again = 0; again < 50; ++again) {
        parallel.run(
            parallel.context, [](void* closure, std::int64_t i) { ++static_cast<std::atomic<int>*>(closure)[i]; },
            counts.data(), n);
      }
      for (std::int64_t i = 0; i < n; ++i) EXPECT_EQ(counts[std::size_t(i)], 50) << threads << " threads, index " << i;
      EXPECT_EQ(counts[std::size_t(n)], 0);
    }
  }
}

TEST(ThreadPool, RunsALoopWithinALoop) {
  ThreadPool pool(2);
  struct Closure {
    Parallel parallel;
    std::atomic<int> count = 0;
  } closure{pool.parallel()};
  closure.parallel.run(
      closure.parallel.context,
      [](void* outer, std::int64_t) {
        auto* const inner = static_cast<Closure*>(outer);
        inner->parallel.run(
            inner->parallel.context, [](void* c, std::int64_t) { ++static_cast<Closure*>(c)->count; }, inner, 5);
      },
      &closure, 4);
  EXPECT_EQ(closure.count, 20);
}

Timing taking(double seconds) {
  return {.best = seconds, .median = seconds, .worst = seconds, .spread = 0, .repetitions = 3, .right = true};
}

KernelRow row(const std::string& workload, double ours, double theirs) {
  KernelRow made{.run = "r",
                 .workload = workload,
                 .pipeline = "search",
                 .layouts = {},
                 .program = "0",
                 .flops = 1e9,
                 .peak_flops = 2e9,
                 .ours = {},
                 .peak = {},
                 .baselines = {}};
  made.ours = {.name = "graft", .call = {}, .check = {}, .timing = taking(ours)};
  made.peak = {.name = "peak", .call = {}, .check = {}, .timing = taking(0.5)};  // 4 GFLOP/s
  made.baselines.push_back({.name = "openblas", .call = {}, .check = {}, .how = "sgemm", .timing = taking(theirs)});
  return made;
}

TEST(KernelReport, GeometricMeansAndSharesOfThePeak) {
  const std::vector<KernelRow> rows{row("a", 0.5, 1), row("b", 0.5, 4), row("a", 1, 8)};
  const auto lines = summaries(rows);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].baseline, "openblas");
  EXPECT_EQ(lines[0].workloads, 3);
  EXPECT_NEAR(lines[0].speedup, 5.0397, 1e-4);  // (2 * 8 * 8)^(1/3)
  EXPECT_NEAR(lines[0].time_reduction, 1 - 1 / 5.0397, 1e-4);
  const auto near = nearness(rows);
  ASSERT_EQ(near.size(), 2u);
  EXPECT_EQ(near[0].runs, 2);
  EXPECT_NEAR(near[0].median, 0.375, 1e-9);
  EXPECT_NEAR(near[0].least, 0.25, 1e-9);
  EXPECT_NEAR(near[0].most, 0.5, 1e-9);
}

TEST(KernelReport, WhatIsWrongHasNoFigure) {
  std::vector<KernelRow> rows{row("a", 0.5, 1), row("b", 0.5, 4)};
  EXPECT_TRUE(all_right(rows));
  rows[0].baselines[0].timing = {};
  rows[1].ours.timing = {};
  EXPECT_FALSE(all_right(rows));
  EXPECT_TRUE(summaries(rows).empty());
  const base::Document document = to_document(rows, {});
  const base::Document::List& list = document.at("rows").as_list();
  EXPECT_TRUE(list[0].at("baselines").at("openblas").is_null());
  EXPECT_NEAR(list[0].at("value").as_number(), 2, 1e-9);
  EXPECT_TRUE(list[1].at("value").is_null());
  EXPECT_FALSE(list[1].at("right").as_bool());
  const std::string text = to_text(rows, {});
  EXPECT_TRUE(contains(text, "openblas             wrong result")) << text;
  EXPECT_TRUE(contains(text, "graft                wrong result")) << text;
}

}  // namespace
}  // namespace graft::bench
