#include "codegen/program/peak.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "codegen/program/forms.h"

namespace graft::codegen {

// Every accumulator starts from memory of its own: equal ones would be one to the compiler.
LoopProgram peak_program(const Target& target) {
  const std::int64_t lanes = target.lanes(4), accumulators = std::max<std::int64_t>(4, target.vector_registers * 3 / 4);
  const auto store = [&](const char* indent, const char* text) {
    return fmt::format("{0}for a {1} unrolled\n{0}  for v {2} vector\n{0}    {3}\n", indent, accumulators, lanes, text);
  };
  const std::string text = fmt::format(
                               "buffer start f32 [{0},{1}] input\nbuffer x f32 [{1}] input\nbuffer y f32 [{1}] input\n"
                               "buffer sum f32 [{0},{1}] output\nbuffer acc f32 [{0},{1}] temporary registers\nrun\n",
                               accumulators, lanes) +
                           store("  ", "acc[a,v] = start[a,v]") + fmt::format("  for t {}\n", peak_iterations) +
                           store("    ", "acc[a,v] += x[v] * y[v]") + store("  ", "sum[a,v] = acc[a,v]");
  return parse_program(text, "peak");
}

double peak_flops(const LoopProgram& program) {
  return 2.0 * double(peak_iterations) * double(program.buffers[3].elements());
}

}  // namespace graft::codegen
