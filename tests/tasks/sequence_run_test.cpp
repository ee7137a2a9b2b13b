// Whole networks in the worker: results, times, and what goes wrong.
#include "tests/support/sequences.h"
#include "tests/tasks/support.h"

namespace graft::tasks {
namespace {

using codegen::Sequence;
using codegen::test::bytes_of;
using codegen::test::host;
using codegen::test::net;
using datasets::Status;

MeasureSettings quick() {
  MeasureSettings settings;
  settings.minimum_seconds = 1e-4;
  settings.timeout_seconds = 1;
  return settings;
}

// The kernel of the later calls replaced.
Sequence net_with(const codegen::LoopProgram& program) {
  Sequence all = net(host());
  auto object = codegen::compile(program, all.target, codegen::search_pipeline(all.target), "net_other");
  EXPECT_TRUE(object.ok()) << object.reason().text;
  all.kernels[1] = std::move(object).value();
  all.arena_bytes += all.kernels[1].signature.scratch_bytes;
  return all;
}

TEST(SequenceRun, GivesOutputsAndTimes) {
  HostRunner runner(quick());
  const std::vector<float> right = codegen::test::expected();
  const std::vector<float> y(right.begin(), right.begin() + std::ptrdiff_t(right.size() / 2)),
      z(right.begin() + std::ptrdiff_t(right.size() / 2), right.end());
  for (const std::int64_t threads : {1, 2}) {
    const SequenceRun run = runner.run(net(host(threads)), {bytes_of(codegen::test::x)});
    ASSERT_EQ(run.measurement.status, Status::ok) << run.measurement.reason;
    EXPECT_EQ(run.measurement.clock, threads == 1 ? "thread_cpu" : "wall");
    EXPECT_EQ(run.measurement.seconds.size(), 3u);
    ASSERT_EQ(run.outputs.size(), 2u);
    EXPECT_TRUE(run.outputs[0] == bytes_of(y));
    EXPECT_TRUE(run.outputs[1] == bytes_of(z));
    ASSERT_EQ(run.call_seconds.size(), 3u);
    for (const double seconds : run.call_seconds) EXPECT_GT(seconds, 0);
  }
}

TEST(SequenceRun, CostsAnAnswerWhenItCrashesOrHangs) {
  HostRunner runner(quick());
  const std::string buffers =
      "buffer A f32 [12,16] input\nbuffer bias f32 [16] constant\nbuffer C f32 [12,16] output\n";
  codegen::LoopProgram wild = test::parsed(buffers + "run\n  for i 12\n    for v 16\n      C[i,v] = 1\n");
  wild.stores.back().target.index[0].constant += std::int64_t(1) << 40;
  const SequenceRun crashed = runner.run(net_with(wild), {bytes_of(codegen::test::x)});
  EXPECT_EQ(crashed.measurement.status, Status::crashed);
  test::expect_contains(crashed.measurement.reason, "run: segmentation fault");
  EXPECT_TRUE(crashed.outputs.empty());
  const codegen::LoopProgram endless = test::parsed(
      buffers + "run\n  for z 4000000000\n    for i 12\n      for v 16\n        C[i,v] += A[i,v] * bias[v]\n");
  const SequenceRun hung = runner.run(net_with(endless), {bytes_of(codegen::test::x)});
  EXPECT_EQ(hung.measurement.status, Status::timed_out) << hung.measurement.reason;
  const SequenceRun good = runner.run(net(host()), {bytes_of(codegen::test::x)});
  EXPECT_EQ(good.measurement.status, Status::ok) << good.measurement.reason;
}

TEST(SequenceRun, RefusesOtherInputs) {
  HostRunner runner(quick());
  EXPECT_EQ(test::message_of<base::UserError>([&] { (void)runner.run(net(host()), {}); }),
            "net: 0 inputs are given, it has 1");
  EXPECT_EQ(test::message_of<base::UserError>([&] { (void)runner.run(net(host()), {"abc"}); }),
            "net: input input/0 has 3 bytes, give 960");
}

}  // namespace
}  // namespace graft::tasks
