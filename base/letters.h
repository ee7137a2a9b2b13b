// Letters of ASCII.
#pragma once

#include <string>
#include <string_view>

namespace graft::base {

std::string lower_case(std::string_view text);  // other bytes stay as they are

}  // namespace graft::base
