#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"
#include "meta/models/models.h"
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

  // What the members themselves believe comes on top: the variance of a mixture.
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
  std::string_view kind() const override { return "ensemble"; }

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
    // At least two rows, where there are: less teaches nothing.
    const std::int64_t share = std::max<std::int64_t>(2, (groups[g].size() * 4 + 2) / 5);
    out.push_back(chosen(groups[g], stream.choose(groups[g].size(), share)));
  }
  return out;
}

std::unique_ptr<CostModel> make_ensemble_model(Members members, std::uint64_t seed) {
  return std::make_unique<EnsembleModel>(std::move(members), seed);
}

bool all_take(const Members& members, const features::Encoding& encoding) {
  return std::all_of(members.begin(), members.end(), [&](const auto& member) { return member->takes(encoding); });
}

void put_part(const CostModel& model, const std::string& name, base::Arrays& arrays) {
  const std::string prefix = name + "/";
  arrays.attributes[prefix + "kind"] = model.kind();
  const base::Arrays own = model.state();
  for (const auto& [key, array] : own.arrays) arrays.arrays[prefix + key] = array;
  for (const auto& [key, text] : own.attributes) arrays.attributes[prefix + "state/" + key] = text;
}

std::unique_ptr<CostModel> part_from(const base::Arrays& state, const std::string& name, std::string_view of_kind) {
  const std::string prefix = name + "/", attributes = prefix + "state/";
  const std::string kind = attribute_of(state, prefix + "kind");
  if (kind == of_kind) throw base::UserError(fmt::format("attribute '{}kind': {} in itself", prefix, kind));
  base::Arrays own;
  for (const auto& [key, array] : state.arrays) {
    if (key.starts_with(prefix)) own.arrays[key.substr(prefix.size())] = array;
  }
  for (const auto& [key, text] : state.attributes) {
    if (key.starts_with(attributes)) own.attributes[key.substr(attributes.size())] = text;
  }
  return model_from(kind, own);
}

void put_members(const Members& members, base::Arrays& arrays) {
  put_integers(arrays, "members", {std::int64_t(members.size())});
  for (std::size_t m = 0; m < members.size(); ++m) put_part(*members[m], fmt::format("member{}", m), arrays);
}

Members members_from(const base::Arrays& state, std::string_view of_kind) {
  const std::int64_t count = integer_of(state, "members", 2);
  Members members;
  for (std::int64_t m = 0; m < count; ++m) members.push_back(part_from(state, fmt::format("member{}", m), of_kind));
  return members;
}

Members copies(const Members& members) {
  Members out;
  for (const auto& member : members) out.push_back(member->clone());
  return out;
}

std::unique_ptr<CostModel> ensemble_model_from(const base::Arrays& state) {
  return make_ensemble_model(members_from(state, "ensemble"), base::from_hex(attribute_of(state, "seed")));
}

}  // namespace graft::meta
