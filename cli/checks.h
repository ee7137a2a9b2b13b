#pragma once

#include <string>
#include <vector>

namespace graft::cli {

// One thing that graft needs, or can use, on this machine.
struct Check {
  std::string name;
  bool required = false, good = false;
  std::string found, remedy;
};

// Tests each of them here, in order, and takes a few seconds; a failed check is a value, not an exception.
std::vector<Check> checks_of_this_machine();

}  // namespace graft::cli
