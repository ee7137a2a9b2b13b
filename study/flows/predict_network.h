// How long a network takes, without running anything: from what was measured on the platform of its kernels and of
// others. It is an estimate for kernels tuned as the measured ones were, with an interval, in the layouts and with the
// fusions that these times make the fastest.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/document.h"
#include "study/flows/network.h"
#include "tasks/platform.h"

namespace graft::study {

struct PredictNetworkRequest {
  std::filesystem::path model;  // ONNX
  tasks::Platform platform;
#include "study/inputs/settings/predict_network.def"
};

// A median, and the ends of the central 90 % interval.
struct EstimatedSeconds {
  double seconds = 0, low = 0, high = 0;
};

struct PredictedKernel {
  std::string workload, label;  // of its first call
  std::int64_t calls = 0;
  bool known = false;                   // timed on the platform
  bool does_less = false;               // known: with less arithmetic than by definition (does_less_arithmetic)
  std::optional<double> bound_seconds;  // the least that the platform's limits allow, where they are known (roof_of)
  EstimatedSeconds one;                 // call
};

struct PredictedNetwork {
  std::filesystem::path model;
  std::string platform, source;            // of the times
  std::vector<PredictedKernel> kernels;    // in the plan's order
  std::vector<std::string> not_estimated;  // labels of kernels that are not tuned: no part of the sums
  // What all calls take longer than measured ones, whose operands are in caches: of constants that are not.
  EstimatedSeconds from_memory;
  EstimatedSeconds total;
  std::int64_t records = 0;  // measured kernels that it is made of
  // Each of these predicted by the others (by those of other folders, if there are several): the part whose 90 %
  // intervals hold the measured time, and the median factor between estimate and time. NaN without records.
  double coverage = 0, typical_factor = 0;
  double operations_per_second = 0, bytes_per_second = 0;  // the highest speeds known
};

// UserError as study::read_network; for a source that is not one, or of another platform; if nothing is known of the
// platform's speed.
PredictedNetwork predict_network(const PredictNetworkRequest& request);

// {"model":...,"platform":...,"estimate":{"seconds":...,"low":...,"high":...},"kernels":[...],...}
base::Document to_document(const PredictedNetwork& network);

}  // namespace graft::study
