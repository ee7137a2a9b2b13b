#include "study/inputs/model_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "meta/methods/methods.h"
#include "study/inputs/field_error.h"

namespace graft::study {
namespace {

// Returns the result of `work`. Its errors are reported for these fields.
template <class Work>
auto naming(std::string_view fields, const Work& work) {
  try {
    return work();
  } catch (const base::UserError& error) {
    throw FieldError(fields, error.what());
  }
}

bool wants_network(const ModelChoice& choice) {
  return !choice.hidden.empty() || choice.encoding == "tree";
}

// Trees take any rows, and no network is left whose kind could be wrong.
meta::NetworkShape network_of(const ModelChoice& choice, bool trees) {
  meta::NetworkShape network;
  if (trees) {
    network.kind = meta::NetworkKind::mlp;
  } else {
    network.kind = naming("model", [&] { return meta::network_kind_named(choice.model); });
  }
  const bool treegru = network.kind == meta::NetworkKind::treegru;
  // Layers before the output: of the MLP, of the TreeGRU's decoder.
  network.hidden = treegru ? std::vector<std::int64_t>{64} : std::vector<std::int64_t>{128, 64};
  if (!choice.hidden.empty()) network.hidden = choice.hidden;
  network.tree = {choice.embedding, choice.units, choice.slots};
  return network;
}

}  // namespace

ModelPlan::ModelPlan(ModelChoice choice, const std::string& learner, std::uint64_t seed, int threads)
    : choice_(std::move(choice)) {
  if (choice_.model.empty()) {
    const meta::Method& method = meta::method_named(learner);
    choice_.model = meta::prefers_trees(method) && !wants_network(choice_) ? "gbt" : "mlp";
    model_follows_data_ = method.made_of == meta::MadeOf::either;
  }
  settings_.trees = choice_.model == "gbt";
  settings_.network = network_of(choice_, settings_.trees);
  if (!choice_.loss.empty()) settings_.loss = meta::loss_named(choice_.loss);
  settings_.members = int(std::min<std::int64_t>(choice_.members, 1000));
  settings_.steps = choice_.steps;
  settings_.guard = choice_.guard;
  settings_.known_rows = naming("known_rows", [&] { return meta::known_rows_use_named(choice_.known_rows); });
  settings_.seed = seed;
  settings_.threads = threads;
  encoding_ = choice_.encoding.empty() ? &meta::usual_encoding(settings_.trees, settings_.network.kind)
                                       : &features::encoding_named(choice_.encoding);
  if (!settings_.trees) naming("model, encoding", [&] { meta::check_fits(settings_.network.kind, *encoding_); });
}

std::string ModelPlan::learner_for(const std::string& name) const {
  meta::method_named(name);  // an unknown one has nothing to do with the model
  return naming("model", [&] { return meta::learner_with(name, settings_.trees); });
}

void ModelPlan::check(const std::string& learner) const {
  const meta::Method& method = meta::method_named(learner);
  naming("model", [&] { meta::check_made_of(method, settings_.trees); });
}

void ModelPlan::fit(const std::vector<datasets::Dataset>& data) {
  const bool treegru = settings_.network.kind == meta::NetworkKind::treegru;
  if (!choice_.encoding.empty() || treegru || !meta::are_tables(data)) return;
  encoding_ = &meta::encoding_of_tables();
  if (!model_follows_data_) return;
  choice_.model = "mlp";
  settings_.trees = false;
}

void ModelPlan::put(base::Document& request) const {
  request.set("model", choice_.model)
      .set("encoding", encoding_->name)
      .set("encoding_hash", base::to_hex(encoding_->hash));
  if (!settings_.trees) request.set("hidden", fmt::format("{}", fmt::join(settings_.network.hidden, ",")));
  if (settings_.network.kind == meta::NetworkKind::treegru)
    request.set("embedding", choice_.embedding).set("units", choice_.units).set("slots", choice_.slots);
  put_training(request);
  if (choice_.members > 1) request.set("members", choice_.members);
  if (choice_.guard) request.set("guard", true);
  if (settings_.known_rows != meta::KnownRowsUse::automatic) request.set("known_rows", choice_.known_rows);
}

void ModelPlan::put_training(base::Document& request) const {
  request.set("backend", "native").set("steps", choice_.steps);  // as in folders of earlier versions
  if (!choice_.loss.empty()) request.set("loss", choice_.loss);
}

}  // namespace graft::study
