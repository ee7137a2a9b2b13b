#include "study/knowledge/library.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/flags.h"
#include "cli/texts.h"
#include "study/inputs/output.h"

namespace graft::cli {
namespace {

study::Library existing(const std::string& folder) {
  if (!std::filesystem::is_directory(folder))
    throw base::UserError(folder, "no such folder; graft tune --library makes one");
  return study::Library(folder);
}

int list(const std::string& folder, Session& session) {
  Table table({"platform", "workload", "time", "trials", "date", "graft"});
  base::Document answers = base::Document::list();
  for (const study::KnownAnswer& answer : existing(folder).all()) {
    table.row({answer.platform, answer.candidate.workload.text(),
               time_text(datasets::seconds_of(answer.measurement), answer.source), std::to_string(answer.trials),
               answer.date, answer.graft});
    answers.push(study::to_document(answer));
  }
  session.output.table(table);
  session.output.json().set("answers", std::move(answers));
  return done;
}

int export_library(const std::string& folder, const std::string& out, Session& session) {
  study::check_output("out", out, study::Writes::text);
  const study::Library library = existing(folder);
  base::replace_file(out, library.exported());
  session.output.line(fmt::format("{}: {} of {}", out, base::counted(library.all().size(), "answer"), folder));
  session.output.json().set("out", out).set("answers", library.all().size());
  return done;
}

int merge(const std::string& folder, const std::vector<std::string>& files, Session& session) {
  const study::Library library(folder);
  base::Document taken = base::Document::map();
  for (const std::string& file : files) {
    const std::size_t count = library.merge(base::read_file(file), file);
    session.output.line(fmt::format("{}: {} taken into {}", file, base::counted(count, "answer"), folder));
    taken.set(file, count);
  }
  session.output.json().set("taken", std::move(taken));
  return done;
}

}  // namespace

Command library_list_command() {
  return {.name = "library list",
          .help = "the answers of a library: the fastest program known of each workload and platform",
          .examples = {"graft library list answers"},
          .declare = [](Options& options) -> Action {
            const auto folder = std::make_shared<std::string>();
            options.positional("LIBRARY", *folder, "folder, as graft tune --library writes it");
            return [folder](Session& session) { return list(*folder, session); };
          }};
}

Command library_export_command() {
  return {.name = "library export",
          .help = "write a library as one file, to share",
          .examples = {"graft library export answers --out answers.json"},
          .declare = [](Options& options) -> Action {
            const auto folder = std::make_shared<std::string>(), out = std::make_shared<std::string>();
            options.positional("LIBRARY", *folder, "folder, as graft tune --library writes it");
            options.text("out", *out, "file to write", Options::required);
            return [folder, out](Session& session) { return export_library(*folder, *out, session); };
          }};
}

Command library_merge_command() {
  return {.name = "library merge",
          .help = "take the answers of exported files into a library, where they are faster than the known ones",
          .examples = {"graft library merge answers theirs.json"},
          .declare = [](Options& options) -> Action {
            const auto folder = std::make_shared<std::string>();
            const auto files = std::make_shared<std::vector<std::string>>();
            options.positional("LIBRARY", *folder, "folder; made if it is missing");
            options.positionals("FILE...", *files, "written by graft library export");
            return [folder, files](Session& session) { return merge(*folder, *files, session); };
          }};
}

}  // namespace graft::cli
