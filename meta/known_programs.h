// What a model remembers of its training besides scores: the fastest program of each workload on each platform, for a
// search to begin with.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/document.h"
#include "codegen/schedule/candidate.h"
#include "datasets/dataset.h"

namespace graft::meta {

struct KnownProgram {
  std::string platform;
  codegen::Candidate candidate;
};

// The fastest program of each platform and workload, several files of a platform taken together. Not where it is no
// list of steps that lowers to what was measured: a row of a table, say, or one that needs micro-kernels of its own.
std::vector<KnownProgram> fastest_programs(std::span<const datasets::Dataset> data);

// {"sketches":[...],"programs":[{"platform":...,"workload":...,"sketch":position,"arguments":[...]},...]}; read
// strictly, UserError with the place.
base::Document to_document(const std::vector<KnownProgram>& programs);
std::vector<KnownProgram> known_programs_from(const base::Document& document);

}  // namespace graft::meta
