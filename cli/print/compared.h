// The tables of a comparison, for people.
#pragma once

#include "cli/output.h"
#include "study/flows/compare.h"

namespace graft::cli {

void print(const datasets::Agreement& agreement, Output& out);  // of platforms
void print(const study::CompareResult& result, Output& out);    // of searches

}  // namespace graft::cli
