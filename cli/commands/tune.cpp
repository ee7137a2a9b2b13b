#include "study/tune.h"

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "base/error.h"
#include "cli/commands/best.h"
#include "cli/commands/commands.h"
#include "cli/commands/common.h"

namespace graft::cli {
namespace {

struct Flags {
  std::string workload, platform = "native", intrinsics, layouts = "given", out;
  study::TuneRequest request;  // what flags set directly
  SpaceFlag space;
  MeasureFlags measure;
};

study::SpaceSource space_of(const Flags& flags) {
  if (flags.layouts != "given" && flags.layouts != "free")
    throw base::UserError("--layouts", fmt::format("'{}' is neither given nor free", flags.layouts));
  const auto layouts = flags.layouts == "free" ? codegen::Layouts::free : codegen::Layouts::given;
  if (!flags.space.file.empty() && !flags.intrinsics.empty())
    throw base::UserError("--intrinsics", "goes with the space by rule; a file of --space holds its own intrinsics");
  if (!flags.space.file.empty() && layouts == codegen::Layouts::free)
    throw base::UserError("--layouts", "free goes with the space by rule; a file of --space has its own layout steps");
  return {flags.space.file, flags.intrinsics, layouts};
}

study::TuneRequest request_of(const Flags& flags, const Session& session) {
  study::TuneRequest request = flags.request;
  request.workload = codegen::parse_workload(flags.workload);
  request.platform = tasks::platform_named(flags.platform);
  flags.measure.check();
  request.timing = flags.measure;
  request.space = space_of(flags);
  request.seed = session.seed;
  request.threads = session.threads;
  request.out = flags.out;
  request.command_line = session.command_line;
  return request;
}

void print_summary(const study::TuneResult& result, Output& out) {
  const bool modelled = result.source == "modelled";
  out.line(fmt::format("{} on {} ({})", result.workload, result.platform, result.source));
  Table table({"", "value"});
  if (const auto& answer = result.answer) {
    table.row({fmt::format("best {}", seconds_word(result.source)), seconds_text(answer->seconds())});
    const std::string checked = checked_text(result.source, answer->measurement.check);
    if (!checked.empty()) table.row({"its results", checked});
    table.row({modelled ? "modelled GFLOP/s" : "GFLOP/s", number_text(answer->gflops(), 2)});
    if (result.peak_gflops) table.row({"of the peak", of_peak_text(answer->gflops(), *result.peak_gflops)});
  }
  table.row({"trials", std::to_string(result.trials.size())});
  table.row({"of them", status_line(status_counts(result.trials))});
  const search::TimeSpent& time = result.time;
  if (time.measured > 0) {
    const auto share = [&](double part) { return 100 * part / time.all(); };
    table.row({"trials per second", fmt::format("{:.0f} ({:.0f} % measuring, {:.0f} % proposing, {:.0f} % learning)",
                                                double(time.measured) / time.all(), share(time.measuring),
                                                share(time.proposing), share(time.learning))});
  }
  if (result.answer && !result.answer->pipeline.empty()) {
    table.row(
        {"best built by", fmt::format("{} (the fastest of {} builds)", result.answer->pipeline, result.builds.size())});
  }
  table.row({"improvements", std::to_string(result.improvements())});
  table.row({"model", result.model});
  table.row({"run", result.folder.string()});
  out.table(table);
  if (!result.answer) return;
  out.line("\nbest schedule:");
  const base::Document schedule = schedule_document(result.answer->candidate);
  for (const base::Document& step : schedule.as_list()) out.line("  " + step.as_string());
}

int tune(const Flags& flags, Session& session) {
  const study::TuneResult result = study::tune(request_of(flags, session), session.progress);
  const base::Document document = study::to_document(result);
  for (const auto& [key, value] : document.as_map()) session.output.json().set(key, value);
  print_summary(result, session.output);
  if (!result.complete) {
    session.progress.note(interruption);
    return interrupted;
  }
  if (result.answer) return done;
  session.output.finish();
  throw base::Failure(result.failure);
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
        options.text("model", flags->request.model,
                     "model file that guides the search (default: graft's own, models/base.h5), or one without a "
                     "file: scratch (knows what it measured only), black-box (a "
                     "Gaussian process on knobs and times alone), analytic (a pre-defined roofline), random");
        options.integer("trials", flags->request.trials, 1, "candidates to measure in all");
        options.text("explorer", flags->request.explorer, "evolution, annealing or random");
        options.integer("batch", flags->request.batch, 1, "candidates a round");
        options.integer("rebuild", flags->request.rebuild, 0,
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
