#include "features/tree.h"

#include "features/declared.h"
#include "features/part_columns.h"

namespace graft::features {
namespace {

using codegen::LoopProgram;

constexpr int version = 1;  // raised when values change though the list below does not

#define GRAFT_NODE_FEATURES(X)        \
  X(is_program, "1", "1 at the root") \
  X(is_loop, "1", "1 for a loop")     \
  X(is_store, "1", "1 for a store")

#define GRAFT_LEAF_FEATURES(X)                                                      \
  X(combines_sum, "1", "1 for a store that adds to its target")                     \
  X(combines_extreme, "1", "1 for a store of a maximum or minimum with its target") \
  X(writes_register, "1", "1 for a store into a register buffer")                   \
  X(register_loads, "log2", "loads from register buffers")                          \
  X(element_bytes, "bytes", "size of the target's elements")

struct OfNode {
  enum { GRAFT_NODE_FEATURES(GRAFT_COLUMN) count };
};
struct OfLeaf {
  enum { GRAFT_LEAF_FEATURES(GRAFT_COLUMN) count };
};
constexpr Declared node_features[] = {GRAFT_NODE_FEATURES(GRAFT_DECLARED)};
constexpr Declared leaf_features[] = {GRAFT_LEAF_FEATURES(GRAFT_DECLARED)};

// Columns: of any node, of a store, then those that loop context shares.
constexpr std::size_t leaf_begin = OfNode::count, part_begin = leaf_begin + OfLeaf::count;

std::vector<Feature> declared_features() {
  std::vector<Feature> list;
  declare(list, "", node_features);
  declare(list, "", leaf_features);
  declare_part(list, "");
  return list;
}

void write_leaf(const LoopProgram& program, const codegen::Store& store, std::span<float> out) {
  const codegen::Buffer& target = program.buffers[std::size_t(store.target.tensor)];
  const auto is_register = [&](const codegen::Access& access) {
    return program.buffers[std::size_t(access.tensor)].scope == codegen::Scope::registers;
  };
  std::int64_t register_loads = is_register(store.target) && store.combine != codegen::Combine::none;
  for (const codegen::Access& load : store.value.loads) register_loads += is_register(load);
  out[OfLeaf::combines_sum] = store.combine == codegen::Combine::sum ? 1.0f : 0.0f;
  out[OfLeaf::combines_extreme] = codegen::is_extreme(store.combine) ? 1.0f : 0.0f;
  out[OfLeaf::writes_register] = is_register(store.target) ? 1.0f : 0.0f;
  out[OfLeaf::register_loads] = log_count(double(register_loads));
  out[OfLeaf::element_bytes] = float(codegen::bytes_of(target.dtype));
}

Encoded encode_program(const Subject& subject) {
  const LoopProgram& program = *subject.program;
  const Nest nest = features::nest(program);
  Encoded encoded;
  encoded.rows = base::Matrix(std::int64_t(nest.parts.size()) + 1, std::int64_t(part_begin + part_columns()));
  encoded.begins.push_back(encoded.rows.rows);
  encoded.parents.reserve(nest.parts.size() + 1);
  encoded.parents.push_back(-1);
  encoded.rows.row(0)[OfNode::is_program] = 1;
  write_part(program, nest.whole, encoded.rows.row(0).subspan(part_begin));
  for (std::size_t p = 0; p < nest.parts.size(); ++p) {
    const Part& part = nest.parts[p];
    const std::span<float> row = encoded.rows.row(std::int64_t(p) + 1);
    encoded.parents.push_back(part.parent + 1);
    row[part.is_loop ? OfNode::is_loop : OfNode::is_store] = 1;
    if (!part.is_loop) write_leaf(program, program.stores[std::size_t(part.item)], row.subspan(leaf_begin));
    write_part(program, part, row.subspan(part_begin));
  }
  return encoded;
}

}  // namespace

Encoding tree() {
  return encoding_of(
      "tree", "a root, the loops of run and its stores as they stand in each other; log2 stands for log2(1 + count)",
      Shape::tree, declared_features(), version, encode_program);
}

}  // namespace graft::features
