#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <span>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/shortened.h"
#include "cli/commands/best.h"
#include "cli/commands/commands.h"
#include "cli/commands/common.h"
#include "codegen/machine/compile.h"
#include "codegen/schedule/space.h"
#include "datasets/trial.h"
#include "meta/methods/methods.h"
#include "meta/model_file.h"
#include "search/explorer.h"
#include "study/answer.h"
#include "tasks/expected.h"
#include "tasks/rebuild.h"

namespace graft::cli {
namespace {

struct Flags {
  std::string workload, platform = "native", model, explorer = "evolution", intrinsics, layouts = "given", out;
  std::int64_t trials = 256, batch = 32, rebuild = 4;
  SpaceFlag space;
  MeasureFlags measure;
};

struct Prior {
  std::unique_ptr<meta::CostModel> model;
  const features::Encoding* encoding = nullptr;
  std::string identity;  // of a model file (model_identity), or an untrained model's name; "" where none is asked
  std::string name;      // for people
};

Prior prior_of(const Flags& flags, const std::filesystem::path& run, const tasks::Platform& platform,
               Session& session) {
  Prior prior;
  const auto& untrained = meta::untrained_models();
  // Without a wish graft's own, but random search asks none.
  const bool own = flags.model.empty() && flags.explorer != "random";
  const std::string name = own ? shipped_model().string() : flags.model.empty() ? untrained.front().name : flags.model;
  prior.name = own ? "graft's own (models/base.h5)" : name;
  const auto named =
      std::find_if(untrained.begin(), untrained.end(), [&](const auto& model) { return model.name == name; });
  if (named == untrained.end()) {
    meta::ModelFile file = meta::load_model(name);
    prior.encoding = &features::encoding_named(file.encoding);
    prior.identity = model_identity(file, name, run);
    prior.model = model_on(std::move(file.model), platform, session.progress);
    return prior;
  }
  prior.encoding = &features::encoding_named(named->encoding);
  if (!flags.model.empty()) prior.identity = named->name;
  if (flags.explorer == "random") return prior;  // asks no model
  meta::TaskSet none;
  none.encoding = prior.encoding;
  meta::LearnerSettings settings;
  settings.seed = session.seed;
  settings.threads = session.threads;
  prior.model = meta::make_learner(named->learner)->train(none, settings, session.progress);
  return prior;
}

codegen::Layouts layouts_of(const Flags& flags) {
  if (flags.layouts != "given" && flags.layouts != "free")
    throw base::UserError("--layouts", fmt::format("'{}' is neither given nor free", flags.layouts));
  return flags.layouts == "free" ? codegen::Layouts::free : codegen::Layouts::given;
}

// The space of a file, or by rule; then with the micro-kernels of a file, each of which must run on the platform and
// fit the workload.
codegen::Space space_of(const Flags& flags, const codegen::Workload& workload, const codegen::Target& target) {
  const codegen::Layouts layouts = layouts_of(flags);
  if (!flags.space.file.empty()) {
    if (!flags.intrinsics.empty())
      throw base::UserError("--intrinsics", "goes with the space by rule; a file of --space holds its own intrinsics");
    if (layouts == codegen::Layouts::free)
      throw base::UserError("--layouts",
                            "free goes with the space by rule; a file of --space has its own layout steps");
    return flags.space.space(workload, target);
  }
  std::vector<codegen::IntrinsicPointer> intrinsics;
  if (!flags.intrinsics.empty())
    intrinsics = codegen::parse_intrinsics(base::read_file(flags.intrinsics), flags.intrinsics);
  for (const codegen::IntrinsicPointer& intrinsic : intrinsics) {
    if (const auto lacks = codegen::lacks_feature(*intrinsic, target))
      throw base::UserError(flags.intrinsics, lacks->text);
  }
  codegen::Space space = codegen::derive_space(workload, target, intrinsics, layouts);
  for (const codegen::IntrinsicPointer& intrinsic : intrinsics) {
    const bool used = std::any_of(space.sketches().begin(), space.sketches().end(), [&](const auto& sketch) {
      return codegen::intrinsic_named(sketch.sketch->intrinsics, intrinsic->name) != nullptr;
    });
    if (!used)
      throw base::UserError(flags.intrinsics, fmt::format("{} computes no part of '{}'", intrinsic->name,
                                                          base::shortened(workload.text)));
  }
  return space;
}

// The same candidates for the same request, so all of this identifies the run; how many trials there are may grow.
base::Document request_of(const Flags& flags, const Session& session, const codegen::Workload& workload,
                          const tasks::Platform& platform, const Prior& prior) {
  base::Document request = base::Document::map();
  request.set("command", "tune")
      .set("workload", workload.text)
      .set("platform", platform.name)
      .set("source", tasks::source_of(platform))
      .set("platform_hash", platform_hash(platform))
      .set("explorer", flags.explorer)
      .set("batch", flags.batch)
      .set("model", prior.identity)
      .set("seed", std::int64_t(session.seed));
  flags.space.put(request);
  if (flags.layouts != "given") request.set("layouts", flags.layouts);
  if (!flags.intrinsics.empty()) request.set("intrinsics", file_hash(flags.intrinsics));
  flags.measure.put(request);
  return request;
}

base::Document best_document(const study::Answer& best, const tasks::Platform& platform) {
  base::Document out = study::to_document(best);
  if (const auto peak = study::peak_gflops(platform, best.workload())) out.set("peak_gflops", *peak);
  return out;
}

// Without the checks again.
std::vector<search::Build> by_pipelines(std::vector<search::Build> builds) {
  std::erase_if(builds, [](const search::Build& build) { return build.pipeline.empty(); });
  return builds;
}

base::Document builds_document(const std::vector<search::Build>& builds) {
  base::Document out = base::Document::list();
  for (const search::Build& build : builds) {
    const datasets::Measurement& measurement = build.trial.measurement;
    base::Document entry = base::Document::map();
    entry.set("trial", build.trial.index).set("pipeline", build.pipeline);
    if (measurement.status == datasets::Status::ok) {
      entry.set("seconds", datasets::seconds_of(measurement));
    } else {
      entry.set("status", std::string(datasets::name_of(measurement.status)));
    }
    out.push(std::move(entry));
  }
  return out;
}

// Of this process: seconds in all and by part, and how many trials it measured in them (the others were recorded).
base::Document time_document(const search::TimeSpent& spent) {
  base::Document out = base::Document::map();
  out.set("seconds", spent.all())
      .set("measuring", spent.measuring)
      .set("proposing", spent.proposing)
      .set("learning", spent.learning)
      .set("measured", spent.measured);
  if (spent.measured > 0) out.set("trials_per_second", double(spent.measured) / spent.all());
  return out;
}

void print_summary(const Prior& prior, Session& session, const base::Document& result,
                   const std::filesystem::path& folder) {
  Output& out = session.output;
  const std::string source = result.at("source").as_string();
  out.line(fmt::format("{} on {} ({})", result.at("workload").as_string(), result.at("platform").as_string(), source));
  Table table({"", "value"});
  const base::Document& best = result.at("best");
  if (!best.is_null()) {
    table.row({fmt::format("best {}", seconds_word(source)), seconds_text(best.at("seconds").as_number())});
    if (const base::Document* check = best.at("measurement").find("check")) {
      const std::string checked = checked_text(source, check->as_string());
      if (!checked.empty()) table.row({"its results", checked});
    }
    const double gflops = best.at("gflops").as_number();
    table.row({source == "modelled" ? "modelled GFLOP/s" : "GFLOP/s", number_text(gflops, 2)});
    if (const base::Document* peak = best.find("peak_gflops"))
      table.row({"of the peak", of_peak_text(gflops, peak->as_number())});
  }
  table.row({"trials", std::to_string(result.at("trials").as_integer())});
  table.row({"of them", status_line(result.at("statuses"))});
  const base::Document& time = result.at("time");
  if (time.at("measured").as_integer() > 0) {
    const auto share = [&](const char* part) {
      return fmt::format("{:.0f} % {}", 100 * time.at(part).as_number() / time.at("seconds").as_number(), part);
    };
    table.row({"trials per second", fmt::format("{:.0f} ({}, {}, {})", time.at("trials_per_second").as_number(),
                                                share("measuring"), share("proposing"), share("learning"))});
  }
  const auto& builds = result.at("builds").as_list();
  if (const base::Document* pipeline = best.is_null() ? nullptr : best.find("pipeline")) {
    table.row({"best built by", fmt::format("{} (the fastest of {} builds)", pipeline->as_string(), builds.size())});
  }
  table.row({"improvements", std::to_string(result.at("improvements").as_integer())});
  table.row({"model", prior.name});
  table.row({"run", folder.string()});
  out.table(table);
  if (best.is_null()) return;
  out.line("\nbest schedule:");
  for (const base::Document& step : best.at("schedule").as_list()) out.line("  " + step.as_string());
}

constexpr int rebuild_rounds = 5;
constexpr std::int64_t timed_again_for_each = 4;  // trials for each program that every pipeline builds

// The best trials timed once more and the best of them by every pipeline, when the search is over; not again when these
// very ones were built before.
void rebuild_best(std::int64_t count, search::RunDirectory& run, const codegen::Workload& workload,
                  const tasks::Platform& platform, const tasks::MeasureSettings& settings, Session& session) {
  const std::vector<datasets::Trial> best =
      search::best_trials(run.journal().trials(), workload, std::size_t(timed_again_for_each * count));
  std::vector<codegen::Candidate> candidates;
  std::set<std::int64_t> wanted, built;
  for (const datasets::Trial& trial : best) {
    candidates.push_back(trial.candidate);
    wanted.insert(trial.index);
  }
  for (const search::Build& build : run.builds()) built.insert(build.trial.index);
  if (wanted == built) return;
  std::vector<search::Build> builds;
  for (tasks::Build& build :
       tasks::rebuild(platform, candidates, std::size_t(count), rebuild_rounds, settings, session.progress)) {
    datasets::Trial trial = best[std::size_t(build.candidate)];
    trial.measurement = std::move(build.measurement);
    builds.push_back({std::move(trial), std::move(build.pipeline)});
  }
  if (!builds.empty()) run.record(std::move(builds));
}

int tune(const Flags& flags, Session& session) {
  const codegen::Workload workload = codegen::parse_workload(flags.workload);
  const tasks::Platform platform = tasks::platform_named(flags.platform);
  const tasks::MeasureSettings measure = flags.measure.settings(3, session);
  tasks::require_memory(workload, tasks::place_of(platform), measure);
  const codegen::Space space = space_of(flags, workload, platform.target);
  search::make_explorer(flags.explorer, space, session.seed);  // refuses an unknown name before there is a folder
  const std::filesystem::path folder =
      flags.out.empty() ? std::filesystem::path("runs") / fmt::format("tune-{}-{}-s{}", short_name(workload.text),
                                                                      short_name(platform.name), session.seed)
                        : std::filesystem::path(flags.out);
  const Prior prior = prior_of(flags, folder, platform, session);
  search::RunDirectory run(folder, request_of(flags, session, workload, platform, prior), context_of(session),
                           platform.yaml);
  if (!run.journal().trials().empty()) {
    session.progress.note(
        fmt::format("{}: continues, {} trials are recorded", folder.string(), run.journal().trials().size()));
  }

  const auto measurer = tasks::make_measurer(platform, measure);
  search::TuningSettings settings;
  settings.explorer = flags.explorer;
  settings.trials = flags.trials;
  settings.batch = int(flags.batch);
  settings.seed = session.seed;
  settings.threads = session.threads;
  search::Tuning tuning(space, *prior.encoding, prior.model.get(), *measurer, run, settings);
  tuning.platform = platform.name;
  const bool complete = run_rounds(tuning, flags.trials, session.progress);

  // Builds of the shorter run say nothing of the trials that it has now; what was checked again stays so.
  if (tuning.time_spent().measured > 0 && !by_pipelines(run.builds()).empty()) {
    std::vector<search::Build> checks = run.builds();
    std::erase_if(checks, [](const search::Build& build) { return !build.pipeline.empty(); });
    run.record(std::move(checks));
  }
  const bool native = tasks::source_of(platform) == "native";
  if (complete && native && flags.rebuild > 0) {
    rebuild_best(flags.rebuild, run, workload, platform, measure, session);
  }

  const auto curve = tuning.curve();
  // Of all that is recorded: an earlier run with more trials may have found a better one.
  const std::optional<study::Answer> best = study::checked_answer(run, workload, platform, measure, session.progress);
  if (complete) base::check_stop(session.progress);  // what is reported may lack its check
  base::Document& result = session.output.json();
  base::Document points = base::Document::list();
  std::int64_t improvements = 0;
  double last = 0;
  for (const auto& [trial, seconds] : curve) {
    points.push(base::Document(base::Document::List{trial, seconds}));
    if (seconds != last) ++improvements;
    last = seconds;
  }
  result.set("workload", workload.text)
      .set("platform", platform.name)
      .set("source", tasks::source_of(platform))
      .set("trials", tuning.trials().size())
      .set("seed", std::int64_t(session.seed))
      .set("best", best ? best_document(*best, platform) : base::Document())
      .set("curve", std::move(points))
      .set("statuses", status_counts(tuning.trials()))
      .set("improvements", improvements)
      .set("time", time_document(tuning.time_spent()))
      .set("builds", builds_document(by_pipelines(run.builds())))
      .set("complete", complete)
      .set("run", folder.string());
  if (best && tasks::source_of(platform) == "modelled") {
    result.set("modelled_seconds", best->seconds()).set("check", best->measurement.check);
  }
  base::replace_file(folder / "best.json", result.to_pretty_json() + "\n");
  print_summary(prior, session, result, folder);
  if (!complete) {
    session.progress.note(interruption);
    return interrupted;
  }
  if (best) return done;
  session.output.finish();
  if (!tuning.best()) throw base::Failure(nothing_ok_text(tuning.trials(), platform, folder));
  throw base::Failure(
      fmt::format("{}: what was fastest fails under qemu; see graft inspect {}", platform.name, folder.string()));
}

}  // namespace

Command tune_command() {
  return {
      .name = "tune",
      .help = "search schedules of a workload on a platform",
      .examples = {"graft tune 'matmul(m=512,n=512,k=512)' --platform native --trials 256",
                   "graft tune resnet18.C2 --platform model:sifive-p450 --model adapted.h5 --trials 64 --out runs/c2",
                   "graft tune 'matmul(m=512,n=512,k=512)' --space examples/matmul.space --out runs/mm512-space"},
      .declare = [](Options& options) -> Action {
        const auto flags = std::make_shared<Flags>();
        options.positional("WORKLOAD", flags->workload, "operator with its shapes, or an index expression");
        options.text("platform", flags->platform, "id or YAML file (graft platform list)");
        options.text("model", flags->model,
                     "model file that guides the search (default: graft's own, models/base.h5), or one without a "
                     "file: scratch (knows what it measured only), black-box (a "
                     "Gaussian process on knobs and times alone), analytic (a pre-defined roofline), random");
        options.integer("trials", flags->trials, 1, "candidates to measure in all");
        options.text("explorer", flags->explorer, "evolution, annealing or random");
        options.integer("batch", flags->batch, 1, "candidates a round");
        options.integer("rebuild", flags->rebuild, 0,
                        "programs that every pipeline of LLVM builds in the end, out of four times as many that are "
                        "timed again, to "
                        "keep the fastest; 0: none (native)");
        options.text("intrinsics", flags->intrinsics, "file of micro-kernels to use wherever they fit");
        options.text(
            "layouts", flags->layouts,
            "given: parameters stored as the workload says; free: the search may store them in blocks, and the "
            "best schedule's layout steps say how");
        options.text("out", flags->out, "the run's folder; run again to continue (default: runs/tune-...)");
        flags->space.declare(options);
        flags->measure.declare(options);
        return [flags](Session& session) { return tune(*flags, session); };
      },
      .stops = true};
}

}  // namespace graft::cli
