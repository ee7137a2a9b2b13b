#include "study/flows/tune_all.h"

#include <fmt/format.h>

#include <charconv>
#include <memory>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/setting_flags.h"
#include "cli/texts.h"
#include "codegen/expression/suites.h"
#include "study/flows/settings.h"
#include "study/inputs/pool.h"

namespace graft::cli {
namespace {

struct Flags {
  std::vector<std::string> workloads, weights;
  std::string platform = "native", out;
  std::int64_t trials = 1000;
  study::TuneRequest each;  // what flags set directly, of every search
};

std::vector<double> weights_of(const Flags& flags, std::size_t workloads) {
  if (flags.weights.empty()) return std::vector<double>(workloads, 1.0);
  std::vector<double> weights;
  for (const std::string& text : flags.weights) {
    double weight = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), weight);
    if (error != std::errc() || end != text.data() + text.size())
      throw base::UserError("--weights", fmt::format("'{}' is not a number", text));
    weights.push_back(weight);
  }
  if (weights.size() != workloads)
    throw base::UserError("--weights", fmt::format("{} for {}", base::counted(weights.size(), "number"),
                                                   base::counted(workloads, "workload")));
  return weights;
}

study::TuneAllRequest request_of(const Flags& flags, const Session& session) {
  study::TuneAllRequest request;
  request.trials = flags.trials;
  const tasks::Platform platform = tasks::platform_named(flags.platform);
  for (const codegen::Workload& workload : study::workloads_of(flags.workloads)) {
    study::TuneRequest search = flags.each;
    search.workload = workload;
    search.platform = platform;
    search.trials = flags.trials;
    search.seed = session.seed;
    search.threads = session.threads;
    search.command_line = session.command_line;
    search.out = std::filesystem::path(flags.out) / study::short_name(workload.text());
    request.searches.push_back(std::move(search));
  }
  request.weights = weights_of(flags, request.searches.size());
  return request;
}

int tune_all(const Flags& flags, Session& session) {
  const study::TuneAllRequest request = request_of(flags, session);
  const study::TuneAllResult result = study::tune_all(request, session.progress);
  const std::string source = request.searches.front().platform.device->source();
  Table table({"workload", "weight", "best " + seconds_word(source), "trials", "run"});
  for (std::size_t t = 0; t < result.searches.size(); ++t) {
    const study::TuneResult& search = result.searches[t];
    table.row({search.workload, fmt::format("{:g}", request.weights[t]),
               search.answer ? seconds_text(search.answer->seconds()) : "-", std::to_string(search.trials.size()),
               search.folder.string()});
    if (!search.failure.empty()) session.progress.note(search.workload + ": " + search.failure);
  }
  session.output.table(table);
  session.output.line(fmt::format("\nweighted sum: {}", time_text(result.weighted_seconds, source)));
  session.output.add(study::to_document(result, request));
  if (result.complete) return done;
  session.progress.note(interruption);
  return interrupted;
}

}  // namespace

Command tune_all_command() {
  return {.name = "tune-all",
          .help = "search several workloads with one budget, such as the layers of a network",
          .examples = {"graft tune-all suite:resnet18 --trials 2000 --out runs/resnet18",
                       "graft tune-all resnet18.C2 resnet18.C6 --weights 4,3 --trials 300 --out runs/two"},
          .declare = [](Options& options) -> Action {
            const auto flags = std::make_shared<Flags>();
            options.positionals("WORKLOAD", flags->workloads,
                                "operators with their shapes, index expressions, or suite:NAME (resnet18, shipped)");
            options.list("weights", flags->weights,
                         "how often each runs, in their order: trials go where they lower the weighted sum of times "
                         "most; default: 1 each");
            options.text("platform", flags->platform, "id or YAML file (graft platform list)");
            options.integer("trials", flags->trials, 1, "candidates to measure, of all workloads together");
            const study::Settings settings = study::settings_of(flags->each);
            declare_some(options, settings, {"model", "explorer", "rebuild"}, "as of graft tune");
            declare_some(options, settings, {"batch"});
            options.text("out", flags->out, "folder with one run for each workload; run again to continue",
                         Options::required);
            declare_some(options, settings, {"repetitions", "minimum_ms", "timeout"});
            return [flags](Session& session) { return tune_all(*flags, session); };
          },
          .stops = true};
}

}  // namespace graft::cli
