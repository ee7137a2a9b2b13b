#include "study/flows/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "datasets/kinship.h"
#include "meta/kept_measurements.h"
#include "meta/methods/methods.h"
#include "meta/training_record.h"
#include "study/flows/rehearsal.h"
#include "study/flows/settings.h"
#include "study/inputs/field_error.h"
#include "study/inputs/output.h"
#include "study/inputs/request.h"
#include "study/knowledge/measured.h"

namespace graft::study {
namespace {

// One round of graft tune: a search has as many after its first round, without a model.
constexpr std::int64_t few_programs = 32;

base::Document strings(const std::vector<std::string>& values) {
  base::Document list = base::Document::list();
  for (const std::string& value : values) list.push(value);
  return list;
}

// Workloads, each once.
std::vector<std::string> workloads_in(const meta::TaskSet& tasks) {
  std::vector<std::string> names;
  for (const meta::Examples& group : tasks.groups) {
    if (std::find(names.begin(), names.end(), group.workload.text()) == names.end())
      names.push_back(group.workload.text());
  }
  return names;
}

struct Size {
  std::int64_t workloads = 0, programs = 0;
};

Size size_of(const meta::TaskSet& tasks, const std::string& platform) {
  Size size;
  for (const meta::Examples& group : tasks.groups) {
    if (group.platform != platform) continue;
    ++size.workloads;
    size.programs += group.size();
  }
  return size;
}

std::int64_t programs_in(const meta::TaskSet& tasks) {
  std::int64_t programs = 0;
  for (const meta::Examples& group : tasks.groups) programs += group.size();
  return programs;
}

void note_few_programs(const meta::TaskSet& tasks, base::Monitor& monitor) {
  for (const std::string& platform : meta::platforms(tasks)) {
    const std::int64_t programs = size_of(tasks, platform).programs;
    if (programs < few_programs) {
      monitor.note(
          fmt::format("{}: {} programs to train on; fewer than {}, which one round of graft tune measures, say little "
                      "about others",
                      platform, programs, few_programs));
    }
  }
}

std::optional<meta::ModelFile> base_of(const TrainRequest& request) {
  if (request.base.empty()) return std::nullopt;
  if (request.model.members > 1 || request.model.guard)
    throw FieldError("members, guard",
                     "cannot be combined with `base`: the base model decides whether it is an ensemble or guarded");
  meta::ModelFile file = meta::load_model(request.base);
  try {
    meta::check_continues(*file.model);
  } catch (const base::UserError& error) {
    throw FieldError("base", error.what());
  }
  return file;
}

// What searches gave back: what the base model keeps of their platforms, and what they measured now.
std::vector<datasets::Dataset> given_to(const TrainRequest& request, const std::optional<meta::ModelFile>& base_model,
                                        base::Monitor& monitor) {
  std::vector<datasets::Dataset> given = measured_in(request.from);
  for (datasets::Dataset& dataset : given) {
    if (dataset.platform == request.hold_out)
      throw FieldError("hold_out, from", fmt::format("{} cannot both be left out and be learnt", dataset.platform));
    if (base_model) {
      for (const datasets::Dataset& before : base_model->kept) {
        if (before.platform != dataset.platform) continue;
        if (datasets::same_description(before.platform_yaml, dataset.platform_yaml)) {
          dataset = datasets::merged(before, dataset);
        } else {
          monitor.note(
              fmt::format("{}: its description changed ({}); what was given back before is left out", dataset.platform,
                          base::join(datasets::differences(before.platform_yaml, dataset.platform_yaml), ", ")));
        }
      }
    }
    dataset = meta::thinned(dataset, meta::most_kept_of_a_platform);
  }
  return given;
}

// What the new model keeps.
std::vector<datasets::Dataset> kept_of(const std::vector<datasets::Dataset>& given,
                                       const std::optional<meta::ModelFile>& base_model) {
  std::vector<datasets::Dataset> kept = given;
  if (base_model) {
    for (const datasets::Dataset& before : base_model->kept) {
      if (std::none_of(given.begin(), given.end(), [&](const auto& each) { return each.platform == before.platform; }))
        kept.push_back(before);
    }
  }
  return meta::thinned(std::move(kept));
}

meta::TaskSet tasks_of(const TrainRequest& request, const std::vector<datasets::Dataset>& data,
                       const features::Encoding& encoding, base::Team& team, base::Monitor& monitor) {
  meta::TaskSet tasks = meta::make_task_set(data, encoding, request.threads, &team, &monitor);
  if (!request.hold_out.empty()) {
    tasks = meta::without_platform(tasks, request.hold_out);
    if (tasks.groups.empty())
      throw FieldError("hold_out", fmt::format("nothing is left to train on without {}", request.hold_out));
  }
  return meta::with_reversed_labels(std::move(tasks), request.misleading);
}

// What the model remembers: the fastest programs of the platforms that it learns from, and what its base remembers.
std::vector<meta::KnownPrograms> known_of(const TrainRequest& request, const std::vector<datasets::Dataset>& data,
                                          const std::vector<datasets::Dataset>& kept,
                                          const std::optional<meta::ModelFile>& base_model) {
  std::vector<meta::KnownPrograms> known, fresh = meta::fastest_programs(data);
  if (base_model) {
    known = base_model->known;
    meta::remove(known, meta::fastest_programs(base_model->kept));  // of which there may be faster ones now
  }
  std::erase_if(fresh, [&](const meta::KnownPrograms& each) {
    return each.platform == request.hold_out ||
           std::find(request.misleading.begin(), request.misleading.end(), each.platform) != request.misleading.end();
  });
  meta::add(known, fresh);
  meta::add(known, meta::fastest_programs(kept));
  return known;
}

// What the base model is from. A model may grow often: of what it was given in between a line each is kept, and whole
// only where it began.
void put_base(const base::Document& of_base, base::Document& provenance) {
  const base::Document* const began = of_base.find("given") != nullptr ? of_base.find("continues") : nullptr;
  if (began == nullptr) {
    provenance.set("continues", of_base);
    return;
  }
  const base::Document* const earlier = of_base.find("earlier");
  base::Document all = earlier != nullptr ? *earlier : base::Document::list(), last = base::Document::map();
  for (const char* const key : {"date", "from", "platforms", "rows"}) last.set(key, of_base.at(key));
  all.push(std::move(last));
  provenance.set("continues", *began).set("earlier", std::move(all));
}

// What decides the model.
base::Document identity_of(const TrainRequest& request, const ModelPlan& plan, const std::string& learner,
                           const std::vector<datasets::Dataset>& given,
                           const std::optional<meta::ModelFile>& base_model) {
  base::Document files = base::Document::list(), identity = base::Document::map();
  for (const std::string& file : request.data.files) {
    base::Document entry = base::Document::map();
    files.push(entry.set("file", file).set("hash", file_hash(file)));
  }
  identity.set("learner", learner);
  if (base_model) {
    plan.put_training(identity);
  } else {
    plan.put(identity);
  }
  identity.set("seed", std::int64_t(request.seed)).set("hold_out", request.hold_out).set("datasets", std::move(files));
  if (!request.misleading.empty()) identity.set("misleading", base::join(request.misleading, ","));
  request.data.put(identity);
  if (!given.empty()) {
    base::Document from = base::Document::list();
    for (const std::filesystem::path& path : request.from) from.push(path.string());
    identity.set("from", std::move(from))
        .set("given", base::to_hex(base::hash_bytes(meta::to_document(given).to_json())))
        .set("rehearsal", request.rehearsal);
  }
  if (base_model) identity.set("base", request.base.string()).set("base_hash", base_model->hash);
  return identity;
}

}  // namespace

std::int64_t known_platforms(const base::Document& provenance) {
  std::set<std::string> names;
  const auto take = [&](const base::Document& of) {
    const base::Document* const platforms = of.find("platforms");
    if (platforms == nullptr) return;
    for (const base::Document& platform : platforms->as_list()) names.insert(platform.as_string());
  };
  for (const base::Document* at = &provenance; at != nullptr;) {
    take(*at);
    if (const base::Document* const earlier = at->find("earlier")) {
      for (const base::Document& each : earlier->as_list()) take(each);
    }
    const base::Document* const adapted_from = at->find("prior");
    at = adapted_from != nullptr ? adapted_from : at->find("continues");
  }
  return std::max<std::int64_t>(std::int64_t(names.size()), 1);
}

std::string card_of(const CardText& text, const meta::TaskSet& tasks) {
  std::string card = fmt::format(
      "# A cost model for tensor programs\n\n"
      "Scores loop programs by predicted speed (higher is faster), comparable within one workload on one platform "
      "only.\n\n"
      "* learner: {} ({}), seed {}\n* encoding: {}\n* trained by graft {} on {}\n* {} measured programs of {} "
      "workloads:\n\n"
      "| platform | source | workloads | programs |\n|---|---|---|---|\n",
      text.learner, text.made_as, text.seed, tasks.encoding->name, graft_version(), text.date, programs_in(tasks),
      workloads_in(tasks).size());
  for (const std::string& platform : meta::platforms(tasks)) {
    const Size size = size_of(tasks, platform);
    card += fmt::format("| {} | {} | {} | {} |\n", platform, tasks.sources.at(platform), size.workloads, size.programs);
  }
  if (text.base_platforms > 0)
    card += fmt::format("\nIt continues a model of {}, and keeps what that learned.\n",
                        base::counted(text.base_platforms, "platform"));
  if (!text.hold_out.empty()) card += fmt::format("\nHeld out, never seen in training: {}.\n", text.hold_out);
  if (!text.misleading.empty()) {
    card +=
        fmt::format("\nMisled on purpose, an experiment: times reversed of {}.\n", base::join(text.misleading, ", "));
  }
  card += "\nBefore use on a new platform, adapt it with a few measurements there (graft adapt).\n";
  if (!text.more.empty()) card += "\n" + text.more;
  return card;
}

namespace {

// Platforms that the base model gives back and nothing else is known of, with the number of their rows.
std::map<std::string, std::int64_t> only_given(const std::vector<datasets::Dataset>& given,
                                               const std::vector<datasets::Dataset>& data) {
  std::map<std::string, std::int64_t> out;
  for (const datasets::Dataset& each : given) {
    if (std::none_of(data.begin(), data.end(), [&](const auto& own) { return own.platform == each.platform; }))
      out[each.platform] = std::int64_t(each.rows.size());
  }
  return out;
}

void check_outputs(const TrainRequest& request) {
  std::vector<std::string> inputs = request.data.files;
  if (!request.base.empty()) inputs.push_back(request.base.string());
  check_output("out", request.out, Writes::model, inputs);
  if (!request.losses.empty()) check_output("losses", request.losses, Writes::text, inputs);
}

base::Document provenance_of(const TrainRequest& request, const base::Document& identity, const meta::TaskSet& tasks,
                             const std::optional<meta::ModelFile>& base_model) {
  base::Document out = context_of(request.command_line);
  for (const auto& [key, value] : identity.as_map()) out.set(key, value);
  out.set("platforms", strings(meta::platforms(tasks)))
      .set("workloads", strings(workloads_in(tasks)))
      .set("rows", programs_in(tasks))
      .set("stale_rows", tasks.stale_rows);
  if (base_model) put_base(base_model->provenance, out);
  return out;
}

}  // namespace

std::optional<TrainResult> train(const TrainRequest& request, base::Team& team, base::Monitor& monitor) {
  check_settings(request);
  check_outputs(request);
  const std::string more_of_card = request.card.empty() ? "" : base::read_file(request.card);
  ModelPlan plan(request.model, request.learner, request.seed, request.threads);
  std::string learner = plan.learner_for(request.learner);
  const std::optional<meta::ModelFile> base_model = base_of(request);
  const bool informed = base_model || meta::method_named(learner).informed;

  if (request.data.files.empty() && request.from.empty())
    throw FieldError("from", "nothing to learn from; name datasets, or runs by `from`");
  std::vector<datasets::Dataset> data = request.data.read(request.seed, monitor);
  const std::vector<datasets::Dataset> given = given_to(request, base_model, monitor);
  const std::map<std::string, std::int64_t> extended = only_given(given, data);
  data.insert(data.end(), given.begin(), given.end());
  plan.fit(data);
  const features::Encoding& requested = base_model ? *base_model->encoding : plan.encoding();
  const meta::TaskSet tasks = tasks_of(request, data, requested, team, monitor);
  note_doubts(tasks, monitor);
  if (informed) note_few_programs(tasks, monitor);
  const auto maker = meta::make_learner(learner);
  if (base_model) learner = base_model->model->kind();
  const base::Document identity = identity_of(request, plan, learner, given, base_model);

  // Specific to this request: another one must not continue from its checkpoints.
  const std::filesystem::path checkpoints = request.out.string() + ".checkpoints";
  meta::TrainingRecord record(checkpoints / base::to_hex(base::hash_bytes(identity.to_json())));
  meta::LearnerSettings settings = plan.settings();
  settings.record = &record;
  if (team.size() > 1) settings.team = &team;
  const std::int64_t base_platforms = base_model ? known_platforms(base_model->provenance) : 0;
  TrainResult result;
  result.out = request.out;
  result.learner = learner;
  if (base_model) {
    settings.extended = extended;
    const meta::TaskSet learnt =
        with_rehearsal(tasks, *base_model, given, {request.rehearsal, request.seed, request.threads}, monitor);
    result.model = meta::continued(*base_model->model, base_platforms, learnt, settings, monitor);
  } else {
    result.model = meta::trained(*maker, tasks, settings, monitor);
  }
  base::check_stop(monitor);
  record.share(team);
  if (team.rank() > 0) return std::nullopt;

  result.programs = programs_in(tasks);
  result.platforms = meta::platforms(tasks);
  result.provenance = provenance_of(request, identity, tasks, base_model);
  if (!request.losses.empty()) base::replace_file(request.losses, record.losses_csv());
  const CardText text{learner,          base_model ? "continued from " + request.base.string() : plan.model(),
                      request.seed,     result.provenance.at("date").as_string(),
                      request.hold_out, request.misleading,
                      more_of_card,     base_platforms};
  const std::vector<datasets::Dataset> kept = kept_of(given, base_model);
  meta::save_model(*result.model, *tasks.encoding, result.provenance, card_of(text, tasks), request.out,
                   known_of(request, data, kept, base_model), kept);
  std::filesystem::remove_all(checkpoints);
  return result;
}

base::Document to_document(const TrainResult& result) {
  base::Document out = base::Document::map();
  return out.set("out", result.out.string())
      .set("kind", std::string(result.model->kind()))
      .set("provenance", result.provenance);
}

}  // namespace graft::study
