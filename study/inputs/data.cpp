#include "study/inputs/data.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "datasets/groups.h"
#include "study/inputs/field_error.h"

namespace graft::study {

std::vector<datasets::Dataset> read_datasets(const std::vector<std::string>& files, base::Monitor& monitor) {
  std::vector<datasets::Dataset> all;
  for (const std::string& file : files) {
    base::check_stop(monitor);
    all.push_back(datasets::read_dataset(file));
  }
  return all;
}

namespace {

// FieldError for a name that is in no file.
void check_known(const char* field, const std::vector<std::string>& names, const std::set<std::string>& distinct) {
  const std::vector<std::string> known(distinct.begin(), distinct.end());
  for (const std::string& name : names) {
    if (!distinct.contains(name))
      throw FieldError(field, fmt::format("no row is of '{}'{}", name, base::did_you_mean(name, known)));
  }
}

}  // namespace

std::vector<datasets::Dataset> DataSource::read(std::uint64_t seed, base::Monitor& monitor) const {
  std::vector<datasets::Dataset> all = read_datasets(files, monitor);
  if (rows == 0 && sketches.empty() && workloads.empty()) return all;
  std::set<std::string> known_sketches, known_workloads;
  for (const datasets::Dataset& dataset : all) {
    for (const auto& sketch : dataset.sketches) known_sketches.insert(sketch->name);
    for (const codegen::Workload& workload : dataset.workloads) known_workloads.insert(workload.text());
  }
  check_known("sketches", sketches, known_sketches);
  std::vector<std::string> texts;  // "resnet18.C2" is one of them, too
  for (const std::string& workload : workloads) texts.push_back(codegen::parse_workload(workload).text());
  check_known("workloads", texts, known_workloads);
  for (datasets::Dataset& dataset : all) {
    if (!texts.empty()) {
      std::erase_if(dataset.rows, [&](const datasets::Dataset::Row& row) {
        const std::string& text = dataset.workloads[std::size_t(row.workload)].text();
        return std::find(texts.begin(), texts.end(), text) == texts.end();
      });
    }
    if (rows > 0 || !sketches.empty()) dataset = datasets::narrowed(dataset, sketches, rows, seed);
  }
  return all;
}

void DataSource::put(base::Document& request) const {
  if (rows > 0) request.set("rows", rows);
  if (!workloads.empty()) request.set("workloads", base::join(workloads, ";"));
  if (!sketches.empty()) request.set("sketches", base::join(sketches, ","));
}

void note_doubts(const meta::TaskSet& tasks, base::Monitor& monitor) {
  for (const std::string& note : tasks.notes) monitor.note(note);
  if (tasks.stale_rows > 0) {
    monitor.note(
        fmt::format("{} rows are stale (their programs lower to something else today) and left out", tasks.stale_rows));
  }
  for (const meta::TaskSet::WithoutProgram& each : tasks.without_program)
    monitor.note(fmt::format("{} rows have no program and are left out: {}", each.rows, each.reason));
}

}  // namespace graft::study
