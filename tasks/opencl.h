// A device of OpenCL of this host: candidates become OpenCL C (codegen/machine/opencl.h), and a worker of its own,
// graft-worker-opencl, builds, checks and times them; a driver that crashes or hangs costs one trial. Nothing here
// needs OpenCL: the worker opens libOpenCL.so.1.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tasks/device.h"

namespace graft::tasks {

// {device: n}: its number in the list of the host's devices. The target must have group_items.
std::shared_ptr<const Device> read_opencl(const base::Document& own, const base::Document& whole,
                                          const std::string& file, codegen::Target& target);

// The devices of this host by name, in the order of their numbers. UserError with the driver's words where there is none.
std::vector<std::string> opencl_devices();

// The YAML of a platform for the host's device of that number, from what its driver says. UserError where there is no
// such device, with why.
std::string opencl_yaml(int device);

}  // namespace graft::tasks
