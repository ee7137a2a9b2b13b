#include "base/team.h"

#include <algorithm>

namespace graft::base {

bool TeamMonitor::stop_requested() {
  const std::vector<std::string> wishes = team_.gather(own_.stop_requested() ? "stop" : "");
  return std::any_of(wishes.begin(), wishes.end(), [](const std::string& wish) { return !wish.empty(); });
}

}  // namespace graft::base
