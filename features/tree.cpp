#include "features/tree.h"

#include <fmt/format.h>

#include <cassert>

#include "features/declared.h"
#include "features/nest.h"

namespace graft::features {
namespace {

using codegen::LoopProgram;

constexpr int version = 1;  // raised when values change though the list below does not

#define GRAFT_NODE_FEATURES(X)                                                                                      \
  X(is_program, "1", "1 at the root")                                                                               \
  X(is_loop, "1", "1 for a loop")                                                                                   \
  X(is_store, "1", "1 for a store")                                                                                 \
  X(depth, "loops", "loops around the node, itself included")                                                       \
  X(extent, "log2", "iterations of the loop")                                                                       \
  X(top_down, "log2", "product of extents from the outermost loop down to the node; executions of a store")         \
  X(bottom_up, "log2", "product of extents of the loop and those inside, the largest over stores inside")           \
  X(executions, "log2", "executions of all stores in the node, in all of run")                                      \
  X(tail_share, "share", "share of these in tails: copies of a statement that another copy executes more often")    \
  X(exits, "log2", "how often the loop is left by a branch: never where it is unrolled or a vector")                \
  X(unforeseen_exits, "log2", "exits of a loop of more than 32 iterations: a predictor foresees shorter ones' end") \
  X(register_elements, "log2", "elements of register buffers touched, the largest over stores inside")

#define GRAFT_LEAF_FEATURES(X)                                                      \
  X(combines_sum, "1", "1 for a store that adds to its target")                     \
  X(combines_extreme, "1", "1 for a store of a maximum or minimum with its target") \
  X(writes_register, "1", "1 for a store into a register buffer")                   \
  X(register_loads, "log2", "loads from register buffers")                          \
  X(element_bytes, "bytes", "size of the target's elements")

#define GRAFT_TOUCH_FEATURES(X)                                                                                     \
  X(touched, "log2", "elements of the buffer touched by the node and all inside (one iteration of what is around)") \
  X(reuse, "log2", "executions of the access in the node per element touched, the largest over accesses")           \
  X(lines, "log2", "lines of 64 bytes touched, from above")                                                         \
  X(stride, "signed log2", "elements that one iteration moves the access executed most often")                      \
  X(loads, "log2", "executed loads of the buffer, in all of run")                                                   \
  X(stores, "log2", "executed stores to the buffer, in all of run")

struct OfNode {
  enum { GRAFT_NODE_FEATURES(GRAFT_COLUMN) count };
};
struct OfLeaf {
  enum { GRAFT_LEAF_FEATURES(GRAFT_COLUMN) count };
};
struct OfTouch {
  enum { GRAFT_TOUCH_FEATURES(GRAFT_COLUMN) count };
};
#define K(name) name,
struct OfKind {
  enum { GRAFT_LOOP_KINDS(K) count };
};
#undef K
constexpr Declared node_features[] = {GRAFT_NODE_FEATURES(GRAFT_DECLARED)};
constexpr Declared leaf_features[] = {GRAFT_LEAF_FEATURES(GRAFT_DECLARED)};
constexpr Declared touch_features[] = {GRAFT_TOUCH_FEATURES(GRAFT_DECLARED)};

constexpr std::size_t kinds_begin = OfNode::count;
constexpr std::size_t operations_begin = kinds_begin + OfKind::count;
constexpr std::size_t leaf_begin = operations_begin + 2 * Operations::kinds;
constexpr std::size_t touch_begin(std::size_t slot) {
  return leaf_begin + OfLeaf::count + slot * OfTouch::count;
}
constexpr std::size_t columns = touch_begin(buffer_slots);

std::vector<Feature> declared_features() {
  std::vector<Feature> list;
  declare(list, "", node_features);
#define X(name) list.push_back({"kind." #name, "1", "1 for a " #name " loop"});
  GRAFT_LOOP_KINDS(X)
#undef X
#define X(name, text) list.push_back({"float." #name, "log2", "floating-point " text " of one execution of a store"});
  GRAFT_OPERATIONS(X)
#undef X
#define X(name, text) list.push_back({"int." #name, "log2", "integer " text " of one execution of a store"});
  GRAFT_OPERATIONS(X)
#undef X
  declare(list, "", leaf_features);
  for (int slot = 0; slot < buffer_slots; ++slot) declare(list, fmt::format("b{}.", slot), touch_features);
  assert(list.size() == columns);
  return list;
}

void write_root(const LoopProgram& program, const Nest& nest, std::span<float> row) {
  row[OfNode::is_program] = 1;
  double executions = 0, tails = 0;
  std::array<double, buffer_slots> loads{}, stores{};
  for (const Part& part : nest.parts) {
    if (part.is_loop) continue;
    executions += part.executions;
    tails += part.tail_executions;
    for (std::size_t slot = 0; slot < part.buffers.size(); ++slot) {
      loads[slot] += double(part.buffers[slot].loads);
      stores[slot] += double(part.buffers[slot].stores);
    }
  }
  row[OfNode::executions] = log_count(executions);
  if (executions > 0) row[OfNode::tail_share] = float(tails / executions);
  for (std::size_t slot = 0; slot < std::size_t(buffer_slots) && slot < nest.sizes.size(); ++slot) {
    const BufferSize& size = nest.sizes[slot];
    const codegen::DType dtype = program.buffers[std::size_t(size.buffer)].dtype;
    const double touched = size.bytes_touched / double(codegen::bytes_of(dtype));
    const std::span<float> out = row.subspan(touch_begin(slot), OfTouch::count);
    out[OfTouch::touched] = log_count(touched);
    if (touched > 0) out[OfTouch::reuse] = log_count((loads[slot] + stores[slot]) / touched);
    out[OfTouch::lines] = log_count(std::ceil(size.bytes_touched / double(codegen::line_bytes)));
    out[OfTouch::loads] = log_count(loads[slot]);
    out[OfTouch::stores] = log_count(stores[slot]);
  }
}

void write_leaf(const LoopProgram& program, const Part& part, std::span<float> row) {
  const codegen::Store& store = program.stores[std::size_t(part.item)];
  const codegen::Buffer& target = program.buffers[std::size_t(store.target.tensor)];
  row[OfNode::is_store] = 1;
  for (std::size_t kind = 0; kind < Operations::kinds; ++kind) {
    row[operations_begin + kind] = log_count(double(part.operations.floating[kind]));
    row[operations_begin + Operations::kinds + kind] = log_count(double(part.operations.integer[kind]));
  }
  const auto is_register = [&](const codegen::Access& access) {
    return program.buffers[std::size_t(access.tensor)].scope == codegen::Scope::registers;
  };
  std::int64_t register_loads = is_register(store.target) && store.combine != codegen::Combine::none;
  for (const codegen::Access& load : store.value.loads) register_loads += is_register(load);
  const std::span<float> out = row.subspan(leaf_begin, OfLeaf::count);
  out[OfLeaf::combines_sum] = store.combine == codegen::Combine::sum ? 1.0f : 0.0f;
  out[OfLeaf::combines_extreme] =
      store.combine == codegen::Combine::max || store.combine == codegen::Combine::min ? 1.0f : 0.0f;
  out[OfLeaf::writes_register] = is_register(store.target) ? 1.0f : 0.0f;
  out[OfLeaf::register_loads] = log_count(double(register_loads));
  out[OfLeaf::element_bytes] = float(codegen::bytes_of(target.dtype));
}

void write_part(const LoopProgram& program, const Part& part, std::span<float> row) {
  row[OfNode::depth] = float(part.depth);
  row[OfNode::top_down] = log_count(double(part.top_down));
  row[OfNode::executions] = log_count(part.executions);
  if (part.executions > 0) row[OfNode::tail_share] = float(part.tail_executions / part.executions);
  row[OfNode::register_elements] = log_count(double(part.register_elements));
  if (part.is_loop) {
    const codegen::Loop& loop = program.loops[std::size_t(part.item)];
    row[OfNode::is_loop] = 1;
    row[OfNode::extent] = log_count(double(loop.extent));
    row[OfNode::bottom_up] = log_count(double(part.bottom_up));
    row[OfNode::exits] = log_count(double(exits(program, part)));
    row[OfNode::unforeseen_exits] = log_count(double(unforeseen_exits(program, part)));
    row[kinds_begin + std::size_t(loop.kind)] = 1;
  } else {
    write_leaf(program, part, row);
  }
  for (std::size_t slot = 0; slot < part.buffers.size(); ++slot) {
    const BufferTouch& touch = part.buffers[slot];
    const std::span<float> out = row.subspan(touch_begin(slot), OfTouch::count);
    out[OfTouch::touched] = log_count(double(touch.touched));
    out[OfTouch::reuse] = log_count(double(touch.reuse));
    out[OfTouch::lines] = log_count(double(touch.lines));
    out[OfTouch::stride] = signed_log(double(touch.stride));
    out[OfTouch::loads] = log_count(double(touch.loads));
    out[OfTouch::stores] = log_count(double(touch.stores));
  }
}

Encoded encode_program(const Subject& subject) {
  const LoopProgram& program = *subject.program;
  const Nest nest = features::nest(program);
  Encoded encoded;
  encoded.rows = base::Matrix(std::int64_t(nest.parts.size()) + 1, std::int64_t(columns));
  encoded.begins.push_back(encoded.rows.rows);
  encoded.parents.reserve(nest.parts.size() + 1);
  encoded.parents.push_back(-1);
  write_root(program, nest, encoded.rows.row(0));
  for (std::size_t p = 0; p < nest.parts.size(); ++p) {
    encoded.parents.push_back(nest.parts[p].parent + 1);
    write_part(program, nest.parts[p], encoded.rows.row(std::int64_t(p) + 1));
  }
  return encoded;
}

}  // namespace

Encoding tree() {
  Encoding encoding;
  encoding.name = "tree";
  encoding.description =
      "a root, the loops of run and its stores as they stand in each other; log2 stands for log2(1 + count)";
  encoding.shape = Shape::tree;
  encoding.features = declared_features();
  encoding.hash = hash_of(encoding.name, version, encoding.features);
  encoding.encode = encode_program;
  return encoding;
}

}  // namespace graft::features
