#include "cli/print/best.h"

#include <fmt/format.h>

#include "base/error.h"
#include "study/knowledge/answer.h"

namespace graft::cli {

std::string checked_text(std::string_view source, std::string_view check) {
  if (check == "host") return "right on this host";
  if (check == "qemu") return source == "modelled" ? "right on this host and under qemu" : "right under qemu";
  if (check == "remote") return "right on the board";
  return "";
}

std::optional<double> peak_gflops(const std::string& platform, const codegen::Workload& workload) {
  if (!platform.starts_with("model:")) return std::nullopt;
  try {
    return study::peak_gflops(tasks::platform_named(platform), workload);
  } catch (const base::UserError&) {
    return std::nullopt;  // of a YAML file, or of another release
  }
}

std::string of_peak_text(double gflops, double peak) {
  return fmt::format("{:.1f} % of {:.4g} (fp32 multiply-adds)", 100 * gflops / peak, peak);
}

}  // namespace graft::cli
