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
#include "features/inside.h"
#include "features/nest.h"
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
  X(l3_footprint, "log2 ratio", "the same of the third cache")                                                         \
  X(dependent, "log2",                                                                                                 \
    "vector accumulations that wait for the one before: of each store those executed over its accumulators, "          \
    "at most 64, that the loops next to it keep apart (up to the innermost serial loop that does not move them)")      \
  X(dependent_share, "log2 ratio", "these over vectors, the executions of all stores, a vector as one; and so below")  \
  X(dependent_in_memory, "log2", "of these, those whose accumulator is in memory")                                     \
  X(independent, "log2", "vectors of accumulators kept apart, the fewest of any store; 0 where nothing is added up")   \
  X(pages, "log2", "pages of 4 KiB fetched into a table of 64, as lines are into a cache")                             \
  X(pages_share, "log2 ratio", "pages over vectors")                                                                   \
  X(pages_of_many, "log2", "the same into a table of 1024")                                                            \
  X(pages_of_many_share, "log2 ratio", "pages_of_many over vectors")                                                   \
  X(exits, "log2", "how often loops end that are neither unrolled nor vector loops")                                   \
  X(exits_share, "log2 ratio", "exits over vectors")                                                                   \
  X(unforeseen_exits, "log2", "of these, of loops of more than 32 iterations")                                         \
  X(unforeseen_exits_share, "log2 ratio", "unforeseen_exits over vectors")                                             \
  X(broadcasts, "log2", "loads in vector loops of what these do not move")                                             \
  X(broadcasts_share, "log2 ratio", "broadcasts over vectors")                                                         \
  X(stores, "log2", "vector stores to memory, those that add up included")                                             \
  X(stores_share, "log2 ratio", "stores over vectors")                                                                 \
  X(body_vectors, "log2", "vectors in one execution of the straight-line code around a store: a mean by vectors")      \
  X(body_memory, "log2", "vector loads and stores of the store in one execution of that code: the same mean")          \
  X(body_lines, "log2", "lines that these touch: the same mean")                                                       \
  X(l1_crowding, "log2 ratio",                                                                                         \
    "lines of an access for each place that they have in a cache, where a line's place is its address modulo 4 KiB: "  \
    "the largest inside of the outermost loop that fits into the first cache")                                         \
  X(l2_crowding, "log2 ratio", "the same modulo 64 KiB, inside of that of the second cache")                           \
  X(l1_crowded_lines, "log2", "l1_lines if a loop fits only where at most 8 lines share a place")                      \
  X(l2_crowded_lines, "log2", "the same of l2_lines")                                                                  \
  X(l1_crowded_share, "log2 ratio", "l1_crowded_lines over vectors")                                                   \
  X(l2_crowded_share, "log2 ratio", "l2_crowded_lines over vectors")                                                   \
  X(l1_written, "log2", "lines that stores fetch into the first cache")                                                \
  X(l2_written, "log2", "into the second")                                                                             \
  X(l3_written, "log2", "into the third")                                                                              \
  X(l1_written_share, "log2 ratio", "l1_written over vectors")                                                         \
  X(l2_written_share, "log2 ratio", "l2_written over vectors")                                                         \
  X(l3_written_share, "log2 ratio", "l3_written over vectors")

#define GRAFT_OF_TARGET(X)                                                                 \
  X(target_lanes, "log2 ratio", "elements of 4 bytes in a vector of the target, over one") \
  X(target_registers, "log2 ratio", "its vector registers, over one; 16 where unknown")

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
struct OfTarget {
  enum { GRAFT_OF_TARGET(GRAFT_COLUMN) count };
};
struct OfBuffer {
  enum { GRAFT_OF_BUFFER(GRAFT_COLUMN) count };
};
constexpr Declared roofline[] = {GRAFT_ROOFLINE(GRAFT_DECLARED)};
constexpr Declared more[] = {GRAFT_ON_TARGET(GRAFT_DECLARED)};
constexpr Declared of_target[] = {GRAFT_OF_TARGET(GRAFT_DECLARED)};
constexpr Declared of_buffer[] = {GRAFT_OF_BUFFER(GRAFT_DECLARED)};
constexpr std::array<double, Roofline::count> cycles_each{0, 0.5, 0.5, 1, 2, 6, 20};

constexpr std::size_t caches = 3;
using ByCache = std::array<double, caches>;

constexpr std::array<double, 2> page_entries{64, 1024};
constexpr double most_crowded = 8;       // lines that share a place and stay
constexpr double most_independent = 64;  // accumulators: more no core has under way

// Counts over the stores of a program.
class Counts {
 public:
  Counts(const LoopProgram& program, const codegen::Target& target)
      : program_(program),
        target_(target),
        cache_bytes_{double(target.l1_bytes.value_or(0)), double(target.l2_bytes.value_or(0)),
                     double(target.l3_bytes.value_or(0))},
        inside_(insides(program)),
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

  // The roofline's columns, and if there is room the others.
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
    out[OnTarget::registers_wanted] = log_count(wanted);
    out[OnTarget::registers_share] = float(std::log2((1 + wanted) / registers()));
    for (std::size_t c = 0; c < caches; ++c) {
      if (cache_bytes_[c] == 0) continue;
      if (weight_ > 0) out[OnTarget::l1_reuse + c] = float(reuse_[c] / weight_);
      out[OnTarget::l1_footprint + c] = float(std::log2((1 + largest_) / cache_bytes_[c]));
    }
    const auto with_share = [&](std::size_t column, std::size_t share, double count) {
      out[column] = log_count(count);
      out[share] = out[column] - log_count(vectors_);
    };
    with_share(OnTarget::dependent, OnTarget::dependent_share, dependent_);
    out[OnTarget::dependent_in_memory] = log_count(dependent_in_memory_);
    out[OnTarget::independent] = log_count(independent_.value_or(0));
    with_share(OnTarget::pages, OnTarget::pages_share, pages_[0]);
    with_share(OnTarget::pages_of_many, OnTarget::pages_of_many_share, pages_[1]);
    with_share(OnTarget::exits, OnTarget::exits_share, exits_);
    with_share(OnTarget::unforeseen_exits, OnTarget::unforeseen_exits_share, unforeseen_exits_);
    with_share(OnTarget::broadcasts, OnTarget::broadcasts_share, broadcasts_);
    with_share(OnTarget::stores, OnTarget::stores_share, stores_);
    const double bodies = std::max(vectors_, 1.0);
    out[OnTarget::body_vectors] = log_count(body_vectors_ / bodies);
    out[OnTarget::body_memory] = log_count(body_memory_ / bodies);
    out[OnTarget::body_lines] = log_count(body_lines_ / bodies);
    for (std::size_t c = 0; c < Spread::windows.size(); ++c) {
      out[OnTarget::l1_crowding + c] = float(std::log2(crowding_[c]));
      with_share(OnTarget::l1_crowded_lines + c, OnTarget::l1_crowded_share + c, crowded_lines_[c]);
    }
    for (std::size_t c = 0; c < caches; ++c)
      with_share(OnTarget::l1_written + c, OnTarget::l1_written_share + c, written_[c]);
    out = out.subspan(OnTarget::count);
    out[OfTarget::target_lanes] = float(std::log2(double(target_.lanes(4))));
    out[OfTarget::target_registers] = float(std::log2(registers()));
    out = out.subspan(OfTarget::count);
    const std::vector<BufferSize> largest = sizes_.largest_first();
    for (std::size_t b = 0; b < std::min<std::size_t>(buffer_slots, largest.size()); ++b) {
      for (std::size_t c = 0; c < caches; ++c)
        out[b * OfBuffer::count + c] = log_count(lines_of_[largest[b].number][c]);
    }
  }

 private:
  double registers() const { return target_.vector_registers > 0 ? double(target_.vector_registers) : 16; }

  void add_store(codegen::StoreWalk& walk, std::size_t position) {
    const codegen::StoreContext& context = walk.context();
    const codegen::Store& store = program_.stores[std::size_t(context.store)];
    const double lanes = lanes_of(store.target.tensor);
    now_ = {position, double(context.executions), std::ceil(around_.vector_extent / lanes),
            around_.parallel / std::ceil(around_.parallel / double(target_.threads))};
    now_.combines = store.combine != codegen::Combine::none;
    for (const Around::Level& level : around_.levels) {
      const bool branches = level.kind != codegen::LoopKind::unrolled && level.kind != codegen::LoopKind::vector;
      if (!branches || std::exchange(loop_counted_[std::size_t(level.loop)], 1) != 0) continue;
      totals_[Roofline::control] += double(level.top_down) / now_.speedup;
      const double exits = double(level.top_down / level.extent) / now_.speedup;
      exits_ += exits;
      if (level.extent > foreseen_extent) unforeseen_exits_ += exits;
    }
    if (!around_.levels.empty()) largest_ = std::max(largest_, inside_[std::size_t(around_.levels.front().loop)].bytes);

    const Operations once = operations(program_, store);
    const double arithmetic =
        now_.executions * double(once.total() - once.floating[Operations::mad] - once.integer[Operations::mad]);
    totals_[Roofline::arithmetic] += arithmetic / around_.vector_extent * now_.vectors / now_.speedup;
    full_vectors_ += arithmetic / lanes / now_.speedup;
    weight_ += arithmetic;
    for (std::size_t c = 0; c < caches; ++c) {
      level_[c] = fitting_level([&](const Inside& inside) { return inside.bytes <= cache_bytes_[c]; });
      if (level_[c] < around_.levels.size()) reuse_[c] += arithmetic * std::log2(now_.executions / begins(level_[c]));
    }
    for (std::size_t t = 0; t < page_entries.size(); ++t)
      page_level_[t] = fitting_level([&](const Inside& inside) { return inside.pages <= page_entries[t]; });
    for (std::size_t c = 0; c < Spread::windows.size(); ++c) {
      crowded_level_[c] = fitting_level(
          [&](const Inside& inside) { return inside.bytes <= cache_bytes_[c] && inside.crowding[c] <= most_crowded; });
      if (level_[c] < around_.levels.size())
        crowding_[c] = std::max(crowding_[c], inside_[std::size_t(around_.levels[level_[c]].loop)].crowding[c]);
    }
    add_body(walk, store);

    of_store_.clear();
    add_access(walk, store.target, true);
    for (const codegen::Access& load : store.value.loads) add_access(walk, load, false);
    for (const Fetched& one : of_store_) {
      for (std::size_t c = 0; c < caches; ++c) {
        totals_[Roofline::l1_lines + c] += one.lines[c] / now_.speedup;
        lines_of_[one.number][c] += one.lines[c] / now_.speedup;
      }
    }
  }

  // Straight-line code and chains of accumulations.
  void add_body(codegen::StoreWalk& walk, const codegen::Store& store) {
    const double vectors = now_.executions / around_.vector_extent * now_.vectors;
    now_.body_executions = now_.executions;
    for (std::size_t l = around_.straight; l < around_.levels.size(); ++l)
      now_.body_executions /= double(around_.levels[l].extent);
    now_.weight = vectors / now_.speedup;
    vectors_ += now_.weight;
    body_vectors_ += now_.weight * (vectors / now_.body_executions);
    if (!now_.combines) return;
    const std::span<const Touch> touches = walk.touches(store.target);
    std::size_t level = touches.size();
    for (; level > 0; --level) {
      const bool straight = level > around_.straight;
      if (!straight && touches[level - 1].stride == 0) break;
    }
    const double accumulators = level < touches.size() ? double(touches[level].touched) : 1;
    const double apart = std::max(1.0, accumulators / around_.vector_extent * now_.vectors);
    const double dependent = vectors / std::min(apart, most_independent) / now_.speedup;
    dependent_ += dependent;
    independent_ = std::min(independent_.value_or(apart), apart);
    if (program_.buffers[std::size_t(store.target.tensor)].scope == codegen::Scope::memory)
      dependent_in_memory_ += dependent;
  }

  void add_access(codegen::StoreWalk& walk, const codegen::Access& access, bool is_target) {
    const bool in_vector = around_.vector >= 0;
    const codegen::Buffer& buffer = program_.buffers[std::size_t(access.tensor)];
    if (buffer.scope != codegen::Scope::memory) {
      const bool moved = in_vector && walk.stride(access, std::size_t(around_.vector)) != 0;
      const double together = std::min(around_.vector_extent, lanes_of(access.tensor));
      registers_.add(now_.position, access.tensor, moved ? std::int64_t(together) : 1);
      return;
    }
    const std::span<const Touch> touches = walk.touches(access);
    const std::int64_t stride = in_vector ? touches[std::size_t(around_.vector)].stride : 0;
    const double once_each = around_.memory_operations(touches, now_.executions);
    const double moves = once_each * (stride != 0 ? now_.vectors : 1) / now_.speedup;
    const double times = is_target && now_.combines ? 2 : 1;
    totals_[Roofline::memory] += times * moves;
    if (stride != 0 && stride != 1) single_elements_ += times * now_.executions / now_.speedup;
    if (is_target) stores_ += moves;
    if (!is_target && in_vector && stride == 0) broadcasts_ += moves;
    body_memory_ += now_.weight * (moves * now_.speedup / now_.body_executions);
    if (around_.straight < touches.size()) body_lines_ += now_.weight * double(touches[around_.straight].lines);

    const std::size_t number = sizes_.add(access, touches.empty() ? 1 : touches.front().touched);
    if (number >= lines_of_.size()) lines_of_.resize(number + 1);
    auto found =
        std::find_if(of_store_.begin(), of_store_.end(), [&](const Fetched& one) { return one.number == number; });
    if (found == of_store_.end()) found = of_store_.insert(of_store_.end(), {number, {}});
    const auto fetched = [&](std::size_t level) {
      return level < touches.size() ? begins(level) * double(touches[level].lines) : once_each;
    };
    for (std::size_t c = 0; c < caches; ++c) {
      if (cache_bytes_[c] == 0) continue;
      const double lines = fetched(level_[c]);
      found->lines[c] = std::max(found->lines[c], lines);
      if (is_target) written_[c] += lines / now_.speedup;
      if (c < crowded_lines_.size()) crowded_lines_[c] += fetched(crowded_level_[c]) / now_.speedup;
    }
    const double element = double(codegen::bytes_of(buffer.dtype));
    Spread spread(element);
    std::array<double, 2> pages{once_each, once_each};
    for (std::size_t level = touches.size(); level-- > 0;) {
      spread.widen(std::abs(double(touches[level].stride)) * element, around_.levels[level].extent);
      for (std::size_t t = 0; t < pages.size(); ++t) {
        if (level == page_level_[t]) pages[t] = begins(level) * spread.pages();
      }
    }
    for (std::size_t t = 0; t < pages.size(); ++t) pages_[t] += pages[t] / now_.speedup;
  }

  // The outermost loop around the store whose inside fits: its level, or that of the store where none does.
  template <typename Fits>
  std::size_t fitting_level(const Fits& fits) const {
    std::size_t level = 0;
    while (level < around_.levels.size() && !fits(inside_[std::size_t(around_.levels[level].loop)])) ++level;
    return level;
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
  const ByCache cache_bytes_;         // 0: not known
  const std::vector<Inside> inside_;  // by loop
  std::vector<char> loop_counted_;    // for control

  // For the store being added:
  Around around_;
  struct Now {
    std::size_t position = 0;
    double executions = 0, vectors = 1;  // vectors: in a vector loop
    double speedup = 1;                  // by threads
    bool combines = false;
    double body_executions = 1, weight = 0;  // of the straight-line code; in means over stores
  };
  Now now_;
  std::array<std::size_t, caches> level_{};  // the outermost loop that fits
  std::array<std::size_t, 2> page_level_{}, crowded_level_{};
  struct Fetched {
    std::size_t number = 0;  // of the buffer, by sizes_
    ByCache lines{};
  };
  std::vector<Fetched> of_store_;

  std::array<double, Roofline::count> totals_{};
  double full_vectors_ = 0, single_elements_ = 0, largest_ = 0, weight_ = 0;
  ByCache reuse_{}, written_{};
  double vectors_ = 0, dependent_ = 0, dependent_in_memory_ = 0;
  std::optional<double> independent_;
  double exits_ = 0, unforeseen_exits_ = 0, broadcasts_ = 0, stores_ = 0;
  double body_vectors_ = 0, body_memory_ = 0, body_lines_ = 0;  // sums by vectors
  std::array<double, 2> pages_{}, crowding_{1, 1}, crowded_lines_{};
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
  const std::size_t count = features.size();
  declare(features, "", of_target);
  for (std::size_t f = count; f < features.size(); ++f) features[f].of_target = true;
  for (int b = 0; b < buffer_slots; ++b) declare(features, fmt::format("b{}.", b), of_buffer);
  return of_columns(
      "on_target",
      "what a program does on its target by the data sheet: the pre-defined roofline, its ratios, "
      "registers, lanes, chains of accumulations, pages, crowded lines, and what each large buffer has to fetch",
      std::move(features));
}

}  // namespace graft::features
