// The page of `graft report`: one HTML file without scripts or anything from outside, for runs, evaluations and
// comparisons. It says what the results say and no more; it reads no files.
#pragma once

#include <string>
#include <vector>

#include "base/document.h"
#include "cli/output.h"
#include "search/run_directory.h"

namespace graft::cli {

// A run's folder, already read.
struct ReportedRun {
  std::string name;  // as given
  search::RunContent content;
};

// The result of `graft evaluate --json`, of `graft tune --json` or of `graft compare --json`.
struct ReportedResult {
  std::string name;
  base::Document result;
};

// Runs of one workload on one platform share a plot. Throws UserError for a result that is none of these.
std::string page(const std::vector<ReportedRun>& runs, const std::vector<ReportedResult>& results,
                 const std::string& about);

// Such a page with other contents: `body` is HTML.
std::string whole_page(const std::string& title, const std::string& about, const std::string& body);
std::string html_table(const Table& table);

}  // namespace graft::cli
