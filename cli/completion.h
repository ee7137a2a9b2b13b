// Scripts with which a shell completes arguments of `graft`: commands, their flags, and the names that flags and
// arguments take (platforms, operators, suites, methods, encodings, explorers). Generated from the table of commands
// and the lists at the time the script is written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace graft::cli {

const std::vector<std::string>& completed_shells();  // bash, zsh, fish
// UserError (did you mean) for another shell.
std::string completion_script(std::string_view shell);

}  // namespace graft::cli
