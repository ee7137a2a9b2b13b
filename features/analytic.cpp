#include "features/analytic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "codegen/program/analysis.h"
#include "features/around.h"
#include "features/declared.h"
#include "features/operations.h"

namespace graft::features {
namespace {

using codegen::LoopProgram;
using codegen::Touch;

constexpr int version = 1;  // raised when values change though the list below does not

#define GRAFT_ANALYTIC(X)                                                                                          \
  X(cycles, "log2", "the prediction: the largest of the numbers below, each over how many there are in one cycle") \
  X(arithmetic, "log2", "vector operations of arithmetic, multiply-adds as one: two a cycle")                      \
  X(memory, "log2", "vector loads and stores: two a cycle")                                                        \
  X(control, "log2", "iterations of loops that are neither unrolled nor vector loops: one a cycle")                \
  X(l1_lines, "log2", "lines fetched into the first cache: one in 2 cycles; 0 where its size is not known")        \
  X(l2_lines, "log2", "lines fetched into the second cache: one in 6 cycles; 0 where its size is not known")       \
  X(l3_lines, "log2", "lines fetched into the third cache: one in 20 cycles; 0 where its size is not known")

struct Of {
  enum { GRAFT_ANALYTIC(GRAFT_COLUMN) count };
};
constexpr Declared list[] = {GRAFT_ANALYTIC(GRAFT_DECLARED)};
constexpr std::array<double, Of::count> cycles_each{0, 0.5, 0.5, 1, 2, 6, 20};

constexpr std::size_t caches = 3;

// Bytes that the inside of each loop touches, of all buffers in memory.
std::vector<double> footprints(const LoopProgram& program) {
  const std::size_t loops = program.loops.size();
  std::vector<std::int64_t> most(loops * program.buffers.size(), 0);  // lines, of a buffer in a loop
  codegen::StoreWalk walk(program, codegen::Lines::counted);
  while (walk.next()) {
    const auto add = [&](const codegen::Access& access) {
      if (program.buffers[std::size_t(access.tensor)].scope != codegen::Scope::memory) return;
      const std::span<const Touch> touches = walk.touches(access);
      for (std::size_t level = 0; level < touches.size(); ++level) {
        std::int64_t& lines = most[std::size_t(access.tensor) * loops + std::size_t(walk.context().loops[level])];
        lines = std::max(lines, touches[level].lines);
      }
    };
    const codegen::Store& store = program.stores[std::size_t(walk.context().store)];
    add(store.target);
    for (const codegen::Access& load : store.value.loads) add(load);
  }
  std::vector<double> bytes(loops, 0);
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    for (std::size_t l = 0; l < loops; ++l) bytes[l] += double(most[b * loops + l] * codegen::line_bytes);
  }
  return bytes;
}

// Lines that a cache of so many bytes fetches for an access which is executed `operations` times.
double fetched(std::int64_t cache_bytes, const Around& around, std::span<const Touch> touches,
               const std::vector<double>& footprint, double operations) {
  for (std::size_t level = 0; level < touches.size(); ++level) {
    const Around::Level& here = around.levels[level];
    if (footprint[std::size_t(here.loop)] <= double(cache_bytes))
      return double(here.top_down / here.extent) * double(touches[level].lines);
  }
  return operations;
}

Encoded encode_program(const Subject& subject) {
  const LoopProgram& program = *subject.program;
  const codegen::Target none, &target = subject.target != nullptr ? *subject.target : none;
  const std::array<std::optional<std::int64_t>, caches> sizes{target.l1_bytes, target.l2_bytes, target.l3_bytes};
  const std::vector<double> footprint = footprints(program);
  std::array<double, Of::count> totals{};
  struct Fetched {
    int buffer = 0;
    std::array<double, caches> lines{};
  };
  std::vector<Fetched> of_store;
  std::vector<char> counted(program.loops.size(), 0);  // loops, for control
  Around around;
  codegen::StoreWalk walk(program, codegen::Lines::counted);
  while (walk.next()) {
    const codegen::StoreContext& context = walk.context();
    if (walk.entered()) around.enter(program, context);
    const double speedup = around.parallel / std::ceil(around.parallel / double(target.threads));
    for (const Around::Level& level : around.levels) {
      const bool branches = level.kind != codegen::LoopKind::unrolled && level.kind != codegen::LoopKind::vector;
      if (branches && std::exchange(counted[std::size_t(level.loop)], 1) == 0)
        totals[Of::control] += double(level.top_down) / speedup;
    }
    const codegen::Store& store = program.stores[std::size_t(context.store)];
    const double executions = double(context.executions);

    const std::int64_t bytes = codegen::bytes_of(program.buffers[std::size_t(store.target.tensor)].dtype);
    const double vectors = std::ceil(around.vector_extent / double(target.lanes(bytes)));  // in a vector loop
    const Operations once = operations(program, store);
    const double arithmetic = double(once.total() - once.floating[Operations::mad] - once.integer[Operations::mad]);
    totals[Of::arithmetic] += arithmetic * executions / around.vector_extent * vectors / speedup;

    of_store.clear();
    const auto add = [&](const codegen::Access& access, double times) {
      if (program.buffers[std::size_t(access.tensor)].scope != codegen::Scope::memory) return;
      const std::span<const Touch> touches = walk.touches(access);
      const double once_each = around.memory_operations(touches, executions);
      const bool moved = around.vector >= 0 && touches[std::size_t(around.vector)].stride != 0;
      totals[Of::memory] += times * once_each * (moved ? vectors : 1) / speedup;
      auto found = std::find_if(of_store.begin(), of_store.end(),
                                [&](const Fetched& known) { return known.buffer == access.tensor; });
      if (found == of_store.end()) found = of_store.insert(of_store.end(), {access.tensor, {}});
      for (std::size_t c = 0; c < caches; ++c) {
        if (sizes[c])
          found->lines[c] = std::max(found->lines[c], fetched(*sizes[c], around, touches, footprint, once_each));
      }
    };
    add(store.target, store.combine == codegen::Combine::none ? 1 : 2);
    for (const codegen::Access& load : store.value.loads) add(load, 1);
    for (const Fetched& one : of_store) {
      for (std::size_t c = 0; c < caches; ++c) totals[Of::l1_lines + c] += one.lines[c] / speedup;
    }
  }
  for (std::size_t i = 1; i < totals.size(); ++i)
    totals[Of::cycles] = std::max(totals[Of::cycles], totals[i] * cycles_each[i]);

  base::Matrix row(1, Of::count);
  for (std::size_t i = 0; i < totals.size(); ++i) row.values[i] = log_count(totals[i]);
  return one_row_each(std::move(row));
}

std::vector<Feature> declared_features() {
  std::vector<Feature> features;
  declare(features, "", list);
  return features;
}

}  // namespace

Encoding analytic() {
  return encoding_of(
      "analytic",
      "a pre-defined roofline over arithmetic, memory operations, control and fetched lines, made of the "
      "program and the target's data sheet; its first column is the prediction",
      Shape::row, declared_features(), version, encode_program);
}

}  // namespace graft::features
