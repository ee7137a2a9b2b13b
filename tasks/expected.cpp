#include "tasks/expected.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/within.h"

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

MemoryNeed memory_need(const codegen::Computation& computation, Place place) {
  constexpr std::int64_t number = sizeof(double), under_way = 5;  // executables
  constexpr codegen::ReferenceSettings reference;
  std::int64_t inputs = 0, largest = 0, outputs = 0, temporaries = 0;  // bytes as programs have them
  std::int64_t expected = 0, evaluating = 0;
  for (const codegen::Tensor& tensor : computation.tensors) {
    // Shapes are checked when a computation is made: elements are far below 64 bits.
    const std::int64_t elements = tensor.elements(), bytes = tensor.bytes();
    const bool many = elements > reference.most_elements;
    switch (tensor.role) {
      case codegen::Role::input:
      case codegen::Role::constant:
        add(inputs, bytes);
        largest = std::max(largest, bytes);
        break;
      case codegen::Role::output:
        add(outputs, bytes);
        // Value and magnitude; of a sample the elements' numbers, too, twice.
        add(expected, many ? codegen::most_sampled : elements, many ? 4 * number : 2 * number);
        break;
      case codegen::Role::temporary:
        add(temporaries, bytes);
        // The same, of what a sample needs; and whether an element is needed, a bit each.
        add(evaluating, std::min(elements, 2 * reference.most_elements), many ? 4 * number : 2 * number);
        add(evaluating, elements / 8 + 1);
        break;
    }
  }
  add(evaluating, inputs);
  add(evaluating, expected);
  std::int64_t file = inputs;
  add(file, expected);
  MemoryNeed need;
  if (place != Place::elsewhere) {
    // A tensor is written to the file at a time; one that is stored in another order is packed first.
    std::int64_t writing = file;
    for (const std::int64_t part : {inputs, expected, largest}) add(writing, part);
    for (const std::int64_t part : {file, inputs, outputs, temporaries, inputs}) add(need.worker, part);
    need.here = std::max({evaluating, writing, need.worker});
  }
  if (place != Place::here) {
    // After the check on this host, if there was one, an executable under qemu.
    std::int64_t board = evaluating;
    // An executable's code addresses its data by 32 bits with a sign: of larger data none is made.
    constexpr std::int64_t most_of_executable = std::int64_t(1) << 31;
    if (capped_sum(inputs, outputs) <= most_of_executable) {
      add(board, inputs, place == Place::both ? 2 : under_way);
      add(board, outputs);
    }
    if (place == Place::both) add(board, need.worker);
    need.here = std::max(need.here, board);
  }
  return need;
}

void require_memory(const codegen::Workload& workload, Place place, const MeasureSettings& settings,
                    std::int64_t available) {
  const MemoryNeed need = memory_need(workload.computation(), place);
  if (need.here > available)
    throw base::UserError(shortened(workload.text()),
                          fmt::format("measuring it takes {} of memory, {} are available; choose smaller extents",
                                      bytes_text(need.here), bytes_text(available)));
  if (settings.memory_limit_bytes && need.worker > *settings.memory_limit_bytes)
    throw base::UserError(
        shortened(workload.text()),
        fmt::format("running it takes {} of memory, the process that runs programs may have {}; choose smaller extents",
                    bytes_text(need.worker), bytes_text(*settings.memory_limit_bytes)));
}

codegen::Reference expected_results(const codegen::Workload& workload, const codegen::Computation& computation,
                                    const codegen::InputSource& inputs, int threads, base::Monitor& monitor) {
  codegen::ReferenceSettings settings;
  settings.threads = threads;
  settings.seen = inputs.of(workload.text());
  codegen::Reference reference = codegen::reference(computation, inputs.seed, settings, monitor);
  if (reference.computed < reference.elements)
    monitor.note(fmt::format(
        "{}: too large to check all results of every program; of {} elements {} are compared with the reference, the "
        "others must be numbers",
        shortened(workload.text()), reference.elements, reference.computed));
  return reference;
}

const Expected& LatestExpected::of(const codegen::Workload& workload, base::Monitor& monitor) {
  if (text_ != workload.text()) {
    text_.clear();  // until all of it is known
    require_memory(workload, Place::elsewhere, {});
    expected_.computation = workload.computation();
    expected_.reference = expected_results(workload, expected_.computation, inputs_, threads_, monitor);
    text_ = workload.text();
  }
  return expected_;
}

std::optional<std::string> difference(const codegen::Tensor& tensor, const codegen::Reference& reference, int t,
                                      double factor, std::string_view bytes, const codegen::Layout& layout,
                                      std::span<const std::int64_t> stored) {
  const codegen::Elements& expected = reference.tensors[std::size_t(t)];
  const codegen::Elements& magnitude = reference.magnitude[std::size_t(t)];
  return codegen::with_element_of(tensor.dtype, [&](auto value) -> std::optional<std::string> {
    const auto at = [&](std::int64_t place) {
      std::memcpy(&value, bytes.data() + std::size_t(place) * sizeof value, sizeof value);
      return double(value);
    };
    const std::size_t compared = expected.is_sample() ? expected.sample().size() : expected.size();
    bool numbers = true;
    for (std::size_t n = 0; n < compared; ++n) {
      const std::int64_t e = expected.is_sample() ? expected.sample()[n] : std::int64_t(n);
      const double got = at(stored_place(layout, stored, e)), wanted = expected.held(n);
      const double allowed =
          factor * codegen::tolerance(tensor.dtype, reference.reduction_length[std::size_t(t)], magnitude.held(n));
      numbers = numbers && !std::isnan(wanted);
      if (!base::within(got, wanted, allowed, codegen::largest(tensor.dtype)))
        return fmt::format("{}: element {} is {:.9g} instead of {:.9g} (allowed error {:.3g})", tensor.name, e, got,
                           wanted, allowed);
    }
    for (std::int64_t e = 0; expected.is_sample() && numbers && e < std::int64_t(expected.size()); ++e)
      if (std::isnan(at(e))) return fmt::format("{}: stored element {} is nan instead of a number", tensor.name, e);
    return std::nullopt;
  });
}

}  // namespace graft::tasks
