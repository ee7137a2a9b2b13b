#include "datasets/platform_name.h"

#include <algorithm>

namespace graft::datasets {

bool is_platform_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view(":@._,=-").find(c) != std::string_view::npos;
  });
}

}  // namespace graft::datasets
