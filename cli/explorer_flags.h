// How a search explores: flags of every command that searches.
#pragma once

#include <string>

#include "cli/command.h"
#include "search/selection.h"

namespace graft::cli {

struct ExplorerFlags {
  std::string explorer = "evolution", selection = "best", acquisition = "mean";
  search::SelectionSettings settings;  // what flags set directly
  void declare(Options& options);
  search::SelectionSettings checked() const;  // UserError for an unknown name or an invalid share
};

}  // namespace graft::cli
