// Valid names of platforms: defined once, for our platforms and imported ones.
#pragma once

#include <string_view>

namespace graft::datasets {

// Letters, digits and : @ . _ , = -
bool is_platform_name(std::string_view text);

}  // namespace graft::datasets
