#include "meta/methods/adapted.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "meta/methods/parts.h"
#include "meta/state.h"

namespace graft::meta {
namespace {

// One Examples per workload; later measurements of a program (one that has a hash) replace earlier ones.
std::vector<Examples> together(std::span<const Examples> first, std::span<const Examples> second) {
  std::vector<Examples> out;
  for (const std::span<const Examples> part : {first, second}) {
    for (const Examples& group : part) {
      if (group.size() == 0) continue;
      const auto known = std::find_if(out.begin(), out.end(), [&](const Examples& other) {
        return other.workload.text() == group.workload.text();
      });
      if (known == out.end()) {
        out.push_back(group);
        continue;
      }
      std::vector<std::int64_t> kept;
      for (std::int64_t i = 0; i < known->size(); ++i) {
        const std::uint64_t hash = known->program_hashes[std::size_t(i)];
        const bool again = hash != 0 && std::find(group.program_hashes.begin(), group.program_hashes.end(), hash) !=
                                            group.program_hashes.end();
        if (!again) kept.push_back(i);
      }
      if (std::int64_t(kept.size()) < known->size()) *known = chosen(*known, kept);
      features::append(known->features, group.features);
      known->log_seconds.insert(known->log_seconds.end(), group.log_seconds.begin(), group.log_seconds.end());
      known->program_hashes.insert(known->program_hashes.end(), group.program_hashes.begin(),
                                   group.program_hashes.end());
    }
  }
  for (Examples& group : out) {
    for (double& seconds : group.log_seconds) seconds = double(float(seconds));  // as a file keeps them
  }
  return out;
}

class AdaptedModel final : public CostModel {
 public:
  AdaptedModel(std::shared_ptr<const CostModel> prior, std::vector<Examples> support)
      : prior_(std::move(prior)), support_(std::move(support)), speaks_(prior_->fitted(support_)) {}

  Scores score(const features::Encoded& programs) const override { return speaks_->score(programs); }
  Scores score_with_spread(const features::Encoded& programs) const override {
    return speaks_->score_with_spread(programs);
  }
  std::unique_ptr<CostModel> fitted(std::span<const Examples> support) const override {
    return speaks_->fitted(support);
  }
  std::unique_ptr<CostModel> clone() const override { return std::make_unique<AdaptedModel>(*this); }
  std::shared_ptr<const CostModel> prior() const override { return prior_; }
  std::span<const Examples> support() const override { return support_; }
  bool is_informed() const override { return speaks_->is_informed(); }
  bool takes(const features::Encoding& encoding) const override {
    return prior_->takes(encoding) && speaks_->takes(encoding);
  }
  std::string_view kind() const override { return adapted_kind; }

  base::Arrays state() const override {
    base::Arrays out;
    put_part(*prior_, "prior", out);
    out.attributes["platform"] = support_.front().platform;
    put_integers(out, "groups", {std::int64_t(support_.size())});
    for (std::size_t g = 0; g < support_.size(); ++g) {
      const Examples& group = support_[g];
      const std::string name = fmt::format("support{}/", g);
      out.attributes[name + "workload"] = group.workload.text();
      out.arrays[name + "rows"] = {{group.features.rows.rows, group.features.rows.columns}, group.features.rows.values};
      put_values(out, name + "begins", {group.features.begins.begin(), group.features.begins.end()});
      put_values(out, name + "parents", {group.features.parents.begin(), group.features.parents.end()});
      put_values(out, name + "log_seconds", {group.log_seconds.begin(), group.log_seconds.end()});
      put_hashes(out, name + "programs", group.program_hashes);
      if (!group.features.identities.empty()) put_hashes(out, name + "identities", group.features.identities);
    }
    return out;
  }

 private:
  std::shared_ptr<const CostModel> prior_;
  std::vector<Examples> support_;
  std::shared_ptr<const CostModel> speaks_;
};

// Whole numbers from `least` on, in an array.
std::vector<std::int64_t> whole_numbers(const base::Arrays& state, const std::string& name, std::int64_t least,
                                        std::int64_t expected = -1) {
  std::vector<std::int64_t> out;
  for (const float value : values_of(state, name, expected)) {
    if (!whole_number(value, least, (std::int64_t(1) << 24) + 1))
      throw base::UserError(fmt::format("array '{}': {} is not a whole number of at least {}", name, value, least));
    out.push_back(std::int64_t(value));
  }
  return out;
}

Examples group_from(const base::Arrays& state, const std::string& name) {
  Examples out;
  out.platform = attribute_of(state, "platform");
  out.workload = codegen::Workload(attribute_of(state, name + "workload"));
  const std::vector<float>& seconds = values_of(state, name + "log_seconds");
  out.log_seconds.assign(seconds.begin(), seconds.end());
  const auto programs = std::int64_t(seconds.size());
  out.program_hashes = hashes_of(state, name + "programs", programs);
  features::Encoded& features = out.features;
  if (state.arrays.contains(name + "identities")) features.identities = hashes_of(state, name + "identities", programs);
  features.begins = whole_numbers(state, name + "begins", 0, programs + 1);
  const std::vector<float>& values = values_of(state, name + "rows");
  const std::vector<std::int64_t>& shape = state.arrays.at(name + "rows").shape;
  if (programs == 0 || shape.size() != 2 || features.begins.front() != 0 || features.begins.back() != shape[0] ||
      !std::is_sorted(features.begins.begin(), features.begins.end()))
    throw base::UserError(fmt::format("array '{}rows': not of {} programs", name, programs));
  features.rows = base::Matrix(shape[0], shape[1]);
  features.rows.values = values;
  for (const std::int64_t parent : whole_numbers(state, name + "parents", -1))
    features.parents.push_back(std::int32_t(parent));
  if (features.parents.empty()) return out;
  bool trees = std::int64_t(features.parents.size()) == shape[0];  // each with parents before their children
  for (std::size_t p = 0; trees && p + 1 < features.begins.size(); ++p) {
    for (std::int64_t r = features.begins[p]; r < features.begins[p + 1]; ++r)
      trees &= features.parents[std::size_t(r)] < r - features.begins[p];
  }
  if (!trees) throw base::UserError(fmt::format("array '{}parents': no trees", name));
  return out;
}

}  // namespace

std::unique_ptr<CostModel> CostModel::adapted(std::span<const Examples> more) const {
  const bool same_platform = more.empty() || support().empty() || support().front().platform == more.front().platform;
  std::vector<Examples> all = together(same_platform ? support() : std::span<const Examples>(), more);
  if (all.empty()) return clone();
  return std::make_unique<AdaptedModel>(prior(), std::move(all));
}

std::unique_ptr<CostModel> adapted_model_from(const base::Arrays& state) {
  std::shared_ptr<const CostModel> prior = part_from(state, "prior", adapted_kind);
  std::vector<Examples> support;
  const std::int64_t groups = integer_of(state, "groups", 1);
  for (std::int64_t g = 0; g < groups; ++g) {
    support.push_back(group_from(state, fmt::format("support{}/", g)));
    const features::Encoded& features = support.back().features;
    features::Encoding encoding;  // that could have made these rows
    encoding.features.resize(std::size_t(features.rows.columns));
    encoding.shape = features.parents.empty() ? features::Shape::row : features::Shape::tree;
    if (!prior->takes(encoding))
      throw base::UserError(fmt::format("array 'support{}/rows': not what the prior takes", g));
  }
  return std::make_unique<AdaptedModel>(std::move(prior), std::move(support));
}

}  // namespace graft::meta
