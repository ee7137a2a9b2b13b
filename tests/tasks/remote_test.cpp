#include "tasks/remote.h"

#include <gtest/gtest.h>

#include "base/monitor.h"
#include "codegen/machine/compile.h"
#include "codegen/schedule/candidate_program.h"
#include "tasks/modelled/modelled.h"
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
using test::parsed;
using test::small_matmul;
using test::small_matmul_text;
using test::wild_matmul;

constexpr std::chrono::milliseconds patience{10000};
base::Monitor nobody;

// One run of a small_matmul.
Measurement check_under(const std::vector<std::string>& prefix, const codegen::LoopProgram& program,
                        const codegen::Target& target, std::chrono::milliseconds deadline = patience) {
  return run_under(prefix, program, target, LatestExpected(1).of(small_matmul(), nobody), 1, deadline);
}

// Without any prefix the executable runs on this host.
Measurement check_here(const codegen::LoopProgram& program, std::chrono::milliseconds deadline = patience,
                       const std::vector<std::string>& prefix = {}) {
  return check_under(prefix, program, codegen::host_target(), deadline);
}

TEST(Remote, ChecksAProgramThroughItsExecutable) {
  const Measurement good = check_here(good_matmul());
  EXPECT_EQ(good.status, Status::ok) << good.reason;
  EXPECT_EQ(good.check, "remote");
  EXPECT_EQ(good.seconds.size(), 1u);
  const Measurement wrong = check_here(parsed(small_matmul_text("C[i,j] += A[i,k] + B[k,j]")));
  EXPECT_EQ(wrong.status, Status::wrong_result);
  expect_contains(wrong.reason, "C: element 0 is ");
}

TEST(Remote, HandsParametersOverAsTheProgramStoresThem) {
  const auto program = codegen::program(candidate(small_matmul(), "sketch blocked\nlayout A 1 0\nlayout C 1/4 0 1%4\n"),
                                        codegen::host_target());
  ASSERT_TRUE(program.ok()) << program.reason().text;
  const Measurement good = check_here(*program);
  EXPECT_EQ(good.status, Status::ok) << good.reason;
  codegen::LoopProgram wrong = *program;
  wrong.buffers[0].layout = {};
  EXPECT_EQ(check_here(wrong).status, Status::wrong_result);
}

TEST(Remote, AllowsTheErrorThatAProgramIsSaidToHave) {
  codegen::LoopProgram inexact = inexact_matmul();
  EXPECT_EQ(check_here(inexact).status, Status::wrong_result);
  inexact.amplification = 100;
  EXPECT_EQ(check_here(inexact).status, Status::ok);
}

TEST(Remote, ACrashAHangAndAForeignAnswerAreStatuses) {
  const Measurement crashed = check_here(wild_matmul());
  EXPECT_EQ(crashed.status, Status::crashed);
  expect_contains(crashed.reason, "signal 11");

  const Measurement hung = check_here(endless_matmul(), std::chrono::milliseconds(300));
  EXPECT_EQ(hung.status, Status::timed_out);
  expect_contains(hung.reason, "no end within 0.3 s");

  const Measurement foreign = check_here(good_matmul(), patience, {"echo", "hello"});
  EXPECT_EQ(foreign.status, Status::crashed);
  const Measurement silent = check_here(good_matmul(), patience, {"true"});
  EXPECT_EQ(silent.status, Status::crashed);
  expect_contains(silent.reason, "ended without a word before its first line");
  const Measurement refused = check_here(good_matmul(), patience, {"sh", "-c", "echo no board >&2; exit 3"});
  EXPECT_EQ(refused.status, Status::crashed);
  expect_contains(refused.reason, "ended with exit code 3 before its first line: no board; try 'sh -c ");

  EXPECT_THROW(check_here(good_matmul(), patience, {"graft-no-such-program"}), base::Failure);
}

TEST(Remote, ChecksCrossCompiledCodeUnderQemu) {
  if (std::system("qemu-riscv64 --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "qemu-riscv64 is not installed";
  const Platform p450 = platform_named("model:sifive-p450");
  const std::vector<std::string>& qemu = profile_of(p450)->qemu;
  const Measurement good = check_under(qemu, good_matmul(), p450.target);
  EXPECT_EQ(good.status, Status::ok) << good.reason;
  EXPECT_EQ(good.check, "qemu");
  const Measurement wrong = check_under(qemu, parsed(small_matmul_text("C[i,j] += A[i,k]")), p450.target);
  EXPECT_EQ(wrong.status, Status::wrong_result);

  const codegen::Workload conv = codegen::parse_workload("conv2d(c=3,h=7,w=6,k=4,r=3,s=3,pad=1)");
  const auto winograd = codegen::program(candidate(conv, "sketch w\nwinograd Y 4\n"), p450.target);
  ASSERT_TRUE(winograd.ok()) << winograd.reason().text;
  const Measurement tiled = run_under(qemu, *winograd, p450.target, LatestExpected(1).of(conv, nobody), 1, patience);
  EXPECT_EQ(tiled.status, Status::ok) << tiled.reason;
}

Platform here() {
  Platform platform = platform_named("native");
  Remote remote;
  remote.prefix = {"env"};
  platform.device = remote_device(remote);
  return platform;
}

TEST(RemoteMeasurer, TimesEveryRepetition) {
  MeasureSettings settings;
  settings.minimum_seconds = 1e-4;
  const auto measurer = make_measurer(here(), settings);
  const std::vector<codegen::Candidate> batch{candidate(small_matmul(), "sketch plain\n"),
                                              candidate(small_matmul(), "sketch bad\ntile C nowhere 4\n"),
                                              candidate(small_matmul(), "sketch plain\n")};
  std::vector<Measured> results;
  base::Monitor monitor;
  measurer->measure(
      batch, [&](const Measured& one) { results.push_back(one); }, monitor);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].measurement.status, Status::ok) << results[0].measurement.reason;
  EXPECT_EQ(results[0].measurement.clock, "wall");
  ASSERT_EQ(results[0].measurement.seconds.size(), 3u);
  for (const double seconds : results[0].measurement.seconds) {
    EXPECT_GT(seconds, 1e-8);
    EXPECT_LT(seconds, 1);
  }
  EXPECT_EQ(results[1].measurement.status, Status::does_not_lower);
  EXPECT_EQ(results[2].measurement.seconds, results[0].measurement.seconds);
}

TEST(RemoteMeasurer, RefusesSettingsThatMakeNoSense) {
  MeasureSettings settings;
  settings.repetitions = 0;
  EXPECT_EQ(test::message_of<base::UserError>([&] { make_measurer(here(), settings); }),
            "repetitions: 0 is less than 1");
}

TEST(Remote, EndsWhatRunsWhenTheMonitorAsksForIt) {
  test::StopAfterSeconds monitor(0.3);
  const codegen::Target target = platform_named("native").target;
  EXPECT_THROW((void)run_under({"env"}, endless_matmul(), target, LatestExpected(1).of(small_matmul(), nobody), 1,
                               std::chrono::minutes(10), &monitor),
               base::Stopped);
  EXPECT_LT(monitor.seconds(), 10);
}

TEST(Remote, AStopInTheReferenceLeavesNothingHalfKnown) {
  const codegen::Workload large = codegen::parse_workload("matmul(m=1500,n=1500,k=1500)");
  LatestExpected expected(1);
  test::StopAfterSeconds at_once(-1);
  EXPECT_THROW((void)expected.of(large, at_once), base::Stopped);
  const Expected& small = expected.of(small_matmul(), nobody);
  EXPECT_EQ(small.reference.tensors.size(), 3u);
  EXPECT_THROW((void)expected.of(large, at_once), base::Stopped);
}

}  // namespace
}  // namespace graft::tasks
