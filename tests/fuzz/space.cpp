// Spaces as users write them, for one small workload and a target.
#include "codegen/program/forms.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/schedule/lower.h"
#include "codegen/schedule/template.h"
#include "tests/fuzz/lowered.h"
#include "tests/support/judged_space.h"

namespace graft::fuzz {

void examine(std::string_view text) {
  const codegen::Workload workload = codegen::parse_workload("dense(m=12,n=16,k=6)");
  codegen::Target target;
  target.triple = "x86_64-unknown-linux-gnu";
  target.cpu = "x86-64-v3";
  target.vector_bits = 256;
  target.vector_registers = 16;
  const auto space = accepted([&] { return codegen::judged_space(text, "text", workload, target); });
  if (!space) return;
  (void)space->size();
  (void)space->hash();
  // The first and the last row of every domain: points of the space, though conditions may forbid them.
  for (const codegen::SketchSpace& part : space->sketches()) {
    for (const bool first : {true, false}) {
      codegen::Candidate candidate{workload, part.sketch, {}};
      candidate.arguments.resize(part.sketch->arguments.size());
      for (const codegen::Domain& domain : part.domains) {
        const auto& row = first ? domain.values.front() : domain.values.back();
        for (std::size_t i = 0; i < row.size(); ++i) candidate.arguments[std::size_t(domain.arguments[i])] = row[i];
      }
      if (!space->valid(candidate)) continue;
      const auto program = codegen::program(candidate, target);
      promise(program.ok(), "a valid candidate lowers");
      promise(well_formed(*program), "its program is well formed", to_text(*program));
    }
  }
}

}  // namespace graft::fuzz
