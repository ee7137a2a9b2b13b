#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/shortened.h"
#include "base/statistics.h"
#include "cli/commands/commands.h"
#include "cli/commands/common.h"
#include "codegen/schedule/space.h"
#include "meta/metrics.h"
#include "meta/model_file.h"
#include "tasks/expected.h"

namespace graft::cli {
namespace {

struct Flags {
  std::string model, platform = "native", out, run;
  std::vector<std::string> workloads;
  std::int64_t shots = 20;
  MeasureFlags measure;
};

constexpr std::int64_t kFolds = 5;

// Spearman of predicted speed and measured speed, with the percentile interval over resampled programs. One program has
// no order: not even a mean.
base::Interval quality_of(const std::vector<float>& predicted, const std::vector<double>& log_seconds,
                          std::uint64_t seed) {
  constexpr int resamples = 1000;
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  const std::int64_t count = std::int64_t(predicted.size());
  if (count < 2) return {none, none, none};
  const double mean = meta::rank_correlation(predicted, log_seconds);
  if (predicted.size() < base::least_for_interval) return {mean, none, none};
  base::Stream stream(seed, "adapt: bootstrap");
  std::vector<double> values;
  for (int r = 0; r < resamples; ++r) {
    std::vector<float> p;
    std::vector<double> t;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::size_t at = std::size_t(stream.below(count));
      p.push_back(predicted[at]);
      t.push_back(log_seconds[at]);
    }
    values.push_back(meta::rank_correlation(p, t));
  }
  return {mean, base::quantile(values, 0.025), base::quantile(values, 0.975)};
}

// For every support program its place (rank over count) in its workload, as seen by a model that was adapted without
// it. Places, unlike scores, are comparable between the models of the folds. Empty when a workload has too few
// programs.
std::vector<std::vector<float>> cross_validated(const meta::CostModel& prior,
                                                const std::vector<meta::Examples>& supports, std::uint64_t seed,
                                                Progress& progress) {
  std::vector<std::vector<float>> places(supports.size());
  std::vector<std::vector<std::int64_t>> fold_of(supports.size());
  for (std::size_t w = 0; w < supports.size(); ++w) {
    if (supports[w].size() < kFolds) return {};
    base::Stream stream(seed, "adapt: folds", w);
    const std::vector<std::int64_t> order = stream.choose(supports[w].size(), supports[w].size());
    fold_of[w].resize(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) fold_of[w][std::size_t(order[i])] = std::int64_t(i) % kFolds;
    places[w].resize(order.size());
  }
  for (std::int64_t fold = 0; fold < kFolds; ++fold) {
    progress.progress("cross-validation", fold, kFolds);
    base::check_stop(progress);
    std::vector<meta::Examples> kept;
    for (std::size_t w = 0; w < supports.size(); ++w) {
      std::vector<std::int64_t> rows;
      for (std::int64_t i = 0; i < supports[w].size(); ++i) {
        if (fold_of[w][std::size_t(i)] != fold) rows.push_back(i);
      }
      kept.push_back(meta::chosen(supports[w], rows));
    }
    const auto model = prior.adapted(kept);
    for (std::size_t w = 0; w < supports.size(); ++w) {
      const std::vector<float> scores = model->score(supports[w].features).mean;
      const std::vector<double> ranks = base::ranks(std::vector<double>(scores.begin(), scores.end()));
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        if (fold_of[w][i] == fold) places[w][i] = float(ranks[i] / double(ranks.size()));
      }
    }
  }
  progress.progress("cross-validation", kFolds, kFolds);
  return places;
}

// "-" and null where nothing is known.
std::string text_of(const std::optional<base::Interval>& quality) {
  return quality ? interval_text(*quality) : "-";
}
base::Document document_of(const std::optional<base::Interval>& quality) {
  return quality && std::isfinite(quality->mean) ? base::to_document(*quality) : base::Document();
}

int adapt(Flags flags, Session& session) {
  flags.shots = std::min<std::int64_t>(flags.shots, 1 << 30);
  check_output_folder(flags.out);
  const bool own = flags.model.empty();
  if (own) flags.model = shipped_model().string();
  meta::ModelFile file = meta::load_model(flags.model);
  const features::Encoding& encoding = features::encoding_named(file.encoding);
  const tasks::Platform platform = tasks::platform_named(flags.platform);
  datasets::refuse_emulated(platform.name, tasks::source_of(platform));
  file.model = model_on(std::move(file.model), platform, session.progress);
  const std::vector<codegen::Workload> workloads = workloads_of(flags.workloads);
  std::vector<codegen::Space> spaces;
  base::Document names = base::Document::list();
  for (const codegen::Workload& workload : workloads) {
    tasks::require_memory(workload, tasks::place_of(platform), flags.measure.settings(0, session));
    spaces.push_back(codegen::derive_space(workload, platform.target));
    names.push(workload.text);
  }
  const auto measurer = tasks::make_measurer(platform, flags.measure.settings(0, session));

  const std::filesystem::path folder = flags.run.empty() ? flags.out + ".run" : flags.run;
  // The support is chosen for its number: another number of shots is another run.
  base::Document request = base::Document::map();
  request.set("command", "adapt")
      .set("workloads", std::move(names))
      .set("platform", platform.name)
      .set("source", tasks::source_of(platform))
      .set("platform_hash", platform_hash(platform))
      .set("shots", flags.shots)
      .set("model", model_identity(file, flags.model, folder))
      .set("seed", std::int64_t(session.seed));
  flags.measure.put(request);
  search::RunDirectory run(folder, request, context_of(session), platform.yaml);

  std::vector<meta::Examples> supports;
  std::int64_t trials = 0;
  for (std::size_t w = 0; w < workloads.size(); ++w) {
    search::TuningSettings settings;
    settings.explorer = "support";
    settings.trials = flags.shots;
    settings.batch = int(flags.shots);
    settings.seed = base::hash_combine(session.seed, codegen::hash(workloads[w]));
    settings.threads = session.threads;
    search::Tuning tuning({spaces[w], platform.name, &encoding}, file.model.get(), *measurer, run, settings);
    const bool complete = run_rounds(tuning, flags.shots, session.progress);
    if (!complete) throw base::Stopped();
    trials += std::int64_t(tuning.trials().size());
    supports.push_back(tuning.examples());
    if (!tuning.best()) throw base::Failure(nothing_ok_text(tuning.trials(), platform, folder));
  }

  std::size_t alone = 0;
  for (const meta::Examples& support : supports) alone += support.size() == 1;
  if (alone > 0) {
    session.progress.note(
        fmt::format("{} of {} workloads have one measured program, which teaches nothing: programs are compared within "
                    "a workload{}; measure more with --shots",
                    alone, supports.size(), alone == supports.size() ? ", so the model stays as it was" : ""));
  }
  const auto adapted = file.model->adapted(supports);
  base::Document provenance = context_of(session);
  provenance.set("adapted_from", own ? std::string("models/base.h5") : flags.model)
      .set("adapted_from_hash", file.hash)
      .set("platform", platform.name)
      .set("source", tasks::source_of(platform))
      .set("workloads", request.at("workloads"))
      .set("shots", flags.shots)
      .set("measurements", trials)
      .set("seed", std::int64_t(session.seed))
      .set("prior", file.provenance);
  const std::string card = fmt::format(
      "{}\n## Adapted\n\nTo {} ({}) with {} measurements of {} workloads, {} each, by graft {}.\n", file.card,
      platform.name, tasks::source_of(platform), trials, workloads.size(), flags.shots, graft_version());

  const std::vector<std::vector<float>> places = cross_validated(*file.model, supports, session.seed, session.progress);
  base::check_stop(session.progress);
  meta::save_model(*adapted, encoding, provenance, card, flags.out);

  Table table({"workload", "programs", "zero-shot spearman", "adapted, cross-validated"});
  base::Document rows = base::Document::list();
  for (std::size_t w = 0; w < workloads.size(); ++w) {
    std::optional<base::Interval> zero, after;
    if (file.model->is_informed())
      zero = quality_of(file.model->score(supports[w].features).mean, supports[w].log_seconds, session.seed);
    if (!places.empty()) after = quality_of(places[w], supports[w].log_seconds, session.seed);
    table.row({workloads[w].text, std::to_string(supports[w].size()), text_of(zero), text_of(after)});
    base::Document row = base::Document::map();
    row.set("workload", workloads[w].text)
        .set("programs", supports[w].size())
        .set("zero_shot", document_of(zero))
        .set("cross_validated", document_of(after));
    rows.push(std::move(row));
  }
  session.output.json()
      .set("model", flags.model)
      .set("platform", platform.name)
      .set("source", tasks::source_of(platform))
      .set("shots", flags.shots)
      .set("measurements", trials)
      .set("seed", std::int64_t(session.seed))
      .set("rows", std::move(rows))
      .set("out", flags.out)
      .set("run", folder.string());
  session.output.line(
      fmt::format("{}: {} adapted to {} with {} {} ({} a workload)", flags.out, flags.model, platform.name, trials,
                  tasks::source_of(platform) == "modelled" ? "modelled times" : "measurements", flags.shots));
  session.output.table(table);
  if (places.empty()) session.output.line(fmt::format("cross-validation needs {} programs of every workload", kFolds));
  return done;
}

}  // namespace

Command adapt_command() {
  return {.name = "adapt",
          .help = "adapt a model to a platform with a few measurements there",
          .examples = {"graft adapt model.h5 --platform native --workloads 'matmul(m=512,n=512,k=512),resnet18.C2' "
                       "--shots 20 --out here.h5"},
          .declare = [](Options& options) -> Action {
            const auto flags = std::make_shared<Flags>();
            options.positional("MODEL.h5", flags->model, "from graft train; default: graft's own, models/base.h5",
                               Options::optional);
            options.text("platform", flags->platform, "id or YAML file (graft platform list)");
            options.list("workloads", flags->workloads, "what to measure", Options::required);
            options.integer("shots", flags->shots, 1,
                            "measurements of each workload, from 2 on: one has no order to learn");
            options.text("out", flags->out, "adapted model to write", Options::required);
            options.text("run", flags->run, "the run's folder (default: <out>.run)");
            flags->measure.declare(options);
            return [flags](Session& session) { return adapt(*flags, session); };
          },
          .stops = true};
}

}  // namespace graft::cli
