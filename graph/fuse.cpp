#include "graph/fuse.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "codegen/expression/padding.h"
#include "codegen/schedule/rules.h"
#include "graph/merge.h"
#include "graph/operators.h"

namespace graft::graph {
namespace {

struct Working {
  Part part;
  std::vector<int> nodes;
};

// Parts of the graph in the making.
class Parts {
 public:
  Parts(const Graph& graph, std::string_view place) : source_(graph.values.size()), readers_(graph.values.size()) {
    for (std::size_t v = 0; v < source_.size(); ++v) source_[v] = int(v);
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) add(graph, int(n), place);
    for (const int output : graph.outputs) readers_[std::size_t(source_[std::size_t(output)])].push_back(-1);
    for (std::size_t p = 0; p < parts_.size(); ++p)
      for (const int value : operands(int(p))) readers_[std::size_t(value)].push_back(int(p));
  }

  // Merges parts into their only readers as long as the space can take the result.
  void merge(const codegen::Target& target) {
    std::vector<int> writer(source_.size(), -1);
    for (std::size_t p = 0; p < parts_.size(); ++p) writer[std::size_t(result(int(p)))] = int(p);
    for (int reader = 0; reader < int(parts_.size()); ++reader) {
      for (bool found = true; found;) {
        found = false;
        const std::vector<int> values = operands(reader);
        // The last one first: of two branches that meet, the longer one.
        for (std::size_t v = values.size(); v-- > 0 && !found;) {
          const std::vector<int>& all = readers_[std::size_t(values[v])];
          const int from = writer[std::size_t(values[v])];
          if (from < 0 || std::any_of(all.begin(), all.end(), [&](int r) { return r != reader; })) continue;
          found = take(from, reader, target);
        }
      }
    }
  }

  Groups finish() {
    Groups result;
    for (std::optional<Working>& working : parts_) {
      if (!working) continue;
      Group group;
      const Part part = renamed(flattened(std::move(working->part)));
      group.computation = part.computation;
      for (std::size_t t = 0; t < part.values.size(); ++t) {
        if (part.values[t] < 0) continue;
        if (int(t) == part.output())
          group.result = part.values[t];
        else
          group.operands.push_back(part.values[t]);
      }
      group.nodes = std::move(working->nodes);
      std::sort(group.nodes.begin(), group.nodes.end());
      result.groups.push_back(std::move(group));
    }
    result.source = std::move(source_);
    return result;
  }

 private:
  void add(const Graph& graph, int number, std::string_view place) {
    const Node& node = graph.nodes[std::size_t(number)];
    const auto refuse = [&](const std::string& reason) {
      throw base::UserError(place, fmt::format("{}: {}", label(graph, node), reason));
    };
    const auto operands = operands_of(graph, node);
    if (!operands) refuse("shapes are not known");
    const auto results = results_of(graph, node, *operands, place);
    if (!results) refuse(results.reason().text);
    for (std::size_t r = 0; r < node.results.size(); ++r) {
      const int value = node.results[r];
      if (value < 0) continue;
      const Result& result = (*results)[r];
      if (result.same_as >= 0) {
        source_[std::size_t(value)] = source_[std::size_t(node.operands[std::size_t(result.same_as)])];
        continue;
      }
      if (!result.computation) refuse("its result is a constant that folding did not make");
      Part part{*result.computation, {}};
      for (const codegen::Tensor& tensor : part.computation.tensors) {
        const int operand = operand_of(tensor);
        part.values.push_back(operand >= 0 ? source_[std::size_t(node.operands[std::size_t(operand)])]
                              : tensor.role == codegen::Role::output ? value
                                                                     : -1);
      }
      parts_.push_back(Working{std::move(part), {number}});
    }
  }

  int result(int part) const {
    const Part& own = parts_[std::size_t(part)]->part;
    return own.values[std::size_t(own.output())];
  }
  // Distinct values that it reads.
  std::vector<int> operands(int part) const {
    const Part& own = parts_[std::size_t(part)]->part;
    std::vector<int> values;
    for (std::size_t t = 0; t < own.values.size(); ++t)
      if (own.values[t] >= 0 && int(t) != own.output() &&
          std::find(values.begin(), values.end(), own.values[t]) == values.end())
        values.push_back(own.values[t]);
    return values;
  }

  bool take(int from, int reader, const codegen::Target& target) {
    std::optional<Part> both = merged(parts_[std::size_t(from)]->part, parts_[std::size_t(reader)]->part);
    if (!both || !codegen::schedules_together(codegen::with_padding_stages(both->computation), target)) return false;
    for (const int value : operands(from)) {
      std::vector<int>& readers = readers_[std::size_t(value)];
      std::erase(readers, from);
      if (std::find(readers.begin(), readers.end(), reader) == readers.end()) readers.push_back(reader);
    }
    Working& result = *parts_[std::size_t(reader)];
    result.part = std::move(*both);
    const std::vector<int>& nodes = parts_[std::size_t(from)]->nodes;
    result.nodes.insert(result.nodes.end(), nodes.begin(), nodes.end());
    parts_[std::size_t(from)].reset();
    return true;
  }

  std::vector<std::optional<Working>> parts_;
  std::vector<int> source_;
  std::vector<std::vector<int>> readers_;  // by value: parts, each once, and -1 for the graph's outputs
};

}  // namespace

Groups grouped(const Graph& graph, const codegen::Target& target, std::string_view place) {
  Parts parts(graph, place);
  parts.merge(target);
  return parts.finish();
}

Groups ungrouped(const Graph& graph, std::string_view place) {
  return Parts(graph, place).finish();
}

}  // namespace graft::graph
