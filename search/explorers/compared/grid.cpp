#include "search/explorers/compared/grid.h"

#include <algorithm>
#include <numeric>

namespace graft::search {
namespace {

// Digits of the stride that is nearest to `share` of all points from above and meets every point.
std::vector<std::size_t> stride_of(const std::vector<codegen::Domain>& domains, double share) {
  std::vector<std::size_t> digits;
  for (const codegen::Domain& domain : domains) {
    share *= double(domain.values.size());
    digits.push_back(std::min(std::size_t(share), domain.values.size() - 1));
    share -= double(digits.back());
  }
  const auto meets_all = [&] {
    return std::all_of(domains.begin(), domains.end(), [&](const codegen::Domain& domain) {
      std::size_t remainder = 0;
      for (std::size_t d = 0; d < digits.size(); ++d)
        remainder = (remainder * domains[d].values.size() + digits[d]) % domain.values.size();
      return std::gcd(remainder, domain.values.size()) == 1;
    });
  };
  while (!meets_all()) {
    for (std::size_t d = digits.size(); d-- > 0;) {
      if (++digits[d] < domains[d].values.size()) break;
      digits[d] = 0;
    }
  }
  return digits;
}

}  // namespace

Grid::Grid(const codegen::Space& space, std::uint64_t seed, const GridSettings& settings)
    : space_(space), settings_(settings) {
  base::Stream stream(seed, "grid");
  for (std::size_t s = 0; s < space.sketches().size(); ++s) {
    Walk walk{{s, {}}, stride_of(space.sketches()[s].domains, settings.stride), 1};
    for (const codegen::Domain& domain : space.sketches()[s].domains) {
      walk.at.rows.push_back(std::size_t(stream.below(std::int64_t(domain.values.size()))));
      walk.left *= double(domain.values.size());
    }
    walks_.push_back(std::move(walk));
  }
}

void Grid::advance(Walk& walk) const {
  --walk.left;
  std::size_t carry = 0;
  const std::vector<codegen::Domain>& domains = space_.sketches()[walk.at.sketch].domains;
  for (std::size_t d = domains.size(); d-- > 0;) {
    const std::size_t sum = walk.at.rows[d] + walk.stride[d] + carry;
    carry = sum >= domains[d].values.size() ? 1 : 0;
    walk.at.rows[d] = sum - carry * domains[d].values.size();
  }
}

Proposal Grid::proposal(int count, Scorer& scorer) {
  Proposal found;
  int refused = 0;
  const auto is_left = [](const Walk& walk) { return walk.left > 0; };
  while (int(found.others.size()) < count && refused < settings_.most_refused &&
         std::any_of(walks_.begin(), walks_.end(), is_left)) {
    Walk& walk = walks_[turn_++ % walks_.size()];
    if (!is_left(walk)) continue;
    const base::Result<codegen::Candidate> candidate = space_.admitted(candidate_at(walk.at, space_), scorer.judge());
    advance(walk);
    if (candidate && proposed_.take(*candidate, scorer)) {
      found.others.push_back(*candidate);
      refused = 0;
    } else {
      ++refused;
    }
  }
  return found;
}

}  // namespace graft::search
