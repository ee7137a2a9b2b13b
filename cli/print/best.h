// Text about a best result in addition to its time: where its results were checked, and its speed relative to the
// platform's peak.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/document.h"
#include "codegen/expression/workload.h"
#include "study/knowledge/answer.h"
#include "tasks/command.h"

namespace graft::cli {

// "right on the board" for a measurement's check on a platform of that source; "" if nothing was checked.
std::string checked_text(std::string_view source, std::string_view check);

// The measure that a run was for in place of the time, for a configuration with these seconds, as its request says;
// nullopt for a time.
std::optional<tasks::Goal> goal_of(const base::Document& request, double seconds);
std::string goal_text(const tasks::Goal& goal);  // "35.2 GFLOP/s"
// The same as text, or the time; where nothing near it says so, with the source of the time (texts.h).
std::string measured_text(const base::Document& request, double seconds, std::string_view source = "");

// study::peak_gflops of a platform known only by name: one of those that graft ships.
std::optional<double> peak_gflops(const std::string& platform, const codegen::Workload& workload);

// The share of a kernel's bound that it reaches, with why it may be above 100 %: "129.1 % (Winograd)".
std::string of_bound_text(double share, bool does_less);
// "61.2 % of 20.8 (fp32 multiply-adds)"
std::string of_peak_text(double gflops, double peak, bool does_less);
std::string of_peak_text(const study::Answer& answer, double peak);

}  // namespace graft::cli
