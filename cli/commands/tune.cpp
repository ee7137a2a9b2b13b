#include "study/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "cli/commands/commands.h"
#include "cli/effort_flags.h"
#include "cli/explorer_flags.h"
#include "cli/flags.h"
#include "cli/tuned.h"

namespace graft::cli {
namespace {

struct Flags {
  std::string workload, platform = "native", intrinsics, layouts = "given", out, start, budget, library;
  EffortFlags effort;
  std::vector<std::string> history;
  study::TuneRequest request;  // what flags set directly
  ExplorerFlags explorer;
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
  request.workload = study::workload_of(flags.workload);
  request.platform = tasks::platform_named(flags.platform);
  flags.measure.check();
  request.timing = flags.measure;
  request.space = space_of(flags);
  request.explorer = flags.explorer.explorer;
  request.selection = flags.explorer.checked();
  request.seed = session.seed;
  request.threads = session.threads;
  request.out = flags.out;
  request.history.assign(flags.history.begin(), flags.history.end());
  request.library = flags.library;
  if (request.again && flags.library.empty()) throw base::UserError("--again", "goes with --library");
  flags.effort.apply(request);
  if (!flags.budget.empty()) request.budget_seconds = seconds_of("--budget", flags.budget);
  if (!flags.start.empty())
    request.start = {study::schedule_from(base::read_file(flags.start), flags.start, request.workload)};
  request.command_line = session.command_line;
  return request;
}

int tune(const Flags& flags, Session& session) {
  const study::TuneResult result = study::tune(request_of(flags, session), session.progress);
  session.output.add(study::to_document(result));
  print(result, session.output);
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
        options.text("platform", flags->platform,
                     "id or YAML file (graft platform list); native,threads=2 runs on two cores");
        options.text("model", flags->request.model,
                     "model file (default: graft's own, models/base.h5), or without a file: scratch (kernel "
                     "regression on this run's trials); trees, mlp or treegru (trained on this run's trials; append "
                     ":rank, :squared or :lambda to choose the loss); black-box (a Gaussian process on knobs and "
                     "times alone); analytic (a fixed roofline); random");
        options.text("transfer", flags->request.transfer,
                     "what the model does with measurements: adapted; as others published frozen (nothing), "
                     "global-local (its scores fade as trees grow on the measurements)");
        flags->effort.declare(options);
        options.list(
            "history", flags->history,
            "folders of earlier runs to learn from: of other workloads, or of this one on another machine, whose "
            "best programs are then measured early");
        options.integer("watch", flags->request.watch, 0,
                        "after this many trials the fastest programs are measured again; if the machine's speed has "
                        "changed, earlier trials count as history only; 0: never");
        options.text("budget", flags->budget, "ends after this time: 90s, 10m, 1.5h");
        options.text(
            "start", flags->start,
            "file of a schedule to measure first: best.json of a run, of another shape, too, or steps, one a line");
        options.text("library", flags->library,
                     "folder of known answers: what it knows is answered at once, near shapes are measured early, and "
                     "what is found is recorded there");
        options.flag("again", flags->request.again, "search even if the library has an answer");
        flags->explorer.declare(options);
        options.integer("batch", flags->request.batch, 1, "candidates a round");
        options.integer("rebuild", flags->request.rebuild, 0,
                        "N: in the end the 4 N best programs are timed again and the N fastest built with every LLVM "
                        "pipeline; the fastest build is kept; 0: neither (native only)");
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
