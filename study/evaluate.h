#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace graft::study {

// The platforms dealt out to that number of folds, shuffled by the seed; sizes differ by one at most.
// Throws base::UserError for fewer than 2 folds or more folds than platforms.
std::vector<std::vector<std::string>> folds_of(std::vector<std::string> platforms, std::int64_t folds,
                                               std::uint64_t seed);

}  // namespace graft::study
