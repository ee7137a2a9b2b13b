#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "cli/inspect/inspect.h"
#include "cli/network_flags.h"
#include "cli/texts.h"
#include "codegen/expression/computation.h"
#include "codegen/expression/parse.h"
#include "codegen/expression/workload.h"
#include "codegen/machine/compile.h"
#include "graph/fold.h"
#include "graph/onnx.h"
#include "graph/operators.h"
#include "graph/plan.h"

namespace graft::cli {
namespace {

std::string text_of(const graph::Value& value) {
  return fmt::format("{} {}{}", graph::in_quotes(value.name), codegen::name_of(*value.type),
                     graph::to_text(*value.shape));
}

base::Document document_of(const graph::Graph& network, const std::vector<int>& values) {
  base::Document list = base::Document::list();
  for (const int at : values) {
    const graph::Value& value = network.values[std::size_t(at)];
    base::Document shape = base::Document::list();
    for (const std::int64_t extent : *value.shape) shape.push(extent);
    list.push(base::Document::map()
                  .set("name", value.name)
                  .set("dtype", std::string(codegen::name_of(*value.type)))
                  .set("shape", std::move(shape)));
  }
  return list;
}

// Nodes of one operator: how many, and how many different computations they are.
struct Kind {
  std::int64_t nodes = 0, flops = 0;
  std::set<std::uint64_t> computations;  // Workload::key
};

}  // namespace

int inspect_network(const InspectFlags& flags, Session& session) {
  const graph::Graph network = graph::folded(
      graph::with_numbers(graph::read_onnx(flags.what, flags.network.shapes()), flags.network.constants(), flags.what),
      flags.what);
  std::map<std::string, Kind> kinds;
  Kind all;
  for (const graph::Node& node : network.nodes) {
    Kind& kind = kinds[node.operation];
    ++kind.nodes, ++all.nodes;
    const std::optional<graph::Operands> operands = graph::operands_of(network, node);
    if (!operands) continue;
    const auto results = graph::results_of(network, node, *operands, flags.what);
    if (!results) continue;
    for (const graph::Result& result : *results) {
      if (!result.computation) continue;
      const std::int64_t flops = codegen::flops(*result.computation);
      const std::uint64_t key = codegen::Workload(codegen::to_text(*result.computation)).key();
      for (Kind* const each : {&kind, &all}) each->flops += flops, each->computations.insert(key);
    }
  }
  std::int64_t weights = 0;
  for (const graph::Value& value : network.values) {
    if (value.known != nullptr) weights += std::int64_t(value.known->bytes.size());
  }
  Output& out = session.output;
  out.line(fmt::format("{}: {} of {} different computations, {} operations, {} bytes of constants\n", flags.what,
                       base::counted(std::size_t(all.nodes), "node"), all.computations.size(), all.flops, weights));
  for (const int input : network.inputs) out.line("input " + text_of(network.values[std::size_t(input)]));
  for (const int output : network.outputs) out.line("output " + text_of(network.values[std::size_t(output)]));
  out.line("");
  Table table({"operator", "nodes", "different", "operations"});
  base::Document operators = base::Document::list();
  for (const auto& [name, kind] : kinds) {
    table.row({name, std::to_string(kind.nodes), std::to_string(kind.computations.size()), std::to_string(kind.flops)});
    operators.push(base::Document::map()
                       .set("operator", name)
                       .set("nodes", kind.nodes)
                       .set("different", kind.computations.size())
                       .set("operations", kind.flops));
  }
  out.table(table);
  const graph::Plan plan = graph::planned(network, codegen::host_target(), flags.what);
  std::vector<std::string> labels(plan.kernels.size());
  for (const graph::Plan::Call& call : plan.calls)
    if (std::string& label = labels[std::size_t(call.kernel)]; label.empty()) label = call.label;
  out.line(fmt::format("\n{} of {}", base::counted(plan.calls.size(), "call"),
                       base::counted(plan.kernels.size(), "kernel")));
  Table kernel_table({"kernel", "calls", "operations", "first call"});
  base::Document kernels = base::Document::list();
  for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
    const graph::Plan::Kernel& kernel = plan.kernels[k];
    kernel_table.row(
        {std::to_string(k), std::to_string(kernel.calls), std::to_string(codegen::flops(kernel.workload)), labels[k]});
    kernels.push(base::Document::map()
                     .set("workload", kernel.workload.text())
                     .set("calls", kernel.calls)
                     .set("operations", codegen::flops(kernel.workload))
                     .set("first_call", labels[k]));
  }
  out.table(kernel_table);
  out.json()
      .set("kind", "network")
      .set("inputs", document_of(network, network.inputs))
      .set("outputs", document_of(network, network.outputs))
      .set("nodes", all.nodes)
      .set("different", all.computations.size())
      .set("operations", all.flops)
      .set("constant_bytes", weights)
      .set("operators", std::move(operators))
      .set("kernels", std::move(kernels));
  return done;
}

}  // namespace graft::cli
