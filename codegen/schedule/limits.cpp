#include "codegen/schedule/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace graft::codegen {
namespace {

constexpr std::int64_t block_cap = 1200;  // instructions without a loop between them
constexpr std::int64_t code_cap = 4000;   // of all of `run`

// Vector registers that one value of `lanes` elements takes.
std::int64_t registers_of(std::int64_t lanes, DType type, const Target& target) {
  const std::int64_t width = target.lanes(bytes_of(type));
  return (lanes + width - 1) / width;
}

}  // namespace

LimitCounter::UnrolledReads LimitCounter::unrolled_reads(const LoopProgram& program, const Access& access,
                                                         std::span<const int> loops, std::size_t nest) {
  moves_.assign(loops.size(), 0);
  const std::vector<std::int64_t>& shape = program.buffers[std::size_t(access.tensor)].shape;
  std::int64_t stride = 1;
  for (std::size_t d = access.index.size(); d-- > 0; stride *= shape[d]) {
    for (const Term& term : access.index[d].terms) {
      moves_[level_of_[std::size_t(term.variable)]] += term.coefficient * stride;
    }
  }
  UnrolledReads reads;
  steps_.clear();
  bool waits = false;  // a loop that repeats all loads inside of it
  for (std::size_t level = 0; level < loops.size(); ++level) {
    const Loop& loop = program.loops[std::size_t(loops[level])];
    if (level >= nest) {
      if (moves_[level] != 0) reads.elements *= loop.extent;
      continue;
    }
    if (loop.kind != LoopKind::unrolled || loop.extent == 1) continue;
    if (moves_[level] == 0) {
      waits = true;
      continue;
    }
    steps_.emplace_back(std::abs(moves_[level]), loop.extent);
    if (waits) reads.live *= loop.extent;
  }
  // Loops whose steps overlap (x + v) meet the same elements again.
  std::sort(steps_.begin(), steps_.end());
  bool overlap = false;
  for (std::size_t i = 0; i < steps_.size();) {
    const std::int64_t step = steps_[i].first;
    std::int64_t count = steps_[i].second;
    for (++i; i < steps_.size() && steps_[i].first % step == 0 && steps_[i].first < step * count; ++i) {
      count += steps_[i].first / step * (steps_[i].second - 1);
      overlap = true;
    }
    reads.distinct *= count;
  }
  if (overlap) reads.live = reads.distinct;
  return reads;
}

std::int64_t LimitCounter::new_prefetches(const LoopProgram& program, std::span<const int> loops) {
  std::int64_t count = 0, copies = 1;
  for (const int loop : loops) {
    const Loop& here = program.loops[std::size_t(loop)];
    if (here.kind == LoopKind::unrolled) copies *= here.extent;
    if (here.prefetches.empty() || counted_.contains(loop)) continue;
    counted_.insert(loop);
    count += copies * std::int64_t(here.prefetches.size());
  }
  return count;
}

std::optional<base::Reason> LimitCounter::add(const LoopProgram& program, const Store& store,
                                              std::span<const int> loops) {
  level_of_.resize(program.loops.size());
  held_.resize(program.buffers.size());
  std::optional<std::size_t> vector_level;
  std::int64_t lanes = 1, copies = 1;
  int innermost = -1;  // serial loop
  std::size_t nest = loops.size();
  for (std::size_t level = 0; level < loops.size(); ++level) {
    level_of_[std::size_t(loops[level])] = level;
    const Loop& loop = program.loops[std::size_t(loops[level])];
    if (loop.intrinsic >= 0) nest = level;
    if (level >= nest) continue;
    if (loop.kind == LoopKind::vector) {
      vector_level = level;
      lanes = loop.extent;
    } else if (loop.kind == LoopKind::unrolled) {
      copies *= loop.extent;
    } else {
      innermost = loops[level];
    }
  }
  const std::int64_t each = std::int64_t(store.value.nodes.size() - store.value.loads.size()) + 1;
  std::int64_t row = 0, straight = new_prefetches(program, loops);
  for (std::size_t i = 0; i <= store.value.loads.size(); ++i) {
    const bool is_target = i == store.value.loads.size();
    const Access& access = is_target ? store.target : store.value.loads[i];
    const Buffer& buffer = program.buffers[std::size_t(access.tensor)];
    const UnrolledReads reads = unrolled_reads(program, access, loops, nest);
    const std::int64_t registers = registers_of(lanes * reads.elements, buffer.dtype, target_);
    if (is_target) straight += each * copies * registers;
    if (buffer.scope == Scope::registers) {
      Held& held = held_[std::size_t(access.tensor)];
      if (is_target && store.combine == Combine::none) {
        held.at_start = std::max(held.at_start, reads.distinct * registers);
        accumulators_ = std::max(accumulators_, registers_of(reads.distinct * lanes, buffer.dtype, target_));
        continue;
      }
      held.by_intrinsic |= is_target && nest < loops.size();
      accumulators_ = std::max(
          accumulators_, held.by_intrinsic ? registers_of(buffer.elements(), buffer.dtype, target_) : held.at_start);
      continue;
    }
    const std::int64_t stride = vector_level ? moves_[*vector_level] : 1;
    const bool moves_together = stride >= 0 && stride <= 2;
    if (!moves_together || (is_target && stride != 1)) {
      // Lane by lane: expensive, hence only if it is rare.
      if (innermost >= 0 && (!is_target || store.combine != Combine::none)) {
        return base::Reason{fmt::format("limits: {} is read lane by lane, {} elements apart", buffer.name, stride)};
      }
      straight += 2 * lanes * reads.distinct;
    } else {
      straight += (stride == 2 ? 3 : 1) * registers * reads.distinct;
      if (!is_target && stride != 0) row += registers * reads.live;
    }
  }
  if (store.combine != Combine::none) widest_row_ = std::max(widest_row_, std::min(row, copies));
  if (innermost != block_loop_) block_ = 0;
  block_loop_ = innermost;
  block_ += straight;
  largest_ = std::max(largest_, block_);
  code_ += straight;

  if (accumulators_ > 1 && accumulators_ + widest_row_ > target_.vector_registers) {
    return base::Reason{fmt::format("limits: {} accumulators and {} operands exceed {} registers", accumulators_,
                                    widest_row_, target_.vector_registers)};
  }
  if (largest_ > block_cap) {
    return base::Reason{fmt::format("limits: about {} instructions without a loop exceed {}", largest_, block_cap)};
  }
  if (code_ > code_cap) {
    return base::Reason{fmt::format("limits: about {} instructions in all exceed {}", code_, code_cap)};
  }
  return std::nullopt;
}

}  // namespace graft::codegen
