#include "tasks/device.h"

#include <gtest/gtest.h>

#include "base/monitor.h"
#include "codegen/machine/compile.h"
#include "tasks/command.h"
#include "tasks/modelled/modelled.h"
#include "tasks/rebuild.h"
#include "tasks/remote.h"
#include "tests/tasks/support.h"

namespace graft::tasks {
namespace {

using namespace test;

// Says the same of each program.
class Saying : public Measurer {
 public:
  explicit Saying(double seconds) : seconds_(seconds) {}
  void measure(std::span<const codegen::Candidate> candidates, const std::function<void(const Measured&)>& on_trial,
               base::Monitor&) override {
    datasets::Measurement said = without_times(datasets::Status::ok, "", "wall");
    said.seconds = {seconds_};
    for (std::size_t i = 0; i < candidates.size(); ++i) on_trial({std::int64_t(i), 1, said});
  }

 private:
  double seconds_;
};

// The least that a device is.
class Least : public Device {
  std::string source() const override { return "said"; }
  Place place() const override { return Place::elsewhere; }
  std::unique_ptr<Measurer> measurer(const Platform&, const MeasureSettings&, Shared*) const override {
    return std::make_unique<Saying>(0.25);
  }
};

Platform least() {
  Platform platform = platform_named("native");
  platform.device = std::make_shared<Least>();
  return platform;
}

TEST(Device, ThatOnlyMeasuresPromisesNothingElse) {
  const Platform platform = least();
  EXPECT_FALSE(platform.device->is_this_host());
  EXPECT_FALSE(platform.device->is_exact());
  EXPECT_FALSE(platform.device->limits());
  EXPECT_FALSE(platform.device->peak_flops_per_second(platform));
  EXPECT_EQ(platform.device->checker(platform, {}), nullptr);
  EXPECT_FALSE(platform.device->runner().where);
  EXPECT_EQ(platform.device->runner().check, "none");
  EXPECT_NE(platform.device->runner().reason, "");
}

TEST(Device, MakesMachineCodeUnlessItSaysOtherwise) {
  const Platform platform = least();
  const auto code = platform.device->code(good_matmul(), platform.target, "", "f");
  ASSERT_TRUE(code) << code.reason().text;
  EXPECT_EQ(code->form, codegen::CodeForm::object_file);
  EXPECT_EQ(code->symbol, "f");
  EXPECT_EQ(code->bytes,
            codegen::compile(good_matmul(), platform.target, codegen::search_pipeline(platform.target), "f")->bytes);
  EXPECT_NE(code->bytes, platform.device->code(good_matmul(), platform.target, "O3", "f")->bytes);
  expect_contains(
      message_of<base::UserError>([&] { (void)platform.device->code(good_matmul(), platform.target, "O4", "f"); }),
      "pipeline 'O4'");
}

TEST(Device, IsMeasuredOnByEachRoundInTurn) {
  const std::vector<codegen::Candidate> candidates(2, candidate(small_matmul(), "sketch plain\n"));
  base::Monitor monitor;
  for (const datasets::Measurement& each : timed_in_turn(least(), candidates, 3, {}, monitor))
    EXPECT_EQ(each.seconds, (std::vector{0.25, 0.25, 0.25}));
}

// What others ask of those that there are.
TEST(Device, AnswersForWhatItIs) {
  struct Answers {
    std::string source;
    Place place;
    bool is_this_host, is_exact, has_limits, checks_more;
    std::string check;
  };
  const auto expect = [](const Platform& platform, const Answers& answers) {
    SCOPED_TRACE(answers.source);
    const Device& device = *platform.device;
    EXPECT_EQ(device.source(), answers.source);
    EXPECT_EQ(device.place(), answers.place);
    EXPECT_EQ(device.is_this_host(), answers.is_this_host);
    EXPECT_EQ(device.is_exact(), answers.is_exact);
    EXPECT_EQ(device.limits().has_value(), answers.has_limits);
    EXPECT_EQ(device.checker(platform, {}) != nullptr, answers.checks_more);
    EXPECT_EQ(device.runner().check, answers.check);
  };
  const auto with = [](std::shared_ptr<const Device> device) {
    Platform platform = platform_named("native");
    platform.device = std::move(device);
    return platform;
  };
  expect(Platform(), {"native", Place::here, true, false, false, false, "host"});
  expect(platform_named("native"), {"native", Place::here, true, false, false, false, "host"});
  Remote board, emulator;
  board.ssh = {"board"};
  emulator.prefix = {"qemu-riscv64"};
  expect(with(remote_device(board)), {"remote", Place::elsewhere, false, false, false, false, "remote"});
  expect(with(remote_device(emulator)), {"emulated", Place::elsewhere, false, false, false, false, "qemu"});
  expect(with(command_device()), {"command", Place::elsewhere, false, false, false, false, "none"});
  Platform modelled = platform_named("model:cortex-a72");
  Profile profile = *profile_of(modelled);
  profile.qemu = {"no-such-qemu"};
  modelled.device = modelled_device(profile);
  expect(modelled, {"modelled", Place::both, false, true, true, true, "none"});
  EXPECT_EQ(modelled.device->runner().reason, "'no-such-qemu' does not start; install qemu-user");
  EXPECT_EQ(modelled.device->limits()->gigahertz, profile.gigahertz);
}

}  // namespace
}  // namespace graft::tasks
