// RAII wrappers of HDF5, without its header: named float arrays with text attributes, and what a file says about
// itself.
#pragma once

#include <filesystem>
#include <string>

#include "base/arrays.h"

namespace graft::datasets {

// Whole file, replaced by rename. Array names may contain '/'. Throws Failure.
void write_arrays(const base::Arrays& arrays, const std::filesystem::path& path);
// Throws UserError "<file>: ..." when it is missing, truncated or not a file of this kind.
base::Arrays read_arrays(const std::filesystem::path& path);

// "dataset", "arrays", or "" for an HDF5 file that is neither; UserError if it is not a readable HDF5 file.
std::string kind_of_file(const std::filesystem::path& path);

}  // namespace graft::datasets
