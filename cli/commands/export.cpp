#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/temporary_folder.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/flags.h"
#include "cli/print/imported.h"
#include "study/inputs/output.h"
#include "study/knowledge/measured.h"

namespace graft::cli {
namespace {

namespace fs = std::filesystem;
namespace formats = datasets::formats;

// Removes a file that was not renamed, also on errors.
struct Temporary {
  fs::path path;
  ~Temporary() {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
};

struct ExportFlags {
  std::string format, dataset, out;
};

// "12 does not lower, 3 a row of a table has no program"
std::string dropped_text(const formats::Counts& counts) {
  std::vector<std::string> parts;
  for (const auto& [why, count] : counts.dropped) parts.push_back(fmt::format("{} {}", count, why));
  return base::join(parts, ", ");
}

int export_dataset(const ExportFlags& flags, Session& session) {
  study::check_output("out", flags.out, study::Writes::text, {flags.dataset});
  std::optional<base::TemporaryFolder> of_run;
  fs::path path = flags.dataset;
  if (fs::is_directory(path)) {
    const std::vector<datasets::Dataset> measured = study::measured_in({path});
    if (measured.size() != 1) throw base::UserError(flags.dataset, "runs on several platforms; name the folder of one");
    of_run.emplace("export");
    path = *of_run / "run.h5";
    datasets::write_dataset(measured.front(), path);
  }
  const datasets::DatasetFile file(path);
  const Temporary temporary{base::temporary_beside(flags.out)};
  std::ofstream stream(temporary.path, std::ios::binary);
  const formats::Counts counts = formats::exported(
      flags.format, file, [&](std::string_view text) { stream.write(text.data(), std::streamsize(text.size())); });
  stream.close();
  if (!stream) throw base::Failure(fmt::format("{}: cannot be written", flags.out));
  if (counts.records == 0)
    throw base::UserError(flags.dataset, "the dataset has no rows, so there is nothing to export");
  if (counts.rows == 0)
    throw base::UserError(
        flags.dataset, fmt::format("none of its {} rows can be written as {} ({}); nothing was written", counts.records,
                                   flags.format, dropped_text(counts)));
  base::commit_file(temporary.path, flags.out);
  Output& out = session.output;
  out.line(fmt::format("{}: {} of {} rows as {} in {}\n", file.head().platform, counts.rows, counts.records,
                       flags.format, flags.out));
  print(out, counts);
  out.json().set("format", flags.format).set("out", flags.out).set("exported", document_of(counts));
  return done;
}

}  // namespace

Command export_command() {
  return {.name = "export",
          .help = "write a dataset, or what a run measured, in another program's format",
          .examples = {"graft export programs v3.h5 --out v3.jsonl", "graft export table v3.h5 --out v3.csv",
                       "graft export autotvm v3.h5 --out v3.log", "graft export kernel_tuner runs/own --out own.json"},
          .declare = [](Options& options) -> Action {
            const auto flags = std::make_shared<ExportFlags>();
            options.positional("FORMAT", flags->format, names_of(formats::exporters()));
            options.positional("DATA.h5|RUN", flags->dataset, "dataset, or the folder of a run");
            options.text("out", flags->out, "file to write", Options::required);
            return [flags](Session& session) { return export_dataset(*flags, session); };
          }};
}

}  // namespace graft::cli
