// Private to this folder: traces of MetaSchedule (codegen/import/tir_trace.h), as its databases of records have them.
#pragma once

#include "codegen/import/tir_trace.h"
#include "datasets/formats/json.h"

namespace graft::datasets::formats {

// The next value of the reader: [[instruction, ...], [[number, decision], ...]]. UserError with its place.
codegen::TirTrace read_trace(JsonReader& reader);

}  // namespace graft::datasets::formats
