#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/commands/common.h"
#include "meta/methods/methods.h"
#include "meta/model_file.h"
#include "meta/task_set.h"

namespace graft::cli {
namespace {

struct Flags {
  DataFlags data;
  std::vector<std::string> misleading;
  std::string out, learner = "residual", hold_out, base, losses, card;
  ModelFlags model;
};

base::Document strings(const std::vector<std::string>& values) {
  base::Document list = base::Document::list();
  for (const std::string& value : values) list.push(value);
  return list;
}

// Workloads, each once.
std::vector<std::string> workloads_in(const meta::TaskSet& tasks) {
  std::vector<std::string> names;
  for (const meta::Examples& group : tasks.groups) {
    if (std::find(names.begin(), names.end(), group.workload.text) == names.end()) names.push_back(group.workload.text);
  }
  return names;
}

std::string card_of(const Flags& flags, const std::string& model, const std::string& learner,
                    const meta::TaskSet& tasks, std::int64_t rows, std::int64_t seed, const base::Document& context,
                    const std::string& more) {
  std::string card = fmt::format(
      "# A cost model for tensor programs\n\n"
      "Scores loop programs by predicted speed (higher is faster), comparable within one workload on one platform "
      "only.\n\n"
      "* learner: {} ({}), seed {}\n* encoding: {}\n* trained by graft {} on {}\n* {} measured programs of {} "
      "workloads:\n\n"
      "| platform | source | workloads | programs |\n|---|---|---|---|\n",
      learner, flags.base.empty() ? model : "continued from " + flags.base, seed, tasks.encoding->name, graft_version(),
      context.at("date").as_string(), rows, workloads_in(tasks).size());
  for (const std::string& platform : meta::platforms(tasks)) {
    std::int64_t groups = 0, programs = 0;
    for (const meta::Examples& group : tasks.groups) {
      if (group.platform != platform) continue;
      ++groups;
      programs += group.size();
    }
    card += fmt::format("| {} | {} | {} | {} |\n", platform, tasks.sources.at(platform), groups, programs);
  }
  if (!flags.hold_out.empty()) card += fmt::format("\nHeld out, never seen in training: {}.\n", flags.hold_out);
  if (!flags.misleading.empty())
    card +=
        fmt::format("\nMisled on purpose, an experiment: times reversed of {}.\n", base::join(flags.misleading, ", "));
  card += "\nBefore use on a new platform, adapt it with a few measurements there (graft adapt).\n";
  if (!more.empty()) card += "\n" + more;
  return card;
}

// One round of graft tune (--batch): a search has as many after its first round, without a model.
constexpr std::int64_t few_programs = 32;

void note_few_programs(const meta::TaskSet& tasks, Progress& progress) {
  for (const std::string& platform : meta::platforms(tasks)) {
    std::int64_t programs = 0;
    for (const meta::Examples& group : tasks.groups) programs += group.platform == platform ? group.size() : 0;
    if (programs < few_programs)
      progress.note(
          fmt::format("{}: {} programs to train on; fewer than {}, which one round of graft tune measures, say little "
                      "about others",
                      platform, programs, few_programs));
  }
}

// Platforms that a model was trained on, with those that it was continued with.
std::int64_t known_platforms(const meta::ModelFile& file) {
  std::int64_t count = 0;
  for (const base::Document* at = &file.provenance; at != nullptr;) {
    const base::Document* platforms = at->find("platforms");
    if (platforms != nullptr) count += std::int64_t(platforms->as_list().size());
    const base::Document* const adapted_from = at->find("prior");
    at = adapted_from != nullptr ? adapted_from : at->find("continues");
  }
  return std::max<std::int64_t>(count, 1);
}

int train(Flags flags, Session& session) {
  check_output_folder(flags.out);
  if (!flags.losses.empty()) check_output_folder(flags.losses);
  const std::string more_of_card = flags.card.empty() ? "" : base::read_file(flags.card);
  study::ModelPlan plan(flags.model.chosen(), flags.learner, session.seed, session.threads);
  const std::string name = plan.learner_for(flags.learner);
  const auto learner = meta::make_learner(name);
  if (!flags.base.empty() && (flags.model.choice.members > 1 || flags.model.choice.guard))
    throw base::UserError("--members, --guard", "not with --base, which has them or not");
  std::optional<meta::ModelFile> base_model;
  if (!flags.base.empty()) {
    base_model = meta::load_model(flags.base);
    try {
      meta::check_continues(*base_model->model);
    } catch (const base::UserError& error) {
      throw base::UserError("--base", error.what());
    }
  }
  const std::vector<datasets::Dataset> data = flags.data.read(session.seed, session.progress);
  plan.fit(data);
  meta::LearnerSettings settings = plan.settings();
  const features::Encoding& encoding = base_model ? features::encoding_named(base_model->encoding) : plan.encoding();
  meta::TaskSet tasks = meta::make_task_set(data, encoding, session.threads, &session.team, &session.progress);
  if (!flags.hold_out.empty()) {
    tasks = meta::without_platform(tasks, flags.hold_out);
    if (tasks.groups.empty())
      throw base::UserError("--hold-out", fmt::format("nothing is left to train on without {}", flags.hold_out));
  }
  tasks = meta::with_reversed_labels(std::move(tasks), flags.misleading);
  study::note_left_out(tasks, session.progress);
  if (base_model || meta::method_named(name).informed) note_few_programs(tasks, session.progress);
  base::Document files = base::Document::list();
  for (const std::string& file : flags.data.files) {
    base::Document entry = base::Document::map();
    files.push(entry.set("file", file).set("hash", file_hash(file)));
  }
  base::Document request = base::Document::map();  // what decides the model
  request.set("learner", base_model ? std::string(base_model->model->kind()) : name);
  if (base_model) {
    plan.put_training(request);
  } else {
    plan.put(request);
  }
  request.set("seed", std::int64_t(session.seed)).set("hold_out", flags.hold_out).set("datasets", std::move(files));
  if (!flags.misleading.empty()) request.set("misleading", base::join(flags.misleading, ","));
  flags.data.put(request);
  if (base_model) request.set("base", flags.base).set("base_hash", base_model->hash);

  // Of this request alone: another one must not go on from its checkpoints.
  const std::filesystem::path checkpoints = flags.out + ".checkpoints";
  meta::TrainingRecord record(checkpoints / base::to_hex(base::hash_bytes(request.to_json())));
  settings.record = &record;
  if (session.team.size() > 1) settings.team = &session.team;
  const auto model =
      base_model ? meta::continued(*base_model->model, known_platforms(*base_model), tasks, settings, session.progress)
                 : meta::trained(*learner, tasks, settings, session.progress);
  base::check_stop(session.progress);
  record.share(session.team);
  if (session.team.rank() > 0) return done;

  std::int64_t rows = 0;
  for (const meta::Examples& group : tasks.groups) rows += group.size();
  const base::Document context = context_of(session);
  base::Document provenance = context;
  for (const auto& [key, value] : request.as_map()) provenance.set(key, value);
  provenance.set("platforms", strings(meta::platforms(tasks)))
      .set("workloads", strings(workloads_in(tasks)))
      .set("rows", rows)
      .set("stale_rows", tasks.stale_rows);
  if (base_model) provenance.set("continues", base_model->provenance);
  if (!flags.losses.empty()) base::replace_file(flags.losses, record.losses_csv());
  meta::save_model(*model, encoding, provenance,
                   card_of(flags, plan.model(), request.at("learner").as_string(), tasks, rows,
                           std::int64_t(session.seed), context, more_of_card),
                   flags.out);
  std::filesystem::remove_all(checkpoints);

  base::Document& json = session.output.json();
  json.set("out", flags.out).set("kind", std::string(model->kind())).set("provenance", provenance);
  session.output.line(fmt::format("{}: {} trained on {} programs of {} platforms ({})", flags.out,
                                  request.at("learner").as_string(), rows, meta::platforms(tasks).size(),
                                  base::join(meta::platforms(tasks), ", ")));
  return done;
}

std::string learner_names() {
  std::vector<std::string> names;
  for (const meta::Method& method : meta::methods()) names.push_back(method.name);
  return base::join(names, ", ");
}

}  // namespace

Command train_command() {
  return {.name = "train",
          .help = "meta-train a cost model on datasets",
          .examples = {"graft train data/*.h5 --out model.h5 --learner reptile --hold-out model:sifive-p450",
                       "graft train new-board.h5 --base model.h5 --out model2.h5",
                       "graft train data/*.h5 --out trees.h5 --model gbt --loss lambda --members 6",
                       "mpirun -n 2 graft train data/*.h5 --out model.h5 --learner maml --threads 1"},
          .declare = [](Options& options) -> Action {
            const auto flags = std::make_shared<Flags>();
            flags->data.declare(options, "datasets, one or several per platform");
            options.text("out", flags->out, "model file to write", Options::required);
            options.text("learner", flags->learner, learner_names());
            options.text("hold-out", flags->hold_out, "platform to leave out");
            options.list("misleading", flags->misleading,
                         "platforms whose times are reversed within each workload, to see what such a source costs");
            options.text("base", flags->base, "a trained model that learns of these platforms besides what it knows");
            options.text("losses", flags->losses, "CSV of the losses by stage and step to write");
            options.text("card", flags->card, "Markdown to put behind the model's card: how it was judged, say");
            flags->model.choice.model.clear();
            flags->model.declare(options);
            return [flags](Session& session) { return train(*flags, session); };
          },
          .stops = true,
          .shares = true};
}

}  // namespace graft::cli
