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
#include "features/declared.h"

namespace graft::features {
namespace {

using codegen::AccessSite;
using codegen::Analysis;
using codegen::LoopKind;
using codegen::LoopProgram;
using codegen::StoreContext;
using codegen::Touch;

constexpr int version = 1;  // raised when values change though the list below does not

// --- the declared lists: identifier, name, unit, definition; columns stand in this order

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
  BufferSize size;
  std::vector<ContextPoint> points;  // one for each loop around an access
  double executions = 0;
  bool written = false;
  std::array<double, 4> vector_strides{};  // executions by stride of the vector loop: 0, 1, other, no vector loop
  std::array<double, 3> inner_strides{};   // executions by stride of the innermost other loop: 0, 1, other
  // Largest products of extents by carrier: vector, unrolled, parallel loops, and the rest, which is not told.
  std::array<std::int64_t, 4> carried_reuse{}, carried_touched{};
};

std::size_t stride_class(std::int64_t stride) {
  return std::size_t(std::min<std::uint64_t>(std::uint64_t(stride), 2));  // negative ones are large then
}

// Position in carried_reuse, by kind of loop.
constexpr auto carriers = [] {
  std::array<std::uint8_t, OfKind::count> of{};
  of.fill(3);
  of[std::size_t(LoopKind::vector)] = 0;
  of[std::size_t(LoopKind::unrolled)] = 1;
  of[std::size_t(LoopKind::parallel)] = 2;
  return of;
}();

// R_t for all thresholds t.
using Curve = std::array<std::int64_t, thresholds>;

// A point on its way to a curve: where its `from` lets it count first. What is beyond all thresholds counts nowhere.
void add_point(std::int64_t from, std::int64_t to, Curve& largest) {
  // z < 2^t exactly for t >= bit_width(z).
  const std::size_t t = std::size_t(std::bit_width(std::uint64_t(from)));
  if (t < largest.size()) largest[t] = std::max(largest[t], to);
}
void run_maximum(Curve& largest) {
  for (std::size_t t = 1; t < largest.size(); ++t) largest[t] = std::max(largest[t], largest[t - 1]);
}

// Collects the contexts of the buffers in memory, one access site after the other.
class Contexts {
 public:
  Contexts(const LoopProgram& program, const Analysis& analysis)
      : program_(program), context_of_(program.buffers.size(), -1) {
    const std::vector<BufferSize> sizes = buffers_by_size(program, analysis);
    contexts_.reserve(sizes.size());
    for (const BufferSize& size : sizes) {
      context_of_[std::size_t(size.buffer)] = int(contexts_.size());
      contexts_.emplace_back().size = size;
      contexts_.back().points.reserve(program.loops.size());
    }
    point_of_.assign(contexts_.size() * program.loops.size(), -1);
    std::size_t site = 0;
    for (const StoreContext& store : analysis.stores)
      for (; site < analysis.sites.size() && analysis.sites[site].store == store.store; ++site)
        add(store, analysis.sites[site]);
  }

  std::size_t size() const { return contexts_.size(); }

  // Adds the columns of the buffer, by size, to a slot's.
  void add_to_slot(std::size_t number, std::span<float> slot) const {
    add_curves(number, slot);
    const BufferContext& context = contexts_[number];
    const std::span<float> scalars = slot.subspan(curve_columns);
    const double executions = std::max(context.executions, 1.0);
    scalars[OfBuffer::bytes_touched] += log_count(context.size.bytes_touched);
    scalars[OfBuffer::element_bytes] +=
        float(codegen::bytes_of(program_.buffers[std::size_t(context.size.buffer)].dtype));
    scalars[OfBuffer::written] += context.written ? 1.0f : 0.0f;
    scalars[OfBuffer::executions] += log_count(context.executions);
    for (std::size_t c = 0; c < context.vector_strides.size(); ++c)
      scalars[OfBuffer::vector_stride_0 + c] += float(context.vector_strides[c] / executions);
    for (std::size_t c = 0; c < context.inner_strides.size(); ++c)
      scalars[OfBuffer::inner_stride_0 + c] += float(context.inner_strides[c] / executions);
    for (std::size_t c = 0; c < 3; ++c) {
      scalars[OfBuffer::vector_reuse + 2 * c] += log_count(double(context.carried_reuse[c]));
      scalars[OfBuffer::vector_touched + 2 * c] += log_count(double(context.carried_touched[c]));
    }
  }

 private:
  void add(const StoreContext& store, const AccessSite& site) {
    const int number = context_of_[std::size_t(site.buffer)];
    if (number < 0) return;  // registers
    BufferContext& context = contexts_[std::size_t(number)];
    int* const point_of = point_of_.data() + std::size_t(number) * program_.loops.size();
    // Hardly a branch here: what loops are and do is not to be foreseen.
    std::array<std::array<std::int64_t, 4>, 2> products{{{1, 1, 1, 1}, {1, 1, 1, 1}}};  // reuse, touched
    std::array<std::size_t, 2> classes{0, 3};                                           // of other loops, of vectors
    for (std::size_t level = 0; level < store.loops.size(); ++level) {
      const std::size_t number_of_loop = std::size_t(store.loops[level]);
      const codegen::Loop& loop = program_.loops[number_of_loop];
      const Touch& touch = site.touches[level];
      int& point_number = point_of[number_of_loop];
      if (point_number < 0) {
        point_number = int(context.points.size());
        context.points.push_back({touch.touched, touch.reuse, store.top_down[level]});
      } else {
        ContextPoint& point = context.points[std::size_t(point_number)];
        point.touched = std::max(point.touched, touch.touched);
        point.reuse = std::max(point.reuse, touch.reuse);
      }
      classes[loop.kind == LoopKind::vector] = stride_class(touch.stride);
      products[touch.stride != 0][carriers[std::size_t(loop.kind)]] *= loop.extent;
    }
    const auto& [reuse, touched] = products;
    const auto [inner_class, vector_class] = classes;
    context.vector_strides[vector_class] += double(store.executions);
    context.inner_strides[inner_class] += double(store.executions);
    for (std::size_t c = 0; c < reuse.size(); ++c) {
      context.carried_reuse[c] = std::max(context.carried_reuse[c], reuse[c]);
      context.carried_touched[c] = std::max(context.carried_touched[c], touched[c]);
    }
    context.written = context.written || site.writes;
    context.executions += double(store.executions);
  }

  void add_curves(std::size_t number, std::span<float> slot) const {
    std::array<Curve, relations.size()> curves{};
    for (const ContextPoint& point : contexts_[number].points) {
      for (std::size_t r = 0; r < relations.size(); ++r)
        add_point(point.*relations[r].from, point.*relations[r].to, curves[r]);
    }
    for (std::size_t r = 0; r < relations.size(); ++r) {
      run_maximum(curves[r]);
      // A curve has few steps: a logarithm for each.
      std::int64_t previous = 0;
      float logarithm = 0;
      for (std::size_t t = 0; t < std::size_t(thresholds); ++t) {
        if (curves[r][t] != previous) logarithm = log_count(double(previous = curves[r][t]));
        slot[r * std::size_t(thresholds) + t] += logarithm;
      }
    }
  }

  const LoopProgram& program_;
  std::vector<BufferContext> contexts_;  // largest first
  std::vector<int> context_of_;          // by buffer
  std::vector<int> point_of_;            // [context][loop]: position in its points, -1 where it has none
};

// --- the program as a whole

// Register buffers that are alive together: from the first store of run that uses one to the last.
struct RegisterUse {
  std::size_t first = 0, last = 0;  // positions in run's order of stores
  double elements = 0, vectors = 0;
};

struct Registers {
  double elements = 0, vectors = 0;
};

Registers most_registers(const LoopProgram& program, const Analysis& analysis) {
  std::vector<int> use_of(program.buffers.size(), -1);
  std::vector<RegisterUse> uses;
  std::vector<std::int64_t> lanes;  // parallel to uses
  std::size_t site = 0;
  for (std::size_t position = 0; position < analysis.stores.size(); ++position) {
    const StoreContext& store = analysis.stores[position];
    for (; site < analysis.sites.size() && analysis.sites[site].store == store.store; ++site) {
      const AccessSite& access = analysis.sites[site];
      const codegen::Buffer& buffer = program.buffers[std::size_t(access.buffer)];
      if (buffer.scope != codegen::Scope::registers) continue;
      int& use = use_of[std::size_t(access.buffer)];
      if (use < 0) {
        use = int(uses.size());
        uses.push_back({.first = position, .elements = double(buffer.elements())});
        lanes.push_back(1);
      }
      uses[std::size_t(use)].last = position;
      for (std::size_t level = 0; level < store.loops.size(); ++level) {
        const codegen::Loop& loop = program.loops[std::size_t(store.loops[level])];
        if (loop.kind == LoopKind::vector && access.touches[level].stride != 0)
          lanes[std::size_t(use)] = std::max(lanes[std::size_t(use)], loop.extent);
      }
    }
  }
  for (std::size_t u = 0; u < uses.size(); ++u) uses[u].vectors = std::ceil(uses[u].elements / double(lanes[u]));

  Registers most;
  for (const RegisterUse& at : uses) {  // the most are alive where one begins
    Registers alive;
    for (const RegisterUse& use : uses) {
      if (use.first > at.first || use.last < at.first) continue;
      alive.elements += use.elements;
      alive.vectors += use.vectors;
    }
    most.elements = std::max(most.elements, alive.elements);
    most.vectors = std::max(most.vectors, alive.vectors);
  }
  return most;
}

// Executed memory operations of one access: a vector loop is one, and so are copies by the unrolled loops next to the
// store that do not move the access (`neighbours`: the first level of these loops).
double memory_operations(const LoopProgram& program, const StoreContext& store, const AccessSite& site,
                         std::size_t neighbours) {
  std::int64_t copies = 1;
  for (std::size_t level = neighbours; level < store.loops.size(); ++level) {
    const codegen::Loop& loop = program.loops[std::size_t(store.loops[level])];
    if (loop.kind == LoopKind::vector || site.touches[level].stride == 0) copies *= loop.extent;
  }
  return double(store.executions) / double(copies);
}

void write_program(const LoopProgram& program, const Analysis& analysis, std::size_t buffers, std::span<float> row) {
  double add = 0, mul = 0, div = 0, compare = 0, special = 0;
  double vector_extent = 1, unrolled_extent = 1, parallel_extent = 1, executions = 0, statements = 0, accesses = 0;
  std::size_t depth = 0;
  std::size_t site = 0;
  for (const StoreContext& context : analysis.stores) {
    const codegen::Store& store = program.stores[std::size_t(context.store)];
    const codegen::ArithmeticCounts counts = codegen::arithmetic(store.value);
    const double times = double(context.executions);
    add += times * double(counts.add + (store.combine == codegen::Combine::sum));
    mul += times * double(counts.mul);
    div += times * double(counts.div);
    compare += times * double(counts.compare +
                              (store.combine == codegen::Combine::max || store.combine == codegen::Combine::min));
    special += times * double(counts.special);

    // The loops next to the store that are unrolled or the vector loop: its straight-line code.
    std::size_t neighbours = context.loops.size();
    double unrolled_here = 1, unrolled = 1, parallel = 1;
    bool adjacent = true;
    for (std::size_t level = context.loops.size(); level-- > 0;) {
      const codegen::Loop& loop = program.loops[std::size_t(context.loops[level])];
      const double extent = double(loop.extent);
      adjacent = adjacent && (loop.kind == LoopKind::vector || loop.kind == LoopKind::unrolled);
      if (adjacent) neighbours = level;
      if (loop.kind == LoopKind::vector) vector_extent = std::max(vector_extent, extent);
      if (loop.kind == LoopKind::unrolled) {
        unrolled *= extent;
        if (adjacent) unrolled_here *= extent;
      }
      if (loop.kind == LoopKind::parallel) parallel *= extent;
    }
    unrolled_extent = std::max(unrolled_extent, unrolled_here);
    parallel_extent = std::max(parallel_extent, parallel);
    executions += times;
    statements += unrolled;
    depth = std::max(depth, context.loops.size());

    for (; site < analysis.sites.size() && analysis.sites[site].store == context.store; ++site) {
      const AccessSite& access = analysis.sites[site];
      if (program.buffers[std::size_t(access.buffer)].scope != codegen::Scope::memory) continue;
      const bool twice = access.writes && store.combine != codegen::Combine::none;  // read and written
      accesses += (twice ? 2 : 1) * memory_operations(program, context, access, neighbours);
    }
  }
  const Registers registers = most_registers(program, analysis);

  const std::span<float> out = row.subspan(program_begin, OfProgram::count);
  const double operations = add + mul + div + compare + special;
  out[OfProgram::add] = log_count(add);
  out[OfProgram::mul] = log_count(mul);
  out[OfProgram::div] = log_count(div);
  out[OfProgram::compare] = log_count(compare);
  out[OfProgram::special] = log_count(special);
  out[OfProgram::vector_extent] = log_count(vector_extent);
  out[OfProgram::unrolled_extent] = log_count(unrolled_extent);
  out[OfProgram::parallel_extent] = log_count(parallel_extent);
  out[OfProgram::executions] = log_count(executions);
  out[OfProgram::statements] = log_count(statements);
  out[OfProgram::flops_per_access] = accesses > 0 ? log_count(operations / accesses) : 0;
  out[OfProgram::depth] = float(depth);
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
  base::Matrix encoded(1, columns);
  const std::span<float> row = encoded.row(0);
  const Analysis analysis = codegen::analyse(program);
  const Contexts contexts(program, analysis);
  for (std::size_t c = 0; c < contexts.size(); ++c) {
    const int slot = std::min(int(c), buffer_slots);
    contexts.add_to_slot(c, row.subspan(std::size_t(slot_begin(slot)), slot_columns));
  }
  write_program(program, analysis, contexts.size(), row);
  return one_row_each(std::move(encoded));
}

}  // namespace

std::array<std::int64_t, thresholds> relation(std::span<const ContextPoint> points, Quantity from, Quantity to) {
  Curve largest{};
  for (const ContextPoint& point : points) add_point(point.*from, point.*to, largest);
  run_maximum(largest);
  return largest;
}

Encoding context_relation() {
  Encoding encoding;
  encoding.name = "context_relation";
  encoding.description =
      "relations of touched elements, reuse and top-down products of each buffer; strides, kinds of loops, arithmetic; "
      "log2 stands for log2(1 + count)";
  encoding.features = declared_features();
  encoding.hash = hash_of(encoding.name, version, encoding.features);
  encoding.encode = encode_program;
  return encoding;
}

}  // namespace graft::features
