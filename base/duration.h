// Times for people, and from them.
#pragma once

#include <string>
#include <string_view>

namespace graft::base {

// "1.234 us", "12 min"; "-" if not finite. Four digits below a second.
std::string seconds_text(double seconds);

// "90", "90s", "10m", "1.5h" in seconds; UserError for anything else, and for values that are not above 0.
double seconds_from(std::string_view text);

}  // namespace graft::base
