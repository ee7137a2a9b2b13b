// Shared by the tests of schedules: schedules as text, targets, and lowered programs compared with the reference.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include "base/text.h"
#include "codegen/expression/reference.h"
#include "codegen/expression/target.h"
#include "codegen/expression/workload.h"
#include "codegen/schedule/lower.h"
#include "codegen/schedule/step.h"
#include "tests/support/interpreter.h"
#include "tests/support/refusal.h"

namespace graft::codegen::test {

inline Schedule steps(std::string_view text) {
  Schedule schedule;
  for (const std::string_view line : base::split(text, '\n')) {
    if (!line.empty()) schedule.push_back(parse_step(line, "test"));
  }
  return schedule;
}

// In the form whose stages schedules name.
inline Computation computed(std::string_view workload) {
  return with_padding_stages(parse_workload(workload).computation());
}

inline Target target_with(std::int64_t vector_bits, std::int64_t registers) {
  Target target;
  target.triple = "x86_64-unknown-linux-gnu";
  target.cpu = "x86-64-v3";
  target.vector_bits = vector_bits;
  target.vector_registers = registers;
  return target;
}

// Largest excess of |computed - expected| over the tolerance times `factor` (<= 0: right), with inputs of the seed; all
// else is NaN before the program runs. The program's first buffers are the computation's non-temporaries in order.
inline double worst_excess(const Computation& computation, const LoopProgram& program, std::uint64_t seed,
                           double factor = 1) {
  const Reference expected = reference(computation, seed);
  Numbers numbers;
  for (const Buffer& buffer : program.buffers) numbers.emplace_back(std::size_t(buffer.elements()), std::nan(""));
  std::size_t buffer = 0;
  for (std::size_t t = 0; t < computation.tensors.size(); ++t) {
    const Role role = computation.tensors[t].role;
    if (role == Role::temporary) continue;
    const Buffer& own = program.buffers[buffer];
    if (role != Role::output) numbers[buffer] = packed(own.layout, own.shape, expected.tensors[t].numbers());
    ++buffer;
  }
  numbers = interpreted(program, std::move(numbers));
  buffer = 0;
  double worst = -std::numeric_limits<double>::infinity();
  for (std::size_t t = 0; t < computation.tensors.size(); ++t) {
    if (computation.tensors[t].role == Role::temporary) continue;
    if (computation.tensors[t].role == Role::output) {
      const Buffer& own = program.buffers[buffer];
      numbers[buffer] = unpacked(own.layout, own.shape, numbers[buffer]);
      for (std::size_t i = 0; i < expected.tensors[t].size(); ++i) {
        const double got = numbers[buffer][i], wanted = expected.tensors[t][i];
        if (std::isnan(got) && std::isnan(wanted)) continue;
        const double error = got == wanted ? 0 : std::abs(got - wanted);  // infinities are equal, too
        if (std::isnan(error)) return std::numeric_limits<double>::infinity();
        // The reference's functions are as exact as double for f64 alone.
        const DType type = computation.tensors[t].dtype;
        const double allowed = std::max(
            tolerance(DType::f64, expected.reduction_length[t], expected.magnitude[t][i]),
            type == DType::f64 ? 0 : 1e-4 * tolerance(type, expected.reduction_length[t], expected.magnitude[t][i]));
        worst = std::max(worst, error - factor * allowed);
      }
    }
    ++buffer;
  }
  return worst;
}

}  // namespace graft::codegen::test
