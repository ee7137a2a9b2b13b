// A MetaSchedule database: the JSON lines of its workloads ([hash, module]) and of its tuning records ([workload,
// [trace, seconds, target, arguments]]), both given, in any order. A row has the trace's decisions as columns; traces
// are not replayed, and modules are not unpacked.
#pragma once

#include "datasets/formats/format.h"

namespace graft::datasets::formats {

// UserError "<file>:<line>: ...".
void import_metaschedule(Import& import);

}  // namespace graft::datasets::formats
