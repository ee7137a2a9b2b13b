// The columns of a loop or store of a nest, one list for the encodings that look at single loops and stores.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "features/encoding.h"
#include "features/nest.h"

namespace graft::features {

std::size_t part_columns();
// Appends part_columns() features to a list, their names prefixed with `prefix`.
void declare_part(std::vector<Feature>& list, const std::string& prefix);
// Fills the columns of the part, which must be 0.
void write_part(const codegen::LoopProgram& program, const Part& part, std::span<float> columns);

}  // namespace graft::features
