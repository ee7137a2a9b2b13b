#include "meta/methods/network_model.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "meta/learner.h"
#include "meta/methods/continual.h"
#include "meta/networks/aligned.h"
#include "meta/state.h"

namespace graft::meta {
namespace {

// Reptile's step (Nichol et al. 2018).
base::Arrays moved_network(const CostModel& model, std::int64_t known, const TaskSet& tasks) {
  base::Arrays state = model.state();
  for (const base::Arrays& adapted : adapted_states(model, tasks)) {
    ++known;
    move_towards(state.arrays.at("theta").values, values_of(adapted, "theta"), 1.0 / double(known));
  }
  std::vector<float>& theta = state.arrays.at("theta").values;
  for (const ParameterBlock& block : layout_of(shape_from(state, normalisation_from(state).features()))) {
    if (block.context) std::fill_n(theta.begin() + block.offset, block.size, 0.0f);  // it begins at 0 for everyone
  }
  return state;
}

class NetworkModel final : public CostModel {
 public:
  explicit NetworkModel(NetworkState state)
      : state_(std::move(state)), network_(make_network(state_.shape)), theta_(state_.theta) {
    assert(network_->parameters() == std::int64_t(state_.theta.size()));
    assert(state_.normalisation.features() == state_.shape.inputs);
  }

  Scores score(const features::Encoded& programs) const override {
    const std::size_t count = std::size_t(programs.programs());
    Scores out{std::vector<float>(count), std::vector<float>(count, 0.0f)};
    if (programs.rows.rows <= most_rows) {
      score(programs, out.mean);
      return out;
    }
    for (std::int64_t first = 0, last = 0; first < programs.programs(); first = last) {
      std::vector<std::int64_t> part;
      do part.push_back(last++);
      while (last < programs.programs() && programs.begins[last + 1] - programs.begins[first] <= most_rows);
      score(features::chosen(programs, part), std::span(out.mean).subspan(std::size_t(first), part.size()));
    }
    return out;
  }

  std::unique_ptr<CostModel> fitted(std::span<const Examples> support) const override {
    NetworkState moved = state_;
    const Batch<float> batch = batch_of(state_.normalisation, state_.adaptation.loss, support);
    if (!batch.objective.empty()) {
      const double shots = double(batch.objective.rows()) / double(support.size());
      moved.theta = adapted_parameters(*network_, state_.adaptation, state_.theta, batch, shots);
    }
    return make_network_model(std::move(moved));
  }

  std::unique_ptr<CostModel> clone() const override { return make_network_model(state_); }
  bool is_informed() const override { return true; }
  bool takes(const features::Encoding& encoding) const override { return meta::takes(state_.shape, encoding); }
  bool can_continue() const override { return true; }
  std::unique_ptr<CostModel> continued(std::int64_t known, const TaskSet& tasks, const LearnerSettings&,
                                       base::Monitor&) const override {
    return network_model_from(moved_network(*this, known, tasks));
  }
  std::string_view kind() const override { return "network"; }

  base::Arrays state() const override {
    base::Arrays out;
    put(state_.shape, out);
    put(state_.normalisation, out);
    put(state_.adaptation, out);
    put_values(out, "theta", state_.theta);
    return out;
  }

 private:
  // All at once: normalisation copies. Many equal parts of trees are still together.
  static constexpr std::int64_t most_rows = std::int64_t(1) << 17;

  void score(const features::Encoded& programs, std::span<float> scores) const {
    const features::Encoded x = state_.normalisation.apply(programs);
    if (!scores.empty()) network_->score(theta_.values(), inputs_of(x), scores);
  }

  NetworkState state_;
  std::unique_ptr<Network> network_;
  Aligned theta_;  // state_.theta, to score with
};

}  // namespace

std::unique_ptr<CostModel> make_network_model(NetworkState state) {
  return std::make_unique<NetworkModel>(std::move(state));
}

std::unique_ptr<CostModel> network_model_from(const base::Arrays& state) {
  NetworkState out;
  out.normalisation = normalisation_from(state);
  out.shape = scoring_shape_from(state, out.normalisation.features());
  out.theta = values_of(state, "theta", parameter_count(out.shape));
  out.adaptation = adaptation_from(state, layout_of(out.shape));
  return make_network_model(std::move(out));
}

}  // namespace graft::meta
