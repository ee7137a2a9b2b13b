// Searches among the recorded programs of one platform, the same ones for each of several models that guide them: what
// evaluate judges methods by, besides the order that they predict.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/monitor.h"
#include "datasets/dataset.h"
#include "features/encoding.h"
#include "meta/cost_model.h"
#include "study/flows/evaluation_table.h"

namespace graft::study {

// What guides searches. Without a model they draw at random.
struct Guide {
  std::string method;
  const meta::CostModel* model = nullptr;
};

struct GuidedSearchSettings {
  std::vector<std::int64_t> counts;  // of trials, at least one, rising; the last one ends a search
  std::int64_t seeds = 1, batch = 5;
  std::uint64_t seed = 1;  // the first one
  int threads = 1;
};

// Each guide searches each workload once by each seed, as replay() does with this model, batch and seed. Models see
// programs, which are encoded once for all searches, by `encoding`. Rows by guide, then by number of trials; those of
// the dataset's source. UserError for a workload that recorded nothing ok; Stopped when the monitor asks for it.
Searches guided_searches(const datasets::Dataset& recorded, std::span<const codegen::Workload> workloads,
                         const features::Encoding& encoding, std::span<const Guide> guides,
                         const GuidedSearchSettings& settings, base::Monitor& monitor);

}  // namespace graft::study
