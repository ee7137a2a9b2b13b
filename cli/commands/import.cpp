#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/print/imported.h"
#include "datasets/formats/table.h"
#include "study/inputs/output.h"
#include "study/inputs/request.h"

namespace graft::cli {
namespace {

namespace fs = std::filesystem;
namespace formats = datasets::formats;

struct ImportFlags {
  std::string format, platform, out, time;
  std::vector<std::string> files, options, parameters, workload, ignore;
  bool higher_is_better = false, strict = false;
};

// NAME=VALUE; an item without '=' continues the list before it ("ignore=a,b").
void add_options(const std::vector<std::string>& given, formats::ImportSettings& settings) {
  std::string last;
  for (const std::string& option : given) {
    const std::size_t equals = option.find('=');
    if (equals == std::string::npos && !last.empty()) {
      settings.options[last] += "," + option;
      continue;
    }
    if (equals == std::string::npos)
      throw base::UserError("--options", fmt::format("expected NAME=VALUE, got '{}'", option));
    last = option.substr(0, equals);
    if (!settings.options.emplace(last, option.substr(equals + 1)).second) {
      throw base::UserError("--options", fmt::format("'{}' is given twice", last));
    }
  }
}

// As options of the format, which says whether it has them.
void add_flags(const ImportFlags& flags, formats::ImportSettings& settings) {
  const auto add = [&](const std::string& name, const std::string& value) {
    if (!value.empty() && !settings.options.emplace(name, value).second) {
      throw base::UserError("--" + name, "is given by --options, too");
    }
  };
  const auto list = [](const std::vector<std::string>& names) {
    std::vector<std::string> cells;
    for (const std::string& name : names) cells.push_back(formats::csv_cell(name));
    return base::join(cells, ",");
  };
  add("time", flags.time);
  add("parameters", list(flags.parameters));
  add("workload", list(flags.workload));
  add("ignore", list(flags.ignore));
  add("higher-is-better", flags.higher_is_better ? "yes" : "");
}

formats::ImportSettings settings_of(const ImportFlags& flags) {
  formats::ImportSettings settings;
  settings.files.assign(flags.files.begin(), flags.files.end());
  settings.platform = flags.platform;
  settings.strict = flags.strict;
  add_options(flags.options, settings);
  add_flags(flags, settings);
  return settings;
}

int import(const ImportFlags& flags, Session& session) {
  const bool is_folder = flags.platform == "*" || fs::is_directory(flags.out);
  if (!is_folder) study::check_output("out", flags.out, study::Writes::imported_dataset, flags.files);
  formats::Import import = formats::imported(flags.format, settings_of(flags), session.progress);
  if (std::error_code ignored; flags.platform == "*") fs::create_directories(flags.out, ignored);  // else said below
  const bool into_folder = fs::is_directory(flags.out);
  if (!into_folder && (flags.platform == "*" || import.datasets().size() != 1))
    throw base::UserError("--out", fmt::format("{} is not a folder, but there are datasets of {} platforms", flags.out,
                                               import.datasets().size()));
  base::Document files = base::Document::list(), datasets = base::Document::list();
  for (const fs::path file : flags.files)
    files.push(base::Document::map().set("file", file.filename().string()).set("hash", study::file_hash(file)));
  Output& out = session.output;
  std::set<std::string> paths;
  for (auto& [platform, dataset] : import.datasets()) {
    const std::string path =
        into_folder ? (fs::path(flags.out) / study::dataset_file_name(platform)).string() : flags.out;
    study::check_output("out", path, study::Writes::imported_dataset, flags.files);
    if (!paths.insert(path).second)
      throw base::UserError("--out",
                            fmt::format("the datasets of two platforms would both be {}; import one at a time", path));
    const formats::Counts& counts = dataset.counts();
    base::Document about = document_of(counts), provenance = study::context_of(session.command_line);
    about.set("format", flags.format).set("files", files).set("skipped", document_of(import.skipped()));
    if (const base::Document& said = dataset.head().provenance; said.is_map()) {
      for (const auto& [key, value] : said.as_map()) about.set(key, value);
    }
    provenance.set("imported", about);
    dataset.head().provenance = std::move(provenance);
    dataset.commit(path);
    out.line(fmt::format("{}{}: {} of {} of {} in {}\n", datasets.as_list().empty() ? "" : "\n",
                         dataset.head().platform, base::counted(counts.rows, "row"),
                         base::counted(counts.records, "record"), flags.format, path));
    print(out, counts);
    datasets.push(document_of(counts).set("platform", dataset.head().platform).set("out", path));
  }
  print(out, "skipped records", import.skipped());
  print(out, "lines that are not records", import.ignored());
  out.json()
      .set("format", flags.format)
      .set("datasets", std::move(datasets))
      .set("skipped", document_of(import.skipped()))
      .set("ignored", document_of(import.ignored()));
  return done;
}

}  // namespace

Command import_command() {
  return {
      .name = "import",
      .help = "make a dataset of measurements that others made",
      .examples = {"graft import autotvm cortex-a72.*.log.gz --platform a72 --out a72.h5",
                   "graft import table nas.csv.gz --platform '*' --options unit=ms --out nas",
                   "graft import table sum.csv --time 'duration (us)' --ignore sectors --platform gpu --out gpu.h5",
                   "graft import programs nests.jsonl --platform nests --out nests.h5",
                   "graft import table v3.csv --platform native:v3 --out v3.h5"},
      .declare = [](Options& options) -> Action {
        const auto flags = std::make_shared<ImportFlags>();
        options.positional("FORMAT", flags->format, names_of(formats::importers()));
        options.text("platform", flags->platform, "its name; the dataset's platform is import:NAME", Options::required);
        options.text("out", flags->out, "dataset to write, or a folder for one of each platform", Options::required);
        options.list("options", flags->options, "NAME=VALUE,... of the format (docs/reference/formats.md)");
        options.text("time", flags->time,
                     "table: the column of times, if there is only one (of the platform that --platform names)");
        options.list("parameters", flags->parameters, "table: columns that say what was measured");
        options.list("workload", flags->workload, "table: columns that name the workload, or its name");
        options.list("ignore", flags->ignore, "table: columns to leave out");
        options.flag("higher-is-better", flags->higher_is_better, "table: of the values of --time, more is better");
        options.flag("strict", flags->strict, "refuse a file with a record that cannot be read; comments are fine");
        options.positionals("FILE", flags->files, "what to read, plain or gzip");
        return [flags](Session& session) { return import(*flags, session); };
      }};
}

}  // namespace graft::cli
