#include <fmt/format.h>

#include <memory>

#include "base/files.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/flags.h"
#include "cli/report/page.h"
#include "study/flows/compile.h"
#include "study/inputs/output.h"
#include "study/inputs/request.h"

namespace graft::cli {
namespace {

struct Flags {
  std::vector<std::string> inputs;
  std::string out, figures;
};

int report(const Flags& flags, Session& session) {
  study::check_output("out", flags.out, study::Writes::text, flags.inputs);
  const Reported reported = read_reported(flags.inputs, session.progress);
  const base::Document context = study::context_of(session.command_line);
  const std::string about =
      fmt::format("Made by graft {} on {}.", study::graft_version(), context.at("date").as_string());
  const Page made = page(reported, about);
  base::replace_file(flags.out, made.html);
  if (!flags.figures.empty()) {
    study::write_files(made.figures, false, flags.figures);
    base::Document files = base::Document::list();
    for (const auto& [name, svg] : made.figures) files.push(name);
    session.output.json().set("figures", std::move(files));
  }
  const std::size_t networks = reported.networks.size(), runs = reported.runs.size(), results = reported.results.size();
  std::vector<std::string> shown;
  if (networks > 0) shown.push_back(base::counted(networks, "network"));
  if (runs > 0) shown.push_back(base::counted(runs, "run"));
  if (results > 0) shown.push_back(base::counted(results, "result"));
  session.output.line(fmt::format("{}: {}", flags.out, base::join(shown, ", ")));
  session.output.json().set("out", flags.out).set("runs", runs).set("networks", networks).set("results", results);
  return done;
}

}  // namespace

Command report_command() {
  return {.name = "report",
          .help = "one self-contained HTML page with plots, for runs, networks, evaluations and comparisons",
          .examples = {"graft report runs/scratch runs/with-model --out tuning.html",
                       "graft report runs/resnet18 --out resnet18.html", "graft report p450.json --out p450.html"},
          .declare = [](Options& options) -> Action {
            const auto flags = std::make_shared<Flags>();
            options.positionals("RUN|RESULT.json", flags->inputs,
                                "folders of graft tune, or folders of such folders; results of graft evaluate --out, "
                                "and of graft compare, tune and bench kernels with --json. A run's folder may hold a "
                                "bench result as bench.json, a network's one of graft run --json as check.json, too");
            options.text("out", flags->out, "page to write", Options::required);
            options.text("figures", flags->figures, "folder for the plots as SVG files, too");
            return [flags](Session& session) { return report(*flags, session); };
          }};
}

}  // namespace graft::cli
