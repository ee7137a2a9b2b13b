// The space that a request searches: derived by rule, or defined by the user.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/document.h"
#include "base/error.h"
#include "codegen/schedule/rules.h"
#include "codegen/space/space.h"
#include "search/programs.h"

namespace graft::study {

struct SpaceSource {
  std::string file = {};        // with sketches, domains and conditions (codegen/schedule/template.h); "": by rule
  std::string intrinsics = {};  // file of micro-kernels to use wherever they fit; by rule only
  // By rule only. Nothing: given; of a network, free between its kernels.
  std::optional<codegen::Layouts> layouts = {};
};

// UserError if none of a file's schedules is possible: before there is a run, not in the middle of it; and for a
// micro-kernel that the target lacks features for, or that computes no part of the workload. FieldError for a file
// together with what goes by rule only.
codegen::Space space_of(const SpaceSource& source, const codegen::Workload& workload, const codegen::Target& target);

// The point of this space that a candidate is: of the same workload, by its steps (codegen/schedule/recognise.h), or as
// it is where no sketch gives them; of one that computes the same under other letters, what does the same; of another,
// what is most like it. A Reason where nothing can be made of it, or nothing is like it.
base::Result<codegen::Candidate> in_space(const codegen::Candidate& candidate, const codegen::Space& space,
                                          search::Programs& programs);
// The same for those that a user wants measured first. UserError for the first that cannot be.
std::vector<codegen::Candidate> in_space(const std::vector<codegen::Candidate>& start, const codegen::Space& space,
                                         search::Programs& programs);

}  // namespace graft::study
