// What is said of a best result next to its time: where its results were checked, and how near its speed is to the
// platform's peak.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "codegen/expression/workload.h"

namespace graft::cli {

// "right on the board" for a measurement's check on a platform of that source; "" where nothing was checked.
std::string checked_text(std::string_view source, std::string_view check);

// study::peak_gflops of a platform that is only named: of those that graft ships.
std::optional<double> peak_gflops(const std::string& platform, const codegen::Workload& workload);

// "61.2 % of 20.8 (fp32 multiply-adds)"
std::string of_peak_text(double gflops, double peak);

}  // namespace graft::cli
