// Counts why candidates failed: for the summary of a run's failures, and the error of a run in which nothing works.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "datasets/trial.h"

namespace graft::datasets {

// Failed measurements with one reason. Reasons that differ only in their numbers ("element 4 is ...",
// "element 7 is ...") are one.
struct FailureKind {
  Status status = Status::crashed;
  std::string reason;  // the reason of the first of them; may be empty
  std::int64_t count = 0;
};

// "wrong_result: C: element 4 is -nan instead of 1 (allowed error 1e-06)", in one line of at most 160 characters.
std::string to_text(const FailureKind& kind);

class FailureCounts {
 public:
  void add(const Measurement& measurement);  // no effect if it is ok
  // Most frequent first; equally frequent ones in order of their first occurrence.
  std::vector<FailureKind> kinds() const;

 private:
  std::vector<FailureKind> kinds_;
  std::map<std::pair<Status, std::string>, std::size_t> positions_;  // by status and reason without numbers
};

}  // namespace graft::datasets
