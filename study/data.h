// Datasets that are learned from, and judged on: files, and which rows of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/document.h"
#include "base/monitor.h"
#include "datasets/dataset.h"
#include "meta/task_set.h"

namespace graft::study {

// Stopped, before the next file, when the monitor asks for it.
std::vector<datasets::Dataset> read_datasets(const std::vector<std::string>& files, base::Monitor& monitor);

struct DataSource {
  std::vector<std::string> files;
  std::vector<std::string> workloads;  // the rows of these alone; none: all
  std::vector<std::string> sketches;   // likewise
  std::int64_t rows = 0;               // at most that many programs of each workload in each file; 0: all

  // The files' chosen rows, drawn by the seed. FieldError for workloads and sketches that no row is of; Stopped as
  // read_datasets.
  std::vector<datasets::Dataset> read(std::uint64_t seed, base::Monitor& monitor) const;
  // What identifies the choice, without the files.
  void put(base::Document& request) const;
};

// Notes which rows a task set leaves out, and why.
void note_left_out(const meta::TaskSet& tasks, base::Monitor& monitor);

}  // namespace graft::study
