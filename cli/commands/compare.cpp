#include "study/flows/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "cli/commands/commands.h"
#include "cli/flags.h"
#include "cli/print/compared.h"
#include "cli/report/page.h"
#include "cli/setting_flags.h"
#include "study/flows/settings.h"
#include "study/inputs/data.h"
#include "study/inputs/output.h"
#include "study/inputs/request.h"

namespace graft::cli {
namespace {

struct Flags {
  std::vector<std::string> inputs;
  std::string out;
  std::int64_t least_programs = 10;
  study::CompareRequest request;  // what flags set directly
};

// The result in both forms, and as a page if requested. `of`: "runs" or "datasets"; `kind`: result_kind.h.
template <class Result>
void show(const Result& result, const Flags& flags, const char* of, const char* kind, Session& session) {
  print(result, session.output);
  session.output.json().set("kind", kind);
  session.output.add(study::to_document(result));
  if (flags.out.empty()) return;
  const base::Document context = study::context_of(session.command_line);
  base::replace_file(flags.out, page({{}, {}, {{"compare", session.output.json()}}},
                                     fmt::format("Made by graft {} on {} from {} {}.", study::graft_version(),
                                                 context.at("date").as_string(), flags.inputs.size(), of))
                                    .html);
  session.output.json().set("out", flags.out);
  session.output.line("\n" + flags.out + ": the same as pictures, with intervals");
}

study::CompareRequest request_of(const Flags& flags, const Session& session) {
  study::CompareRequest request = flags.request;
  request.runs.assign(flags.inputs.begin(), flags.inputs.end());
  request.seed = session.seed;
  request.threads = session.threads;
  return request;
}

int compare(const Flags& flags, Session& session) {
  if (!flags.out.empty()) study::check_output("out", flags.out, study::Writes::text, flags.inputs);
  const auto runs = std::count_if(flags.inputs.begin(), flags.inputs.end(),
                                  [](const std::string& input) { return std::filesystem::is_directory(input); });
  if (runs != 0 && std::size_t(runs) != flags.inputs.size())
    throw base::UserError("RUN|DATA.h5", "folders of runs and datasets are compared among themselves only");
  if (runs == 0) {
    const auto least_programs = int(std::min<std::int64_t>(flags.least_programs, 1'000'000));
    const datasets::Agreement agreement =
        datasets::agreement(study::read_datasets(flags.inputs, session.progress), least_programs);
    for (const std::string& note : agreement.notes) session.progress.note(note);
    show(agreement, flags, "datasets", "compare platforms", session);
  } else {
    show(study::compare(request_of(flags, session), session.progress), flags, "runs", "compare searches", session);
  }
  return done;
}

}  // namespace

Command compare_command() {
  return {.name = "compare",
          .help = "do platforms agree on what is fast; or: which search finds it with fewer trials",
          .examples = {"graft compare datasets/shipped/common/*.h5 --out platforms.html",
                       "graft compare runs/scratch/* runs/base/* --against scratch --again 40 --out searches.html"},
          .declare = [](Options& options) -> Action {
            const auto flags = std::make_shared<Flags>();
            options.positionals("DATA.h5|RUN", flags->inputs,
                                "datasets of at least two platforms, of the same programs (graft collect --programs): "
                                "rank correlations and regret; or folders of graft tune, those of one method (a model, "
                                "an explorer) in one folder, with the same workloads, platforms and seeds in each");
            options.integer("least-programs", flags->least_programs, 2,
                            "common programs of a workload without which two platforms are not compared on it");
            declare(options, study::settings_of(flags->request));
            options.text("out", flags->out, "page with pictures to write");
            return [flags](Session& session) { return compare(*flags, session); };
          },
          .stops = true};
}

}  // namespace graft::cli
