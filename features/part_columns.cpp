#include "features/part_columns.h"

#include <fmt/format.h>

#include "features/declared.h"

namespace graft::features {
namespace {

#define GRAFT_PART_FEATURES(X)                                                                                      \
  X(depth, "loops", "loops around it, itself included")                                                             \
  X(extent, "log2", "iterations of a loop")                                                                         \
  X(top_down, "log2", "product of extents from the outermost loop down to it, itself included")                     \
  X(bottom_up, "log2", "product of extents of it and the loops inside, the largest over stores inside")             \
  X(executions, "log2", "executions of all stores in it, in all of run")                                            \
  X(tail_share, "share", "share of these in tails: copies of a statement that another copy executes more often")    \
  X(exits, "log2", "how often a loop is left by a branch: never where it is unrolled or a vector")                  \
  X(unforeseen_exits, "log2", "exits of a loop of more than 32 iterations: a predictor foresees shorter ones' end") \
  X(register_elements, "log2", "elements of register buffers touched, the largest over stores inside")              \
  X(prefetches, "log2", "accesses that each iteration of a loop asks the caches for ahead")

#define GRAFT_TOUCH_FEATURES(X)                                                                           \
  X(touched, "log2", "elements of the buffer touched by it and all inside, loops outside standing still") \
  X(reuse, "log2", "executions of an access in it per element touched, the largest over accesses")        \
  X(lines, "log2", "lines of 64 bytes touched, loops outside standing still")                             \
  X(stride, "signed log2", "elements that one iteration moves the access that is executed most often")    \
  X(loads, "log2", "executed loads of the buffer, in all of run")                                         \
  X(stores, "log2", "executed stores to the buffer, in all of run")

struct OfPart {
  enum { GRAFT_PART_FEATURES(GRAFT_COLUMN) count };
};
struct OfTouch {
  enum { GRAFT_TOUCH_FEATURES(GRAFT_COLUMN) count };
};
struct OfKind {
#define K(name) name,
  enum { GRAFT_LOOP_KINDS(K) count };
#undef K
};
constexpr Declared part_features[] = {GRAFT_PART_FEATURES(GRAFT_DECLARED)};
constexpr Declared touch_features[] = {GRAFT_TOUCH_FEATURES(GRAFT_DECLARED)};

constexpr std::size_t kinds_begin = OfPart::count;
constexpr std::size_t operations_begin = kinds_begin + OfKind::count;
constexpr std::size_t touch_begin(std::size_t slot) {
  return operations_begin + 2 * Operations::kinds + slot * OfTouch::count;
}

}  // namespace

std::size_t part_columns() {
  return touch_begin(buffer_slots);
}

void declare_part(std::vector<Feature>& list, const std::string& prefix) {
  declare(list, prefix, part_features);
#define X(name) list.push_back({prefix + "kind." #name, "1", "1 for a " #name " loop"});
  GRAFT_LOOP_KINDS(X)
#undef X
  for (const std::string kind : {"float", "int"}) {
#define X(name, text)                                                \
  list.push_back({prefix + kind + "." #name, "log2",                 \
                  (kind == "int" ? "integer " : "floating-point ") + \
                      std::string(text ", of a store or of one execution of the stores directly in a loop")});
    GRAFT_OPERATIONS(X)
#undef X
  }
  for (int slot = 0; slot < buffer_slots; ++slot) declare(list, fmt::format("{}b{}.", prefix, slot), touch_features);
}

void write_part(const codegen::LoopProgram& program, const Part& part, std::span<float> columns) {
  columns[OfPart::depth] = float(part.depth);
  columns[OfPart::top_down] = log_count(double(part.top_down));
  columns[OfPart::bottom_up] = log_count(double(part.bottom_up));
  columns[OfPart::executions] = log_count(part.executions);
  if (part.executions > 0) columns[OfPart::tail_share] = float(part.tail_executions / part.executions);
  columns[OfPart::register_elements] = log_count(double(part.register_elements));
  if (part.is_loop) {
    const codegen::Loop& loop = program.loops[std::size_t(part.item)];
    columns[OfPart::extent] = log_count(double(loop.extent));
    columns[OfPart::exits] = log_count(double(exits(program, part)));
    columns[OfPart::unforeseen_exits] = log_count(double(unforeseen_exits(program, part)));
    columns[OfPart::prefetches] = log_count(double(loop.prefetches.size()));
    columns[kinds_begin + std::size_t(loop.kind)] = 1;
  }
  for (std::size_t kind = 0; kind < Operations::kinds; ++kind) {
    columns[operations_begin + kind] = log_count(double(part.operations.floating[kind]));
    columns[operations_begin + Operations::kinds + kind] = log_count(double(part.operations.integer[kind]));
  }
  for (std::size_t slot = 0; slot < part.buffers.size(); ++slot) {
    const BufferTouch& touch = part.buffers[slot];
    const std::span<float> out = columns.subspan(touch_begin(slot), OfTouch::count);
    out[OfTouch::touched] = log_count(double(touch.touched));
    out[OfTouch::reuse] = log_count(double(touch.reuse));
    out[OfTouch::lines] = log_count(double(touch.lines));
    out[OfTouch::stride] = signed_log(double(touch.stride));
    out[OfTouch::loads] = log_count(double(touch.loads));
    out[OfTouch::stores] = log_count(double(touch.stores));
  }
}

}  // namespace graft::features
