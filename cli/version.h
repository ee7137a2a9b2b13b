// The version of this program and what it was built with.
#pragma once

#include <string>

namespace graft::cli {

// "graft 0.1.0", then a line for each of: the commit (if the source tree had one when it was configured), the
// compiler and kind of build, the libraries. Ends in a newline.
std::string version_text();

}  // namespace graft::cli
