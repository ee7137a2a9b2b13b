#include "study/flows/explained.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "codegen/expression/workload.h"
#include "codegen/machine/compile.h"
#include "codegen/program/analysis.h"
#include "codegen/program/forms.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/schedule/lower.h"

namespace graft::study {
namespace {

// Fills what depends on the platform; why it could not is its result.
std::string add_code(const search::RunContent& run, const Answer& answer, Explained& out) {
  const tasks::Platform platform = search::platform_of(run);
  out.cpu = platform.target.cpu;
  out.roof = roof_of(platform, answer.workload());
  const auto program = codegen::program(answer.candidate, platform.target);
  if (!program) return fmt::format("the schedule does not lower today: {}", program.reason().text);
  out.scheduled = codegen::to_text(*program);
  out.fewer_operations = fewer_operations(answer.candidate, platform.target);
  const auto listing =
      codegen::listing(*program, platform.target, codegen::pipeline_named(answer.pipeline, platform.target));
  if (!listing) return fmt::format("no assembly: {}", listing.reason().text);
  out.assembly = listing->assembly;
  return "";
}

}  // namespace

double Work::gflops_below(const Roof& roof) const {
  return std::min(roof.gflops, intensity() * roof.gigabytes_per_second);
}

double Work::seconds_below(const Roof& roof) const {
  return std::max(operations / roof.gflops, bytes / roof.gigabytes_per_second) * 1e-9;
}

Work work_of(const codegen::Workload& workload) {
  const codegen::Computation computation = workload.computation();
  Work out{double(codegen::flops(computation)), 0};
  for (const codegen::Tensor& tensor : computation.tensors) {
    if (tensor.role != codegen::Role::temporary) out.bytes += double(tensor.bytes());
  }
  return out;
}

std::optional<double> fewer_operations(const codegen::Candidate& candidate, const codegen::Target& target) {
  const auto program = codegen::program(candidate, target);
  if (!program) return std::nullopt;
  const auto run = codegen::flops(*program);
  if (run >= codegen::flops(candidate.workload)) return std::nullopt;
  return double(run);
}

std::optional<Roof> roof_of(const tasks::Platform& platform, const codegen::Workload& workload) {
  const std::optional<tasks::Limits> limits = platform.device->limits();
  if (!limits) return std::nullopt;
  const std::optional<double> peak = peak_gflops(platform, workload);
  if (!peak) return std::nullopt;
  return Roof{*peak, limits->memory_gigabytes_per_second};
}

Explained explained(const search::RunContent& run, const Answer& answer) {
  Explained out;
  out.work = work_of(answer.workload());
  out.naive = codegen::to_text(codegen::naive_program(answer.workload().computation()));
  try {
    out.unknown = add_code(run, answer, out);
  } catch (const base::UserError& error) {
    out.unknown = error.what();
  }
  return out;
}

}  // namespace graft::study
