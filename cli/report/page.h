// The page of `graft report`: one HTML file without scripts or anything from outside, for runs, evaluations and
// comparisons. It shows only the results; it reads no files.
#pragma once

#include <string>

#include "cli/report/reported.h"

namespace graft::cli {

// Throws UserError for a result that is none of those that ReportedResult names.
std::string page(const Reported& reported, const std::string& about);

}  // namespace graft::cli
