// Private to this folder: edits of a computation that steps which restructure share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/expression/computation.h"

namespace graft::codegen {

int stage_named(const Computation& computation, std::string_view name);  // -1 if there is none

// A name that no axis of `known` has: `name`, or with underlines behind it.
std::string fresh_axis(std::string name, const std::vector<Axis>& known);

// Number of a new temporary, under a name that no tensor has. `values` make it a literal.
int add_temporary(Computation& computation, std::string name, DType dtype, std::vector<std::int64_t> shape,
                  std::vector<double> values = {});

// The stage and its tensor taken out; nobody may read it any more.
void remove_stage(Computation& computation, int stage);
// Other stages in the stage's place.
void replace_stage(Computation& computation, int stage, std::vector<Stage> by);

// The parts of an axis, outermost first: how much of it one step of a part is, and how often it is made.
struct AxisParts {
  std::vector<std::int64_t> steps, extents;
};
// The axis becomes one for each part: the outermost keeps its name, the others are NAME_1, NAME_2, ...
void split_axis(const Computation& computation, Stage& stage, int axis, const AxisParts& parts);

}  // namespace graft::codegen
