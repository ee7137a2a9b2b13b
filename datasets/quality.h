// The quality of a dataset, and its card: who measured what, how, with which noise, whether each workload
// passes its gates, and in which part of the named splits it is. Everything is derived from the dataset; the card that
// is stored in a file is for readers other than graft.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/document.h"
#include "datasets/dataset.h"

namespace graft::datasets {

// A workload that fails a gate is still data; tables should say so.
struct Gates {
  double least_spread = 5;       // slowest / fastest program: with less, a model learns little
  double most_failed = 0.1;      // share of the rows that are not ok
  double most_variation = 0.05;  // median over rows of the repetitions' coefficient of variation
};

struct Quality {
  codegen::Workload workload;
  std::int64_t rows = 0, ok = 0, programs = 0;  // programs: distinct ones among the ok rows
  double failed = 0;                            // share of the rows
  double spread = 0;                            // NaN without ok rows, as are the next two
  // Sample standard deviation / mean of the repetitions of a row, over the ok rows with at least two; NaN for none.
  double variation = 0, variation_90 = 0;  // median, 90th percentile
  std::vector<std::string> missed;         // gates: "spread", "failed", "variation"
};
// By workload, in the dataset's order.
std::vector<Quality> quality(const Dataset& dataset, const Gates& gates = {});

// {"card":1,"platform":{..},"made":{..},"measured":{..},"noise":{..},"gates":{..},"workloads":[..],"splits":{..}}
base::Document card(const Dataset& dataset);

// The same, gathered row by row: about 25 bytes per row are kept.
class QualityTally {
 public:
  void add(const Dataset::Row& row);
  // `head`: the dataset to which the rows belong; its own rows are ignored.
  std::vector<Quality> quality(const Dataset& head, const Gates& gates = {}) const;
  base::Document card(const Dataset& head) const;

 private:
  // Counts distinct numbers.
  struct Distinct {
    std::vector<std::uint64_t> values;  // each once up to `sorted`, after it in order of arrival
    std::size_t sorted = 0;
    void add(std::uint64_t value);
    std::int64_t count() const;
  };
  struct OfWorkload {
    std::int64_t rows = 0, ok = 0;
    double best = 0, worst = 0;
    std::vector<double> variations;
    Distinct programs;
  };
  std::vector<OfWorkload> workloads_;
  std::int64_t rows_ = 0;
  std::map<std::string, std::int64_t, std::less<>> statuses_, clocks_, checks_;
};

}  // namespace graft::datasets
