#include "study/flows/tune.h"

#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "cli/commands/commands.h"
#include "cli/flags.h"
#include "cli/network_flags.h"
#include "cli/own_flags.h"
#include "cli/platform_flags.h"
#include "cli/print/searching.h"
#include "cli/print/tuned.h"
#include "cli/print/tuned_network.h"
#include "cli/setting_flags.h"
#include "study/flows/effort.h"
#include "study/flows/network_shapes.h"
#include "study/flows/settings.h"

namespace graft::cli {
namespace {

struct Flags {
  std::string workload, start, budget;
  PlatformFlags platform;
  OwnFlags own;
  study::NetworkRequest network;  // what flags set directly; its `each` also of other searches
};

study::TuneRequest each_of(const Flags& flags, const Session& session) {
  study::TuneRequest request = flags.network.each;
  request.seed = session.seed;
  request.threads = session.threads;
  request.command_line = session.command_line;
  return request;
}

study::TuneRequest search_of(const Flags& flags, const Session& session) {
  study::TuneRequest request = each_of(flags, session);
  study::set_effort(study::effort_named(flags.network.effort), flags.network.trials, request.stop_after, request);
  if (!flags.budget.empty()) request.budget_seconds = seconds_of("--budget", flags.budget);
  return request;
}

study::TuneRequest request_of(const Flags& flags, const Session& session) {
  study::TuneRequest request = search_of(flags, session);
  request.workload = study::workload_of(flags.workload);
  request.platform = flags.platform.platform();
  if (!flags.start.empty())
    request.start = {study::schedule_from(base::read_file(flags.start), flags.start, request.workload)};
  return request;
}

// Says why there is no answer.
int ended(bool complete, const std::string& failure, Session& session) {
  if (!complete) {
    session.progress.note(interruption);
    return interrupted;
  }
  if (failure.empty()) return done;
  session.output.finish();
  throw base::Failure(failure);
}

int tune_network(const Flags& flags, Session& session) {
  if (!flags.start.empty()) throw base::UserError("--start", "goes with a single workload");
  study::NetworkRequest request = flags.network;
  request.model = flags.workload;
  request.each = each_of(flags, session);
  request.each.platform = flags.platform.platform();
  if (!flags.budget.empty()) request.budget_seconds = seconds_of("--budget", flags.budget);
  request.watch = [&](const std::vector<study::NetworkKernel>& kernels,
                      const std::vector<study::SearchState>& searches) {
    std::vector<std::string> labels;
    std::vector<double> calls;
    for (const study::NetworkKernel& kernel : kernels)
      labels.push_back(kernel.label), calls.push_back(double(kernel.calls));
    session.progress.show(searching_table(labels, calls, searches, request.each.platform.device->source()));
  };
  const study::ShapedNetworks result = study::tune_networks(request, session.progress);
  session.output.add(study::to_document(result));
  print(result, session.output);
  std::string failure;
  for (const study::ShapedNetworks::Part& part : result.parts)
    for (const study::NetworkKernel& kernel : part.network.kernels)
      if (failure.empty() && !kernel.has_program()) failure = kernel.label + ": " + kernel.failure;
  return ended(result.complete, failure, session);
}

// The result of a search, and what became of it.
template <class Result>
int shown(const Result& result, Session& session) {
  session.output.add(study::to_document(result));
  print(result, session.output);
  return ended(result.complete, result.failure, session);
}

int tune_own(const Flags& flags, Session& session) {
  refuse_for_others(flags.network);
  const auto requests = flags.own.requests(flags.workload, flags.platform.id, flags.start, search_of(flags, session));
  return requests.size() == 1 ? shown(study::tune_own(requests.front(), session.progress), session)
                              : shown(study::tune_own_devices(requests, session.progress), session);
}

int tune(const Flags& flags, Session& session) {
  if (flags.own.is_given()) return tune_own(flags, session);
  flags.own.refuse_for_others();
  if (names_network(flags.workload)) return tune_network(flags, session);
  refuse_for_others(flags.network);
  return shown(study::tune(request_of(flags, session), session.progress), session);
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
           "graft tune 'matmul(m=512,n=512,k=512)' --platform opencl:0 --out runs/mm512-gpu",
           "graft tune resnet18.onnx --effort quick --out runs/resnet18",
           "graft tune space.yaml --run './kernel {tile_x} {tile_y}' --time time:ms --trials 100 --out runs/own"},
      .declare = [](Options& options) -> Action {
        const auto flags = std::make_shared<Flags>();
        options.positional("WORKLOAD", flags->workload,
                           "operator with its shapes, an index expression, or an ONNX file: a network; with --run a "
                           "file of parameters and constraints (T1 of kernel tuners, or graft's YAML)");
        declare(options, flags->network);
        flags->platform.declare(options);
        declare_effort(options, flags->network);
        options.text("budget", flags->budget,
                     "the search ends after this time: 90s, 10m, 1.5h; what it found is then built and checked. Of a "
                     "network: the time for everything");
        options.text(
            "start", flags->start,
            "file of a schedule to measure first: best.json of a run, of another shape, too, or steps, one a line");
        declare(options, study::settings_of(flags->network.each));
        flags->own.declare(options);
        return [flags](Session& session) { return tune(*flags, session); };
      },
      .stops = true};
}

}  // namespace graft::cli
