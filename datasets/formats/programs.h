// Loop programs not made by our schedules, with their times: JSON lines, plain or gzip, which a measuring program
// in any language can print. README.md of this folder has an example.
//
//   {"platform": "mine", "workload": "matmul(m=512,n=512,k=512,dtype=f32)", "program": PROGRAM, "seconds": [0.021,
//   0.02]}
//
// PROGRAM is the text form of program/forms.h in one string, or its JSON form. Further keys: `name` of the program,
// `status` (trial.h) and `reason` if it failed, `clock`, `check`. A line without `platform` belongs to the
// requested platform; lines of others are left out. A workload is one of ours, whose parameters the program's
// must then be, or any name.
#pragma once

#include "datasets/formats/format.h"

namespace graft::datasets::formats {

// Platform `*`: a dataset for every platform that is named. UserError "<file>:<line>: ...".
void import_programs(Import& import);
// Any dataset of programs: each row that lowers, in the text form.
Counts export_programs(const DatasetFile& from, const TextSink& to);

}  // namespace graft::datasets::formats
