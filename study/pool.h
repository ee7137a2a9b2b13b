// Programs that were measured elsewhere, for whoever measures them again.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "codegen/schedule/candidate.h"
#include "datasets/dataset.h"

namespace graft::study {

// The `ok` rows of datasets, each program once; of a workload in turn from each file, so that the first ones stand for
// all files.
class Pool {
 public:
  Pool() = default;
  explicit Pool(const std::vector<datasets::Dataset>& files);
  // Of which it has programs, in the order of the files.
  const std::vector<codegen::Workload>& workloads() const { return workloads_; }
  // Empty for a workload that it does not know.
  std::vector<codegen::Candidate> of(const codegen::Workload& workload) const;

 private:
  std::size_t position_of(const codegen::Workload& workload);

  std::vector<codegen::Workload> workloads_;
  std::vector<std::vector<codegen::Candidate>> programs_;  // by workload
};

}  // namespace graft::study
