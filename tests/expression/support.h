// What the tests of this room share: the message of a refusal, and random forms.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "codegen/expression/affine.h"

namespace graft::codegen {

// The message of the UserError that `body` throws, or "no error".
template <class Body>
std::string refusal(Body body) {
  try {
    (void)body();
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "no error";
}

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// A form over `variables` variables with coefficients and constant in -size..size, some of them 0.
inline Affine random_form(base::Stream& stream, int variables, std::int64_t size = 4) {
  Affine form(stream.below(2 * size + 1) - size);
  for (int v = 0; v < variables; ++v) form += Affine::variable(v, stream.below(2 * size + 1) - size);
  return form;
}

}  // namespace graft::codegen
