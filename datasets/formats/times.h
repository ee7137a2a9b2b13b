// Numbers in the place of times. Tools mark a failed measurement by one that is not a time: NaN, infinity, or one
// beyond any measurement (AutoTVM's 1e9 seconds, Ansor's 1e10, Kernel Tuner's old 1e20 of any unit).
#pragma once

#include <span>
#include <string>
#include <vector>

namespace graft::datasets::formats {

// Why a number > 0 in units of that many seconds is a mark of a failure, "1e+20 in place of a time"; "" for a time.
std::string mark_in(double value, double unit_seconds = 1);

// What repetitions say: the times among them, in seconds; where there is none, the first mark ("no time" if there is
// not even one). The numbers are positive, infinite or NaN.
struct Times {
  std::vector<double> seconds;
  std::string mark;  // "" if there are times
};
Times times_in(std::span<const double> values, double unit_seconds = 1);

}  // namespace graft::datasets::formats
