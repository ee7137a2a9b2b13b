// The check of a loop program with a place for each of its parts, so that readers of text and JSON forms can point at
// the line. Private to codegen/program; everyone else calls check() of program.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/program/program.h"

namespace graft::codegen {

// Bounds on what comes from outside: they keep the analysis inside 64 bits and the recursion of later passes shallow.
// No real program comes near them; a hostile file might.
constexpr std::int64_t largest_count = std::int64_t(1) << 50;  // elements of a buffer, executions of a store
constexpr std::size_t deepest_nest = 64;
constexpr std::size_t longest_value = 4096;  // nodes
constexpr std::size_t most_dimensions = 16;

// Where each part was read, parallel to the program's vectors; a part without its own place is reported at
// `whole`.
struct Places {
  std::string whole;
  std::vector<std::string> buffers, loops, stores;
};

void check(const LoopProgram& program, const Places& places);

}  // namespace graft::codegen
