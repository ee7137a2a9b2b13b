// Private to this folder: edits of a computation shared by the restructuring steps.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/expression/computation.h"

namespace graft::codegen {

int stage_named(const Computation& computation, std::string_view name);  // -1 if there is none

// A name that no axis of `known` has: `name`, or with underscores appended.
std::string fresh_axis(std::string name, const std::vector<Axis>& known);

// The number of a new temporary, with a name that no tensor has. `values` make it a literal.
int add_temporary(Computation& computation, std::string name, DType dtype, std::vector<std::int64_t> shape,
                  std::vector<double> values = {});

// Removes the stage and its tensor, which must have no readers.
void remove_stage(Computation& computation, int stage);
// Replaces the stage by other stages.
void replace_stage(Computation& computation, int stage, std::vector<Stage> by);

// The parts of an axis, outermost first: the length of one step of a part, and the number of its steps.
struct AxisParts {
  std::vector<std::int64_t> steps, extents;
};
// Splits the axis into one for each part: the outermost keeps its name, the others are NAME_1, NAME_2, ...
void split_axis(const Computation& computation, Stage& stage, int axis, const AxisParts& parts);

}  // namespace graft::codegen
