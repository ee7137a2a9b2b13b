#include "meta/methods/embedding_model.h"

#include <cassert>
#include <utility>

#include "base/error.h"
#include "meta/gradient/adaptation.h"
#include "meta/learner.h"
#include "meta/methods/continual.h"
#include "meta/state.h"

namespace graft::meta {
namespace {

// Mean and covariance of the platforms' heads with some more of them; the embedding stays.
base::Arrays more_heads(const CostModel& model, std::int64_t known, const TaskSet& tasks) {
  base::Arrays state = model.state();
  for (const base::Arrays& adapted : adapted_states(model, tasks)) {
    ++known;
    std::vector<float>& mean = state.arrays.at("head/mean").values;
    std::vector<float>& covariance = state.arrays.at("head/covariance").values;
    const std::vector<float>& own = values_of(adapted, "head/mean", std::int64_t(mean.size()));
    const double share = 1.0 / double(known);
    for (std::size_t a = 0; a < mean.size(); ++a) {
      for (std::size_t b = 0; b < mean.size(); ++b) {
        float& value = covariance[a * mean.size() + b];
        value = float((1 - share) * (double(value) + share * double(own[a] - mean[a]) * double(own[b] - mean[b])));
      }
    }
    move_towards(mean, own, share);
  }
  return state;
}

class EmbeddingModel final : public CostModel {
 public:
  explicit EmbeddingModel(EmbeddingState state) : state_(std::move(state)), network_(make_network(state_.shape)) {
    assert(network_->parameters() == std::int64_t(state_.theta.size()));
    assert(state_.head.width() == state_.shape.outputs);
  }

  Scores score(const features::Encoded& programs) const override { return scored(programs, false); }
  Scores score_with_spread(const features::Encoded& programs) const override { return scored(programs, true); }

  std::unique_ptr<CostModel> fitted(std::span<const Examples> support) const override {
    Embedded embedded;
    embedded.width = state_.shape.outputs;
    for (const Examples& group : support) {
      const std::vector<double> rows = embed(group.features);
      embedded.values.insert(embedded.values.end(), rows.begin(), rows.end());
      embedded.log_seconds.insert(embedded.log_seconds.end(), group.log_seconds.begin(), group.log_seconds.end());
      embedded.sizes.push_back(group.size());
    }
    EmbeddingState moved = state_;
    moved.head = meta::adapted(state_.head, embedded);
    return make_embedding_model(std::move(moved));
  }

  std::unique_ptr<CostModel> clone() const override { return make_embedding_model(state_); }
  // A smoother or prototypes of nothing score all programs alike.
  bool is_informed() const override { return state_.head.kind == HeadKind::ridge || !state_.head.labels.empty(); }
  bool takes(const features::Encoding& encoding) const override { return meta::takes(state_.shape, encoding); }
  // Heads of other kinds keep nothing of their platforms.
  bool can_continue() const override { return state_.head.kind == HeadKind::ridge; }
  std::unique_ptr<CostModel> continued(std::int64_t known, const TaskSet& tasks, const LearnerSettings&,
                                       base::Monitor&) const override {
    return embedding_model_from(more_heads(*this, known, tasks));
  }
  std::string_view kind() const override { return "embedding"; }

  base::Arrays state() const override {
    base::Arrays out;
    put(state_.shape, out);
    put(state_.normalisation, out);
    put_values(out, "theta", state_.theta);
    const auto floats = [](const std::vector<double>& values) {
      return std::vector<float>(values.begin(), values.end());
    };
    const Head& head = state_.head;
    out.attributes["head"] = name_of(head.kind);
    put_values(out, "head/mean", floats(head.mean));
    put_values(out, "head/covariance", floats(head.covariance));
    put_values(out, "head/numbers", {float(head.noise), float(head.sharpness)});
    put_values(out, "head/places", floats(head.places));
    put_values(out, "head/labels", floats(head.labels));
    return out;
  }

 private:
  std::vector<double> embed(const features::Encoded& programs) const {
    const features::Encoded x = state_.normalisation.apply(programs);
    std::vector<float> rows(std::size_t(x.programs() * state_.shape.outputs));
    if (!rows.empty()) network_->score(state_.theta, inputs_of(x), rows);
    return {rows.begin(), rows.end()};
  }
  Scores scored(const features::Encoded& programs, bool with_spread) const {
    const std::vector<double> rows = embed(programs), mean = state_.head.scores(rows);
    Scores out{{mean.begin(), mean.end()}, std::vector<float>(mean.size(), 0.0f)};
    if (with_spread) {
      const std::vector<double> spread = state_.head.spread(rows);
      if (!spread.empty()) out.spread.assign(spread.begin(), spread.end());
    }
    return out;
  }

  EmbeddingState state_;
  std::unique_ptr<Network> network_;
};

}  // namespace

std::unique_ptr<CostModel> make_embedding_model(EmbeddingState state) {
  return std::make_unique<EmbeddingModel>(std::move(state));
}

std::unique_ptr<CostModel> embedding_model_from(const base::Arrays& state) {
  const auto doubles = [&](const std::string& name, std::int64_t expected) {
    const std::vector<float>& values = values_of(state, name, expected);
    return std::vector<double>(values.begin(), values.end());
  };
  EmbeddingState out;
  out.normalisation = normalisation_from(state);
  out.shape = shape_from(state, out.normalisation.features());
  out.theta = values_of(state, "theta", parameter_count(out.shape));
  const std::int64_t width = out.shape.outputs;
  out.head.kind = head_kind_named(attribute_of(state, "head"));
  out.head.mean = doubles("head/mean", width);
  out.head.covariance = doubles("head/covariance", out.head.kind == HeadKind::ridge ? width * width : 0);
  const std::vector<double> numbers = doubles("head/numbers", 2);
  out.head.noise = numbers[0];
  out.head.sharpness = numbers[1];
  out.head.labels = doubles("head/labels", -1);
  out.head.places = doubles("head/places", std::int64_t(out.head.labels.size()) * width);
  if (!(out.head.noise > 0) || !(out.head.sharpness > 0))
    throw base::UserError("array 'head/numbers': expected positive numbers");
  return make_embedding_model(std::move(out));
}

}  // namespace graft::meta
