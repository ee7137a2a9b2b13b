// Running programs through a command prefix: the program becomes a static executable, `prefix + file` runs it, and what
// it writes is held against the reference. qemu-user is such a prefix, for checks: its times are never measurements. A
// board is one too, behind a command that copies the file and runs it:
//
//   prefix: [sh, -c, 'scp -q "$0" board:/tmp/graft.run && ssh board /tmp/graft.run']
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "codegen/expression/reference.h"
#include "codegen/expression/target.h"
#include "codegen/expression/workload.h"
#include "codegen/program/program.h"
#include "datasets/trial.h"
#include "tasks/measurer.h"

namespace graft::tasks {

// What a workload computes, for inputs of a seed.
struct Expected {
  codegen::Computation computation;
  codegen::Reference reference;
};
// Candidates of one workload come in a row: what it computes is evaluated once.
class LatestExpected {
 public:
  explicit LatestExpected(std::uint64_t seed) : seed_(seed) {}
  const Expected& of(const codegen::Workload& workload);  // valid until the next call

 private:
  std::uint64_t seed_;
  std::string text_;  // of the workload that expected_ is of
  Expected expected_;
};

// One execution: prepare once, run `repetitions` times (at least 1), each timed on the other side's wall clock. Never
// throws for what the program does: ok with the seconds, wrong_result, crashed, timed_out, does_not_compile, or
// unsupported where the freestanding code cannot run it. `check` is "qemu" for a prefix of qemu, else "remote". Throws
// Failure when the command cannot be started.
datasets::Measurement run_under(const std::vector<std::string>& prefix, const codegen::LoopProgram& program,
                                const codegen::Target& target, const Expected& expected, int repetitions,
                                std::chrono::milliseconds deadline);

std::unique_ptr<Measurer> make_remote_measurer(const Platform& platform, const MeasureSettings& settings);

}  // namespace graft::tasks
