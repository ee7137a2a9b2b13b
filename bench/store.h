// The speed of writing and reading datasets: a file's rows, repeated until there are many, are written and read whole,
// and episodes of them are read by position. In wall time, which includes the disk's.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/document.h"
#include "bench/settings.h"

namespace graft::bench {

struct StoreRow {
  std::string what, unit;
  std::vector<double> values;  // one a repetition
};

struct StoreBench {
  bool equal = false;  // the data read back give the same file
  std::vector<StoreRow> rows;
};

// Writes into a new folder in the system's temporary one. UserError for a file that is not a dataset or has
// no rows, Failure if an episode is larger than every group.
StoreBench bench_store(const StoreSettings& settings, const std::function<void(std::string)>& note);

base::Document to_document(const StoreBench& bench, const StoreSettings& settings);
std::string to_text(const StoreBench& bench, const StoreSettings& settings);

}  // namespace graft::bench
