// What the page of `graft report` says of tuned networks.
#pragma once

#include <string>
#include <vector>

#include "cli/report/plot.h"
#include "cli/report/reported.h"

namespace graft::cli {

// HTML: a section for each network. Plots are added to `figures`.
std::string network_sections(const std::vector<ReportedNetwork>& networks, Figures& figures);

}  // namespace graft::cli
