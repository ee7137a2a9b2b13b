// Steps that change stages, applied before any loop is planned: what other steps name are the stages of the result.
#pragma once

#include "base/error.h"
#include "codegen/expression/computation.h"
#include "codegen/schedule/step.h"

namespace graft::codegen {

// The computation with every `absorb` of the schedule done, in order. A Reason names the step that does not apply.
base::Result<Computation> restructured(const Computation& computation, const Schedule& schedule);

}  // namespace graft::codegen
