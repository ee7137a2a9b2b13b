#include "study/evaluate.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/random.h"

namespace graft::study {

std::vector<std::vector<std::string>> folds_of(std::vector<std::string> platforms, std::int64_t folds,
                                               std::uint64_t seed) {
  if (folds < 2 || folds > std::int64_t(platforms.size()))
    throw base::UserError("--folds",
                          fmt::format("expected 2 to {}, the number of platforms, got {}", platforms.size(), folds));
  base::Stream(seed, "folds").shuffle(platforms);
  std::vector<std::vector<std::string>> out(static_cast<std::size_t>(folds));
  for (std::size_t p = 0; p < platforms.size(); ++p) out[p % out.size()].push_back(platforms[p]);
  return out;
}

}  // namespace graft::study
