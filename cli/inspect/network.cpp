#include "study/flows/network.h"

#include <fmt/format.h>

#include <algorithm>
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
#include "cli/print/planned_network.h"
#include "cli/print/tuned_network.h"
#include "cli/texts.h"
#include "codegen/expression/computation.h"
#include "codegen/expression/parse.h"
#include "codegen/expression/workload.h"
#include "graph/operators.h"
#include "study/flows/explained.h"
#include "study/flows/user_function.h"

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

// The kernels of a plan with what they compute and move, and the least time that allows where the platform's limits are
// known.
base::Document print_kernels(const graph::Plan& plan, const PlannedNetwork& planned, const tasks::Platform& platform,
                             Output& out) {
  std::vector<std::optional<study::Roof>> roofs;
  for (const graph::Plan::Kernel& kernel : plan.kernels) roofs.push_back(study::roof_of(platform, kernel.workload));
  const bool bounded = std::any_of(roofs.begin(), roofs.end(), [](const auto& roof) { return roof.has_value(); });
  std::vector<std::string> head{"kernel", "calls", "operations", "bytes", "FLOP/byte", "share"};
  if (bounded) head.emplace_back("at least");
  head.emplace_back("first call");
  Table table(head);
  base::Document list = base::Document::list();
  double least = 0;
  for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
    const graph::Plan::Kernel& kernel = plan.kernels[k];
    const study::Work work = study::work_of(kernel.workload);
    const double share = double(kernel.calls) * work.operations / planned.operations;
    std::vector<std::string> cells{std::to_string(k),
                                   std::to_string(kernel.calls),
                                   fmt::format("{:.0f}", work.operations),
                                   fmt::format("{:.0f}", work.bytes),
                                   fmt::format("{:.3g}", work.intensity()),
                                   share_text(share)};
    base::Document each = base::Document::map()
                              .set("workload", kernel.workload.text())
                              .set("calls", kernel.calls)
                              .set("operations", codegen::flops(kernel.workload))
                              .set("bytes", std::int64_t(work.bytes))
                              .set("share", share)
                              .set("first_call", kernel.label);
    if (roofs[k]) {
      const double seconds = work.seconds_below(*roofs[k]);
      least += double(kernel.calls) * seconds;
      each.set("least_seconds", seconds);
    }
    if (bounded) cells.push_back(roofs[k] ? seconds_text(work.seconds_below(*roofs[k])) : "-");
    cells.push_back(layer_name(kernel.label));
    table.row(std::move(cells));
    list.push(std::move(each));
  }
  out.table(table);
  if (bounded) {
    out.line(fmt::format("\nunder the roofline of {}: {} for all calls at least", platform.name, seconds_text(least)));
    out.json().set("least_seconds", least);
  }
  return list;
}

// The steps from the file to the graph that is planned.
base::Document passes_of(const study::Network& network, bool is_printed, Output& out) {
  Table table({"step of folding", "nodes", "operators that went (-) and came"});
  base::Document list = base::Document::list();
  for (const graph::Pass& pass : network.passes) {
    std::string changes;
    base::Document change = base::Document::map();
    for (const auto& [operation, count] : pass.change) {
      changes += fmt::format("{}{:+} {}", changes.empty() ? "" : ", ", count, operation);
      change.set(operation, count);
    }
    table.row({pass.name, std::to_string(pass.nodes), changes});
    list.push(base::Document::map().set("step", pass.name).set("nodes", pass.nodes).set("change", std::move(change)));
  }
  if (is_printed) {
    out.table(table);
    out.line("");
  }
  return list;
}

}  // namespace

int inspect_network(const InspectFlags& flags, Session& session) {
  const tasks::Platform platform = tasks::platform_named(flags.platform.empty() ? "native" : flags.platform);
  const study::Network read = study::read_network(flags.what, flags.network, platform.target);
  const graph::Graph& network = read.graph;
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
  const graph::Plan plan = graph::first_choice(read.plan);
  const PlannedNetwork planned = planned_network(plan, read.file_nodes, network.nodes.size());
  Output& out = session.output;
  out.line(fmt::format("{}: {} of {} different computations, {} operations, {} bytes of constants\n", flags.what,
                       base::counted(std::size_t(all.nodes), "node"), all.computations.size(), all.flops,
                       planned.constant_bytes));
  for (const int input : network.inputs) out.line("input " + text_of(network.values[std::size_t(input)]));
  for (const int output : network.outputs) out.line("output " + text_of(network.values[std::size_t(output)]));
  out.line("");
  base::Document passes = passes_of(read, flags.passes, out);
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
  out.line("\n" + nodes_text(planned));
  for (const graph::Plan::Kernel& kernel : plan.kernels)
    if (kernel.foreign) out.line(fmt::format("not tuned, {}: {}", study::origin_of(*kernel.foreign), kernel.label));
  out.line(fmt::format("buffers between calls: {} bytes, of which at most {} live at once", planned.arena_bytes,
                       planned.peak_bytes));
  const std::size_t fusions = graph::fusions(read.plan);
  if (fusions > 0)
    out.line(fmt::format("kernels may be one at {}, which graft tune decides by their times",
                         base::counted(fusions, "value")));
  out.line("");
  base::Document kernels = print_kernels(plan, planned, platform, out);
  out.json()
      .set("kind", "network")
      .set("inputs", document_of(network, network.inputs))
      .set("outputs", document_of(network, network.outputs))
      .set("nodes", all.nodes)
      .set("different", all.computations.size())
      .set("operations", all.flops)
      .set("constant_bytes", planned.constant_bytes)
      .set("file_nodes", planned.file_nodes)
      .set("views", planned.views)
      .set("calls", planned.calls)
      .set("fusions", std::int64_t(fusions))
      .set("arena_bytes", planned.arena_bytes)
      .set("peak_bytes", planned.peak_bytes)
      .set("platform", platform.name)
      .set("passes", std::move(passes))
      .set("operators", std::move(operators))
      .set("kernels", std::move(kernels));
  return done;
}

int inspect_tuned_network(const InspectFlags& flags, Session& session) {
  if (study::is_shaped(flags.what) && !flags.wants_program()) {
    const study::ShapedNetworks networks = study::read_networks(flags.what);
    session.output.add(study::to_document(networks));
    print(networks, session.output);
    return done;
  }
  const study::TunedNetwork network = study::read_tuned_network(flags.what);
  session.output.add(study::to_document(network));
  if (!flags.wants_program()) {
    print(network, session.output);
    return done;
  }
  std::optional<std::uint64_t> key;
  if (!flags.workload.empty()) key = codegen::parse_workload(flags.workload).key();
  for (const std::size_t k : by_share(network)) {
    const study::NetworkKernel& kernel = network.kernels[k];
    if (!kernel.answer || (key && kernel.workload.key() != *key)) continue;
    session.output.line(
        fmt::format("kernel {} of {} on {}: {}, {}", k, network.model.string(), network.platform.name, kernel.label,
                    time_text(datasets::seconds_of(kernel.answer->measurement), network.platform.device->source())));
    session.output.json().set("workload", kernel.workload.text());
    print_program(kernel.answer->candidate, kernel.answer->pipeline, network.platform.target, flags, session);
    return done;
  }
  throw base::UserError(flags.what, "no program of such a kernel is known");
}

}  // namespace graft::cli
