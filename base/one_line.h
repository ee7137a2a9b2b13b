// Output of other programs, made fit for our messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace graft::base {

// What another program wrote as one line: its lines joined by "; ", white space, control characters and escape
// sequences of terminals as single spaces, bytes that are not UTF-8 as '?', cut to `longest` bytes ("..." at the end).
std::string one_line(std::string_view foreign, std::size_t longest = 300);

// Without the escape sequences of terminals (colours, titles, links).
std::string without_escapes(std::string_view foreign);

}  // namespace graft::base
