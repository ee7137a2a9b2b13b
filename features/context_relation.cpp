#include "features/context_relation.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/program/analysis.h"
#include "features/around.h"
#include "features/declared.h"
#include "features/registers.h"

namespace graft::features {
namespace {

using codegen::LoopKind;
using codegen::LoopProgram;
using codegen::StoreContext;
using codegen::Touch;

constexpr int version = 1;  // raised when values change though the list below does not

// --- the declared lists: identifier, name, unit, definition; columns are in this order

struct Relation {
  std::string_view name, from_text, to_text;
  Quantity from, to;
};
constexpr std::string_view touched_text = "elements touched", reuse_text = "reuse", top_down_text = "top-down product";
constexpr std::array relations{
    Relation{"touched>reuse", touched_text, reuse_text, &ContextPoint::touched, &ContextPoint::reuse},
    Relation{"reuse>touched", reuse_text, touched_text, &ContextPoint::reuse, &ContextPoint::touched},
    Relation{"touched>topdown", touched_text, top_down_text, &ContextPoint::touched, &ContextPoint::top_down},
    Relation{"topdown>touched", top_down_text, touched_text, &ContextPoint::top_down, &ContextPoint::touched},
};

#define GRAFT_BUFFER_FEATURES(X)                                                                                       \
  X(bytes_touched, "log2", "bytes of the buffer that run touches: the box around all accesses, at most their sum")     \
  X(element_bytes, "bytes", "size of an element")                                                                      \
  X(written, "1", "1 if run writes the buffer")                                                                        \
  X(executions, "log2", "executions of all its accesses")                                                              \
  X(vector_stride_0, "share", "share of its executions whose vector loop does not move the access")                    \
  X(vector_stride_1, "share", "share of its executions whose vector loop moves the access by one element")             \
  X(vector_stride_other, "share", "share of its executions whose vector loop moves the access by anything else")       \
  X(vector_none, "share", "share of its executions without a vector loop")                                             \
  X(inner_stride_0, "share", "share of its executions that the innermost loop but vector loops does not move")         \
  X(inner_stride_1, "share", "share of its executions that the innermost loop but vector loops moves by one element")  \
  X(inner_stride_other, "share", "share of its executions that the innermost loop but vector loops moves otherwise")   \
  X(vector_reuse, "log2", "product of extents of vector loops that do not move the access, largest over accesses")     \
  X(vector_touched, "log2", "product of extents of vector loops that move the access, largest over accesses")          \
  X(unrolled_reuse, "log2", "product of extents of unrolled loops that do not move the access, largest over accesses") \
  X(unrolled_touched, "log2", "product of extents of unrolled loops that move the access, largest over accesses")      \
  X(parallel_reuse, "log2", "product of extents of parallel loops that do not move the access, largest over accesses") \
  X(parallel_touched, "log2", "product of extents of parallel loops that move the access, largest over accesses")

#define GRAFT_PROGRAM_FEATURES(X)                                                                                   \
  X(add, "log2", "executed additions, subtractions and negations, combines by sum counted")                         \
  X(mul, "log2", "executed multiplications")                                                                        \
  X(div, "log2", "executed divisions")                                                                              \
  X(compare, "log2", "executed maxima and minima, combines counted")                                                \
  X(special, "log2", "executed exponentials and square roots")                                                      \
  X(vector_extent, "log2", "largest extent of a vector loop, 1 without")                                            \
  X(unrolled_extent, "log2", "largest product of extents of unrolled loops next to a store, a vector loop between") \
  X(parallel_extent, "log2", "largest product of extents of parallel loops around a store")                         \
  X(executions, "log2", "executions of all stores")                                                                 \
  X(statements, "log2", "stores in the text of run once unrolled loops are unrolled")                               \
  X(flops_per_access, "log2",                                                                                       \
    "operations per executed load or store of memory, a vector loop's accesses as one and "                         \
    "those that the unrolled loops next to the store do not move as one")                                           \
  X(depth, "loops", "loops around the most deeply nested store")                                                    \
  X(buffers, "log2", "buffers in memory that run uses")                                                             \
  X(register_elements, "log2", "elements of register buffers that are alive together, at most")                     \
  X(register_vectors, "log2", "the same in vector registers: elements over the vector loop's extent")

struct OfBuffer {
  enum { GRAFT_BUFFER_FEATURES(GRAFT_COLUMN) count };
};
struct OfProgram {
  enum { GRAFT_PROGRAM_FEATURES(GRAFT_COLUMN) count };
};
struct OfKind {  // number of loops of each kind
#define K(name) name,
  enum { GRAFT_LOOP_KINDS(K) count };
#undef K
};
constexpr Declared buffer_features[] = {GRAFT_BUFFER_FEATURES(GRAFT_DECLARED)};
constexpr Declared program_features[] = {GRAFT_PROGRAM_FEATURES(GRAFT_DECLARED)};

constexpr int curve_columns = int(relations.size()) * thresholds;
constexpr int slot_columns = curve_columns + OfBuffer::count;
constexpr int slot_begin(int slot) {
  return slot * slot_columns;
}
constexpr int program_begin = slot_begin(buffer_slots + 1);
constexpr int kinds_begin = program_begin + OfProgram::count;
constexpr int columns = kinds_begin + OfKind::count;

std::vector<Feature> declared_features() {
  std::vector<Feature> list;
  for (int slot = 0; slot <= buffer_slots; ++slot) {
    const std::string prefix = slot < buffer_slots ? fmt::format("b{}.", slot) : "rest.";
    for (const Relation& relation : relations)
      for (int t = 0; t < thresholds; ++t)
        list.push_back({fmt::format("{}{}.t{:02}", prefix, relation.name, t), "log2",
                        fmt::format("largest {} of the loops whose {} is below 2^{}; 0 if there is none",
                                    relation.to_text, relation.from_text, t)});
    declare(list, prefix, buffer_features);
  }
  declare(list, "", program_features);
#define X(name) list.push_back({"loops." #name, "log2", "number of " #name " loops"});
  GRAFT_LOOP_KINDS(X)
#undef X
  assert(int(list.size()) == columns);
  return list;
}

// --- buffers

// What run does to one buffer, all its accesses together.
struct BufferContext {
  int last_point = 0;  // of its points, each leads to the one before
  double executions = 0;
  bool written = false;
  std::array<double, 4> vector_strides{};  // executions by stride of the vector loop: 0, 1, other, no vector loop
  std::array<double, 3> inner_strides{};   // executions by stride of the innermost other loop: 0, 1, other
  // Largest products of extents by carrier: vector, unrolled, parallel loops.
  std::array<std::int64_t, 3> carried_reuse{}, carried_touched{};
};

std::size_t stride_class(std::int64_t stride) {
  return std::size_t(std::min<std::uint64_t>(std::uint64_t(stride), 2));  // negative ones are large then
}

// Position in carried_reuse, of those of Around::carriers.
std::size_t carrier(LoopKind kind) {
  return kind == LoopKind::vector ? 0 : kind == LoopKind::unrolled ? 1 : 2;
}

// R_t for all thresholds t, under construction: the largest `to` of the points whose `from` is first below threshold t.
// Points beyond all thresholds are ignored.
using Curve = std::array<std::int64_t, 64>;

void add_point(std::int64_t from, std::int64_t to, Curve& largest) {
  // z < 2^t exactly for t >= bit_width(z).
  std::int64_t& here = largest[std::size_t(std::bit_width(std::uint64_t(from)))];
  here = std::max(here, to);
}

// Collects the contexts of the buffers in memory, one access after the other.
class Contexts {
 public:
  explicit Contexts(const LoopProgram& program) : program_(program), sizes_(program) {
    contexts_.reserve(program.buffers.size());
    points_.reserve(2 * program.loops.size());
    point_of_.reserve((buffer_slots + 1) * program.loops.size());
    points_.emplace_back();
  }

  void add(const Around& around, double executions, const codegen::Access& access, std::span<const Touch> touches,
           bool writes) {
    const std::size_t number = sizes_.add(access, touches.empty() ? 1 : touches.front().touched);
    if (number == contexts_.size()) {
      contexts_.emplace_back();
      point_of_.resize(point_of_.size() + program_.loops.size(), 0);
    }
    BufferContext& context = contexts_[number];
    int* const point_of = point_of_.data() + number * program_.loops.size();
    const Around::Level* const levels = around.levels.data();
    for (std::size_t level = 0; level < touches.size(); ++level) {
      const Around::Level& around_it = levels[level];
      const Touch& touch = touches[level];
      int& at = point_of[around_it.loop];
      if (at == 0) {
        at = int(points_.size());
        points_.push_back({{touch.touched, touch.reuse, around_it.top_down}, context.last_point});
        context.last_point = at;
      } else {
        ContextPoint& point = points_[std::size_t(at)].point;
        point.touched = std::max(point.touched, touch.touched);
        point.reuse = std::max(point.reuse, touch.reuse);
      }
    }
    std::array<std::array<std::int64_t, 3>, 2> products{{{1, 1, 1}, {1, 1, 1}}};  // reuse, touched
    for (const std::size_t level : around.carriers)
      products[touches[level].stride != 0][carrier(levels[level].kind)] *= levels[level].extent;
    const auto& [reuse, touched] = products;
    for (std::size_t c = 0; c < reuse.size(); ++c) {
      context.carried_reuse[c] = std::max(context.carried_reuse[c], reuse[c]);
      context.carried_touched[c] = std::max(context.carried_touched[c], touched[c]);
    }
    const auto stride_at = [&](int level, std::size_t otherwise) {
      return level < 0 ? otherwise : stride_class(touches[std::size_t(level)].stride);
    };
    context.vector_strides[stride_at(around.vector, 3)] += executions;
    context.inner_strides[stride_at(around.innermost, 0)] += executions;
    context.written = context.written || writes;
    context.executions += executions;
  }

  // Adds the columns of all buffers to their slots', and returns how many there are.
  std::size_t write(std::span<float> row) const {
    const std::vector<BufferSize> sizes = sizes_.largest_first();
    for (std::size_t place = 0; place < sizes.size(); ++place) {
      const int slot = std::min(int(place), buffer_slots);
      add_to_slot(sizes[place], row.subspan(std::size_t(slot_begin(slot)), slot_columns));
    }
    return sizes.size();
  }

 private:
  // One for each loop around accesses of a buffer.
  struct Point {
    ContextPoint point;
    int before = 0;  // of the same buffer, 0 at its first
  };

  void add_to_slot(const BufferSize& size, std::span<float> slot) const {
    const BufferContext& context = contexts_[size.number];
    add_curves(context.last_point, slot);
    const std::span<float> scalars = slot.subspan(curve_columns);
    const double executions = std::max(context.executions, 1.0);
    scalars[OfBuffer::bytes_touched] += log_count(size.bytes_touched);
    scalars[OfBuffer::element_bytes] += float(codegen::bytes_of(program_.buffers[std::size_t(size.buffer)].dtype));
    scalars[OfBuffer::written] += context.written ? 1.0f : 0.0f;
    scalars[OfBuffer::executions] += log_count(context.executions);
    for (std::size_t c = 0; c < context.vector_strides.size(); ++c)
      scalars[OfBuffer::vector_stride_0 + c] += float(context.vector_strides[c] / executions);
    for (std::size_t c = 0; c < context.inner_strides.size(); ++c)
      scalars[OfBuffer::inner_stride_0 + c] += float(context.inner_strides[c] / executions);
    for (std::size_t c = 0; c < context.carried_reuse.size(); ++c) {
      scalars[OfBuffer::vector_reuse + 2 * c] += log_count(double(context.carried_reuse[c]));
      scalars[OfBuffer::vector_touched + 2 * c] += log_count(double(context.carried_touched[c]));
    }
  }

  void add_curves(int last_point, std::span<float> slot) const {
    std::array<Curve, relations.size()> curves{};
    for (int at = last_point; at > 0; at = points_[std::size_t(at)].before) {
      const ContextPoint& point = points_[std::size_t(at)].point;
#pragma GCC unroll 4
      for (std::size_t r = 0; r < relations.size(); ++r)
        add_point(point.*relations[r].from, point.*relations[r].to, curves[r]);
    }
    float* out = slot.data();
    for (const Curve& curve : curves) {
      // A curve has few steps: a logarithm for each.
      std::int64_t largest = 0;
      float logarithm = 0;
      for (int t = 0; t < thresholds; ++t) {
        if (curve[std::size_t(t)] > largest) logarithm = log_count(double(largest = curve[std::size_t(t)]));
        out[t] += logarithm;
      }
      out += thresholds;
    }
  }

  const LoopProgram& program_;
  BufferSizes sizes_;
  std::vector<BufferContext> contexts_;  // by sizes_' number
  std::vector<Point> points_;            // the first is none
  std::vector<int> point_of_;            // [context][loop], 0: none yet
};

// --- the program as a whole

struct Totals {
  double add = 0, mul = 0, div = 0, compare = 0, special = 0;
  double vector_extent = 1, unrolled_extent = 1, parallel_extent = 1, executions = 0, statements = 0, accesses = 0;
  std::size_t depth = 0;

  void enter(const Around& around) {
    vector_extent = std::max(vector_extent, around.vector_extent);
    unrolled_extent = std::max(unrolled_extent, around.unrolled_next);
    parallel_extent = std::max(parallel_extent, around.parallel);
    depth = std::max(depth, around.levels.size());
  }

  void add_store(const codegen::Store& store, const Around& around, double times) {
    const codegen::ArithmeticCounts counts = codegen::arithmetic(store.value);
    add += times * double(counts.add + (store.combine == codegen::Combine::sum));
    mul += times * double(counts.mul + (store.combine == codegen::Combine::product));
    div += times * double(counts.div);
    compare += times * double(counts.compare + codegen::is_extreme(store.combine));
    special += times * double(counts.special);
    executions += times;
    statements += around.unrolled;
  }

  // An access of memory. twice: it is read and written.
  void add_access(const Around& around, std::span<const Touch> touches, double times, bool twice) {
    accesses += (twice ? 2 : 1) * around.memory_operations(touches, times);
  }
};

void write_program(const LoopProgram& program, const Totals& totals, const Registers::Most& registers,
                   std::size_t buffers, std::span<float> row) {
  const std::span<float> out = row.subspan(program_begin, OfProgram::count);
  const double operations = totals.add + totals.mul + totals.div + totals.compare + totals.special;
  out[OfProgram::add] = log_count(totals.add);
  out[OfProgram::mul] = log_count(totals.mul);
  out[OfProgram::div] = log_count(totals.div);
  out[OfProgram::compare] = log_count(totals.compare);
  out[OfProgram::special] = log_count(totals.special);
  out[OfProgram::vector_extent] = log_count(totals.vector_extent);
  out[OfProgram::unrolled_extent] = log_count(totals.unrolled_extent);
  out[OfProgram::parallel_extent] = log_count(totals.parallel_extent);
  out[OfProgram::executions] = log_count(totals.executions);
  out[OfProgram::statements] = log_count(totals.statements);
  out[OfProgram::flops_per_access] = totals.accesses > 0 ? log_count(operations / totals.accesses) : 0;
  out[OfProgram::depth] = float(totals.depth);
  out[OfProgram::buffers] = log_count(double(buffers));
  out[OfProgram::register_elements] = log_count(registers.elements);
  out[OfProgram::register_vectors] = log_count(registers.vectors);

  std::array<int, OfKind::count> kinds{};
  for (const codegen::Node& node : program.run)
    if (node.kind == codegen::Node::Kind::loop) ++kinds[std::size_t(program.loops[std::size_t(node.item)].kind)];
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) row[std::size_t(kinds_begin) + kind] = log_count(kinds[kind]);
}

Encoded encode_program(const Subject& subject) {
  const LoopProgram& program = *subject.program;
  codegen::StoreWalk walk(program);
  Around around;
  Contexts contexts(program);
  Registers registers(program);
  Totals totals;
  for (std::size_t position = 0; walk.next(); ++position) {
    if (walk.entered()) {
      around.enter(program, walk.context());
      totals.enter(around);
    }
    const codegen::Store& store = program.stores[std::size_t(walk.context().store)];
    const double executions = double(walk.context().executions);
    totals.add_store(store, around, executions);
    const auto add = [&](const codegen::Access& access, bool writes) {
      if (program.buffers[std::size_t(access.tensor)].scope == codegen::Scope::memory) {
        const std::span<const Touch> touches = walk.touches(access);
        contexts.add(around, executions, access, touches, writes);
        totals.add_access(around, touches, executions, writes && store.combine != codegen::Combine::none);
      } else {
        const auto vector = std::size_t(around.vector);
        const bool moved = around.vector >= 0 && walk.stride(access, vector) != 0;
        registers.add(position, access.tensor, moved ? around.levels[vector].extent : 1);
      }
    };
    add(store.target, true);
    for (const codegen::Access& load : store.value.loads) add(load, false);
  }
  base::Matrix encoded(1, columns);
  const std::size_t buffers = contexts.write(encoded.row(0));
  write_program(program, totals, registers.alive_together(), buffers, encoded.row(0));
  return one_row_each(std::move(encoded));
}

}  // namespace

std::array<std::int64_t, thresholds> relation(std::span<const ContextPoint> points, Quantity from, Quantity to) {
  Curve curve{};
  for (const ContextPoint& point : points) add_point(point.*from, point.*to, curve);
  std::array<std::int64_t, thresholds> largest{};
  std::int64_t so_far = 0;
  for (std::size_t t = 0; t < largest.size(); ++t) largest[t] = so_far = std::max(so_far, curve[t]);
  return largest;
}

Encoding context_relation() {
  return encoding_of(
      "context_relation",
      "relations of touched elements, reuse and top-down products of each buffer; strides, kinds of loops, arithmetic; "
      "log2 stands for log2(1 + count)",
      Shape::row, declared_features(), version, encode_program);
}

}  // namespace graft::features
