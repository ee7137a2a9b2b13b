// Loop program -> numbers. An encoding is a declared list of features (name, unit, definition) and a function; vectors,
// CSV heads, documentation and the version hash derive from the list. Labels, cycles, modelled misses never get in
// here.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/arrays.h"
#include "codegen/program/program.h"

namespace graft::features {

struct Feature {
  std::string name;  // "b0.touched>reuse.t07"
  std::string unit;  // "log2", "1", "elements"
  std::string definition;
};

struct Encoding {
  std::string name;  // "context_relation"
  std::string description;
  std::vector<Feature> features;  // one per column; the length is the same for every program
  std::uint64_t hash = 0;         // of name, version and the list
  void (*encode)(const codegen::LoopProgram& program, std::span<float> row) = nullptr;
};

const std::vector<Encoding>& encodings();
const Encoding& encoding_named(std::string_view name);  // throws UserError (did you mean)

// One row per program, `run` only. Deterministic; threads change nothing.
base::Matrix encode(const Encoding& encoding, std::span<const codegen::LoopProgram> programs, int threads = 1);

}  // namespace graft::features
