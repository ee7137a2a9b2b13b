// Kernel Tuner's cache files and the T4 results of the FAIR auto-tuning formats (one JSON document per kernel and GPU,
// plain or gzip), and T1 space descriptions next to them, whose restrictions are noted. A configuration is a row over
// the tunable parameters; every repetition is kept; a failure, recorded in place of a time, becomes a status.
#pragma once

#include "datasets/formats/format.h"

namespace graft::datasets::formats {

// UserError "<file>:<line>: ...".
void import_kernel_tuner(Import& import);

// Rows of one table, that of the first row, as a cache file that Kernel Tuner reads, or as T4 results; times in ms.
Counts export_kernel_tuner(const DatasetFile& from, const TextSink& to);
Counts export_t4(const DatasetFile& from, const TextSink& to);

}  // namespace graft::datasets::formats
