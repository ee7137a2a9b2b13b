#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <set>

#include "base/monitor.h"
#include "codegen/machine/compile.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/schedule/lower.h"
#include "codegen/space/space.h"
#include "tasks/host_runner.h"
#include "tasks/rebuild.h"
#include "tasks/remote.h"
#include "tests/support/judged_space.h"
#include "tests/tasks/support.h"

namespace graft::tasks {
namespace {

using datasets::Measurement;
using datasets::Status;
using test::candidate;
using test::endless_matmul;
using test::expect_contains;
using test::good_matmul;
using test::inexact_matmul;
using test::message_of;
using test::parsed;
using test::small_matmul;
using test::small_matmul_text;
using test::wild_matmul;

MeasureSettings quick() {
  MeasureSettings settings;
  settings.minimum_seconds = 1e-4;
  settings.timeout_seconds = 1;
  return settings;
}

class Runner : public testing::Test {
 protected:
  Measurement run(const codegen::LoopProgram& program) { return runner_.run(small_matmul(), program, target_); }
  // After any program, the next good one is measured.
  void expect_good() {
    const Measurement good = run(good_matmul());
    EXPECT_EQ(good.status, Status::ok) << good.reason;
    EXPECT_EQ(good.seconds.size(), 3u);
  }

  codegen::Target target_ = codegen::host_target();
  HostRunner runner_{quick()};
};

TEST_F(Runner, HandsParametersOverAsTheProgramStoresThem) {
  const codegen::Workload conv = codegen::parse_workload("conv2d(c=8,h=7,w=6,k=8,r=3,s=3,pad=1)");
  const auto program = codegen::program(candidate(conv,
                                                  "sketch blocked\n"
                                                  "layout X 0 1/4 2 3 1%4\n"
                                                  "layout W 2 3 0/4 1 0%4\n"
                                                  "layout Y 0 1/4 2 3 1%4\n"),
                                        target_);
  ASSERT_TRUE(program.ok()) << program.reason().text;
  EXPECT_EQ(runner_.run(conv, *program, target_).status, Status::ok);
  // The same workload, stored as it says, then wrongly.
  EXPECT_EQ(runner_.run(conv, codegen::naive_program(conv.computation()), target_).status, Status::ok);
  codegen::LoopProgram wrong = *program;
  for (codegen::Buffer& buffer : wrong.buffers) buffer.layout = {};
  EXPECT_EQ(runner_.run(conv, wrong, target_).status, Status::wrong_result);
}

TEST_F(Runner, TimesARightProgram) {
  const Measurement good = run(good_matmul());
  ASSERT_EQ(good.status, Status::ok) << good.reason;
  EXPECT_EQ(good.reason, "");
  EXPECT_EQ(good.clock, "thread_cpu");
  EXPECT_EQ(good.check, "host");
  ASSERT_EQ(good.seconds.size(), 3u);
  for (const double seconds : good.seconds) {
    EXPECT_GT(seconds, 1e-8);  // 1,024 operations cannot be faster than this, nor are they as slow as that
    EXPECT_LT(seconds, 1e-2);
  }
  EXPECT_GT(good.reference_ratio, 0.05);
  EXPECT_LT(good.reference_ratio, 20);
}

TEST_F(Runner, SeesAWrongResult) {
  const Measurement wrong = run(parsed(small_matmul_text("C[i,j] += A[i,k] + B[k,j]")));
  EXPECT_EQ(wrong.status, Status::wrong_result);
  expect_contains(wrong.reason, "C: element 0 is ");
  EXPECT_TRUE(wrong.seconds.empty());
  expect_good();
}

TEST_F(Runner, AllowsTheErrorThatAProgramIsSaidToHave) {
  codegen::LoopProgram inexact = inexact_matmul();
  EXPECT_EQ(run(inexact).status, Status::wrong_result);
  inexact.amplification = 100;
  const Measurement good = run(inexact);
  EXPECT_EQ(good.status, Status::ok) << good.reason;
  inexact.amplification = 1;
  EXPECT_EQ(run(inexact).status, Status::wrong_result);
}

TEST_F(Runner, SeesAnElementThatIsNotWrittenEvenWhenItWasRightBefore) {
  expect_good();
  codegen::LoopProgram lazy = good_matmul();
  for (codegen::Loop& loop : lazy.loops) {
    if (loop.name == "i" || loop.name == "i0") loop.extent = 7;
  }
  const Measurement wrong = run(lazy);
  EXPECT_EQ(wrong.status, Status::wrong_result);
  expect_contains(wrong.reason, "C: element 56 is ");
  expect_contains(wrong.reason, "nan instead of");
}

TEST_F(Runner, SeesAnElementThatIsNotWrittenWhereNaNIsRight) {
  const codegen::Workload workload =
      codegen::parse_workload("input A[8]; output B[i] = sqrt(-2 - A[i] * A[i]) where i=8");
  codegen::LoopProgram program = codegen::naive_program(workload.computation());
  EXPECT_EQ(runner_.run(workload, program, target_).status, Status::ok);
  program.loops.back().extent = 7;
  const Measurement wrong = runner_.run(workload, program, target_);
  EXPECT_EQ(wrong.status, Status::wrong_result);
  EXPECT_EQ(wrong.reason, "B: element 7 is never written");
}

TEST_F(Runner, SeesAStoreJustBehindAnOutput) {
  // 3 x 3 floats end within a line of 64 bytes; the store goes to the padding after them.
  codegen::LoopProgram program = parsed(
      "buffer A f32 [3,3] input\nbuffer B f32 [3,3] input\nbuffer C f32 [3,3] output\nrun\n"
      "  for i0 3\n    for j0 3\n      C[i0,j0] = 0\n"
      "  for i 3\n    for j 3\n      for k 3\n        C[i,j] += A[i,k] * B[k,j]\n"
      "  for e 1\n    C[2,2] = C[2,2]\n");
  const codegen::Workload workload = codegen::parse_workload("matmul(m=3,n=3,k=3)");
  EXPECT_EQ(runner_.run(workload, program, target_).status, Status::ok);
  program.stores.back().target.index[1].constant += 1;
  const Measurement wrong = runner_.run(workload, program, target_);
  EXPECT_EQ(wrong.status, Status::wrong_result);
  EXPECT_EQ(wrong.reason, "a store outside of C by 1 bytes");
}

TEST_F(Runner, SeesAStoreJustInFrontOfAnOutput) {
  codegen::LoopProgram program = parsed(small_matmul_text("C[i,j] += A[i,k] * B[k,j]"));
  program.stores.front().target.index[1].constant -= 3;  // the page begins long before C does
  const Measurement wrong = run(program);
  EXPECT_EQ(wrong.status, Status::wrong_result);
  EXPECT_EQ(wrong.reason, "a store outside of C by 1 bytes");
}

TEST_F(Runner, SurvivesACrash) {
  const Measurement crashed = run(wild_matmul());
  EXPECT_EQ(crashed.status, Status::crashed);
  EXPECT_EQ(crashed.reason, "run: segmentation fault (far outside of all buffers)");
  expect_good();
}

TEST_F(Runner, AnAccessRightBehindTheLastPageIsACrash) {
  codegen::LoopProgram wild = good_matmul();
  wild.stores.back().target.index[0].constant += 8;  // C ends with its page, and the next cannot be touched
  const Measurement crashed = run(wild);
  EXPECT_EQ(crashed.status, Status::crashed);
  EXPECT_EQ(crashed.reason, "run: segmentation fault (outside of C by 1 bytes)");
  expect_good();

  wild = good_matmul();
  wild.stores.back().value.loads[1].index[0].constant += 8 + 2;
  EXPECT_EQ(run(wild).reason, "run: segmentation fault (outside of B by 65 bytes)");
}

TEST_F(Runner, AnAccessInFrontOfTheFirstPageIsACrash) {
  MeasureSettings settings = quick();
  settings.guard_in_front = true;
  HostRunner runner(settings);
  codegen::LoopProgram wild = good_matmul();
  EXPECT_EQ(runner.run(small_matmul(), wild, target_).status, Status::ok);
  wild.stores.back().value.loads[0].index[1].constant -= 1;
  EXPECT_EQ(runner.run(small_matmul(), wild, target_).reason, "run: segmentation fault (outside of A by 4 bytes)");
}

TEST_F(Runner, TheWorkspaceIsGuardedToo) {
  const std::string text =
      "buffer A f32 [8,8] input\nbuffer B f32 [8,8] input\nbuffer C f32 [8,8] output\nbuffer T f32 [64] temporary\n"
      "run\n  for i 8\n    for j 8\n      T[8*i + j] = 0\n      for k 8\n        T[8*i + j] += A[i,k] * B[k,j]\n"
      "      C[i,j] = T[8*i + j]\n";
  codegen::LoopProgram program = parsed(text);
  EXPECT_EQ(run(program).status, Status::ok) << run(program).reason;
  program.stores.front().target.index[0].constant += 64;
  EXPECT_EQ(run(program).reason, "run: segmentation fault (outside of the scratch by 1 bytes)");
}

TEST_F(Runner, AStoreToAnInputIsACrash) {
  codegen::LoopProgram thief = good_matmul();
  codegen::Store& store = thief.stores.back();
  store.target.tensor = 0;
  const Measurement crashed = run(thief);
  EXPECT_EQ(crashed.status, Status::crashed);
  EXPECT_EQ(crashed.reason, "run: segmentation fault (a store to input A)");
  expect_good();
}

TEST_F(Runner, EndsAHang) {
  const Measurement hung = run(endless_matmul());
  EXPECT_EQ(hung.status, Status::timed_out);
  expect_contains(hung.reason, "run: out of time");
  EXPECT_TRUE(hung.seconds.empty());
  expect_good();
}

TEST_F(Runner, SaysWhatHasNoRoom) {
  codegen::LoopProgram greedy = parsed(
      "buffer A f32 [8,8] input\nbuffer B f32 [8,8] input\nbuffer C f32 [8,8] output\n"
      "buffer big f32 [2048,1048576] temporary\nrun\n"
      "  for i0 8\n    for j0 8\n      C[i0,j0] = 0\n"
      "  for i 8\n    for j 8\n      for k 8\n        big[i,j] = A[i,k] * B[k,j]\n        C[i,j] += big[i,j]\n");
  MeasureSettings settings = quick();
  settings.memory_limit_bytes = std::int64_t(4) << 30;
  HostRunner runner(settings);
  const Measurement measurement = runner.run(small_matmul(), greedy, target_);
  EXPECT_EQ(measurement.status, Status::out_of_memory);
  expect_contains(measurement.reason, "no room for 8589934592 bytes of prepared constants and scratch");
  EXPECT_EQ(runner.run(small_matmul(), good_matmul(), target_).status, Status::ok);
}

// Weights read as they are and in prepared memory, from many places.
TEST_F(Runner, ConstantsInSeveralPlacesGiveTheSameResults) {
  MeasureSettings settings = quick();
  settings.constants_bytes = 1 << 20;
  HostRunner runner(settings);
  const codegen::Workload conv = codegen::parse_workload("conv2d(c=8,h=7,w=6,k=8,r=3,s=3,pad=1)");
  const auto packed = codegen::program(candidate(conv, "sketch packed\npack Y W above o.0\n"), target_);
  ASSERT_TRUE(packed) << packed.reason().text;
  for (const codegen::LoopProgram& program : {codegen::naive_program(conv.computation()), *packed}) {
    const Measurement measurement = runner.run(conv, program, target_);
    EXPECT_EQ(measurement.status, Status::ok) << measurement.reason;
    EXPECT_EQ(measurement.seconds.size(), 3u);
  }
}

TEST_F(Runner, OnlyAKernelWithConstantsNeedsRoomForSeveral) {
  MeasureSettings settings = quick();
  settings.constants_bytes = 128 << 20;
  settings.memory_limit_bytes = 64 << 20;
  HostRunner runner(settings);
  const codegen::Workload conv = codegen::parse_workload("conv2d(c=8,h=7,w=6,k=8,r=3,s=3,pad=1)");
  const Measurement measurement = runner.run(conv, codegen::naive_program(conv.computation()), target_);
  EXPECT_EQ(measurement.status, Status::out_of_memory);
  expect_contains(measurement.reason, "no room for the constants in several places");
  const codegen::Workload sum = codegen::parse_workload("input x[64]; output y[i] = x[i] + x[i] where i=64");
  EXPECT_EQ(runner.run(sum, codegen::naive_program(sum.computation()), target_).status, Status::ok);
}

TEST_F(Runner, AWorkloadWithoutRoomIsRefusedAndOthersRun) {
  MeasureSettings settings = quick();
  settings.memory_limit_bytes = 24 << 20;
  HostRunner runner(settings);
  const codegen::Workload large = codegen::parse_workload("matmul(m=4,n=1048576,k=4)");
  const codegen::LoopProgram program = codegen::naive_program(large.computation());
  expect_contains(message_of<base::UserError>([&] { runner.run(large, program, target_); }),
                  "running it takes 134 MB of memory, the process that runs programs may have 25.2 MB");
  EXPECT_EQ(runner.run(small_matmul(), good_matmul(), target_).status, Status::ok);
}

TEST_F(Runner, AMemoryLimitThatIsTooSmallForTheWorkerItselfIsAFailure) {
  MeasureSettings settings = quick();
  settings.memory_limit_bytes = 1 << 20;
  HostRunner runner(settings);
  expect_contains(message_of<base::Failure>([&] { runner.run(small_matmul(), good_matmul(), target_); }),
                  "memory limit of 1048576 bytes");
}

TEST_F(Runner, AKilledWorkerIsReplaced) {
  expect_good();
  const pid_t first = test::worker_process();
  ASSERT_GT(first, 0);
  ::kill(first, SIGKILL);
  expect_good();
  const pid_t second = test::worker_process();
  EXPECT_GT(second, 0);
  EXPECT_NE(second, first);
}

TEST_F(Runner, AStoppedWorkerIsGivenUpAndReplaced) {
  MeasureSettings settings = quick();
  settings.timeout_seconds = 0.05;
  HostRunner runner(settings);
  EXPECT_EQ(runner.run(small_matmul(), good_matmul(), target_).status, Status::ok);
  const pid_t worker = test::worker_process();
  ASSERT_GT(worker, 0);
  ::kill(worker, SIGSTOP);
  const Measurement measurement = runner.run(small_matmul(), good_matmul(), target_);
  EXPECT_EQ(measurement.status, Status::timed_out);
  expect_contains(measurement.reason, "no answer within 5.1 s");
  EXPECT_EQ(runner.run(small_matmul(), good_matmul(), target_).status, Status::ok);
}

TEST_F(Runner, ZeroRepetitionsCheckOnly) {
  MeasureSettings settings = quick();
  settings.repetitions = 0;
  HostRunner checker(settings);
  const Measurement good = checker.run(small_matmul(), good_matmul(), target_);
  EXPECT_EQ(good.status, Status::ok) << good.reason;
  EXPECT_TRUE(good.seconds.empty());
  EXPECT_EQ(good.check, "host");
  EXPECT_EQ(checker.run(small_matmul(), parsed(small_matmul_text("C[i,j] += A[i,k]")), target_).status,
            Status::wrong_result);
}

TEST_F(Runner, EndsWhatIsSlowerThanTheLimit) {
  const auto binary = compile_for_host(good_matmul(), target_);
  ASSERT_TRUE(binary);
  const Measurement slow = runner_.run(small_matmul(), *binary, 1e-9);
  EXPECT_EQ(slow.status, Status::slower_than_limit);
  ASSERT_EQ(slow.seconds.size(), 1u);
  EXPECT_GT(slow.seconds[0], 1e-9);
  EXPECT_EQ(runner_.run(small_matmul(), *binary, 1).status, Status::ok);

  // One that would take for ever is cut off, long before its time is out.
  const auto endless =
      compile_for_host(parsed(small_matmul_text("C[i,j] += A[i,k] * B[k,j]", "  for z 1000000000000\n")), target_);
  ASSERT_TRUE(endless);
  const Measurement cut = runner_.run(small_matmul(), *endless, 1e-3);
  EXPECT_EQ(cut.status, Status::slower_than_limit);
  ASSERT_EQ(cut.seconds.size(), 1u);
  EXPECT_LT(cut.seconds[0], 0.5);
}

TEST_F(Runner, RunsOtherTypesAndConstantsAndPrepare) {
  for (const char* text : {"matmul(m=5,n=6,k=7,dtype=f64)", "matmul(m=5,n=6,k=7,dtype=i32)",
                           "input A[5,7] : u8; input B[7,6] : i8; output C[i,j] : i32 += A[i,l] * B[l,j];"
                           "output D[i,j] : i8 = A[i,j] * 3; output E[i,j] : u8 = B[i,j] * 3 where i=5, j=6, l=7",
                           "conv2d(c=3,h=6,w=6,k=4,r=3,s=3,pad=1)", "dense(m=4,n=6,k=5)"}) {
    const codegen::Workload workload = codegen::parse_workload(text);
    const Measurement measurement = runner_.run(workload, codegen::naive_program(workload.computation()), target_);
    EXPECT_EQ(measurement.status, Status::ok) << text << ": " << measurement.reason;
  }
}

TEST_F(Runner, RefusesSettingsThatMakeNoSense) {
  const auto refused = [](auto change) {
    MeasureSettings settings;
    change(settings);
    return message_of<base::UserError>([&] { HostRunner runner(settings); });
  };
  EXPECT_EQ(refused([](auto& s) { s.repetitions = -1; }), "repetitions: -1 is not within 0 and 64");
  EXPECT_EQ(refused([](auto& s) { s.repetitions = 65; }), "repetitions: 65 is not within 0 and 64");
  EXPECT_EQ(refused([](auto& s) { s.timeout_seconds = 0; }), "timeout_seconds: 0 is not positive");
  EXPECT_EQ(refused([](auto& s) { s.memory_limit_bytes = 0; }), "memory_limit_bytes: 0 is not positive");
}

// ---- several threads

// matmul(m=8,n=8,k=8) in a band of 8, each task `repeated` times; `row` is where its results go.
codegen::LoopProgram parallel_matmul(const std::string& repeated = "1", const std::string& row = "i") {
  return parsed(
      "buffer A f32 [8,8] input\nbuffer B f32 [8,8] input\nbuffer C f32 [8,8] output\nbuffer t f32 [8] temporary\nrun\n"
      "  for i 8 parallel\n    for z " +
      repeated +
      "\n      for j 8\n        t[j] = 0\n      for k 8\n        for j 8\n          t[j] += A[i,k] * B[k,j]\n"
      "      for j 8\n        C[" +
      row + ",j] = t[j]\n");
}

class ThreadsRunner : public Runner {
 protected:
  void SetUp() override { target_.threads = 4; }
  void expect_good_on_threads() {
    const Measurement good = run(parallel_matmul());
    EXPECT_EQ(good.status, Status::ok) << good.reason;
    EXPECT_EQ(good.clock, "wall");
    EXPECT_EQ(good.seconds.size(), 3u);
  }
};

TEST_F(ThreadsRunner, TimesByTheWallClock) {
  expect_good_on_threads();
  expect_good();  // no parallel loop, on the same threads
  target_.threads = 1;
  EXPECT_EQ(run(parallel_matmul()).clock, "thread_cpu");
  target_.threads = 3;
  expect_good_on_threads();
}

TEST_F(ThreadsRunner, SeesAWrongResult) {
  const Measurement wrong = run(parallel_matmul("1", "7 - i"));
  EXPECT_EQ(wrong.status, Status::wrong_result);
  expect_good_on_threads();
}

TEST_F(ThreadsRunner, SurvivesACrashOnAnyThread) {
  codegen::LoopProgram wild = parallel_matmul();
  wild.stores.back().target.index[0] *= std::int64_t(1) << 40;  // the first task is right
  const Measurement crashed = run(wild);
  EXPECT_EQ(crashed.status, Status::crashed);
  expect_contains(crashed.reason, "run: segmentation fault");
  expect_good_on_threads();
}

TEST_F(ThreadsRunner, EndsAHangOfAllThreads) {
  const pid_t before = (expect_good_on_threads(), test::worker_process());
  const Measurement hung = run(parallel_matmul("1000000000000"));
  EXPECT_EQ(hung.status, Status::timed_out);
  expect_contains(hung.reason, "run: out of time");
  expect_good_on_threads();
  EXPECT_EQ(test::worker_process(), before) << "its threads were called back, no more";
}

TEST_F(ThreadsRunner, EndsWhatIsSlowerThanTheLimitAgainAndAgain) {
  const auto endless = compile_for_host(parallel_matmul("1000000000000"), target_);
  ASSERT_TRUE(endless);
  expect_good_on_threads();
  const pid_t before = test::worker_process();
  for (int i = 0; i < 20; ++i) {
    const Measurement cut = runner_.run(small_matmul(), *endless, 1e-3);
    ASSERT_EQ(cut.status, Status::slower_than_limit) << cut.reason;
  }
  expect_good_on_threads();
  EXPECT_EQ(test::worker_process(), before);
}

TEST_F(Runner, EndsWhatRunsWhenItsMonitorAsksForIt) {
  MeasureSettings settings = quick();
  settings.timeout_seconds = 1000;
  HostRunner runner(settings);
  const auto endless = compile_for_host(endless_matmul(), target_);
  ASSERT_TRUE(endless);
  test::StopAfterSeconds monitor(0.3);
  EXPECT_THROW((void)runner.run(small_matmul(), *endless, 0, &monitor), base::Stopped);
  EXPECT_LT(monitor.seconds(), 10);
  EXPECT_EQ(runner.run(small_matmul(), good_matmul(), target_).status, Status::ok) << "it can go on";
}

// ---- the measurer

class Quiet : public base::Monitor {};

class StopAfter : public base::Monitor {
 public:
  explicit StopAfter(int asked) : left_(asked) {}
  bool stop_requested() override { return left_-- <= 0; }

 private:
  int left_;
};

std::vector<Measured> measured(Measurer& measurer, const std::vector<codegen::Candidate>& batch) {
  std::vector<Measured> results;
  Quiet quiet;
  measurer.measure(
      batch, [&](const Measured& one) { results.push_back(one); }, quiet);
  return results;
}

TEST(NativeMeasurer, MeasuresABatchInItsOrderAndEachDistinctProgramOnce) {
  const codegen::Workload workload = codegen::parse_workload("matmul(m=64,n=64,k=64)");
  const Platform platform = platform_named("native");
  const codegen::JudgedSpace space = codegen::judged_space(workload, platform.target);
  base::Stream stream(1, "native_test");
  std::vector<codegen::Candidate> batch;
  for (int i = 0; i < 6; ++i) batch.push_back(space.sample(stream));
  batch.push_back(batch[0]);
  batch.push_back(batch[3]);
  const auto measurer = make_measurer(platform, quick());
  const std::vector<Measured> results = measured(*measurer, batch);
  ASSERT_EQ(results.size(), batch.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].position, std::int64_t(i));
    EXPECT_NE(results[i].program_hash, 0u);
    EXPECT_EQ(results[i].measurement.status, Status::ok) << results[i].measurement.reason;
    EXPECT_EQ(results[i].measurement.check, "host");
  }
  // Two timings of one program never agree to the last bit; a repeated one is the same measurement.
  EXPECT_EQ(results[6].measurement.seconds, results[0].measurement.seconds);
  EXPECT_EQ(results[7].measurement.seconds, results[3].measurement.seconds);
  const std::vector<Measured> again = measured(*measurer, {batch[3]});
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].measurement.seconds, results[3].measurement.seconds);
}

TEST(NativeMeasurer, MeasuresABatchOnSeveralThreads) {
  if (codegen::host_target().cores < 2) GTEST_SKIP() << "this host has one core";
  const codegen::Workload workload = codegen::parse_workload("matmul(m=64,n=64,k=64)");
  const Platform platform = platform_named("native,threads=2");
  const codegen::JudgedSpace space = codegen::judged_space(workload, platform.target);
  base::Stream stream(1, "native_test");
  std::vector<codegen::Candidate> batch;
  for (int i = 0; i < 12; ++i) batch.push_back(space.sample(stream));
  batch.push_back(batch[0]);
  const auto measurer = make_measurer(platform, quick());
  const std::vector<Measured> results = measured(*measurer, batch);
  ASSERT_EQ(results.size(), batch.size());
  for (const Measured& result : results) {
    EXPECT_EQ(result.measurement.status, Status::ok) << result.measurement.reason;
    EXPECT_EQ(result.measurement.clock, "wall");
  }
}

TEST(NativeMeasurer, ACandidateThatDoesNotLowerIsAReason) {
  const auto measurer = make_measurer(platform_named("native"), quick());
  const std::vector<Measured> results = measured(
      *measurer,
      {candidate(small_matmul(), "sketch bad\ntile C nowhere 4\n"), candidate(small_matmul(), "sketch plain\n")});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].measurement.status, Status::does_not_lower);
  EXPECT_EQ(results[0].program_hash, 0u);
  expect_contains(results[0].measurement.reason, "nowhere");
  EXPECT_EQ(results[1].measurement.status, Status::ok) << results[1].measurement.reason;
}

TEST(NativeMeasurer, MeasuresARestructuredCandidate) {
  const codegen::Workload workload = codegen::parse_workload("conv2d_nchwc(c=16,h=8,w=10,k=16,r=3,s=3,pad=1)");
  const auto measurer = make_measurer(platform_named("native"), quick());
  const std::vector<Measured> results = measured(*measurer, {candidate(workload, "sketch w\nwinograd Y $m\n", {4}),
                                                             candidate(workload, "sketch w\nwinograd Y $m\n", {2}),
                                                             candidate(workload, "sketch w\nwinograd Y $m\n", {3})});
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].measurement.status, Status::ok) << results[0].measurement.reason;
  EXPECT_EQ(results[1].measurement.status, Status::ok) << results[1].measurement.reason;
  EXPECT_NE(results[0].program_hash, results[1].program_hash);
  EXPECT_EQ(results[2].measurement.status, Status::does_not_lower);
}

TEST(NativeMeasurer, StopsWhenAskedHavingReportedFewer) {
  const auto measurer = make_measurer(platform_named("native"), quick());
  const std::vector<codegen::Candidate> batch(20, candidate(small_matmul(), "sketch plain\n"));
  class StopAfterTwo final : public base::Monitor {
   public:
    bool stop_requested() override { return reported >= 2; }
    int reported = 0;
  } monitor;
  int& reported = monitor.reported;
  measurer->measure(
      batch, [&](const Measured&) { ++reported; }, monitor);
  EXPECT_GE(reported, 2);
  EXPECT_LE(reported, 5) << "two may wait and one may be with the worker when the stop is asked for";
}

TEST(NativeMeasurer, StopsInTheMiddleOfALongReferenceOrRun) {
  MeasureSettings settings = quick();
  settings.timeout_seconds = 1000;
  const auto measurer = make_measurer(platform_named("native"), settings);
  const codegen::Workload large = codegen::parse_workload("matmul(m=1600,n=1600,k=1600)");
  test::StopAfterSeconds monitor(0.5);
  int reported = 0;
  measurer->measure(
      std::vector(1, candidate(large, "sketch plain\n")), [&](const Measured&) { ++reported; }, monitor);
  EXPECT_EQ(reported, 0);
  EXPECT_LT(monitor.seconds(), 10);
}

TEST(NativeMeasurer, AnExceptionOfTheListenerEndsTheBatchCleanly) {
  const auto measurer = make_measurer(platform_named("native"), quick());
  const std::vector<codegen::Candidate> batch(20, candidate(small_matmul(), "sketch plain\n"));
  Quiet quiet_monitor;
  EXPECT_THROW(measurer->measure(
                   batch, [](const Measured&) { throw base::Failure("disk full"); }, quiet_monitor),
               base::Failure);
  EXPECT_EQ(measured(*measurer, {batch[0]}).size(), 1u);
}

TEST(NativeMeasurer, AbortsByTheBestOfTheSameWorkload) {
  const codegen::Workload workload = codegen::parse_workload("matmul(m=256,n=256,k=256)");
  const Platform platform = platform_named("native");
  MeasureSettings settings = quick();
  settings.abort_factor = 1.5;
  const codegen::Candidate plain = candidate(workload, "sketch plain\n");
  const codegen::JudgedSpace space = codegen::judged_space(workload, platform.target);
  base::Stream stream(3, "abort");
  std::vector<codegen::Candidate> batch;
  for (int i = 0; i < 8; ++i) batch.push_back(space.sample(stream));
  batch.push_back(plain);  // scalar, tens of times slower than the best of eight
  const auto measurer = make_measurer(platform, settings);
  const std::vector<Measured> results = measured(*measurer, batch);
  ASSERT_EQ(results.size(), 9u);
  EXPECT_EQ(results[8].measurement.status, Status::slower_than_limit) << results[8].measurement.reason;
  EXPECT_EQ(results[8].measurement.seconds.size(), 1u);
  EXPECT_TRUE(std::isnan(datasets::seconds_of(results[8].measurement)));
}

// ---- the best ones by every pipeline

TEST(Rebuild, EveryCandidateByEveryPipelineTimedInEveryRound) {
  const Platform platform = platform_named("native");
  const codegen::Candidate bad = candidate(small_matmul(), "sketch bad\ntile C nowhere 4\n");
  const std::vector<codegen::Candidate> best{candidate(small_matmul(), "sketch plain\n"), bad};
  const MeasureSettings settings = quick();
  Quiet quiet_monitor;
  const std::vector<Build> builds = rebuild(platform, best, 2, 2, settings, quiet_monitor);
  const auto& pipelines = codegen::pipelines();
  ASSERT_EQ(builds.size(), 2 * pipelines.size());
  for (std::size_t i = 0; i < builds.size(); ++i) {
    const Measurement& measurement = builds[i].measurement;
    EXPECT_EQ(builds[i].candidate, std::int64_t(i / pipelines.size()));
    EXPECT_EQ(builds[i].pipeline, pipelines[i % pipelines.size()].name);
    if (builds[i].candidate == 0) {
      EXPECT_EQ(measurement.status, Status::ok) << measurement.reason;
      EXPECT_EQ(measurement.seconds.size(), 2 * std::size_t(settings.repetitions));
      EXPECT_EQ(measurement.check, "host");
    } else {
      EXPECT_NE(measurement.status, Status::ok);
      expect_contains(measurement.reason, "nowhere");
    }
  }
}

TEST(Rebuild, EqualMachineCodeIsTimedOnce) {
  const codegen::Candidate plain = candidate(small_matmul(), "sketch plain\n");
  Quiet quiet_monitor;
  const std::vector<Build> builds =
      rebuild(platform_named("native"), std::vector{plain, plain}, 2, 1, quick(), quiet_monitor);
  const std::size_t pipelines = codegen::pipelines().size();
  // Two timings of one program never agree to the last bit.
  for (std::size_t i = 0; i < pipelines; ++i)
    EXPECT_EQ(builds[i].measurement.seconds, builds[pipelines + i].measurement.seconds);
}

TEST(Rebuild, OnlyTheFastestGoOnToEveryPipeline) {
  const codegen::Workload workload = codegen::parse_workload("matmul(m=64,n=64,k=64)");
  const codegen::Candidate plain = candidate(workload, "sketch plain\n");
  const codegen::Candidate fast = candidate(workload,
                                            "sketch fast\ntile C j 16\norder C i.0 j.0 l.0 j.1\nvector C j.1\n"
                                            "accumulate C above l.0\n");
  const codegen::Candidate bad = candidate(workload, "sketch bad\ntile C nowhere 4\n");
  Quiet quiet_monitor;
  const std::vector<Build> builds =
      rebuild(platform_named("native"), std::vector{plain, bad, fast}, 1, 2, quick(), quiet_monitor);
  const auto& pipelines = codegen::pipelines();
  ASSERT_EQ(builds.size(), 2 + pipelines.size());
  const auto& search = codegen::search_pipeline(platform_named("native").target);
  EXPECT_EQ(builds[0].candidate, 0);
  EXPECT_EQ(builds[0].measurement.status, Status::ok) << builds[0].measurement.reason;
  EXPECT_EQ(builds[1].candidate, 1);
  EXPECT_EQ(builds[1].measurement.status, Status::does_not_compile);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(builds[i].pipeline, search.name);
  for (std::size_t i = 0; i < pipelines.size(); ++i) {
    EXPECT_EQ(builds[2 + i].candidate, 2);
    EXPECT_EQ(builds[2 + i].pipeline, pipelines[i].name);
    EXPECT_EQ(builds[2 + i].measurement.status, Status::ok) << builds[2 + i].measurement.reason;
  }
}

TEST(Rebuild, AStopLeavesNothing) {
  StopAfter monitor(1);
  const codegen::Candidate plain = candidate(small_matmul(), "sketch plain\n");
  EXPECT_THROW((void)rebuild(platform_named("native"), std::vector{plain}, 1, 2, quick(), monitor), base::Stopped);
}

// ---- timed in turn

// Every candidate again in every round, except one that fails.
void expect_timed_in_turn(const Platform& platform) {
  const codegen::Candidate plain = candidate(small_matmul(), "sketch plain\n"),
                           bad = candidate(small_matmul(), "sketch bad\ntile C nowhere 4\n");
  const MeasureSettings settings = quick();
  Quiet quiet_monitor;
  const std::vector<Measurement> times =
      timed_in_turn(platform, std::vector{plain, bad, plain}, 3, settings, quiet_monitor);
  ASSERT_EQ(times.size(), 3u);
  EXPECT_EQ(times[0].status, Status::ok) << times[0].reason;
  const std::vector<double>& seconds = times[0].seconds;
  ASSERT_EQ(seconds.size(), 3 * std::size_t(settings.repetitions));
  // Two timings of one program never agree to the last bit; those of one round, told again, would.
  const std::vector<double> first(seconds.begin(), seconds.begin() + settings.repetitions),
      second(seconds.begin() + settings.repetitions, seconds.begin() + 2 * settings.repetitions);
  EXPECT_NE(first, second);
  EXPECT_NE(times[1].status, Status::ok);
  expect_contains(times[1].reason, "nowhere");
  EXPECT_EQ(times[2].seconds, seconds);
}

TEST(TimedInTurn, AnewInEveryRound) {
  expect_timed_in_turn(platform_named("native"));
}

TEST(TimedInTurn, OnARemotePlatformToo) {
  Platform here = platform_named("native");
  Remote remote;
  remote.prefix = {"env"};
  here.device = remote_device(remote);
  expect_timed_in_turn(here);
}

TEST(TimedInTurn, AStopLeavesNothing) {
  StopAfter monitor(1);
  const codegen::Candidate plain = candidate(small_matmul(), "sketch plain\n");
  EXPECT_THROW((void)timed_in_turn(platform_named("native"), std::vector{plain}, 2, quick(), monitor), base::Stopped);
}

}  // namespace
}  // namespace graft::tasks
