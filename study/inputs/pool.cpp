#include "study/inputs/pool.h"

#include <algorithm>
#include <cstdint>
#include <set>

#include "datasets/groups.h"

namespace graft::study {

Pool::Pool(const std::vector<datasets::Dataset>& files) {
  std::vector<std::vector<std::vector<codegen::Candidate>>> by_file;  // [file][workload][in its order]
  for (const datasets::Dataset& dataset : files) {
    auto& own = by_file.emplace_back();
    for (const datasets::Group& group : datasets::groups(dataset)) {
      const std::size_t w = position_of(group.workload);
      own.resize(std::max(own.size(), w + 1));
      for (const std::int64_t row : group.rows) own[w].push_back(dataset.candidate(dataset.rows[std::size_t(row)]));
    }
  }
  programs_.resize(workloads_.size());
  for (std::size_t w = 0; w < workloads_.size(); ++w) {
    std::set<std::uint64_t> known;  // candidate hashes
    bool any = true;
    for (std::size_t turn = 0; any; ++turn) {
      any = false;
      for (const auto& own : by_file) {
        if (w >= own.size() || turn >= own[w].size()) continue;
        any = true;
        if (known.insert(codegen::hash(own[w][turn])).second) programs_[w].push_back(own[w][turn]);
      }
    }
  }
}

std::vector<codegen::Candidate> Pool::of(const codegen::Workload& workload) const {
  const auto found = std::find(workloads_.begin(), workloads_.end(), workload);
  return found == workloads_.end() ? std::vector<codegen::Candidate>{}
                                   : programs_[std::size_t(found - workloads_.begin())];
}

std::size_t Pool::position_of(const codegen::Workload& workload) {
  const auto found = std::find(workloads_.begin(), workloads_.end(), workload);
  if (found != workloads_.end()) return std::size_t(found - workloads_.begin());
  workloads_.push_back(workload);
  return workloads_.size() - 1;
}

}  // namespace graft::study
