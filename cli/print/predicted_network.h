// The predicted time of a network, for people.
#pragma once

#include "cli/output.h"
#include "study/flows/predict_network.h"

namespace graft::cli {

// Its kernels by their share of the time, the total with its interval, and what it is made of.
void print(const study::PredictedNetwork& network, Output& out);

}  // namespace graft::cli
