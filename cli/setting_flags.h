// Flags for the settings of a request (study/inputs/setting.h): their names, defaults, ranges and help are those of its
// table.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "cli/command.h"
#include "study/inputs/setting.h"

namespace graft::cli {

// "--stop-after" for "stop_after".
std::string flag_of(std::string field);
// A text of a library, in which names of fields are in back quotes (study/inputs/field_error.h), with their flags
// instead; what else is in back quotes stays.
std::string with_flags(std::string_view text);

// Declares those that are flags; they are bound to the request. The request's values are the defaults.
void declare(Options& options, const study::Settings& settings);
// Declares these of them; `help`: in place of the table's.
void declare_some(Options& options, const study::Settings& settings, std::initializer_list<std::string_view> keys,
                  const std::string& help = "");
// UserError that the first one that was given, as a flag, "goes with an ONNX file" or with whatever `goes_with` says.
void refuse_given(const study::Settings& settings, const std::string& goes_with);

}  // namespace graft::cli
