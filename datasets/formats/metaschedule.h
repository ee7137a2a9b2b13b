// A MetaSchedule database: the JSON lines of its workloads ([hash, module]) and of its tuning records ([workload,
// [trace, seconds, target, arguments]]), both given, in any order. Traces for CPUs are replayed on the functions of the
// modules, and such a row has the program as its sketch; rows of other traces have their decisions as columns.
#pragma once

#include "datasets/formats/format.h"

namespace graft::datasets::formats {

// UserError "<file>:<line>: ...".
void import_metaschedule(Import& import);

}  // namespace graft::datasets::formats
