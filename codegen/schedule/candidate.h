// A schedule proposed for a workload: sketch and arguments, by value. Datasets store candidates, measurers take them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/document.h"
#include "base/error.h"
#include "codegen/expression/target.h"
#include "codegen/expression/workload.h"
#include "codegen/program/program.h"
#include "codegen/schedule/sketch.h"

namespace graft::codegen {

struct Candidate {
  Workload workload;
  std::shared_ptr<const Sketch> sketch;
  std::vector<std::int64_t> arguments;
};

base::Result<Schedule> schedule(const Candidate& candidate);
// The candidate lowered for the target's vector width and threads, and within limits (none for a target of unknown
// registers); a sketch's own program unchanged. A Reason for a row of a table, which has no known program.
base::Result<LoopProgram> program(const Candidate& candidate, const Target& target);
// What a candidate comes to on a target; a Reason as of `program`.
struct Made {
  std::uint64_t identity = 0;                  // its program's hash; of a row of a table, of its values by name
  std::shared_ptr<const LoopProgram> program;  // null for a row of a table
};
base::Result<Made> made(const Candidate& candidate, const Target& target);
// Hash of workload, sketch and arguments.
std::uint64_t hash(const Candidate& candidate);

// {"workload":...,"sketch":...,"arguments":[...]}, strictly read: UserError with the place for a workload that computes
// nothing and for a sketch that is not a list of steps.
base::Document to_document(const Candidate& candidate);
Candidate candidate_from(const base::Document& document);
// Its workload's and its sketch's text alone, as strictly.
Workload workload_from(const base::Document& text);
std::shared_ptr<const Sketch> sketch_from(const base::Document& text);
// The same for what was measured, which may be rows of tables, whose workload need not compute anything. UserError also
// for arguments that such a row's columns do not have.
Candidate measured_candidate_from(const base::Document& document);
std::shared_ptr<const Sketch> measured_sketch_from(const base::Document& text);
void check_measured(const Candidate& candidate, const std::string& place);

}  // namespace graft::codegen
