#include <cassert>
#include <utility>

#include "base/error.h"
#include "meta/models/models.h"
#include "meta/models/state.h"
#include "meta/networks/aligned.h"

namespace graft::meta {
namespace {

class NetworkModel final : public CostModel {
 public:
  explicit NetworkModel(NetworkState state)
      : state_(std::move(state)), network_(make_network(state_.shape)), theta_(state_.theta) {
    assert(network_->parameters() == std::int64_t(state_.theta.size()));
    assert(state_.normalisation.features() == state_.shape.inputs);
  }

  Scores score(const features::Encoded& programs) const override {
    const features::Encoded x = state_.normalisation.apply(programs);
    const std::size_t count = std::size_t(x.programs());
    Scores out{std::vector<float>(count), std::vector<float>(count, 0.0f)};
    if (count > 0) network_->score(theta_.values(), inputs_of(x), out.mean);
    return out;
  }

  std::unique_ptr<CostModel> adapted(std::span<const Examples> support) const override {
    NetworkState moved = state_;
    const Batch<float> batch = batch_of(state_.normalisation, state_.adaptation.loss, support);
    if (!batch.objective.empty()) {
      const double shots = double(batch.objective.rows()) / double(support.size());
      moved.theta = adapted_parameters(*network_, state_.adaptation, state_.theta, batch, shots);
    }
    return make_network_model(std::move(moved));
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
  out.shape = shape_from(state, out.normalisation.features());
  out.theta = values_of(state, "theta", parameter_count(out.shape));
  out.adaptation = adaptation_from(state, layout_of(out.shape));
  return make_network_model(std::move(out));
}

}  // namespace graft::meta
