#include "study/data.h"

#include <fmt/format.h>

#include <set>

#include "base/error.h"
#include "base/text.h"
#include "datasets/groups.h"
#include "study/field_error.h"

namespace graft::study {

std::vector<datasets::Dataset> read_datasets(const std::vector<std::string>& files, base::Monitor& monitor) {
  std::vector<datasets::Dataset> all;
  for (const std::string& file : files) {
    base::check_stop(monitor);
    all.push_back(datasets::read_dataset(file));
  }
  return all;
}

std::vector<datasets::Dataset> DataSource::read(std::uint64_t seed, base::Monitor& monitor) const {
  std::vector<datasets::Dataset> all = read_datasets(files, monitor);
  if (rows == 0 && sketches.empty()) return all;
  std::set<std::string> distinct;
  for (const datasets::Dataset& dataset : all) {
    for (const auto& sketch : dataset.sketches) distinct.insert(sketch->name);
  }
  const std::vector<std::string> known(distinct.begin(), distinct.end());
  for (const std::string& name : sketches) {
    if (!distinct.contains(name))
      throw FieldError("sketches", fmt::format("no row is of '{}'{}", name, base::did_you_mean(name, known)));
  }
  for (datasets::Dataset& dataset : all) dataset = datasets::narrowed(dataset, sketches, rows, seed);
  return all;
}

void DataSource::put(base::Document& request) const {
  if (rows > 0) request.set("rows", rows);
  if (!sketches.empty()) request.set("sketches", base::join(sketches, ","));
}

void note_left_out(const meta::TaskSet& tasks, base::Monitor& monitor) {
  if (tasks.stale_rows > 0) {
    monitor.note(
        fmt::format("{} rows are stale (their programs lower to something else today) and left out", tasks.stale_rows));
  }
  for (const meta::TaskSet::WithoutProgram& each : tasks.without_program)
    monitor.note(fmt::format("{} rows have no program and are left out: {}", each.rows, each.reason));
}

}  // namespace graft::study
