// Shortens a text of any length, such as a workload given as an index expression, for a message of one line.
#pragma once

#include <string>
#include <string_view>

namespace graft::base {

// The text, or for a long one its beginning and end and the number of characters between: at most about 120 characters.
// "C[i,j] += A[i,k] ... (3912 more characters) ... where i=64". UTF-8 stays UTF-8.
std::string shortened(std::string_view text);

}  // namespace graft::base
