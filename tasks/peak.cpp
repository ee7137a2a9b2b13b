#include "tasks/peak.h"

#include "codegen/program/peak.h"
#include "tasks/modelled/modelled.h"

namespace graft::tasks {

std::optional<double> peak_flops_per_second(const Platform& platform) {
  const auto* const modelled = std::get_if<Modelled>(&platform.how);
  if (modelled == nullptr) return std::nullopt;
  const codegen::LoopProgram program = codegen::peak_program(platform.target);
  const auto time = modelled_time(program, platform);
  if (!time || !time->unsupported.empty() || !(time->core_cycles > 0)) return std::nullopt;
  return codegen::peak_flops(program) / time->core_cycles * modelled->profile.gigahertz * 1e9 *
         double(platform.target.threads);
}

}  // namespace graft::tasks
