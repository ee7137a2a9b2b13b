// What a candidate comes to: its steps, and its program on a target.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/error.h"
#include "codegen/expression/target.h"
#include "codegen/program/program.h"
#include "codegen/schedule/step.h"
#include "codegen/space/candidate.h"

namespace graft::codegen {

// Substitutes all arguments; a Reason for a wrong number of arguments or an alternative that does not exist, and for a
// sketch that does not consist of steps.
base::Result<Schedule> fill(const Sketch& sketch, std::span<const std::int64_t> arguments);
base::Result<Schedule> schedule(const Candidate& candidate);
// The candidate lowered for the target's vector width and threads, and within limits (none for a target of unknown
// registers); a sketch's own program unchanged. A Reason for a row of a table, which has no known program.
base::Result<LoopProgram> program(const Candidate& candidate, const Target& target);

struct CandidateProgram {
  std::uint64_t identity = 0;                  // the program's hash; of a row of a table, of its values by name
  std::shared_ptr<const LoopProgram> program;  // null for a row of a table
};
// A Reason as of `program`.
base::Result<CandidateProgram> identified_program(const Candidate& candidate, const Target& target);

}  // namespace graft::codegen
