// The page of `graft report`: one HTML file without scripts or anything from outside, for runs, networks,
// evaluations and comparisons. It shows only the results; it reads no files.
#pragma once

#include <map>
#include <string>

#include "cli/report/reported.h"

namespace graft::cli {

struct Page {
  std::string html;
  std::map<std::string, std::string> figures;  // its plots as SVG files, by name
};

// Throws UserError for a result that is none of those that ReportedResult names.
Page page(const Reported& reported, const std::string& about);

}  // namespace graft::cli
