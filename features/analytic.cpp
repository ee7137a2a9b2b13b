#include "features/analytic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "codegen/program/analysis.h"
#include "features/around.h"
#include "features/buffers.h"
#include "features/declared.h"
#include "features/operations.h"
#include "features/registers.h"

namespace graft::features {
namespace {

using codegen::LoopProgram;
using codegen::Touch;

constexpr int version = 1;  // raised when values change though the lists below do not

#define GRAFT_ROOFLINE(X)                                                                                          \
  X(cycles, "log2", "the prediction: the largest of the numbers below, each over how many there are in one cycle") \
  X(arithmetic, "log2", "vector operations of arithmetic, multiply-adds as one: two a cycle")                      \
  X(memory, "log2", "vector loads and stores: two a cycle")                                                        \
  X(control, "log2", "iterations of loops that are neither unrolled nor vector loops: one a cycle")                \
  X(l1_lines, "log2", "lines fetched into the first cache: one in 2 cycles; 0 where its size is not known")        \
  X(l2_lines, "log2", "lines fetched into the second cache: one in 6 cycles; 0 where its size is not known")       \
  X(l3_lines, "log2", "lines fetched into the third cache: one in 20 cycles; 0 where its size is not known")

#define GRAFT_ON_TARGET(X)                                                                                             \
  X(cycles_share, "log2 ratio", "cycles over arithmetic, both counts plus 1; and so the next ones")                    \
  X(memory_share, "log2 ratio", "memory over arithmetic")                                                              \
  X(control_share, "log2 ratio", "control over arithmetic")                                                            \
  X(l1_share, "log2 ratio", "l1_lines over arithmetic")                                                                \
  X(l2_share, "log2 ratio", "l2_lines over arithmetic")                                                                \
  X(l3_share, "log2 ratio", "l3_lines over arithmetic")                                                                \
  X(lanes_lost, "log2 ratio", "arithmetic over what it were if all lanes of all vectors were used, both plus 1")       \
  X(single_elements, "log2", "loads and stores of elements that a vector loop moves by another stride than 1")         \
  X(registers_wanted, "log2", "vector registers that register buffers need, those alive together")                     \
  X(registers_share, "log2 ratio", "these plus 1 over the registers that the target has for them; 16 where unknown")   \
  X(l1_reuse, "log2",                                                                                                  \
    "executions of a store in the outermost loop that fits into the first cache: a mean by "                           \
    "arithmetic; 0 where no loop fits or its size is not known")                                                       \
  X(l2_reuse, "log2", "the same of the second cache")                                                                  \
  X(l3_reuse, "log2", "the same of the third cache")                                                                   \
  X(l1_footprint, "log2 ratio", "bytes that the largest outermost loop touches over the first cache; 0 where unknown") \
  X(l2_footprint, "log2 ratio", "the same of the second cache")                                                        \
  X(l3_footprint, "log2 ratio", "the same of the third cache")

#define GRAFT_OF_BUFFER(X)                                      \
  X(l1_lines, "log2", "its lines fetched into the first cache") \
  X(l2_lines, "log2", "into the second")                        \
  X(l3_lines, "log2", "into the third")

struct Roofline {
  enum { GRAFT_ROOFLINE(GRAFT_COLUMN) count };
};
struct OnTarget {
  enum { GRAFT_ON_TARGET(GRAFT_COLUMN) count };
};
struct OfBuffer {
  enum { GRAFT_OF_BUFFER(GRAFT_COLUMN) count };
};
constexpr Declared roofline[] = {GRAFT_ROOFLINE(GRAFT_DECLARED)};
constexpr Declared more[] = {GRAFT_ON_TARGET(GRAFT_DECLARED)};
constexpr Declared of_buffer[] = {GRAFT_OF_BUFFER(GRAFT_DECLARED)};
constexpr std::array<double, Roofline::count> cycles_each{0, 0.5, 0.5, 1, 2, 6, 20};

constexpr std::size_t caches = 3;
using ByCache = std::array<double, caches>;

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

// The outermost loop that fits into a cache of so many bytes: its level, or that of the store where none does.
std::size_t fitting_level(double cache_bytes, const Around& around, const std::vector<double>& footprint) {
  std::size_t level = 0;
  while (level < around.levels.size() && footprint[std::size_t(around.levels[level].loop)] > cache_bytes) ++level;
  return level;
}

// What is counted over the stores of a program.
class Counts {
 public:
  Counts(const LoopProgram& program, const codegen::Target& target)
      : program_(program),
        target_(target),
        cache_bytes_{double(target.l1_bytes.value_or(0)), double(target.l2_bytes.value_or(0)),
                     double(target.l3_bytes.value_or(0))},
        footprint_(footprints(program)),
        loop_counted_(program.loops.size(), 0),
        registers_(program),
        sizes_(program) {
    codegen::StoreWalk walk(program, codegen::Lines::counted);
    for (std::size_t position = 0; walk.next(); ++position) {
      if (walk.entered()) around_.enter(program, walk.context());
      add_store(walk, position);
    }
    for (std::size_t i = 1; i < totals_.size(); ++i)
      totals_[Roofline::cycles] = std::max(totals_[Roofline::cycles], totals_[i] * cycles_each[i]);
  }

  // The roofline's columns, and where there is room for them the others.
  void write(std::span<float> out) const {
    for (std::size_t i = 0; i < totals_.size(); ++i) out[i] = log_count(totals_[i]);
    const float arithmetic = out[Roofline::arithmetic];
    const std::array<float, 6> over{out[Roofline::cycles],   out[Roofline::memory],   out[Roofline::control],
                                    out[Roofline::l1_lines], out[Roofline::l2_lines], out[Roofline::l3_lines]};
    out = out.subspan(Roofline::count);
    if (out.empty()) return;
    for (std::size_t i = 0; i < over.size(); ++i) out[OnTarget::cycles_share + i] = over[i] - arithmetic;
    out[OnTarget::lanes_lost] = arithmetic - log_count(full_vectors_);
    out[OnTarget::single_elements] = log_count(single_elements_);
    const double wanted = registers_.alive_together().vectors;
    const double has = target_.vector_registers > 0 ? double(target_.vector_registers) : 16;
    out[OnTarget::registers_wanted] = log_count(wanted);
    out[OnTarget::registers_share] = float(std::log2((1 + wanted) / has));
    for (std::size_t c = 0; c < caches; ++c) {
      if (cache_bytes_[c] == 0) continue;
      if (weight_ > 0) out[OnTarget::l1_reuse + c] = float(reuse_[c] / weight_);
      out[OnTarget::l1_footprint + c] = float(std::log2((1 + largest_) / cache_bytes_[c]));
    }
    out = out.subspan(OnTarget::count);
    const std::vector<BufferSize> largest = sizes_.largest_first();
    for (std::size_t b = 0; b < std::min<std::size_t>(buffer_slots, largest.size()); ++b) {
      for (std::size_t c = 0; c < caches; ++c)
        out[b * OfBuffer::count + c] = log_count(lines_of_[largest[b].number][c]);
    }
  }

 private:
  void add_store(codegen::StoreWalk& walk, std::size_t position) {
    const codegen::StoreContext& context = walk.context();
    const codegen::Store& store = program_.stores[std::size_t(context.store)];
    const double executions = double(context.executions);
    const double speedup = around_.parallel / std::ceil(around_.parallel / double(target_.threads));
    for (const Around::Level& level : around_.levels) {
      const bool branches = level.kind != codegen::LoopKind::unrolled && level.kind != codegen::LoopKind::vector;
      if (branches && std::exchange(loop_counted_[std::size_t(level.loop)], 1) == 0)
        totals_[Roofline::control] += double(level.top_down) / speedup;
    }
    if (!around_.levels.empty()) largest_ = std::max(largest_, footprint_[std::size_t(around_.levels.front().loop)]);

    const double lanes = lanes_of(store.target.tensor);
    const double vectors = std::ceil(around_.vector_extent / lanes);  // in a vector loop
    const Operations once = operations(program_, store);
    const double arithmetic =
        executions * double(once.total() - once.floating[Operations::mad] - once.integer[Operations::mad]);
    totals_[Roofline::arithmetic] += arithmetic / around_.vector_extent * vectors / speedup;
    full_vectors_ += arithmetic / lanes / speedup;
    weight_ += arithmetic;
    for (std::size_t c = 0; c < caches; ++c) {
      level_[c] = fitting_level(cache_bytes_[c], around_, footprint_);
      if (level_[c] < around_.levels.size()) reuse_[c] += arithmetic * std::log2(executions / begins(level_[c]));
    }

    of_store_.clear();
    const bool combines = store.combine != codegen::Combine::none;
    add_access(walk, position, store.target, executions, combines ? 2 : 1, vectors, speedup);
    for (const codegen::Access& load : store.value.loads)
      add_access(walk, position, load, executions, 1, vectors, speedup);
    for (const Fetched& one : of_store_) {
      for (std::size_t c = 0; c < caches; ++c) {
        totals_[Roofline::l1_lines + c] += one.lines[c] / speedup;
        lines_of_[one.number][c] += one.lines[c] / speedup;
      }
    }
  }

  void add_access(codegen::StoreWalk& walk, std::size_t position, const codegen::Access& access, double executions,
                  double times, double vectors, double speedup) {
    const bool in_vector = around_.vector >= 0;
    if (program_.buffers[std::size_t(access.tensor)].scope != codegen::Scope::memory) {
      const bool moved = in_vector && walk.stride(access, std::size_t(around_.vector)) != 0;
      const double together = std::min(around_.vector_extent, lanes_of(access.tensor));
      registers_.add(position, access.tensor, moved ? std::int64_t(together) : 1);
      return;
    }
    const std::span<const Touch> touches = walk.touches(access);
    const std::int64_t stride = in_vector ? touches[std::size_t(around_.vector)].stride : 0;
    const double once_each = around_.memory_operations(touches, executions);
    totals_[Roofline::memory] += times * once_each * (stride != 0 ? vectors : 1) / speedup;
    if (stride != 0 && stride != 1) single_elements_ += times * executions / speedup;

    const std::size_t number = sizes_.add(access, touches.empty() ? 1 : touches.front().touched);
    if (number >= lines_of_.size()) lines_of_.resize(number + 1);
    auto found =
        std::find_if(of_store_.begin(), of_store_.end(), [&](const Fetched& one) { return one.number == number; });
    if (found == of_store_.end()) found = of_store_.insert(of_store_.end(), {number, {}});
    for (std::size_t c = 0; c < caches; ++c) {
      if (cache_bytes_[c] == 0) continue;
      const bool fits = level_[c] < touches.size();
      const double lines = fits ? begins(level_[c]) * double(touches[level_[c]].lines) : once_each;
      found->lines[c] = std::max(found->lines[c], lines);
    }
  }

  // How often the loop at this level around the store begins.
  double begins(std::size_t level) const {
    return double(around_.levels[level].top_down / around_.levels[level].extent);
  }
  double lanes_of(int buffer) const {
    return double(target_.lanes(codegen::bytes_of(program_.buffers[std::size_t(buffer)].dtype)));
  }

  const LoopProgram& program_;
  const codegen::Target& target_;
  const ByCache cache_bytes_;  // 0: not known
  const std::vector<double> footprint_;
  std::vector<char> loop_counted_;  // for control
  Around around_;                   // of the store that is being added; and so the next two
  std::array<std::size_t, caches> level_{};
  struct Fetched {
    std::size_t number = 0;  // of the buffer, by sizes_
    ByCache lines{};
  };
  std::vector<Fetched> of_store_;

  std::array<double, Roofline::count> totals_{};
  double full_vectors_ = 0, single_elements_ = 0, largest_ = 0, weight_ = 0;
  ByCache reuse_{};
  Registers registers_;
  BufferSizes sizes_;
  std::vector<ByCache> lines_of_;  // by sizes_' number
};

Encoding of_columns(std::string name, std::string description, std::vector<Feature> features) {
  const std::size_t columns = features.size();
  return encoding_of(std::move(name), std::move(description), Shape::row, std::move(features), version,
                     [columns](const Subject& subject) {
                       const codegen::Target none;
                       base::Matrix row(1, std::int64_t(columns));
                       Counts(*subject.program, subject.target != nullptr ? *subject.target : none).write(row.row(0));
                       return one_row_each(std::move(row));
                     });
}

std::vector<Feature> roofline_features() {
  std::vector<Feature> features;
  declare(features, "", roofline);
  return features;
}

}  // namespace

Encoding analytic() {
  return of_columns("analytic",
                    "a pre-defined roofline over arithmetic, memory operations, control and fetched lines, made of the "
                    "program and the target's data sheet; its first column is the prediction",
                    roofline_features());
}

Encoding on_target() {
  std::vector<Feature> features = roofline_features();
  declare(features, "", more);
  for (int b = 0; b < buffer_slots; ++b) declare(features, fmt::format("b{}.", b), of_buffer);
  return of_columns("on_target",
                    "what a program does on its target by the data sheet: the pre-defined roofline, its ratios, "
                    "registers, lanes, and what each large buffer has to fetch",
                    std::move(features));
}

}  // namespace graft::features
