#include "search/chances.h"

#include <algorithm>
#include <cmath>

namespace graft::search {

void normalise(std::vector<double>& weights) {
  double sum = 0;
  for (const double weight : weights) sum += weight;
  for (double& weight : weights) weight /= sum;
}

std::vector<double> chances_of(const std::vector<double>& logits) {
  std::vector<double> chances;
  const double most = *std::max_element(logits.begin(), logits.end());
  for (const double logit : logits) chances.push_back(std::exp(logit - most));
  normalise(chances);
  return chances;
}

std::size_t drawn(const std::vector<double>& chances, base::Stream& stream) {
  double at = stream.uniform();
  for (std::size_t i = 0; i + 1 < chances.size(); ++i) {
    if ((at -= chances[i]) < 0) return i;
  }
  return chances.size() - 1;
}

}  // namespace graft::search
