// Programs that were measured elsewhere, to be measured again.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "codegen/space/candidate.h"
#include "datasets/dataset.h"

namespace graft::study {

// The `ok` rows of datasets, each program once; for a workload, taken from each file in turn, so that the first ones
// represent all files.
class Pool {
 public:
  Pool() = default;
  explicit Pool(const std::vector<datasets::Dataset>& files);
  // Workloads of the programs, in the order of the files.
  const std::vector<codegen::Workload>& workloads() const { return workloads_; }
  // Empty for a workload that it does not know.
  std::vector<codegen::Candidate> of(const codegen::Workload& workload) const;

 private:
  std::size_t position_of(const codegen::Workload& workload);

  std::vector<codegen::Workload> workloads_;
  std::vector<std::vector<codegen::Candidate>> programs_;  // by workload
};

}  // namespace graft::study
