// What is common to the fuzz targets. Each target is one file that defines `examine`: it reads a text that may be
// anything, and whatever is accepted must hold the promises of the form that was read. A refusal (UserError) is right
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

// Ends the process where a promise does not hold.
inline void promise(bool holds, std::string_view what, std::string_view first = {}, std::string_view second = {}) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n---\n%s\n---\n%s\n", std::string(what).c_str(), std::string(first).c_str(),
               std::string(second).c_str());
  std::abort();
}

// What `body` gives, or nothing when the user's text was refused.
template <class Body>
auto accepted(const Body& body) -> std::optional<decltype(body())> {
  try {
    return body();
  } catch (const base::UserError&) {
    return std::nullopt;
  }
}

// The same for a text that we have written ourselves, and must therefore be able to read.
template <class Body>
auto read_back(std::string_view text, const Body& body) {
  auto read = accepted(body);
  promise(read.has_value(), "what is written is read", text);
  return std::move(*read);
}

}  // namespace graft::fuzz
