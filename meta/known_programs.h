// What a model remembers of its training besides scores: the fastest program of each workload on each platform, for a
// search to begin with.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/document.h"
#include "codegen/expression/target.h"
#include "codegen/space/candidate.h"
#include "datasets/dataset.h"

namespace graft::meta {

struct KnownPrograms {
  std::string platform;
  codegen::Target target;  // of the platform
  std::vector<codegen::Candidate> fastest = {};
};

// One of each platform and workload, sorted by them, several files of a platform taken together. A program is left out
// where it is not a list of steps that lowers to what was measured, such as a row of a table, or one that needs
// micro-kernels of its own.
std::vector<KnownPrograms> fastest_programs(std::span<const datasets::Dataset> data);

// Those of `more` as well. A workload may then have several: times of different files are not comparable.
void add(std::vector<KnownPrograms>& known, const std::vector<KnownPrograms>& more);
// Without those that are in `others`, too, of the same platform.
void remove(std::vector<KnownPrograms>& known, const std::vector<KnownPrograms>& others);
std::size_t count(const std::vector<KnownPrograms>& known);  // of programs

// {"sketches":[...],"platforms":[{"platform":...,"target":{...},"programs":[{"workload":...,"sketch":position,
// "arguments":[...]},...]},...]}; read strictly, UserError with the place.
base::Document to_document(const std::vector<KnownPrograms>& known);
std::vector<KnownPrograms> known_programs_from(const base::Document& document);

}  // namespace graft::meta
