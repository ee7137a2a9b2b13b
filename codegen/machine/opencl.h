// Loop programs -> OpenCL C 1.2: one kernel for each launch of `prepare` and `run` (codegen/program/groups.h). Text
// that is the same for equal programs of equal names; no header of OpenCL is needed to make it.
//
// The source begins with what a host must know, a comment a line:
//
//   // buffer NUMBER BYTES                       a temporary in memory that the host provides
//   // launch BODY KERNEL GX GY GZ IX IY IZ BUFFER ...
//
// BODY is prepare or run, in order of execution; G the numbers of work-groups by dimension, I of work-items in a group
// (0 0 0: the driver chooses; GX is then the number of items); BUFFER the kernel's arguments, numbers of the program's
// buffers.
#pragma once

#include <string>

#include "base/error.h"
#include "codegen/expression/target.h"
#include "codegen/program/program.h"

namespace graft::codegen {

// A Reason for what launches() refuses, for register buffers read before they are written or indexed by loops that are
// not unrolled, and for more than a kernel can have once loops are unrolled. The target gives the limits of a group.
base::Result<std::string> opencl_source(const LoopProgram& program, const Target& target,
                                        const std::string& symbol = "graft");

}  // namespace graft::codegen
