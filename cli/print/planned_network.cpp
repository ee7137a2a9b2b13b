#include "cli/print/planned_network.h"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "base/text.h"
#include "codegen/expression/workload.h"

namespace graft::cli {

PlannedNetwork planned_network(const study::Network& network) {
  const graph::Plan& plan = network.plan;
  PlannedNetwork out;
  out.file_nodes = network.file_nodes;
  out.nodes = network.graph.nodes.size();
  std::set<int> computed;
  for (const graph::Plan::Call& call : plan.calls) computed.insert(call.nodes.begin(), call.nodes.end());
  out.views = out.nodes - computed.size();
  out.calls = plan.calls.size();
  out.kernels = plan.kernels.size();
  for (const graph::Plan::Kernel& kernel : plan.kernels)
    out.operations += double(kernel.calls) * double(codegen::flops(kernel.workload));
  for (const graph::Value& value : network.graph.values)
    if (value.known != nullptr) out.constant_bytes += std::int64_t(value.known->bytes.size());
  const std::vector<std::int64_t> no_scratch(plan.kernels.size(), 0);
  const graph::ArenaUse use = graph::arena_use(plan, no_scratch);
  out.arena_bytes = graph::placed(use.lifetimes).bytes;
  out.peak_bytes = graph::peak_bytes(use.lifetimes);
  return out;
}

std::string nodes_text(const PlannedNetwork& planned) {
  std::string text =
      fmt::format("{} in the file, {} after folding; {} of {}", base::counted(planned.file_nodes, "node"),
                  planned.nodes, base::counted(planned.calls, "call"), base::counted(planned.kernels, "kernel"));
  if (planned.views > 0)
    text += fmt::format("; {} {} no code", base::counted(planned.views, "node"), planned.views == 1 ? "needs" : "need");
  return text;
}

}  // namespace graft::cli
