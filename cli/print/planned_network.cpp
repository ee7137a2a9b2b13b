#include "cli/print/planned_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "codegen/expression/workload.h"

namespace graft::cli {

PlannedNetwork planned_network(const graph::Plan& plan, std::size_t file_nodes, std::size_t nodes) {
  PlannedNetwork out;
  out.file_nodes = file_nodes;
  out.nodes = nodes;
  std::size_t computed = 0;
  for (const graph::Plan::Call& call : plan.calls) computed += call.layers.size();
  out.views = nodes - std::min(nodes, computed);
  out.calls = plan.calls.size();
  out.kernels = plan.kernels.size();
  for (const graph::Plan::Kernel& kernel : plan.kernels)
    out.operations += double(kernel.calls) * double(codegen::flops(kernel.workload));
  for (const graph::Plan::Buffer& buffer : plan.buffers)
    if (buffer.known && buffer.part_of < 0) out.constant_bytes += buffer.bytes();
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
