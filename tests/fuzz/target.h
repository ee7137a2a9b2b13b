// Common to the fuzz targets. Each target is one file that defines `examine`: it reads an arbitrary
// text, and accepted texts must keep the promises of the form that was read. A refusal (UserError) is right
// by definition; everything else that ends the process is a finding, as is a text that takes seconds or a gigabyte.
//
// The preset `fuzz` links the targets with libFuzzer (tests/README.md); every build links them with replay.cpp, which
// runs the seeds and what was once found, as a test.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace graft::fuzz {

void examine(std::string_view text);

// Ends the process if a promise does not hold.
inline void promise(bool holds, std::string_view what, std::string_view first = {}, std::string_view second = {}) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n---\n%s\n---\n%s\n", std::string(what).c_str(), std::string(first).c_str(),
               std::string(second).c_str());
  std::abort();
}

// The result of `body`, or nullopt if the user's text was refused.
template <class Body>
auto accepted(const Body& body) -> std::optional<decltype(body())> {
  try {
    return body();
  } catch (const base::UserError&) {
    return std::nullopt;
  }
}

// The same for a text that we have written ourselves, which must therefore be readable.
template <class Body>
auto read_back(std::string_view text, const Body& body) {
  auto read = accepted(body);
  promise(read.has_value(), "what is written is read", text);
  return std::move(*read);
}

}  // namespace graft::fuzz
