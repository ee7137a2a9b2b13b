// How long a search takes, by a name: what commands and the library offer alike, so that one continues what the other
// began.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "study/flows/network.h"
#include "study/flows/tune.h"

namespace graft::study {

struct NetworkRequest;

struct Effort {
  std::string_view name;
  std::int64_t trials, stop_after;           // of a single workload
  std::int64_t kernel_trials, most_rebuild;  // of a network's kernels: on average, and of the best programs at most
};

// quick, normal or thorough. FieldError for other names.
const Effort& effort_named(std::string_view name);

// `trials`, `stop_after`: 0 for the effort's.
void set_effort(const Effort& effort, std::int64_t trials, std::int64_t stop_after, TuneRequest& request);
// The request with what its effort leaves open.
NetworkRequest with_effort(NetworkRequest request);

}  // namespace graft::study
