#include "codegen/machine/core_timing.h"

#include <fmt/format.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include "codegen/machine/backend.h"
#include "codegen/machine/compile.h"
#include "codegen/machine/emitter.h"
#include "codegen/machine/fatal.h"
#include "codegen/machine/recording.h"
#include "codegen/machine/simulation.h"
#include "codegen/program/analysis.h"

namespace graft::codegen {
namespace {

// The code that is measured elsewhere, hence the same pipeline.
llvm::TargetMachine& machine_of(const Target& target) {
  return target_machine(target, search_pipeline(target).codegen_level);
}

// The target of the core that runs it.
llvm::TargetMachine& timed_machine(const Target& target, const CoreTimingSettings& settings) {
  Target timed = target;
  if (!settings.model_cpu.empty()) {
    timed.cpu = settings.model_cpu;
    timed.features.clear();
    timed.vector_bits = 0;  // no code is made for it, so its own vectors may be longer
  }
  llvm::TargetMachine& machine = machine_of(timed);
  if (!has_scheduling_model(machine))
    throw base::UserError(
        fmt::format("the cpu '{}' has no scheduling model in this LLVM ({}), so its time cannot be "
                    "modelled; take a cpu that has one, such as sifive-p450 or cortex-a72",
                    timed.cpu, LLVM_VERSION_STRING));
  return machine;
}

base::Result<CoreTiming> timed(const LoopProgram& program, const Target& target, const CoreTimingSettings& settings) {
  llvm::TargetMachine& machine = machine_of(target);
  llvm::TargetMachine& core = timed_machine(target, settings);
  llvm::LLVMContext context;
  const auto module = empty_module(context, machine);
  const std::string symbol = "timed";
  LoopProgram only_run = program;
  only_run.prepare.clear();
  CodeAttributes attributes = code_attributes(target);
  attributes.named_places = true;
  // Code for one thread: all of `run` in one function, parallel loops one iteration after the other.
  if (auto refused = emit(*module, only_run, attributes, symbol, 1)) return *refused;
  if (const auto failed = optimise(*module, machine, search_pipeline(target), repeats_accesses(only_run)))
    return *failed;
  const base::Result<Recording> recording = record(*module, machine, search_pipeline(target), symbol + "_run.0");
  if (!recording) return recording.reason();
  return simulate(*recording, core, settings);
}

}  // namespace

base::Result<CoreTiming> core_timing(const LoopProgram& program, const Target& target,
                                     const CoreTimingSettings& settings) {
  return guarded(target, [&] { return timed(program, target, settings); });
}

void check_core_timing(const Target& target, const CoreTimingSettings& settings) {
  guarded(target, [&] { return &timed_machine(target, settings); });
}

}  // namespace graft::codegen
