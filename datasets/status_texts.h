// The meaning of each status of a measurement, as data: the reference (docs/reference/statuses.md) is generated from
// it.
#pragma once

#include <span>
#include <string_view>

#include "datasets/trial.h"

namespace graft::datasets {

struct StatusText {
  Status status;
  std::string_view meaning;
  std::string_view reason;  // the contents of the reason of such a measurement
  std::string_view remedy;  // if nearly all measurements end like this
};
// One for each status, in the order of GRAFT_STATUSES.
std::span<const StatusText> status_texts();

}  // namespace graft::datasets
