#include "tasks/expected.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "base/error.h"

namespace graft::tasks {
namespace {

using base::bytes_text;
using base::capped_product;
using base::capped_sum;

// Long ones begin like the one that is meant; nobody reads all of it in an error.
std::string shortened(const std::string& text) {
  constexpr std::size_t most = 100;
  return text.size() <= most ? text : text.substr(0, most - 3) + "...";
}

// `count` times `each`, added.
void add(std::int64_t& to, std::int64_t count, std::int64_t each = 1) {
  to = capped_sum(to, capped_product(count, each));
}

}  // namespace

Place place_of(const Platform& platform) {
  if (std::holds_alternative<Native>(platform.how)) return Place::here;
  return std::holds_alternative<Remote>(platform.how) ? Place::elsewhere : Place::both;
}

MemoryNeed memory_need(const codegen::Computation& computation, Place place) {
  constexpr std::int64_t number = sizeof(double), under_way = 5;  // executables
  std::int64_t inputs = 0, outputs = 0, temporaries = 0;          // bytes as programs have them
  std::int64_t reference = 0, evaluating = 0, file = 0, packing = 0;
  for (const codegen::Tensor& tensor : computation.tensors) {
    // Shapes are checked when a computation is made: elements are far below 64 bits.
    const std::int64_t elements = tensor.elements(), bytes = tensor.bytes();
    switch (tensor.role) {
      case codegen::Role::input:
      case codegen::Role::constant:
        add(inputs, bytes);
        add(reference, elements, number);
        add(file, bytes);
        packing = std::max(packing, capped_sum(capped_product(elements, number), bytes));
        break;
      case codegen::Role::output:
        add(outputs, bytes);
        add(reference, elements, 2 * number);  // value and magnitude
        add(evaluating, elements);             // whether it is wanted
        add(file, elements, 2 * number);       // value and tolerance
        packing = std::max(packing, capped_product(elements, 2 * number));
        break;
      case codegen::Role::temporary:
        add(temporaries, bytes);
        add(evaluating, elements, 2 * number + 1);
        break;
    }
  }
  add(evaluating, reference);
  MemoryNeed need;
  if (place != Place::elsewhere) {
    for (const std::int64_t part : {file, inputs, outputs, temporaries, inputs}) add(need.worker, part);
    need.here = std::max({evaluating, capped_sum(capped_sum(reference, file), packing), need.worker});
  }
  if (place != Place::here) {
    // After the check on this host, if there was one, an executable under qemu.
    std::int64_t board = evaluating;
    add(board, inputs, place == Place::both ? 2 : under_way);
    add(board, outputs);
    if (place == Place::both) add(board, need.worker);
    need.here = std::max(need.here, board);
  }
  return need;
}

void require_memory(const codegen::Workload& workload, Place place, const MeasureSettings& settings,
                    std::int64_t available) {
  const MemoryNeed need = memory_need(codegen::computation(workload), place);
  if (need.here > available)
    throw base::UserError(shortened(workload.text),
                          fmt::format("measuring it takes {} of memory, {} are available; choose smaller extents",
                                      bytes_text(need.here), bytes_text(available)));
  if (need.worker > settings.memory_limit_bytes)
    throw base::UserError(
        shortened(workload.text),
        fmt::format("running it takes {} of memory, the process that runs programs may have {}; choose smaller extents",
                    bytes_text(need.worker), bytes_text(settings.memory_limit_bytes)));
}

codegen::Reference expected_results(const codegen::Workload& workload, const codegen::Computation& computation,
                                    std::uint64_t seed, int threads, base::Monitor& monitor) {
  codegen::ReferenceSettings settings;
  settings.threads = threads;
  codegen::Reference reference = codegen::reference(computation, seed, settings, monitor);
  if (reference.computed < reference.elements)
    monitor.note(fmt::format(
        "{}: too large to check all results of every program; of {} elements {} are compared with the reference, the "
        "others must be numbers",
        shortened(workload.text), reference.elements, reference.computed));
  return reference;
}

}  // namespace graft::tasks
