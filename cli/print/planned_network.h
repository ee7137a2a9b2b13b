// What reading, folding and planning made of a network's file, for people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "cli/output.h"
#include "graph/plan.h"

namespace graft::cli {

struct PlannedNetwork {
  std::size_t file_nodes = 0, nodes = 0;  // before and after folding
  std::size_t views = 0;                  // nodes that no call computes: their results are other elements' places
  std::size_t calls = 0, kernels = 0;
  double operations = 0;            // of all calls
  std::int64_t constant_bytes = 0;  // of the model, not prepared
  // Buffers between calls, without what kernels use for themselves; what lives at once at most.
  std::int64_t arena_bytes = 0, peak_bytes = 0;
};
PlannedNetwork planned_network(const graph::Plan& plan, std::size_t file_nodes, std::size_t nodes);

// "69 nodes in the file, 49 after folding; 22 calls of 20 kernels; 1 node needs no code"
std::string nodes_text(const PlannedNetwork& planned);

}  // namespace graft::cli
