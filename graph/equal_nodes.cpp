#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/hash.h"
#include "graph/fold.h"

namespace graft::graph {
namespace {

constexpr std::size_t most_bytes =
    65536;  // of constants that are compared: those that layers make for themselves are small

// Values by what they are: of equal constants the first one takes the place of all.
std::vector<int> first_equals(const Graph& graph) {
  std::vector<int> first(graph.values.size());
  std::map<std::pair<std::uint64_t, std::size_t>, std::vector<int>> known;
  for (int v = 0; v < int(first.size()); ++v) {
    const Value& value = graph.values[std::size_t(v)];
    first[std::size_t(v)] = v;
    if (!value.known || value.known->bytes.size() > most_bytes) continue;
    std::vector<int>& alike = known[{base::hash_bytes(value.known->bytes), value.known->bytes.size()}];
    const auto same = std::find_if(alike.begin(), alike.end(), [&](int other) {
      const Known& one = graph.values[std::size_t(other)].known;
      return one->type == value.known->type && one->shape == value.known->shape && one->bytes == value.known->bytes;
    });
    if (same == alike.end())
      alike.push_back(v);
    else
      first[std::size_t(v)] = *same;
  }
  return first;
}

// Whether two nodes of equal operators and operands compute the same.
bool is_equal(const Node& a, const Node& b) {
  return a.attributes == b.attributes && a.version == b.version && a.body == b.body && a.foreign == b.foreign;
}

}  // namespace

Graph with_equal_nodes_once(Graph graph) {
  std::vector<int> now = first_equals(graph);
  std::vector<bool> is_output(graph.values.size());
  for (const int output : graph.outputs) is_output[std::size_t(output)] = true;
  std::map<std::tuple<std::string, std::vector<int>, std::size_t>, std::vector<std::size_t>> known;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    Node& node = graph.nodes[n];
    for (int& operand : node.operands)
      if (operand >= 0) operand = now[std::size_t(operand)];
    std::vector<std::size_t>& alike = known[{node.operation, node.operands, node.results.size()}];
    const auto same =
        std::find_if(alike.begin(), alike.end(), [&](std::size_t other) { return is_equal(graph.nodes[other], node); });
    if (same == alike.end()) {
      alike.push_back(n);
      continue;
    }
    const std::vector<int>& results = graph.nodes[*same].results;
    for (std::size_t r = 0; r < results.size(); ++r) {
      const int own = node.results[r];
      if (own >= 0 && results[r] >= 0 && !is_output[std::size_t(own)]) now[std::size_t(own)] = results[r];
    }
  }
  return graph;
}

}  // namespace graft::graph
