// Private to this folder: which values of a network are stored in blocks (graph/layouts.h), by the times of the kernels
// that read and write them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "base/monitor.h"
#include "graph/layouts.h"
#include "study/flows/network.h"

namespace graft::study {

class NetworkLayouts {
 public:
  // `free`: whether there is a choice. `is_known`: of a workload, whether its answer is known without a search; what is
  // known in blocks is not searched as ONNX has it.
  NetworkLayouts(const Network& network, const codegen::Target& target, bool free,
                 const std::function<bool(const codegen::Workload&)>& is_known);

  // The kernels of all forms, those of the plan as it is first; they do not depend on what is known.
  const std::vector<graph::Plan::Kernel>& kernels() const { return kernels_; }
  // By kernel: whether it takes part in the choice.
  const std::vector<bool>& is_candidate() const { return is_candidate_; }
  const graph::Forms& forms() const { return forms_; }
  bool any() const { return forms_.any(); }
  // By kernel: how often it runs with the values stored so.
  std::vector<double> weights(const graph::InBlocks& in_blocks) const;
  // The layouts with the least sum, of best times by kernel.
  graph::InBlocks best(const std::vector<double>& best_seconds) const;
  graph::Plan plan(const graph::InBlocks& in_blocks) const { return graph::laid_out(plan_, forms_, in_blocks); }

 private:
  std::size_t place_of(const codegen::Workload& workload) const { return place_.at(workload.key()); }

  const graph::Plan& plan_;
  graph::Forms forms_;
  std::vector<graph::Plan::Kernel> kernels_;
  std::vector<bool> is_candidate_;
  std::map<std::uint64_t, std::size_t> place_;  // in `kernels_`, by key
};

}  // namespace graft::study
