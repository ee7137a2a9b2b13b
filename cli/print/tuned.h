// The result of a search, for people.
#pragma once

#include "cli/output.h"
#include "study/flows/tune.h"
#include "study/flows/tune_own.h"

namespace graft::cli {

void print(const study::TuneResult& result, Output& out);
void print(const study::OwnResult& result, Output& out);
void print(const study::OwnResults& results, Output& out);

}  // namespace graft::cli
