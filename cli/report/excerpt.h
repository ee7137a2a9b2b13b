// The part of a kernel's machine code that a reader looks for: its busiest loop.
#pragma once

#include <string>

namespace graft::cli {

struct Excerpt {
  std::string text;
  std::size_t lines = 0, of = 0;  // lines of the excerpt, and of the whole text
};

// For any target: the innermost loop with the most arithmetic on floating-point numbers or vectors, as its
// instructions' names tell, at most `most` lines of it; the first lines where there is no loop.
Excerpt busiest_loop(const std::string& assembly, std::size_t most);

}  // namespace graft::cli
