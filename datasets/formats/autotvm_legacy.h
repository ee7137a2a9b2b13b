// Private to this folder: records of AutoTVM 0.1, from before templates were named for their target. There, one name
// denoted all of an operator's templates; target, the template's key and the knobs identify the template.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"

namespace graft::datasets::formats {

// [target, template, arguments, {}] in the form of version 0.2, of the first four items of a record's "i": template by
// its present name if we know it, else by the old one; convolutions' arguments in the present order, with a dilation.
// `key`: the config's "t", such as "direct" or "winograd". UserError for an input of another form.
base::Document present_input(const base::Document& input, std::string_view key, const std::vector<std::string>& knobs);

}  // namespace graft::datasets::formats
