// Private to this folder: the steps `layout` and `block`, which store a tensor in another order, in blocks. Axes whose
// index is divided so become several, in every stage that has them: the rest of a schedule then sees a computation
// whose tensors simply have these shapes.
#pragma once

#include <string>

#include "codegen/expression/computation.h"
#include "codegen/schedule/step.h"

namespace graft::codegen {

// The text of the failure, empty if the step applied. A blocked dimension must be indexed by a whole axis, or by one
// that an earlier step has divided alike; temporaries may be stored otherwise as well (the padded copy of a blocked
// input).
std::string relayout(Computation& computation, const Step& step);

}  // namespace graft::codegen
