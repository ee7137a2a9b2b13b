// Outputs of two runs, compared word by word and number by number.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace graft::tasks {

// Numbers are equal if |a - b| <= absolute + relative * |b|, as numpy.isclose has it; without a tolerance, if their
// texts are. Everything else is compared as text, blanks apart.
struct Tolerance {
  double relative = 0, absolute = 0;
  bool operator==(const Tolerance&) const = default;
};

// The first difference between two outputs, as "is 43, not 42"; nullopt if there is none.
std::optional<std::string> difference(const std::vector<std::string>& own, const std::vector<std::string>& wanted,
                                      const std::optional<Tolerance>& tolerance);

// Why nothing can be compared with these texts, which are values, or (`are_lines`) whole lines: "is empty", "is nan";
// "" if it can be.
std::string unfit_as_reference(const std::vector<std::string>& texts, bool are_lines);

}  // namespace graft::tasks
