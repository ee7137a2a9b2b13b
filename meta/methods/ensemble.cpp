#include "meta/methods/ensemble.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "base/hash.h"
#include "base/random.h"
#include "meta/state.h"

namespace graft::meta {
namespace {

class EnsembleModel final : public CostModel {
 public:
  EnsembleModel(Members members, std::uint64_t seed) : members_(std::move(members)), seed_(seed) {
    assert(members_.size() >= 2);
  }

  Scores score(const features::Encoded& programs) const override {
    const std::size_t count = std::size_t(programs.programs());
    std::vector<double> sum(count, 0.0), squares(count, 0.0);
    std::vector<std::vector<float>> each;
    for (const auto& member : members_) each.push_back(member->score(programs).mean);
    const double size = double(members_.size());
    Scores out{std::vector<float>(count), std::vector<float>(count)};
    for (std::size_t p = 0; p < count; ++p) {
      for (const auto& scores : each) sum[p] += double(scores[p]) / size;
      for (const auto& scores : each) squares[p] += std::pow(double(scores[p]) - sum[p], 2);
      out.mean[p] = float(sum[p]);
      out.spread[p] = float(std::sqrt(squares[p] / (size - 1)));
    }
    return out;
  }

  // The members' own variance is added: the variance of a mixture.
  Scores score_with_spread(const features::Encoded& programs) const override {
    Scores out = score(programs);
    std::vector<double> within(out.mean.size(), 0.0);
    for (const auto& member : members_) {
      const std::vector<float> spread = member->score_with_spread(programs).spread;
      for (std::size_t p = 0; p < within.size(); ++p)
        within[p] += double(spread[p]) * double(spread[p]) / double(members_.size());
    }
    for (std::size_t p = 0; p < within.size(); ++p)
      out.spread[p] = float(std::sqrt(double(out.spread[p]) * double(out.spread[p]) + within[p]));
    return out;
  }

  std::unique_ptr<CostModel> fitted(std::span<const Examples> support) const override {
    Members moved;
    for (std::size_t m = 0; m < members_.size(); ++m)
      moved.push_back(members_[m]->fitted(bootstrap_share(support, seed_, int(m))));
    return make_ensemble_model(std::move(moved), seed_);
  }

  std::unique_ptr<CostModel> clone() const override { return make_ensemble_model(copies(members_), seed_); }
  bool is_informed() const override {
    return std::any_of(members_.begin(), members_.end(), [](const auto& member) { return member->is_informed(); });
  }
  bool takes(const features::Encoding& encoding) const override { return all_take(members_, encoding); }
  std::string_view kind() const override { return ensemble_kind; }

  base::Arrays state() const override {
    base::Arrays out;
    out.attributes["seed"] = base::to_hex(seed_);
    put_members(members_, out);
    return out;
  }

 private:
  Members members_;
  std::uint64_t seed_;
};

}  // namespace

std::vector<Examples> bootstrap_share(std::span<const Examples> groups, std::uint64_t seed, int member) {
  std::vector<Examples> out;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    base::Stream stream(seed, fmt::format("ensemble member {}", member), std::uint64_t(g));
    // At least two rows, if available: with fewer there is nothing to learn.
    const std::int64_t share = std::max<std::int64_t>(2, (groups[g].size() * 4 + 2) / 5);
    out.push_back(chosen(groups[g], stream.choose(groups[g].size(), share)));
  }
  return out;
}

std::unique_ptr<CostModel> make_ensemble_model(Members members, std::uint64_t seed) {
  return std::make_unique<EnsembleModel>(std::move(members), seed);
}

std::unique_ptr<CostModel> ensemble_model_from(const base::Arrays& state) {
  return make_ensemble_model(members_from(state, ensemble_kind), base::from_hex(attribute_of(state, "seed")));
}

}  // namespace graft::meta
