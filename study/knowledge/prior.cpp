#include "study/knowledge/prior.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/installation.h"
#include "base/text.h"
#include "datasets/joined_tables.h"
#include "meta/methods/methods.h"
#include "meta/model_file.h"
#include "meta/task_set.h"
#include "search/explorer.h"
#include "study/inputs/field_error.h"
#include "study/inputs/request.h"
#include "study/inputs/space.h"
#include "study/knowledge/library.h"
#include "tasks/kinship.h"

namespace graft::study {

namespace {

// What the file says of the platform that its model is adapted to. Files of before it was stored have no description.
datasets::PlatformIdentity adapted_to(const meta::ModelFile& file) {
  const base::Document* const yaml = file.provenance.find("platform_yaml");
  datasets::PlatformIdentity identity{file.model->support().front().platform, {}, nullptr};
  if (yaml != nullptr) identity.yaml = yaml->as_string();
  return identity;
}

// Why measurements of the same machine are not simply this platform's.
std::string why_other(const datasets::PlatformIdentity& measured, const tasks::Platform& platform) {
  if (measured.id != platform.name) return fmt::format("measured on {}", measured.id);
  return fmt::format("measured before its description changed ({})",
                     base::join(datasets::differences(measured.yaml, platform.yaml), ", "));
}

}  // namespace

std::unique_ptr<meta::CostModel> model_on(const meta::ModelFile& file, const tasks::Platform& platform,
                                          base::Monitor& monitor) {
  const meta::CostModel& model = *file.model;
  if (model.support().empty()) return model.clone();
  const datasets::PlatformIdentity measured = adapted_to(file);
  const tasks::Kinship kinship = datasets::kinship(measured, tasks::identity_of(platform));
  if (kinship < tasks::Kinship::same_machine) {
    monitor.note(fmt::format("the model is adapted to {}, not to {}: what it was adapted from is used", measured.id,
                             platform.name));
    return model.prior()->clone();
  }
  if (kinship == tasks::Kinship::same_description && measured.id == platform.name) return model.clone();
  std::vector<meta::Examples> support(model.support().begin(), model.support().end());
  for (meta::Examples& group : support) {
    group.platform = platform.name;
    // Models compare programs within a group: these are not to be mixed with what is measured now.
    if (kinship == tasks::Kinship::same_machine)
      group.workload = codegen::Workload(group.workload.text() + fmt::format(" on {}", measured.id));
  }
  if (kinship == tasks::Kinship::same_machine)
    monitor.note(fmt::format("the model's support was {}: it counts as an order of programs, apart from new times",
                             why_other(measured, platform)));
  return model.prior()->adapted(support);
}

std::filesystem::path shipped_model() {
  std::filesystem::path file = base::share_folder() / "models" / "base.h5";
  if (!std::filesystem::exists(file))
    throw base::UserError(file.string(),
                          "the model that graft ships is not installed with the program; name a model, or scratch");
  return file;
}

namespace {

// FieldError for what is neither a file nor an untrained model's name.
void check_file(const std::string& model) {
  if (!std::filesystem::exists(model)) {
    std::vector<std::string> names;
    for (const meta::UntrainedModel& each : meta::untrained_models()) names.push_back(each.name);
    throw FieldError("model", fmt::format("'{}' is neither a file nor one of {}", model, base::join(names, ", ")));
  }
}

}  // namespace

void check_model(const std::string& model) {
  if (meta::untrained_named(model) != nullptr) return;
  check_file(model);
  (void)meta::load_model(model);
}

const meta::KnownPrograms* known_on(const std::vector<meta::KnownPrograms>& known, const tasks::Platform& platform) {
  const meta::KnownPrograms* best = nullptr;
  tasks::Kinship nearest = tasks::Kinship::same_code;  // alone it is not enough
  for (const meta::KnownPrograms& each : known) {
    const tasks::Kinship own = datasets::kinship({each.platform, {}, &each.target}, tasks::identity_of(platform));
    // Among several settings of the same machine, those without any come first.
    const bool plainer =
        own == nearest && own == tasks::Kinship::same_machine && each.platform == datasets::machine_of(each.platform);
    if (own > nearest || plainer) best = &each, nearest = own;
  }
  return best;
}

Prior prior_of(const PriorRequest& request, const tasks::Platform& platform, base::Monitor& monitor) {
  SearchResources own;
  return prior_of(request, platform, own, monitor);
}

Prior prior_of(const PriorRequest& request, const tasks::Platform& platform, SearchResources& resources,
               base::Monitor& monitor) {
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
    check_file(name);
    const std::shared_ptr<const meta::ModelFile> file = resources.model_file(name);
    prior.encoding = file->encoding;
    prior.identity = model_identity(*file, name, request.run);
    if (!asks) return prior;
    prior.model = model_on(*file, platform, monitor);
    if (const meta::KnownPrograms* const known = known_on(file->known, platform)) prior.known = known->fastest;
  }
  prior.model = meta::with_transfer(std::move(prior.model), request.transfer, *prior.encoding);
  return prior;
}

Prior prior_of_tables(PriorRequest request, const tasks::Platform& platform, const datasets::Dataset& tables,
                      base::Monitor& monitor) {
  if (request.model.empty()) request.model = "scratch";  // graft's own looks at programs
  Prior prior = prior_of(request, platform, monitor);
  if (prior.encoding->schema != nullptr) {
    for (const std::string& note : meta::unknown_columns({&tables, 1}, *prior.encoding->schema)) monitor.note(note);
    return prior;
  }
  if (meta::untrained_named(request.model) == nullptr)
    throw FieldError("model", fmt::format("{} looks at programs, and rows of a table have none; train a model from "
                                          "other tables, or take scratch",
                                          prior.name));
  datasets::JoinedTables joined = datasets::joined_tables({&tables, 1});
  prior.encoding = std::make_shared<const features::Encoding>(
      features::made_for(features::encoding_named("columns"), std::move(joined.schema)));
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
