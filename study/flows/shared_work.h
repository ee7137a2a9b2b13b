// Pieces of work that do not depend on each other, shared among the ranks of a team (base/team.h). A rank that fails
// alone would leave the others waiting, so errors are results, and all ranks end with the same one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/monitor.h"
#include "base/team.h"

namespace graft::study {

// piece(i) for 0 <= i < count, each by one rank, which does its own in order; every rank gets all results, in order. A
// rank whose piece throws does no further ones, and then all ranks throw what the first piece that failed did, Stopped
// included. The pieces' notes are given to every rank's monitor in the order of the pieces.
std::vector<std::string> shared_work(base::Team& team, std::int64_t count, base::Monitor& monitor,
                                     const std::function<std::string(std::int64_t, base::Monitor&)>& piece);

// What only rank 0 does, such as what is measured on this machine; the others wait for it.
std::string work_of_first(base::Team& team, base::Monitor& monitor,
                          const std::function<std::string(base::Monitor&)>& work);

}  // namespace graft::study
