// The messages of refusals.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

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

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace graft::codegen
