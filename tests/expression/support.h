// Shared by the tests of this room: random forms.
#pragma once

#include <string>
#include <vector>

#include "base/random.h"
#include "codegen/expression/affine.h"
#include "tests/support/refusal.h"

namespace graft::codegen {

// A form over `variables` variables with coefficients and constant in -size..size, some of them 0.
inline Affine random_form(base::Stream& stream, int variables, std::int64_t size = 4) {
  Affine form(stream.below(2 * size + 1) - size);
  for (int v = 0; v < variables; ++v) form += Affine::variable(v, stream.below(2 * size + 1) - size);
  return form;
}

}  // namespace graft::codegen
