#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "cli/commands/commands.h"
#include "cli/flags.h"
#include "cli/report/page.h"
#include "study/request.h"

namespace graft::cli {
namespace {

struct Flags {
  std::vector<std::string> inputs;
  std::string out;
};

// The folder's own name, without the way to it.
std::string name_of(const std::filesystem::path& path) {
  const std::filesystem::path plain = path.lexically_normal();
  return (plain.has_filename() ? plain : plain.parent_path()).filename().string();
}

int report(const Flags& flags, Session& session) {
  check_output_folder(flags.out);
  std::vector<ReportedRun> runs;
  std::vector<ReportedResult> results;
  for (const std::string& input : flags.inputs) {
    if (std::filesystem::is_directory(input)) {
      runs.push_back({name_of(input), search::read_run(input)});
    } else {
      base::Document result = base::parse_json(base::read_file(input), input);
      const base::Document* schema = result.find("schema");
      if (schema == nullptr)
        throw base::UserError(
            input,
            "no result of graft (key 'schema' is missing); give a run's folder or a file of graft evaluate --out");
      if (schema->as_integer() != 1)
        throw base::UserError(input, fmt::format("schema {}; this graft reads 1", schema->as_integer()));
      results.push_back({name_of(input), std::move(result)});
    }
  }
  const base::Document context = study::context_of(session.command_line);
  const std::string html = page(
      runs, results, fmt::format("Made by graft {} on {}.", study::graft_version(), context.at("date").as_string()));
  base::replace_file(flags.out, html);
  session.output.line(fmt::format("{}: {} runs, {} results", flags.out, runs.size(), results.size()));
  session.output.json().set("out", flags.out).set("runs", runs.size()).set("results", results.size());
  return done;
}

}  // namespace

Command report_command() {
  return {.name = "report",
          .help = "one self-contained HTML page with plots, for runs, evaluations and comparisons",
          .examples = {"graft report runs/scratch runs/with-model --out tuning.html",
                       "graft report p450.json --out p450.html"},
          .declare = [](Options& options) -> Action {
            const auto flags = std::make_shared<Flags>();
            options.positionals("RUN|RESULT.json", flags->inputs,
                                "folders of graft tune, results of graft evaluate --out, graft compare --json");
            options.text("out", flags->out, "page to write", Options::required);
            return [flags](Session& session) { return report(*flags, session); };
          }};
}

}  // namespace graft::cli
