#include "cli/report/roofline.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/texts.h"

namespace graft::cli {

std::optional<study::Roof> measured_roof(const base::Document& row) {
  const base::Document* const bandwidth = row.find("memory_gigabytes_per_second");
  if (bandwidth == nullptr) return std::nullopt;
  return study::Roof{row.at("peak").as_number(), bandwidth->as_number()};
}

Plot roofline_plot(const std::optional<study::Roof>& roof, const std::vector<double>& intensities,
                   std::string_view source) {
  Plot plot{.x_label = "FLOP per byte of operands (log)",
            .y_label = kind_of_times(source) + "GFLOP/s (log)",
            .log_x = true,
            .log_y = true,
            .x_from_zero = false,
            .series = {}};
  if (!roof) return plot;
  constexpr double margin = 8;  // of the axis, as a factor
  const double ridge = roof->gflops / roof->gigabytes_per_second;
  double from = ridge, to = ridge;
  for (const double intensity : intensities) from = std::min(from, intensity), to = std::max(to, intensity);
  plot.series.push_back(
      {.name = fmt::format("roof: {:.4g} GB/s, {:.4g} GFLOP/s", roof->gigabytes_per_second, roof->gflops),
       .colour = series_colours - 1,
       .points = {{.x = from / margin, .y = from / margin * roof->gigabytes_per_second},
                  {.x = ridge, .y = roof->gflops},
                  {.x = to * margin, .y = roof->gflops}}});
  return plot;
}

}  // namespace graft::cli
