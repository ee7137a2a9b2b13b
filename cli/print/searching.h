// Several searches while they run, for people.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/output.h"
#include "study/flows/tune_all.h"

namespace graft::cli {

// By their share of the weighted sum of times; those without a time first.
Table searching_table(const std::vector<std::string>& names, const std::vector<double>& weights,
                      const std::vector<study::SearchState>& searches, std::string_view source);

}  // namespace graft::cli
