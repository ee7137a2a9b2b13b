// AutoTVM's logs: JSON lines of versions 0.1 and 0.2, as tvm.autotvm writes them.
//
//   {"input": [target, template, [["TENSOR", shape, dtype], ...], {}], "config": {"entity": [[knob, kind, value],
//   ...]},
//    "result": [[seconds, ...], error, ...], "version": 0.2}
//   {"i": [target, template, arguments, {}, workload, {"t": key, "e": [knob...]}], "r": [...], "v": 0.1}
//
// Operator and shapes become a workload, the template a sketch of ours (templates/) and its knobs the sketch's
// arguments (tile sizes in elements where the template counts tiles). Where we have no sketch for a template, or it
// cannot say what the knobs ask for, the knobs alone are kept, by their names. Records that failed keep their status;
// the time of 1e9 seconds that stands for one is no time.
#pragma once

#include "datasets/formats/format.h"

namespace graft::datasets::formats {

void import_autotvm(Import& import);

// Rows as such records, every argument an "ot" knob, under the template "graft.<sketch>.<hash>", whose only argument is
// the workload's text: importing them again gives the same workloads, measurements and arguments, but no programs. What
// AutoTVM's own result cannot say of a measurement (one of our statuses, a reason, a lower bound) stands in a key that
// AutoTVM passes over.
Counts export_autotvm(const DatasetFile& from, const TextSink& to);

}  // namespace graft::datasets::formats
