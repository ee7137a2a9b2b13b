// Measuring on the ranks of a team, each with a platform of its own of the same description.
#pragma once

#include <memory>

#include "base/team.h"
#include "tasks/measurer.h"

namespace graft::tasks {

// Everyone is given the same batch, measures a share of it with `own`, and reports the results of all, in order. Its
// monitor must be one that all ranks answer alike (base::TeamMonitor). `team` must outlive it.
std::unique_ptr<Measurer> make_divided_measurer(std::unique_ptr<Measurer> own, base::Team& team);

}  // namespace graft::tasks
