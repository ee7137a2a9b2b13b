// This host as a device: candidates are compiled ahead (compile_ahead.h), checked and timed in order by a worker
// process (host_runner.h). Settings are refused as by HostRunner, and a negative abort_factor.
#pragma once

#include <memory>
#include <string>

#include "tasks/device.h"

namespace graft::tasks {

// {threads: n}, which become the target's: said once, in the platform's own map.
std::shared_ptr<const Device> read_native(const base::Document& own, const base::Document& whole,
                                          const std::string& file, codegen::Target& target);

}  // namespace graft::tasks
