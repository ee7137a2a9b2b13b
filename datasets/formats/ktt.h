// KTT's results, in its JSON output: a list of configurations of one or several kernels, each with a status
// and the durations of its launches, in the unit that the metadata name.
#pragma once

#include "datasets/formats/format.h"

namespace graft::datasets::formats {

// UserError "<file>:<line>: ...".
void import_ktt(Import& import);

}  // namespace graft::datasets::formats
