// A point proposed for a workload: sketch and arguments, by value. Datasets store candidates, measurers take them; what
// program it is, codegen/schedule/candidate_program.h says.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/document.h"
#include "base/error.h"
#include "codegen/expression/workload.h"
#include "codegen/space/sketch.h"

namespace graft::codegen {

struct Candidate {
  Workload workload;
  std::shared_ptr<const Sketch> sketch;
  std::vector<std::int64_t> arguments;
};

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
