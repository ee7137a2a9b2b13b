#include "codegen/schedule/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace graft::codegen {
namespace {

constexpr std::int64_t instruction_cap = 1200;

struct OpenLoop {
  int loop = 0;
  int end = 0;
  bool in_intrinsic = false;  // its code does all iterations at once
};

// Vector registers that one value of `lanes` elements takes.
std::int64_t registers_of(std::int64_t lanes, DType type, const Target& target) {
  const std::int64_t width = target.lanes(bytes_of(type));
  return (lanes + width - 1) / width;
}

}  // namespace

std::optional<base::Reason> beyond_limits(const LoopProgram& program, const Target& target) {
  std::vector<std::int64_t> accumulators(program.buffers.size(), 0);
  std::vector<bool> of_intrinsic(program.buffers.size(), false);  // accumulators that lie as the intrinsic wants them
  std::int64_t instructions = 0, widest_row = 0;
  std::vector<OpenLoop> open;
  for (int at = 0; at < int(program.run.size()); ++at) {
    while (!open.empty() && open.back().end <= at) open.pop_back();
    const Node& node = program.run[std::size_t(at)];
    if (node.kind == Node::Kind::loop) {
      const bool inside = !open.empty() && open.back().in_intrinsic;
      open.push_back({node.item, node.end, inside || program.loops[std::size_t(node.item)].intrinsic >= 0});
      continue;
    }
    const Store& store = program.stores[std::size_t(node.item)];
    int vector_loop = -1;
    std::int64_t lanes = 1, copies = 1;
    bool in_serial_loop = false;
    // Elements of an access that an intrinsic takes at once.
    const auto together = [&](const Affine& offset) {
      std::int64_t count = 1;
      for (const OpenLoop& o : open)
        if (o.in_intrinsic && offset.coefficient(o.loop) != 0) count *= program.loops[std::size_t(o.loop)].extent;
      return count;
    };
    for (const OpenLoop& o : open) {
      const Loop& loop = program.loops[std::size_t(o.loop)];
      if (o.in_intrinsic) continue;
      if (loop.kind == LoopKind::vector) {
        vector_loop = o.loop;
        lanes = loop.extent;
      } else if (loop.kind == LoopKind::unrolled) {
        copies *= loop.extent;
      } else {
        in_serial_loop = true;
      }
    }
    // Copies of an access that differ: the unrolled loops that move it.
    const auto distinct = [&](const Affine& offset) {
      std::int64_t count = 1;
      for (const OpenLoop& o : open) {
        const Loop& loop = program.loops[std::size_t(o.loop)];
        if (o.in_intrinsic) continue;
        if (loop.kind == LoopKind::unrolled && offset.coefficient(o.loop) != 0) count *= loop.extent;
      }
      return count;
    };
    std::int64_t each = std::int64_t(store.value.nodes.size() - store.value.loads.size()) + 1;
    std::int64_t row = 0;
    for (std::size_t i = 0; i <= store.value.loads.size(); ++i) {
      const bool is_target = i == store.value.loads.size();
      const Access& access = is_target ? store.target : store.value.loads[i];
      const Buffer& buffer = program.buffers[std::size_t(access.tensor)];
      const Affine form = offset(program, access);
      const std::int64_t elements = lanes * together(form);
      if (buffer.scope == Scope::registers) {
        if (is_target && elements > lanes) of_intrinsic[std::size_t(access.tensor)] = true;
        if (is_target && store.combine == Combine::none) {
          std::int64_t& most = accumulators[std::size_t(access.tensor)];
          most = std::max(most, distinct(form) * registers_of(lanes, buffer.dtype, target));
        }
        continue;
      }
      const std::int64_t stride = vector_loop < 0 ? 1 : form.coefficient(vector_loop);
      const bool moves_together = stride >= 0 && stride <= 2;
      if (!moves_together || (is_target && stride != 1)) {
        // Lane by lane: dear, hence only where it is rare.
        if (in_serial_loop && (!is_target || store.combine != Combine::none)) {
          return base::Reason{fmt::format("limits: {} is read lane by lane, {} elements apart", buffer.name, stride)};
        }
        instructions += 2 * lanes * distinct(form);
      } else {
        const std::int64_t registers = registers_of(elements, buffer.dtype, target);
        instructions += (stride == 2 ? 3 : 1) * registers * distinct(form);
        // What fills no register of an intrinsic's is spread over one that is free again soon, as splats are.
        const bool full = elements == lanes || elements * bytes_of(buffer.dtype) * 8 >= target.vector_bits;
        if (!is_target && stride != 0 && full) row += registers * distinct(form);
      }
    }
    if (store.combine != Combine::none) widest_row = std::max(widest_row, std::min(row, copies));
    const std::int64_t elements = lanes * together(offset(program, store.target));
    instructions +=
        each * copies * registers_of(elements, program.buffers[std::size_t(store.target.tensor)].dtype, target);
  }
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    if (of_intrinsic[b]) accumulators[b] = registers_of(buffer.elements(), buffer.dtype, target);
  }
  const std::int64_t most = *std::max_element(accumulators.begin(), accumulators.end());
  if (most > 1 && most + widest_row + 1 > target.vector_registers) {
    return base::Reason{fmt::format("limits: {} accumulators, {} operands and 1 exceed {} registers", most, widest_row,
                                    target.vector_registers)};
  }
  if (instructions > instruction_cap) {
    return base::Reason{
        fmt::format("limits: about {} instructions without a loop exceed {}", instructions, instruction_cap)};
  }
  return std::nullopt;
}

}  // namespace graft::codegen
