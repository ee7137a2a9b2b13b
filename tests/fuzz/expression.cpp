// The text of workloads: calls of operators, and index expressions with and without parameters.
#include "codegen/expression/parse.h"
#include "codegen/expression/workload.h"
#include "codegen/program/forms.h"
#include "codegen/schedule/lower.h"
#include "tests/fuzz/lowered.h"

namespace graft::fuzz {
namespace {

using codegen::Computation;
using codegen::DType;

const codegen::Parameters parameters = {{"n", 2}, {"m", 5}, {"k", 3}, {"h", 7}, {"r", 3}, {"stride", 2}, {"pad", 1}};

void hold_promises(const Computation& computation) {
  const std::string text = to_text(computation);
  const Computation again = read_back(text, [&] { return codegen::parse_computation(text, {}, DType::f32, "again"); });
  promise(again == computation, "the text of a computation is that computation", text, to_text(again));
  // Any computation has a program.
  const codegen::LoopProgram program = codegen::naive_program(computation);
  promise(well_formed(program), "a naive program is well formed", text, to_text(program));
}

}  // namespace

void examine(std::string_view text) {
  if (const auto computation =
          accepted([&] { return codegen::parse_computation(text, parameters, DType::f64, "text"); }))
    hold_promises(*computation);
  const auto workload = accepted([&] { return codegen::parse_workload(text); });
  if (!workload) return;
  promise(codegen::parse_workload(workload->text()) == *workload, "a canonical text is its own", workload->text());
  hold_promises(workload->computation());
  (void)codegen::flops(*workload);
}

}  // namespace graft::fuzz
