// Shared by the commands of `graft bench`.
#pragma once

#include <string>
#include <vector>

#include "base/document.h"
#include "cli/command.h"

namespace graft::cli {

base::Document list_of(const std::vector<std::string>& words);

// graft-bench links the libraries that graft is compared with, so it is a separate program; this process executes it.
int become_bench(const char* what, base::Document request, const Session& session);

}  // namespace graft::cli
