#include "study/prior.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/installation.h"
#include "base/text.h"
#include "meta/methods/methods.h"
#include "meta/model_file.h"
#include "search/explorer.h"
#include "study/field_error.h"
#include "study/library.h"
#include "study/request.h"
#include "study/space.h"

namespace graft::study {

std::unique_ptr<meta::CostModel> model_on(std::unique_ptr<meta::CostModel> model, const tasks::Platform& platform,
                                          base::Monitor& monitor) {
  if (model->support().empty() || model->support().front().platform == platform.name) return model;
  monitor.note(fmt::format("the model is adapted to {}, not to {}: what it was adapted from is used",
                           model->support().front().platform, platform.name));
  return model->prior()->clone();
}

std::filesystem::path shipped_model() {
  std::filesystem::path file = base::share_folder() / "models" / "base.h5";
  if (!std::filesystem::exists(file))
    throw base::UserError(file.string(),
                          "the model that graft ships is not installed with the program; name a model, or scratch");
  return file;
}

namespace {

// A file's model; FieldError for what is neither a file nor an untrained model's name.
meta::ModelFile loaded(const std::string& model) {
  if (!std::filesystem::exists(model)) {
    std::vector<std::string> names;
    for (const meta::UntrainedModel& each : meta::untrained_models()) names.push_back(each.name);
    throw FieldError("model", fmt::format("'{}' is neither a file nor one of {}", model, base::join(names, ", ")));
  }
  return meta::load_model(model);
}

}  // namespace

void check_model(const std::string& model) {
  if (meta::untrained_named(model) == nullptr) loaded(model);
}

const meta::KnownPrograms* known_on(const std::vector<meta::KnownPrograms>& known, const tasks::Platform& platform) {
  const auto is_native = [](std::string_view id) { return id == "native" || id.starts_with("native:"); };
  const auto architecture = [](const codegen::Target& target) {
    return target.triple.substr(0, target.triple.find('-'));
  };
  const std::string_view id = std::string_view(platform.name).substr(0, platform.name.find(','));
  const meta::KnownPrograms* best = nullptr;
  int best_rank = 0;
  for (const meta::KnownPrograms& each : known) {
    const codegen::Target& target = each.target;
    const bool same_code =
        architecture(target) == architecture(platform.target) && target.vector_bits == platform.target.vector_bits;
    const int rank = each.platform == platform.name                           ? 4
                     : each.platform == id                                    ? 3
                     : same_code && is_native(each.platform) && is_native(id) ? 2
                     : same_code && target.cpu == platform.target.cpu         ? 1
                                                                              : 0;
    if (rank > best_rank) best = &each, best_rank = rank;
  }
  return best;
}

Prior prior_of(const PriorRequest& request, const tasks::Platform& platform, base::Monitor& monitor) {
  Prior prior;
  const bool asks = request.explorer.empty() || search::explorer_named(request.explorer).asks_model;
  // Without a wish graft's own, but some explorers ask none.
  const bool own = request.model.empty() && asks;
  const std::string name = own                     ? shipped_model().string()
                           : request.model.empty() ? meta::untrained_models().front().name
                                                   : request.model;
  prior.name = own ? shipped_model_name : name;
  const meta::UntrainedModel* const untrained = meta::untrained_named(name);
  if (untrained != nullptr) {
    prior.encoding = {std::shared_ptr<void>(), &features::encoding_named(untrained->encoding)};
    if (!request.model.empty()) prior.identity = name;
    if (!asks) return prior;
    if (request.transfer != PriorRequest().transfer)
      throw FieldError("transfer",
                       fmt::format("model '{}' was trained on nothing, so there is nothing to transfer", name));
    meta::LearnerSettings settings;
    settings.seed = request.seed;
    settings.threads = request.threads;
    prior.model = meta::untrained_model(name, settings, monitor);
  } else {
    meta::ModelFile file = loaded(name);
    prior.encoding = file.encoding;
    prior.identity = model_identity(file, name, request.run);
    if (!asks) return prior;
    prior.model = model_on(std::move(file.model), platform, monitor);
    if (const meta::KnownPrograms* const known = known_on(file.known, platform)) prior.known = known->fastest;
  }
  prior.model = meta::with_transfer(std::move(prior.model), request.transfer, *prior.encoding);
  return prior;
}

Remembered remembered(const Prior& prior, const codegen::Space& space, search::Programs& programs) {
  constexpr std::size_t most_near = 4;
  const auto add = [&](const codegen::Candidate& candidate, std::vector<codegen::Candidate>& to) {
    if (base::Result<codegen::Candidate> found = in_space(candidate, space, programs))
      to.push_back(std::move(found).value());
  };
  Remembered out;
  for (const codegen::Candidate& candidate : prior.known) {
    if (candidate.workload.key() == space.workload().key()) add(candidate, out.known);
  }
  for (const codegen::Candidate& near : near_shapes(prior.known, space.workload(), most_near)) add(near, out.moved);
  return out;
}

}  // namespace graft::study
