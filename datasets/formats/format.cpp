#include "datasets/formats/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "datasets/formats/auto_scheduler.h"
#include "datasets/formats/autotvm.h"
#include "datasets/formats/kernel_tuner.h"
#include "datasets/formats/metaschedule.h"
#include "datasets/formats/programs.h"
#include "datasets/formats/table.h"
#include "datasets/platform_name.h"

namespace graft::datasets::formats {
namespace {

// Beyond any real set of logs, and what keeps memory below a gigabyte.
constexpr std::int64_t most_rows = 10'000'000, most_workloads = 100'000, most_sketches = 100'000, most_reasons = 10'000;
constexpr std::size_t longest_name = 128;                              // of a platform
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
    throw base::UserError(fmt::format("more than {} different reasons, such as '{}'", most_reasons, name));
  }
  counts.emplace(name, 1);
}

void check_count(std::int64_t count, std::int64_t most, std::string_view what) {
  if (count > most)
    throw base::UserError(fmt::format("more than {} {} in one dataset; import fewer files", most, what));
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
        fmt::format("'{}' is no name of a platform: letters, digits and : @ . _ , = -, at most {}, no '.' in front",
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
  if (workload.text.size() > longest_workload) {
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

const std::vector<Importer>& importers() {
  static const std::vector<Importer> table = {
      {"autotvm", "logs of AutoTVM, JSON lines", {}, import_autotvm},
      {"auto_scheduler", "logs of TVM's auto_scheduler (Ansor), JSON lines", {}, import_auto_scheduler},
      {"metaschedule", "a database of MetaSchedule: its files of workloads and of records", {}, import_metaschedule},
      {"kernel_tuner", "caches or T4 results of one GPU, and T1 spaces beside them", {}, import_kernel_tuner},
      {"table",
       "CSV: columns of a configuration, one column of times per platform; --platform '*' takes all",
       {{"times-from", "first column of times, which all behind are, too; default: the first one with fractions"},
        {"unit", "of the times: s, ms, us or ns; default: s"}},
       import_table},
      {"programs", "JSON lines of loop programs; --platform '*' takes every platform in them", {}, import_programs},
  };
  return table;
}

const std::vector<Exporter>& exporters() {
  static const std::vector<Exporter> table = {
      {"autotvm", "JSON lines as AutoTVM writes them", export_autotvm},
      {"table", "CSV: workload, sketch, arguments and seconds of the rows that are ok", export_table},
      {"programs", "JSON lines of loop programs: every row that has one", export_programs},
  };
  return table;
}

Import imported(const std::string& format, ImportSettings settings, base::Monitor& monitor) {
  const Importer& importer = entry_named(importers(), format, "format");
  for (const auto& [option, value] : settings.options) entry_named(importer.options, option, "option");
  Import import(std::move(settings), format, monitor);
  importer.run(import);
  std::int64_t rows = 0;
  for (const auto& [platform, dataset] : import.datasets()) rows += dataset.counts().rows;
  if (rows == 0) throw base::UserError(import.settings().files.front().string(), "holds no record of this format");
  return import;
}

Counts exported(const std::string& format, const DatasetFile& from, const TextSink& to) {
  return entry_named(exporters(), format, "format").run(from, to);
}

}  // namespace graft::datasets::formats
