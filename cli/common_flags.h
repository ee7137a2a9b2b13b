// The flags of every command.
#pragma once

#include <cstdint>

#include "cli/command.h"

namespace graft::cli {

struct CommonFlags {
  bool json = false, quiet = false;
  std::int64_t seed = 1, threads;  // threads: those of this machine
  CommonFlags();
  void declare(Options& options);          // all but --threads
  void declare_threads(Options& options);  // for commands that have no --threads of their own
};

}  // namespace graft::cli
