// Traces of TVM's scheduling primitives, as MetaSchedule keeps them, and their replay: a list of primitives with names
// for the blocks, loops and numbers that they return, and the decisions of those that sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "codegen/import/tir.h"
#include "codegen/program/program.h"

namespace graft::codegen {

struct TirTrace {
  // A name that an earlier instruction gave, a number, another text ("\"SSRSRS\"", a key), nothing, or several.
  struct Item {
    enum class Kind { none, number, text, list };
    Kind kind = Kind::none;
    std::int64_t number = 0;
    std::string text;
    std::vector<Item> items;
  };
  struct Instruction {
    std::string name;
    std::vector<Item> inputs, attributes, outputs;
  };
  std::vector<Instruction> instructions;
  std::map<std::size_t, std::vector<std::int64_t>> decisions;  // by instruction; one number, or tile sizes

  // Hash of the instructions up to the postprocessing, which follows from those before, without annotations and
  // decisions.
  std::uint64_t form() const;
  std::size_t size_without_postprocessing() const;
};

// The loop program of the scheduled function: `roles` is its computation, perhaps with inputs as constants. A Reason
// for a primitive that does not apply, is not expressed, or is one of GPUs; it begins with the primitive's name.
base::Result<LoopProgram> replayed(const TirFunction& function, const Computation& roles, const TirTrace& trace);

}  // namespace graft::codegen
