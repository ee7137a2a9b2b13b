#include "datasets/formats/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/one_line.h"
#include "base/text.h"
#include "datasets/formats/auto_scheduler.h"
#include "datasets/formats/autotvm.h"
#include "datasets/formats/kernel_tuner.h"
#include "datasets/formats/ktt.h"
#include "datasets/formats/metaschedule.h"
#include "datasets/formats/programs.h"
#include "datasets/formats/table.h"
#include "datasets/formats/table_rules.h"
#include "datasets/platform_name.h"

namespace graft::datasets::formats {
namespace {

// Beyond any real set of logs, and what keeps memory below a gigabyte.
constexpr std::int64_t most_rows = 10'000'000, most_workloads = 100'000, most_sketches = 100'000, most_reasons = 10'000;
constexpr std::size_t longest_name = 128;                              // of a platform
constexpr std::size_t most_skipped = 32;                               // different reasons to skip
constexpr std::size_t longest_reason = 100, longest_first = 400;       // of them, characters
constexpr std::size_t longest_workload = 2000;                         // characters
constexpr std::size_t most_repetitions = 1000, most_arguments = 4096;  // of a row

constexpr std::string_view prefix = "import:";

void count(Counts::ByName& counts, std::string_view name) {
  const auto known = counts.find(name);
  if (known != counts.end()) {
    ++known->second;
    return;
  }
  if (std::int64_t(counts.size()) == most_reasons) {
    throw TooMuch(fmt::format("more than {} different reasons, such as '{}'", most_reasons, name));
  }
  counts.emplace(name, 1);
}

void check_count(std::int64_t count, std::int64_t most, std::string_view what) {
  if (count > most) throw TooMuch(fmt::format("more than {} {} in one dataset; import fewer files", most, what));
}

// The fault of a record, without the parts that differ between records: places, numbers, quoted values.
std::string reason_of(std::string_view complaint, std::string_view file) {
  if (complaint.starts_with(file)) complaint.remove_prefix(file.size());
  while (complaint.starts_with(':')) {
    complaint.remove_prefix(std::min(complaint.find_first_not_of("0123456789", 1), complaint.size()));
  }
  if (complaint.starts_with(' ')) complaint.remove_prefix(1);
  std::string words;
  while (!complaint.empty()) {
    const std::size_t quote = std::min(complaint.find('\''), complaint.size());
    words += complaint.substr(0, quote);
    const std::size_t end = complaint.find('\'', quote + 1);
    if (quote < complaint.size()) words += "'...'";
    complaint.remove_prefix(end == std::string_view::npos ? complaint.size() : end + 1);
  }
  words = base::without_numbers(words).substr(0, longest_reason);
  std::replace_if(
      words.begin(), words.end(), [](char c) { return (unsigned char)c < ' ' || (unsigned char)c > '~'; }, '?');
  return words;
}

void count(SkippedByReason& counts, std::string reason, std::string first) {
  if (counts.size() == most_skipped && !counts.contains(reason)) reason = "other reasons";
  Skipped& skipped = counts[reason];
  if (skipped.count++ == 0) skipped.first = std::move(first);
}

template <class Entry>
const Entry& entry_named(const std::vector<Entry>& table, std::string_view name, std::string_view what) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const Entry& entry) { return entry.name == name; });
  if (found != table.end()) return *found;
  std::vector<std::string> known;
  for (const Entry& entry : table) known.push_back(entry.name);
  throw base::UserError(fmt::format("unknown {} '{}'{}", what, name, base::did_you_mean(name, known)));
}

}  // namespace

std::string platform_id(const std::string& name) {
  const std::string own(platform_name(name));
  if (!is_platform_name(own) || own.size() > longest_name || own.front() == '.') {
    throw base::UserError(
        fmt::format("'{}' is not a name of a platform: letters, digits and : @ . _ , = -, at most {}, no '.' in front",
                    own, longest_name));
  }
  return std::string(prefix) + own;
}

std::string_view platform_name(std::string_view id) {
  return id.substr(id.starts_with(prefix) ? prefix.size() : 0);
}

ImportedDataset::ImportedDataset(const std::string& platform, std::string_view format)
    : writer_({.platform = platform_id(platform),
               .source = "imported",
               .platform_yaml = fmt::format("# measured by others\nname: {}\nsource: imported\nformat: {}\n",
                                            platform_id(platform), format),
               .target = {},
               .provenance = {},
               .workloads = {},
               .sketches = {},
               .rows = {}}) {}

int ImportedDataset::position_of(const codegen::Workload& workload) {
  if (workload.text().size() > longest_workload) {
    throw base::UserError(fmt::format("a workload of more than {} characters", longest_workload));
  }
  const int position = writer_.position_of(workload);
  check_count(position + 1, most_workloads, "workloads");
  return position;
}

int ImportedDataset::position_of(const std::shared_ptr<const codegen::Sketch>& sketch) {
  const int position = writer_.position_of(sketch);
  check_count(position + 1, most_sketches, "sketches");
  return position;
}

void ImportedDataset::add(const Dataset::Row& row, std::string_view of, std::string_view without_program) {
  check_count(counts_.rows + 1, most_rows, "rows");
  const auto check_size = [](std::size_t size, std::size_t most, std::string_view what) {
    if (size > most) throw base::UserError(fmt::format("a record of {} {}; at most {} are read", size, what, most));
  };
  check_size(row.measurement.seconds.size(), most_repetitions, "times");
  check_size(row.arguments.size(), most_arguments, "arguments");
  if (const std::string problem = contradiction(row.measurement); !problem.empty()) throw base::UserError(problem);
  writer_.add(row);
  ++counts_.records;
  ++counts_.rows;
  count(counts_.statuses, name_of(row.measurement.status));
  const bool is_ok = row.measurement.status == Status::ok;
  if (!is_ok) count(counts_.reasons, row.measurement.reason);
  auto known = counts_.templates.find(of);
  if (known == counts_.templates.end()) {
    check_count(std::int64_t(counts_.templates.size()) + 1, most_sketches, "templates");
    known = counts_.templates.emplace(of, Counts::Template()).first;
  }
  ++known->second.rows;
  known->second.ok += is_ok;
  known->second.with_program += without_program.empty();
  if (!without_program.empty()) count(counts_.without_program, without_program);
}

void ImportedDataset::drop(std::string_view why) {
  ++counts_.records;
  count(counts_.dropped, why);
}

Import::Import(ImportSettings settings, std::string format, base::Monitor& monitor)
    : settings_(std::move(settings)), format_(std::move(format)), monitor_(monitor) {
  settings_.platform = std::string(platform_name(settings_.platform));
}

ImportedDataset& Import::dataset(const std::string& platform) {
  const std::string name = platform_id(platform).substr(prefix.size());
  const auto known = datasets_.find(name);
  if (known != datasets_.end()) return known->second;
  return datasets_.try_emplace(name, name, format_).first->second;
}

std::string_view Import::option(std::string_view name, std::string_view otherwise) const {
  const auto found = settings_.options.find(name);
  return found == settings_.options.end() ? otherwise : std::string_view(found->second);
}

bool Import::next_record(LineReader& lines) {
  for (;;) {
    try {
      if (!lines.next_line()) return false;
    } catch (const base::UserError& error) {
      skip(error, lines.file());
      continue;
    }
    if (lines.text().empty()) {
      ignore("empty line", lines.place());
    } else if (lines.text().starts_with('#')) {
      ignore("comment", lines.place());
    } else {
      return true;
    }
  }
}

void Import::skip(const base::UserError& why, std::string_view file, bool is_cut) {
  if (settings_.strict) throw why;
  if (first_skipped_.empty()) first_skipped_ = why.what();
  count(skipped_, is_cut ? "cut off at the end of the file" : reason_of(why.what(), file),
        base::one_line(why.what(), longest_first));
}

void Import::ignore(const std::string& what, const std::string& place) {
  count(ignored_, what, place);
}

const std::vector<Importer>& importers() {
  static const std::vector<Importer> table = {
      {"autotvm", "logs of AutoTVM, JSON lines", {}, import_autotvm},
      {"auto_scheduler", "logs of TVM's auto_scheduler (Ansor), JSON lines", {}, import_auto_scheduler},
      {"metaschedule",
       "a database of MetaSchedule: its files of workloads and of records; traces for CPUs become programs",
       {},
       import_metaschedule},
      {"kernel_tuner",
       "caches or T4 results of one GPU, and T1 spaces next to them",
       {{"unit", "of times of which the files name none: s, ms, us or ns; default: ms"},
        {"name", "of the kernel, for files that name none; default: the file's name"}},
       import_kernel_tuner},
      {"ktt",
       "KTT's results of one GPU, JSON",
       {{"unit", "of the times where the file names none: s, ms, us or ns"},
        {"name", "of the kernel, for files that name none; default: the file's name"}},
       import_ktt},
      {"table",
       "CSV and JSON of configurations and their times, as spreadsheets, tuners and benchmarks write them: one column "
       "of "
       "times, or one per platform; platform '*' takes all",
       {{"times-from",
         "first column of times; all columns after it are times, too; default: the first one with fractions"},
        {"time",
         "the only column of times; the columns after it are neither platforms nor parameters; default: that of a "
         "program "
         "whose tables are known (docs/reference/files-of-others.md)"},
        {"parameters", "A,B: the columns that say what was measured; default: those in front of the time"},
        {"workload", "A,B: columns that name the workload; at most one item that is not a column is its name"},
        {"ignore", "A,B: columns to leave out"},
        {"higher-is-better", "yes: the values are not times, and more is better"},
        {"unit", "of the times: s, ms, us or ns; needed if the column's name does not say it"},
        {"separator", "comma, semicolon, tab or bar; default: the one that fits the first lines"},
        {"decimal", "point or comma, between a number and its fraction; default: as in the first lines"},
        {"head", "yes or no: whether the first line names the columns; default: no if it holds numbers as others do"}},
       import_table},
      {"programs", "JSON lines of loop programs; platform '*' takes every platform in them", {}, import_programs},
  };
  return table;
}

const std::vector<Exporter>& exporters() {
  static const std::vector<Exporter> table = {
      {"autotvm", "JSON lines as AutoTVM writes them", export_autotvm},
      {"table", "CSV: workload, sketch, arguments and seconds of the rows that are ok", export_table},
      {"programs", "JSON lines of loop programs: every row that has one", export_programs},
      {"kernel_tuner", "a cache file of Kernel Tuner: rows of one table, failures too", export_kernel_tuner},
      {"t4", "T4 results of the FAIR auto-tuning format: rows of one table, failures too", export_t4},
  };
  return table;
}

Import imported(const std::string& format, ImportSettings settings, base::Monitor& monitor) {
  const bool is_known = std::any_of(importers().begin(), importers().end(),
                                    [&](const Importer& importer) { return importer.name == format; });
  if (!is_known && is_program_of_tables(format))
    throw base::UserError(fmt::format("unknown format '{}'; its files are read by the format table", format));
  const Importer& importer = entry_named(importers(), format, "format");
  for (const auto& [option, value] : settings.options) entry_named(importer.options, option, "option");
  Import import(std::move(settings), format, monitor);
  importer.run(import);
  // For a platform that only skipped records named.
  std::erase_if(import.datasets(), [](const auto& each) { return each.second.counts().records == 0; });
  std::int64_t rows = 0;
  for (const auto& [platform, dataset] : import.datasets()) rows += dataset.counts().rows;
  if (rows == 0 && !import.first_skipped().empty()) throw base::UserError(import.first_skipped());
  if (rows == 0) throw base::UserError(import.settings().files.front().string(), "holds no record of this format");
  std::int64_t skipped = 0;
  for (const auto& [reason, of_reason] : import.skipped()) skipped += of_reason.count;
  if (skipped > 0) {
    monitor.note(
        fmt::format("records that could not be read and were skipped: {} (a strict import refuses them); the first: {}",
                    skipped, import.first_skipped()));
  }
  return import;
}

Counts exported(const std::string& format, const DatasetFile& from, const TextSink& to) {
  return entry_named(exporters(), format, "format").run(from, to);
}

}  // namespace graft::datasets::formats
