// Settings of requests as text (`graft reference`): their reference page, and the types of the Python functions that
// take them.
#pragma once

#include <string>

namespace graft::cli {

std::string settings_page();
std::string python_stubs();  // python/graft/_calls.pyi

}  // namespace graft::cli
