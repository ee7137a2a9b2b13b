// The text of workloads: calls of operators, and index expressions with and without parameters.
#include "codegen/expression/parse.h"
#include "codegen/expression/workload.h"
#include "codegen/program/forms.h"
#include "codegen/schedule/lower.h"
#include "tests/fuzz/target.h"

namespace graft::fuzz {
namespace {

using codegen::Computation;
using codegen::DType;

const codegen::Parameters parameters = {{"n", 2}, {"m", 5}, {"k", 3}, {"h", 7}, {"r", 3}, {"stride", 2}, {"pad", 1}};

void hold_promises(const Computation& computation) {
  const std::string text = to_text(computation);
  Computation again;
  promise(accepted([&] { again = codegen::parse_computation(text, {}, DType::f32, "again"); }),
          "the text of a computation is read", text);
  promise(again == computation, "the text of a computation is that computation", text, to_text(again));
  // Any computation has a program.
  const codegen::LoopProgram program = codegen::naive_program(computation);
  promise(accepted([&] { check(program, "program"); }), "a naive program is well formed", text, to_text(program));
}

}  // namespace

void examine(std::string_view text) {
  Computation computation;
  if (accepted([&] { computation = codegen::parse_computation(text, parameters, DType::f64, "text"); }))
    hold_promises(computation);
  codegen::Workload workload;
  if (!accepted([&] { workload = codegen::parse_workload(text); })) return;
  promise(codegen::parse_workload(workload.text) == workload, "a canonical text is its own", workload.text);
  hold_promises(codegen::computation(workload));
  (void)codegen::flops(workload);
}

}  // namespace graft::fuzz
