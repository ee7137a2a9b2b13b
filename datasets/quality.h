// How good a dataset is, and the card that says so: who measured what, how, with which noise, whether each workload
// passes its gates, and in which part of the named splits it is. Everything is derived from the dataset; the card that
// stands in a file is for readers that are not graft.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/document.h"
#include "datasets/dataset.h"

namespace graft::datasets {

// A workload that fails one is still data; tables should say so.
struct Gates {
  double least_spread = 5;       // slowest / fastest program: less teaches a model little
  double most_failed = 0.1;      // share of the rows that are not ok
  double most_variation = 0.05;  // median over rows of the repetitions' coefficient of variation
};

struct Quality {
  codegen::Workload workload;
  std::int64_t rows = 0, ok = 0, programs = 0;  // programs: distinct ones among the ok rows
  double failed = 0;                            // share of the rows
  double spread = 0;                            // NaN without ok rows, as are the next two
  // Of the repetitions of a row: sample standard deviation / mean. Over the ok rows with at least two; NaN for none.
  double variation = 0, variation_90 = 0;  // median, 90th percentile
  std::vector<std::string> missed;         // gates: "spread", "failed", "variation"
};
// By workload, in the dataset's order.
std::vector<Quality> quality(const Dataset& dataset, const Gates& gates = {});

// {"card":1,"platform":{..},"made":{..},"measured":{..},"noise":{..},"gates":{..},"workloads":[..],"splits":{..}}
base::Document card(const Dataset& dataset);

}  // namespace graft::datasets
