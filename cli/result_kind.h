// What a result of graft is a result of.
#pragma once

#include <string>

#include "base/document.h"

namespace graft::cli {

// The command: "tune", "evaluate"; "compare searches" or "compare platforms" for those of compare; "bench kernels"; ""
// for something else. Results of before they had a "kind", and those of graft-bench, are told by their keys.
std::string kind_of(const base::Document& result);

}  // namespace graft::cli
