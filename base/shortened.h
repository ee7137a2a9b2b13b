// How a text of any length, such as a workload given as an index expression, goes into a message of one line.
#pragma once

#include <string>
#include <string_view>

namespace graft::base {

// The text, or of a longer one its begin and end and how much is between them: at most some 120 characters.
// "C[i,j] += A[i,k] ... (3912 more characters) ... where i=64". UTF-8 stays UTF-8.
std::string shortened(std::string_view text);

}  // namespace graft::base
