// What a platform may be called: said once, for platforms of ours and for imported ones.
#pragma once

#include <string_view>

namespace graft::datasets {

// Letters, digits and : @ . _ , = -
bool is_platform_name(std::string_view text);

}  // namespace graft::datasets
