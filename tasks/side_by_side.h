// Several equal devices as one: each of a batch is measured by whichever is free. For boards of one kind, which give
// the same answer for the same program.
#pragma once

#include <memory>
#include <vector>

#include "tasks/measurer.h"

namespace graft::tasks {

// One thread for each of the members, at least one. Results are passed on from the calling thread as they come, not in
// the order of the batch. A member that throws a Failure (its default configuration fails, its program cannot be
// started) is left out from then on, with a note, and what it was to measure is measured by another; the last one's,
// and whatever else a member throws, ends all of them, and is thrown on. A candidate that fails on a member is measured
// by another one, unless the member succeeds with one after it; a member on which three candidates failed that others
// measure is set aside, with a note.
std::unique_ptr<Measurer> side_by_side(std::vector<std::unique_ptr<Measurer>> members);

}  // namespace graft::tasks
