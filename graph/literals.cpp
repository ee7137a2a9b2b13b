#include "graph/literals.h"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "codegen/expression/parse.h"
#include "codegen/expression/workload.h"

namespace graft::graph {
namespace {

using codegen::Computation;
using codegen::Op;
using codegen::Stage;
using codegen::ValueNode;

// A number of a computation, by stage and node.
struct Place {
  std::size_t stage = 0, node = 0;
  DType type = DType::f32;
  bool operator==(const Place&) const = default;
};

// By node: whether all that uses it adds, multiplies or converts.
std::vector<bool> is_term(const std::vector<ValueNode>& nodes) {
  std::vector<bool> is(nodes.size(), true);
  for (const ValueNode& node : nodes) {
    const bool is_arithmetic = node.op == Op::add || node.op == Op::sub || node.op == Op::mul ||
                               node.op == Op::cast_f32 || node.op == Op::cast_i32;
    for (const int operand : {node.a, node.b, node.c})
      if (operand >= 0 && !is_arithmetic) is[std::size_t(operand)] = false;
  }
  return is;
}

// Those that a constant can stand for: of single precision, but for exponents, which decide how a power is computed; of
// integers, as zero points, terms outside of sums, where they decide nothing about instructions.
std::vector<Place> numbers_of(const Computation& computation) {
  std::vector<Place> places;
  for (std::size_t s = 0; s < computation.stages.size(); ++s) {
    const Stage& stage = computation.stages[s];
    const std::vector<codegen::NodeType> types = codegen::types_of(computation, stage);
    const std::vector<ValueNode>& nodes = stage.value.nodes;
    const std::vector<bool> is_integer_term = is_term(nodes);
    std::vector<bool> is_exponent(nodes.size());
    for (const ValueNode& node : nodes)
      if (node.op == Op::pow) is_exponent[std::size_t(node.b)] = true;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      if (nodes[n].op != Op::constant) continue;
      const double number = nodes[n].number;
      const DType type = types[n].result;
      const bool is_number = type == DType::f32 && !is_exponent[n] && double(float(number)) == number;
      const bool is_integer = (type == DType::i32 || type == DType::u8 || type == DType::i8) && is_integer_term[n] &&
                              !computation.is_reduction(stage);
      if (is_number || is_integer) places.push_back({s, n, type});
    }
  }
  return places;
}

double& number_at(Computation& computation, const Place& place) {
  return computation.stages[place.stage].value.nodes[place.node].number;
}

constexpr std::size_t most_operands = 32;  // of a kernel

// A number of no layer, so that groups that differ in numbers alone have the same text.
double any_number(DType type) {
  return type == DType::f32 ? 1.5 : 77;
}

class Shared {
 public:
  explicit Shared(Groups& groups) : groups_(groups) {}

  void share() {
    std::map<std::uint64_t, std::vector<std::size_t>> alike;  // groups
    std::map<std::string, std::uint64_t> keys;                // by text, of which many groups have the same
    for (std::size_t g = 0; g < groups_.groups.size(); ++g) {
      if (groups_.groups[g].foreign) continue;
      Computation computation = groups_.groups[g].computation;
      const std::vector<Place> places = numbers_of(computation);
      if (places.empty()) continue;
      for (const Place& place : places) number_at(computation, place) = any_number(place.type);
      const auto [known, is_new] = keys.try_emplace(codegen::to_text(computation));
      if (is_new) known->second = codegen::parse_workload(known->first).key();
      alike[known->second].push_back(g);
    }
    for (const auto& [key, members] : alike)
      if (members.size() > 1) share(members);
  }

 private:
  // Members of one key may name their tensors otherwise, and have their numbers in other places of the text: these are
  // left as they are.
  void share(const std::vector<std::size_t>& members) {
    Computation& first = groups_.groups[members[0]].computation;
    const std::vector<Place> places = numbers_of(first);
    for (const std::size_t member : members) {
      const Computation& other = groups_.groups[member].computation;
      const std::vector<Place> own = numbers_of(other);
      if (own != places || other.stages.size() != first.stages.size()) return;
    }
    for (const Place& place : places) {
      const double number = number_at(first, place);
      bool differs = false;
      for (const std::size_t member : members)
        differs |= number_at(groups_.groups[member].computation, place) != number;
      if (!differs) continue;
      if (groups_.groups[members[0]].operands.size() >= most_operands) return;
      for (const std::size_t member : members) lift(groups_.groups[member], place);
    }
  }

  void lift(Group& group, const Place& place) {
    codegen::Tensor tensor;
    tensor.name = fmt::format("x{}", group.operands.size());
    tensor.role = codegen::Role::constant;
    tensor.dtype = place.type;
    group.operands.push_back(value_of(number_at(group.computation, place), place.type));
    codegen::Value& value = group.computation.stages[place.stage].value;
    ValueNode& node = value.nodes[place.node];
    node = {};
    node.op = Op::load;
    node.load = int(value.loads.size());
    value.loads.push_back({int(group.computation.tensors.size()), {}, false});
    group.computation.tensors.push_back(std::move(tensor));
  }

  int value_of(double number, DType type) {
    const auto [known, is_new] = values_.try_emplace({number, type}, int(groups_.values.size()));
    if (is_new) {
      Value value;
      value.origin = Value::Origin::constant;
      value.type = type;
      value.shape = Shape{};
      value.known = graph::known(type, {}, codegen::Elements{number});
      groups_.values.push_back(std::move(value));
      groups_.source.push_back({known->second, 0});
    }
    return known->second;
  }

  Groups& groups_;
  std::map<std::pair<double, DType>, int> values_;
};

}  // namespace

void share_kernels(Groups& groups) {
  Shared(groups).share();
}

}  // namespace graft::graph
