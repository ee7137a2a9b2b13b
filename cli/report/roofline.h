// Programs under the two bounds of a machine: speed over operations per byte.
#pragma once

#include <optional>
#include <vector>

#include "base/document.h"
#include "cli/report/plot.h"
#include "study/flows/explained.h"

namespace graft::cli {

// What a row of graft bench kernels measured of its machine; nothing in rows of earlier versions.
std::optional<study::Roof> measured_roof(const base::Document& row);

// A plot with the roof, if it is known, as its only series; programs of these intensities are to be added.
Plot roofline_plot(const std::optional<study::Roof>& roof, const std::vector<double>& intensities,
                   std::string_view source);

}  // namespace graft::cli
