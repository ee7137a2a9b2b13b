// Private to this folder: the forms of a network between which the times of kernels decide: which values are stored in
// blocks (graph/layouts.h), and which neighbouring kernels are one (graph/fuse.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/monitor.h"
#include "graph/inputs.h"
#include "graph/layouts.h"
#include "study/flows/network.h"

namespace graft::study {

struct NetworkForm {
  std::set<int> fused;        // values at which kernels are one
  graph::InBlocks in_blocks;  // by buffer of the plan with these
};

class NetworkLayouts {
 public:
  // `network`: with nothing fused by choice. `free`: whether there is a choice of layouts. `is_known`: of a workload,
  // whether its answer is known without a search; what is known in blocks is not searched as ONNX has it, and where
  // either the fused kernel or all separate ones are known, the others are not searched.
  NetworkLayouts(const Network& network, const codegen::Target& target, bool free,
                 const std::function<bool(const codegen::Workload&)>& is_known);

  // The kernels of all forms that can be tuned, those of the network as it is first; they do not depend on what is
  // known.
  const std::vector<graph::Plan::Kernel>& kernels() const { return kernels_; }
  // By kernel: whether it takes part in the choice.
  const std::vector<bool>& is_candidate() const { return is_candidate_; }
  const graph::Forms& forms(const std::set<int>& fused) { return way(fused).forms; }
  bool any() const;  // whether there is a choice
  // As ONNX has it, with those kernels fused of which only the fused one is known.
  NetworkForm first();
  // By kernel: how often it runs in this form.
  std::vector<double> weights(const NetworkForm& form);
  // The form with the least sum, of best times by kernel. Equal kernels are fused everywhere or nowhere; fusions are
  // decided in order, each with the best layouts.
  NetworkForm best(const std::vector<double>& best_seconds);
  graph::Plan plan(const NetworkForm& form);
  // What operands of the kernels of all forms have (graph/inputs.h).
  std::map<std::string, codegen::Seen> seen(const graph::Samples& samples);

 private:
  // The network with some kernels fused.
  struct Way {
    graph::Plan plan;
    graph::Forms forms;
  };
  // Places of which the fused kernel is the same.
  struct Fusion {
    std::set<int> values;
    std::vector<std::vector<int>> nodes;  // of the graph, by place
    bool may_be_fused = true, may_be_separate = true;
  };

  const Way& way(const std::set<int>& fused);
  void find_fusions();
  void find_candidates(const std::function<bool(const codegen::Workload&)>& is_known);
  const Fusion* fusion_of(const graph::Plan::Call& call) const;
  std::size_t place_of(const codegen::Workload& workload) const;

  const Network& network_;
  const codegen::Target& target_;
  const bool free_;
  std::map<std::set<int>, Way> ways_;
  std::set<int> all_;  // values of all fusions
  std::vector<Fusion> fusions_;
  std::vector<graph::Plan::Kernel> kernels_;
  std::vector<bool> is_candidate_;
  std::map<std::uint64_t, std::size_t> place_;  // in `kernels_`, by key
};

}  // namespace graft::study
