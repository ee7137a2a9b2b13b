// The modelled twin of a native platform: the same code that is measured here, timed by the model of this host's core
// and a profile made from documents. Used to compare modelled times with measured ones.
#pragma once

#include <string>
#include <vector>

#include "tasks/platform.h"

namespace graft::tasks {

// The code (triple, cpu, features, vectors, threads) and the sizes of the caches are the native platform's, as reported
// by the system; the core's model and all else are those of a modelled platform's YAML. `profile` names such a
// file; empty:
// ../share/graft/platforms/hosts/CPU.yaml as seen from the program, for the cpu that LLVM finds here or the nearest
// relative. UserError for a platform that is not native, a host without a profile, and a profile that is not modelled
// or does not fit the host's caches.
Platform twin_of(const Platform& native, const std::string& profile = "");

}  // namespace graft::tasks
