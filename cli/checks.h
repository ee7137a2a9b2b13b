#pragma once

#include <string>
#include <vector>

namespace graft::cli {

// One thing that graft needs, or can make use of, on this machine.
struct Check {
  std::string name;
  bool required = false, good = false;
  std::string found, remedy;
};

// Tries everything out here, one after the other, and takes a few seconds; a check that fails is a value, no exception.
std::vector<Check> checks_of_this_machine();

}  // namespace graft::cli
