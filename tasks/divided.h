// Measures on the ranks of a team, each with its own platform of the same description.
#pragma once

#include <memory>

#include "base/team.h"
#include "tasks/measurer.h"

namespace graft::tasks {

// All ranks get the same batch, measure a share of it with `own`, and report the results of all, in order. The
// monitor must give all ranks the same answer (base::TeamMonitor). `team` must outlive it.
std::unique_ptr<Measurer> make_divided_measurer(std::unique_ptr<Measurer> own, base::Team& team);

}  // namespace graft::tasks
