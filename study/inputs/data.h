// Datasets for learning and evaluation: files, and the choice of their rows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/document.h"
#include "base/monitor.h"
#include "datasets/dataset.h"
#include "meta/task_set.h"
#include "study/inputs/setting.h"

namespace graft::study {

// Stopped, before the next file, when the monitor asks for it.
std::vector<datasets::Dataset> read_datasets(const std::vector<std::string>& files, base::Monitor& monitor);

struct DataSource {
  std::vector<std::string> files;
#include "study/inputs/settings/data.def"

  // The files' chosen rows, drawn by the seed. FieldError for workloads and sketches without rows; Stopped as
  // read_datasets.
  std::vector<datasets::Dataset> read(std::uint64_t seed, base::Monitor& monitor) const;
  // The identity of the choice, without the files.
  void put(base::Document& request) const;
};

// Notes the rows that a task set leaves out, and why; and where the joining of tables is in doubt.
void note_doubts(const meta::TaskSet& tasks, base::Monitor& monitor);

}  // namespace graft::study
