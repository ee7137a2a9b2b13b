#include "cli/commands/best.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "codegen/expression/computation.h"
#include "tasks/peak.h"

namespace graft::cli {

std::string checked_text(std::string_view source, std::string_view check) {
  if (check == "host") return "right on this host";
  if (check == "qemu") return source == "modelled" ? "right on this host and under qemu" : "right under qemu";
  if (check == "remote") return "right on the board";
  return "";
}

std::optional<double> peak_gflops(const tasks::Platform& platform, const codegen::Workload& workload) {
  const codegen::Computation computation = codegen::computation(workload);
  const bool is_f32 = std::all_of(computation.tensors.begin(), computation.tensors.end(),
                                  [](const codegen::Tensor& tensor) { return tensor.dtype == codegen::DType::f32; });
  if (!is_f32) return std::nullopt;
  const std::optional<double> flops = tasks::peak_flops_per_second(platform);
  if (!flops) return std::nullopt;
  return *flops * 1e-9;
}

std::optional<double> peak_gflops(const std::string& platform, const codegen::Workload& workload) {
  if (!platform.starts_with("model:")) return std::nullopt;
  try {
    return peak_gflops(tasks::platform_named(platform), workload);
  } catch (const base::UserError&) {
    return std::nullopt;  // of a YAML file, or of another release
  }
}

std::string of_peak_text(double gflops, double peak) {
  return fmt::format("{:.1f} % of {:.4g} (fp32 multiply-adds)", 100 * gflops / peak, peak);
}

}  // namespace graft::cli
