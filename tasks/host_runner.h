// Running programs on this machine, in a worker process that may crash or hang without harm: the `native` measurer
// (native.h) times with it, and the other measurers check their programs with it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/monitor.h"
#include "codegen/expression/reference.h"
#include "codegen/expression/target.h"
#include "codegen/expression/workload.h"
#include "codegen/machine/code.h"
#include "codegen/machine/sequence.h"
#include "codegen/program/program.h"
#include "datasets/trial.h"
#include "tasks/measurer.h"

namespace graft::tasks {

// Machine code that the worker can load.
struct HostBinary {
  std::string bytes;  // a shared object
  codegen::Signature signature;
  std::string symbol;
};

// `pipeline`: as codegen::pipeline_named takes it. Thread-safe. UserError for a target that LLVM does not know.
base::Result<HostBinary> compile_for_host(const codegen::LoopProgram& program, const codegen::Target& target,
                                          const std::string& pipeline = "");

// The inputs and expected outputs of a workload, for a seed: codegen::reference, or a test's own function.
using MakeReference = std::function<codegen::Reference(const codegen::Workload& workload, std::uint64_t seed)>;

// A run of a whole network.
struct SequenceRun {
  datasets::Measurement measurement;  // nothing is compared: `check` is for those who do
  std::vector<std::string> outputs;   // the bytes that the first run has written; empty unless the status is ok
  std::vector<double> call_seconds;   // the least wall time of each call; empty without, and if time was short
};

// One worker process, started with the first run and again whenever it is lost. Not thread-safe.
class HostRunner {
 public:
  // Settings as in measurer.h, without abort_factor; repetitions = 0 checks only. UserError for repetitions that are
  // negative or more than 64, and for times and limits that are not positive.
  // `worker`: another worker that speaks the same (worker/wire.h), with its arguments; its clock is the wall's, and its
  // address space as large as it wants.
  explicit HostRunner(const MeasureSettings& settings, MakeReference make_reference = {},
                      std::vector<std::string> worker = {});
  ~HostRunner();
  HostRunner(const HostRunner&) = delete;
  HostRunner& operator=(const HostRunner&) = delete;

  // Runs prepare and run, compares the outputs with the workload's reference (of settings.inputs), then
  // times. The binary must be of a program of this workload. `abort_seconds` > 0 ends a slower candidate as
  // slower_than_limit. Throws Failure if there is no worker program, or if it cannot start; UserError if
  // there is no memory for the workload (expected.h); base::Stopped, having killed the worker, when the monitor asks
  // for it.
  datasets::Measurement run(const codegen::Workload& workload, const HostBinary& binary, double abort_seconds = 0,
                            base::Monitor* monitor = nullptr);
  // The same for a program: compiled first, for `target`, whose code must run on this machine.
  datasets::Measurement run(const codegen::Workload& workload, const codegen::LoopProgram& program,
                            const codegen::Target& target);
  // Runs a sequence as one kernel on these inputs, times it, and then each of its calls. Its code must run on this
  // machine. UserError for inputs of other sizes, and for more inputs and outputs than the worker takes.
  SequenceRun run(const codegen::Sequence& sequence, const std::vector<std::string>& inputs,
                  base::Monitor* monitor = nullptr);
  static bool takes(const codegen::Sequence& sequence);  // whether its inputs and outputs are not too many

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace graft::tasks
