// The text of values that several commands show.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/document.h"
#include "base/interval.h"
#include "cli/output.h"
#include "datasets/failures.h"
#include "datasets/quality.h"

namespace graft::cli {

// "modelled seconds" for modelled platforms: such a time is never called a measurement.
std::string seconds_word(std::string_view source);

// The reasons why trials or rows failed, by count; nothing if none did. JSON: "failures".
void print_failures(const datasets::FailureCounts& failures, Output& out);

std::string status_line(const base::Document& counts);  // "40 ok, 1 wrong_result"

// "0.713 [0.650, 0.780]", "0.713" if there is no interval, "-" if there is no mean. `number`: a format of fmt.
std::string interval_text(const base::Interval& value, std::string_view number = "{:.3f}");

// Text as one word of a shell's command line, in quotes; and as a person would type it, in quotes where it needs them.
std::string shell_quoted(std::string_view text);
std::string shell_word(std::string_view text);

// "passed", or which gates it missed; a share in per cent, "-" for none.
std::string gates_text(const datasets::Quality& quality);
std::string share_text(double share);
// The unit in which times of this size read well, in seconds, and its name.
std::pair<double, const char*> unit_of(double seconds);
// "1.85 GFLOP": three digits, and a prefix of the unit.
std::string count_text(double value, std::string_view unit);

}  // namespace graft::cli
