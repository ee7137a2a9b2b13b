#include "codegen/schedule/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace graft::codegen {
namespace {

constexpr std::int64_t block_cap = 1200;  // instructions without a loop between them
constexpr std::int64_t code_cap = 4000;   // of all of `run`

struct OpenLoop {
  int loop = 0;
  int end = 0;
};

// Vector registers that one value of `lanes` elements takes.
std::int64_t registers_of(std::int64_t lanes, DType type, const Target& target) {
  const std::int64_t width = target.lanes(bytes_of(type));
  return (lanes + width - 1) / width;
}

// How often the unrolled loops around an access make it.
struct UnrolledReads {
  std::int64_t distinct = 1;  // different elements (or vectors)
  std::int64_t live = 1;      // of them, those that wait in registers for their next use, in order of the loops
};

UnrolledReads unrolled_reads(const LoopProgram& program, const std::vector<OpenLoop>& open, const Affine& offset) {
  UnrolledReads reads;
  std::vector<std::pair<std::int64_t, std::int64_t>> moves;  // coefficient, extent
  bool waits = false;                                        // a loop that repeats all loads inside of it
  for (const OpenLoop& o : open) {
    const Loop& loop = program.loops[std::size_t(o.loop)];
    if (loop.kind != LoopKind::unrolled || loop.extent == 1) continue;
    const std::int64_t coefficient = std::abs(offset.coefficient(o.loop));
    if (coefficient == 0) {
      waits = true;
      continue;
    }
    moves.emplace_back(coefficient, loop.extent);
    if (waits) reads.live *= loop.extent;
  }
  // Loops whose steps overlap (x + v) meet the same elements again.
  std::sort(moves.begin(), moves.end());
  bool overlap = false;
  for (std::size_t i = 0; i < moves.size();) {
    const std::int64_t step = moves[i].first;
    std::int64_t count = moves[i].second;
    for (++i; i < moves.size() && moves[i].first % step == 0 && moves[i].first < step * count; ++i) {
      count += moves[i].first / step * (moves[i].second - 1);
      overlap = true;
    }
    reads.distinct *= count;
  }
  if (overlap) reads.live = reads.distinct;
  return reads;
}

}  // namespace

std::optional<base::Reason> beyond_limits(const LoopProgram& program, const Target& target) {
  std::vector<std::int64_t> accumulators(program.buffers.size(), 0);
  std::int64_t block = 0, largest = 0, code = 0, widest_row = 0;
  int block_loop = -1;  // innermost serial loop of the block at hand
  std::vector<OpenLoop> open;
  for (int at = 0; at < int(program.run.size()); ++at) {
    while (!open.empty() && open.back().end <= at) open.pop_back();
    const Node& node = program.run[std::size_t(at)];
    if (node.kind == Node::Kind::loop) {
      open.push_back({node.item, node.end});
      continue;
    }
    const Store& store = program.stores[std::size_t(node.item)];
    int vector_loop = -1;
    std::int64_t lanes = 1, copies = 1;
    int innermost = -1;  // serial loop
    for (const OpenLoop& o : open) {
      const Loop& loop = program.loops[std::size_t(o.loop)];
      if (loop.kind == LoopKind::vector) {
        vector_loop = o.loop;
        lanes = loop.extent;
      } else if (loop.kind == LoopKind::unrolled) {
        copies *= loop.extent;
      } else {
        innermost = o.loop;
      }
    }
    std::int64_t each = std::int64_t(store.value.nodes.size() - store.value.loads.size()) + 1;
    std::int64_t row = 0, straight = 0;
    for (std::size_t i = 0; i <= store.value.loads.size(); ++i) {
      const bool is_target = i == store.value.loads.size();
      const Access& access = is_target ? store.target : store.value.loads[i];
      const Buffer& buffer = program.buffers[std::size_t(access.tensor)];
      const Affine form = offset(program, access);
      const UnrolledReads reads = unrolled_reads(program, open, form);
      if (buffer.scope == Scope::registers) {
        if (is_target && store.combine == Combine::none) {
          std::int64_t& most = accumulators[std::size_t(access.tensor)];
          most = std::max(most, reads.distinct * registers_of(lanes, buffer.dtype, target));
        }
        continue;
      }
      const std::int64_t stride = vector_loop < 0 ? 1 : form.coefficient(vector_loop);
      const bool moves_together = stride >= 0 && stride <= 2;
      if (!moves_together || (is_target && stride != 1)) {
        // Lane by lane: dear, hence only where it is rare.
        if (innermost >= 0 && (!is_target || store.combine != Combine::none)) {
          return base::Reason{fmt::format("limits: {} is read lane by lane, {} elements apart", buffer.name, stride)};
        }
        straight += 2 * lanes * reads.distinct;
      } else {
        straight += (stride == 2 ? 3 : 1) * registers_of(lanes, buffer.dtype, target) * reads.distinct;
        if (!is_target && stride != 0) row += registers_of(lanes, buffer.dtype, target) * reads.live;
      }
    }
    if (store.combine != Combine::none) widest_row = std::max(widest_row, std::min(row, copies));
    straight += each * copies * registers_of(lanes, program.buffers[std::size_t(store.target.tensor)].dtype, target);
    if (innermost != block_loop) {
      code += block;
      largest = std::max(largest, block);
      block = 0;
      block_loop = innermost;
    }
    block += straight;
  }
  code += block;
  largest = std::max(largest, block);
  const std::int64_t most = *std::max_element(accumulators.begin(), accumulators.end());
  if (most > 1 && most + widest_row > target.vector_registers) {
    return base::Reason{fmt::format("limits: {} accumulators and {} operands exceed {} registers", most, widest_row,
                                    target.vector_registers)};
  }
  if (largest > block_cap) {
    return base::Reason{fmt::format("limits: about {} instructions without a loop exceed {}", largest, block_cap)};
  }
  if (code > code_cap) {
    return base::Reason{fmt::format("limits: about {} instructions in all exceed {}", code, code_cap)};
  }
  return std::nullopt;
}

}  // namespace graft::codegen
