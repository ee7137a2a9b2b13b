#include "cli/print/best.h"

#include <fmt/format.h>

#include <utility>

#include "base/duration.h"
#include "base/error.h"
#include "cli/texts.h"

namespace graft::cli {

std::string checked_text(std::string_view source, std::string_view check) {
  if (check == "host") return "right on this host";
  if (check == "qemu") return source == "modelled" ? "right on this host and under qemu" : "right under qemu";
  if (check == "remote") return "right on the board";
  return "";
}

std::optional<tasks::Goal> goal_of(const base::Document& request, double seconds) {
  tasks::Command command;
  for (const auto& [key, text] : {std::pair("maximize", &command.maximize), std::pair("minimize", &command.minimize)}) {
    if (const base::Document* const given = request.find(key)) *text = given->as_string();
  }
  return tasks::goal_of(command, seconds);
}

std::string goal_text(const tasks::Goal& goal) {
  return fmt::format("{:.6g}{}{}", goal.value, goal.unit.empty() ? "" : " ", goal.unit);
}

std::string measured_text(const base::Document& request, double seconds, std::string_view source) {
  const std::optional<tasks::Goal> goal = goal_of(request, seconds);
  return goal ? goal_text(*goal) : time_text(seconds, source);
}

std::optional<double> peak_gflops(const std::string& platform, const codegen::Workload& workload) {
  if (!platform.starts_with("model:")) return std::nullopt;
  try {
    return study::peak_gflops(tasks::platform_named(platform), workload);
  } catch (const base::UserError&) {
    return std::nullopt;  // of a YAML file, or of another release
  }
}

namespace {

constexpr const char* less_arithmetic = " (Winograd)";

}  // namespace

std::string of_bound_text(double share, bool does_less) {
  return share_text(share) + (does_less ? less_arithmetic : share > 1 ? " (caches)" : "");
}

std::string of_peak_text(double gflops, double peak, bool does_less) {
  return fmt::format("{} of {:.4g} (fp32 multiply-adds)",
                     share_text(gflops / peak) + (does_less ? less_arithmetic : ""), peak);
}

std::string of_peak_text(const study::Answer& answer, double peak) {
  return of_peak_text(answer.gflops(), peak, study::does_less_arithmetic(answer.candidate));
}

}  // namespace graft::cli
