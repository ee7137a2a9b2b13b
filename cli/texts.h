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

// "measured", or "modelled" and "emulated": times of these sources are never called measured.
std::string_view measured_word(std::string_view source);
// "modelled " and "emulated " in front of a word for their times; "" for what was measured.
std::string kind_of_times(std::string_view source);
std::string seconds_word(std::string_view source);               // "modelled seconds"
std::string time_text(double seconds, std::string_view source);  // "18.31 ms (modelled)"
// After a heading: ": modelled times, not measurements of a device"; "" for what was measured.
std::string times_note(std::string_view source);

// The reasons why trials or rows failed, by count; nothing if none did. JSON: "failures".
void print_failures(const datasets::FailureCounts& failures, Output& out);

std::string status_line(const base::Document& counts);  // "40 ok, 1 wrong_result"

// "0.713 [0.650, 0.780]", "0.713" if there is no interval, "-" if there is no mean. `number`: a format of fmt.
std::string interval_text(const base::Interval& value, std::string_view number = "{:.3f}");

// Text as one word of a shell's command line, in quotes; and as a person would type it, in quotes where it needs them.
std::string shell_quoted(std::string_view text);
std::string shell_word(std::string_view text);

// The name of a network's layer for a cell of a table: "conv1 (Conv, Clip)"; of a path of names, as exporters write
// them, the end.
std::string layer_name(std::string_view label);

// "passed", or which gates it missed; a share in per cent, "-" for none.
std::string gates_text(const datasets::Quality& quality);
std::string share_text(double share);
// The unit in which times of this size read well, in seconds, and its name.
std::pair<double, const char*> unit_of(double seconds);
// "1.85 GFLOP": three digits, and a prefix of the unit.
std::string count_text(double value, std::string_view unit);

}  // namespace graft::cli
