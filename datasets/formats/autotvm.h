// AutoTVM's logs: JSON lines of versions 0.1 and 0.2, as tvm.autotvm writes them.
//
//   {"input": [target, template, [["TENSOR", shape, dtype], ...], {}], "config": {"entity": [[knob, kind, value],
//   ...]},
//    "result": [[seconds, ...], error, ...], "version": 0.2}
//   {"i": [target, template, arguments, {}, workload, {"t": key, "e": [knob...]}], "r": [...], "v": 0.1}
//
// Operator and shapes become a workload, the template a sketch of ours (templates/) and its knobs the sketch's
// arguments (tile sizes in elements where the template counts tiles). If we have no sketch for a template, or it
// cannot express the knobs, the knobs alone are kept, by name. Records that failed keep their status;
// the time of 1e9 seconds that marks a failure is not stored.
#pragma once

#include "datasets/formats/format.h"

namespace graft::datasets::formats {

void import_autotvm(Import& import);

// Writes rows as such records, every argument an "ot" knob, under the template "graft.<sketch>.<hash>", whose only
// argument is the workload's text: importing them again gives the same workloads, measurements and arguments, but no
// programs. The parts of a measurement that AutoTVM's own result cannot express (one of our statuses, a reason, a lower
// bound) is stored in a key that AutoTVM ignores.
Counts export_autotvm(const DatasetFile& from, const TextSink& to);

}  // namespace graft::datasets::formats
