// Padded loads as stages of their own: the form of a computation that schedules refer to.
#pragma once

#include "codegen/expression/computation.h"

namespace graft::codegen {

// T[x] = pad(X[x + shift]), with dimensions in any order.
bool is_padding_copy(const Stage& stage);

// Moves padded loads into separate copy stages ("X.pad"), unless a stage is such a copy already. Schedules name the
// stages of this form; everything in codegen/schedule works on it. Idempotent.
Computation with_padding_stages(const Computation& computation);

}  // namespace graft::codegen
