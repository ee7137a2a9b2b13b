// What the page of `graft report` says of searches: runs, and results of graft tune and graft bench kernels.
#pragma once

#include <string>
#include <vector>

#include "cli/report/plot.h"
#include "cli/report/reported.h"

namespace graft::cli {

// True for a result of graft tune; of graft bench kernels.

// HTML: a section for each workload on each platform, in the order in which they come. Those of one workload on one
// platform share a plot. `results`: of these two kinds. Plots are added to `figures`.
std::string search_sections(const std::vector<ReportedRun>& runs, const std::vector<ReportedResult>& results,
                            Figures& figures);

}  // namespace graft::cli
