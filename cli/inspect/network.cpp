#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <filesystem>
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
#include "cli/texts.h"
#include "codegen/expression/computation.h"
#include "codegen/expression/parse.h"
#include "codegen/expression/workload.h"
#include "graph/fold.h"
#include "graph/onnx.h"
#include "graph/operators.h"

namespace graft::cli {
namespace {

// "x=1,3,224,224;batch=1"
graph::Shapes shapes_of(const std::string& text) {
  graph::Shapes shapes;
  for (const std::string_view part : base::split(text, ';')) {
    const std::string_view given = base::trim(part);
    if (given.empty()) continue;
    const std::size_t equals = given.find('=');
    if (equals == std::string_view::npos || equals == 0)
      throw base::UserError("--shape", fmt::format("'{}': expected NAME=EXTENT,EXTENT,...", given));
    graph::Shape shape;
    for (const std::string_view extent : base::split(given.substr(equals + 1), ',')) {
      const std::string_view digits = base::trim(extent);
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), shape.emplace_back());
      if (error != std::errc() || end != digits.data() + digits.size() || shape.back() < 0)
        throw base::UserError("--shape", fmt::format("'{}': '{}' is not an extent", given, extent));
    }
    if (!shapes.emplace(given.substr(0, equals), std::move(shape)).second)
      throw base::UserError("--shape", fmt::format("'{}' is given twice", given.substr(0, equals)));
  }
  return shapes;
}

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
  const graph::Graph network = graph::folded(graph::read_onnx(flags.what, shapes_of(flags.shape)), flags.what);
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
  out.json()
      .set("kind", "network")
      .set("inputs", document_of(network, network.inputs))
      .set("outputs", document_of(network, network.outputs))
      .set("nodes", all.nodes)
      .set("different", all.computations.size())
      .set("operations", all.flops)
      .set("constant_bytes", weights)
      .set("operators", std::move(operators));
  return done;
}

}  // namespace graft::cli
