// A tuned network, for people.
#pragma once

#include "cli/output.h"
#include "study/flows/network.h"

namespace graft::cli {

// Its kernels by their share of the time, and the sum.
void print(const study::TunedNetwork& network, Output& out);

}  // namespace graft::cli
