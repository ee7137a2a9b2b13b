#include "study/flows/tune.h"

#include <fmt/format.h>

#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "cli/commands/commands.h"
#include "cli/effort_flags.h"
#include "cli/flags.h"
#include "cli/network_flags.h"
#include "cli/print/searching.h"
#include "cli/print/tuned.h"
#include "cli/print/tuned_network.h"
#include "cli/setting_flags.h"
#include "study/flows/network.h"
#include "study/flows/tune_own.h"
#include "study/inputs/settings.h"

namespace graft::cli {
namespace {

struct Flags {
  std::string workload, platform = "native", start, budget;
  tasks::Command command;  // of a program of the user's
  std::string device;
  std::vector<std::string> from;
  NetworkFlags network;
  EffortFlags effort;
  study::TuneRequest request;  // what flags set directly
};

study::TuneRequest request_of(const Flags& flags, const Session& session) {
  study::TuneRequest request = flags.request;
  request.workload = study::workload_of(flags.workload);
  request.platform = tasks::platform_named(flags.platform);
  request.seed = session.seed;
  request.threads = session.threads;
  flags.effort.apply(request);
  if (!flags.budget.empty()) request.budget_seconds = seconds_of("--budget", flags.budget);
  if (!flags.start.empty())
    request.start = {study::schedule_from(base::read_file(flags.start), flags.start, request.workload)};
  request.command_line = session.command_line;
  return request;
}

int tune_network(const Flags& flags, Session& session) {
  if (!flags.start.empty()) throw base::UserError("--start", "goes with a single workload");
  study::NetworkRequest request;
  request.model = flags.workload;
  request.shapes = flags.network.shapes();
  request.constants = flags.network.constants();
  request.each = flags.request;
  request.each.platform = tasks::platform_named(flags.platform);
  request.each.seed = session.seed;
  request.each.threads = session.threads;
  request.each.command_line = session.command_line;
  flags.effort.apply(request);
  if (!flags.budget.empty()) request.budget_seconds = seconds_of("--budget", flags.budget);
  request.watch = [&](const std::vector<study::NetworkKernel>& kernels,
                      const std::vector<study::SearchState>& searches) {
    std::vector<std::string> labels;
    std::vector<double> calls;
    for (const study::NetworkKernel& kernel : kernels)
      labels.push_back(kernel.label), calls.push_back(double(kernel.calls));
    session.progress.show(searching_table(labels, calls, searches));
  };
  const study::TunedNetwork result = study::tune_network(request, session.progress);
  session.output.add(study::to_document(result));
  print(result, session.output);
  if (!result.complete) {
    session.progress.note(interruption);
    return interrupted;
  }
  for (const study::NetworkKernel& kernel : result.kernels) {
    if (kernel.answer) continue;
    session.output.finish();
    throw base::Failure(fmt::format("{}: {}", kernel.label, kernel.failure));
  }
  return done;
}

int tune_own(const Flags& flags, Session& session) {
  flags.network.refuse_for_others();
  if (!flags.start.empty())
    throw base::UserError("--start", "the space's file has the default, which is measured first");
  if (flags.platform != "native")
    throw base::UserError("--platform", "the command is the platform; --device names what it runs on");
  study::OwnRequest request;
  request.space = flags.workload;
  request.command = flags.command;
  request.device = flags.device;
  request.from.assign(flags.from.begin(), flags.from.end());
  request.search = flags.request;
  request.search.seed = session.seed;
  request.search.threads = session.threads;
  flags.effort.apply(request.search);
  if (!flags.budget.empty()) request.search.budget_seconds = seconds_of("--budget", flags.budget);
  request.search.command_line = session.command_line;
  const study::OwnResult result = study::tune_own(request, session.progress);
  session.output.add(study::to_document(result));
  print(result, session.output);
  if (!result.complete) {
    session.progress.note(interruption);
    return interrupted;
  }
  if (result.best) return done;
  session.output.finish();
  throw base::Failure(result.failure);
}

int tune(const Flags& flags, Session& session) {
  if (!flags.command.run.empty()) return tune_own(flags, session);
  if (!flags.from.empty() || !flags.device.empty() || flags.command.persistent || flags.command.shell ||
      !flags.command.build.empty() || !flags.command.time.empty() || !flags.command.check.empty())
    throw base::UserError("--run", "missing: the command that measures a configuration of the space");
  if (names_network(flags.workload)) return tune_network(flags, session);
  flags.network.refuse_for_others();
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
      .help = "search schedules of a workload or a network, or the parameters of a program of one's own",
      .examples =
          {"graft tune 'matmul(m=512,n=512,k=512)' --platform native --trials 256",
           "graft tune resnet18.C2 --platform model:sifive-p450 --model adapted.h5 --trials 64 --out runs/c2",
           "graft tune 'matmul(m=512,n=512,k=512)' --space examples/matmul.space --out runs/mm512-space",
           "graft tune resnet18.onnx --effort quick --out runs/resnet18",
           "graft tune space.yaml --run './kernel {tile_x} {tile_y}' --time time:ms --trials 100 --out runs/own"},
      .declare = [](Options& options) -> Action {
        const auto flags = std::make_shared<Flags>();
        options.positional("WORKLOAD", flags->workload,
                           "operator with its shapes, an index expression, or an ONNX file: a network; with --run a "
                           "file of parameters and constraints (T1 of kernel tuners, or graft's YAML)");
        flags->network.declare(options);
        options.text("platform", flags->platform,
                     "id or YAML file (graft platform list); native,threads=2 runs on two cores");
        flags->effort.declare(options);
        options.text("budget", flags->budget, "ends after this time: 90s, 10m, 1.5h");
        options.text(
            "start", flags->start,
            "file of a schedule to measure first: best.json of a run, of another shape, too, or steps, one a line");
        declare(options, study::settings_of(flags->request));
        options.text("run", flags->command.run,
                     "command that measures a configuration of one's own program; {NAME} is a parameter's value, {dir} "
                     "an empty folder");
        options.text("build", flags->command.build, "command that runs before --run, once for a configuration");
        options.flag("shell", flags->command.shell, "run both by sh -c; values are quoted");
        options.flag("persistent", flags->command.persistent,
                     "--run starts once, and answers a line of JSON for each configuration");
        options.text(
            "time", flags->command.time,
            "what the command prints its time as: NAME, NAME:UNIT or /REGEX/:UNIT (s without a unit); default: "
            "wall time");
        options.text(
            "check", flags->command.check,
            "what it must print as the default configuration does: NAME, NAME:TOLERANCE, or * for all but times");
        options.text("device", flags->device, "name of what the command runs on");
        options.list("from", flags->from,
                     "what other devices measured: datasets, caches of Kernel Tuner, T4 results, folders of runs");
        return [flags](Session& session) { return tune(*flags, session); };
      },
      .stops = true};
}

}  // namespace graft::cli
