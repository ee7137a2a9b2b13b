// The text of `graft collect` about the dataset of one platform.
#pragma once

#include "cli/output.h"
#include "study/flows/collect.h"

namespace graft::cli {

void print_collected(const study::CollectRequest& request, const study::CollectResult& result, Output& out);

}  // namespace graft::cli
