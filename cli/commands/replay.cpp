#include "study/flows/replay.h"

#include <fmt/format.h>

#include "base/shortened.h"
#include "cli/commands/commands.h"
#include "cli/setting_flags.h"
#include "cli/texts.h"
#include "study/flows/settings.h"
#include "study/inputs/request.h"

namespace graft::cli {
namespace {

struct Flags {
  std::string data;
  std::vector<std::string> workloads;
  study::ReplayRequest request;  // what flags set directly
};

study::ReplayRequest request_of(const Flags& flags, const Session& session) {
  study::ReplayRequest request = flags.request;
  request.data = flags.data;
  request.workloads = study::workloads_of(flags.workloads);
  request.seed = session.seed;
  request.threads = session.threads;
  return request;
}

void print(const study::ReplayResult& result, std::int64_t trials, Output& out) {
  std::vector<std::int64_t> counts;
  for (std::int64_t count = 1; count < trials; count *= 2) counts.push_back(count);
  counts.push_back(trials);
  std::vector<std::string> head{"workload", "programs", "best " + seconds_word(result.source)};
  for (const std::int64_t count : counts) head.push_back(fmt::format("after {}", count));
  Table table(head);
  for (const study::ReplayedWorkload& each : result.workloads) {
    std::vector<std::string> row{base::shortened(each.workload), std::to_string(each.programs),
                                 base::seconds_text(each.best_recorded)};
    for (const std::int64_t count : counts) row.push_back(fmt::format("{:.3f}", each.share_after(count)));
    table.row(std::move(row));
  }
  if (result.workloads.size() > 1) {
    std::vector<std::string> row{"geometric mean", "", ""};
    for (const std::int64_t count : counts) row.push_back(fmt::format("{:.3f}", result.share_after(count)));
    table.row(std::move(row));
  }
  out.line(fmt::format("{}, explorer {}, model {}: speed of the best so far, 1 is the fastest program recorded\n",
                       result.platform, result.explorer, result.model));
  out.table(table);
}

int replay(const Flags& flags, Session& session) {
  const study::ReplayResult result = study::replay(request_of(flags, session), session.progress);
  const base::Document document = study::to_document(result);
  session.output.add(document);
  print(result, flags.request.trials, session.output);
  return done;
}

}  // namespace

Command replay_command() {
  return {.name = "replay",
          .help = "run the search of graft tune on a dataset's recorded times; no hardware, deterministic",
          .examples = {"graft replay datasets/shipped/model-sifive-p450.h5 --model scratch --workloads resnet18.C2",
                       "graft replay v3.h5 --explorer genetic --trials 128 --seed 3"},
          .declare = [](Options& options) -> Action {
            const auto flags = std::make_shared<Flags>();
            options.positional("DATA.h5", flags->data, "dataset whose rows answer in place of measurements");
            options.list("workloads", flags->workloads, "the workloads to search (default: all of the dataset)");
            declare(options, study::settings_of(flags->request));
            return [flags](Session& session) { return replay(*flags, session); };
          },
          .stops = true};
}

}  // namespace graft::cli
