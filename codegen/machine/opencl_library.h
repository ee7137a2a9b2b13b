// Kernels of OpenCL as files that others build into their programs: sources, C functions and a header around them, the
// same as data, and a program that checks itself. For a function F, which is NAME_FUNCTION, with parameters A, B, C in
// the order of the workload's text:
//
//   cl_int F_create(cl_context, cl_device_id, graft_opencl** made);   // builds its kernels
//   cl_int F_prepare(graft_opencl*, cl_command_queue, cl_mem B);      // only if constants are prepared, before F
//   cl_int F(graft_opencl*, cl_command_queue, cl_mem A, cl_mem B, cl_mem C);
//
// F and F_prepare put kernels into the queue, which must be in order, and return; graft_opencl_release (graft_opencl.h)
// ends what F_create has begun.
#pragma once

#include <map>
#include <string>

#include "codegen/machine/library.h"

namespace graft::codegen {

// File names and contents: NAME.h, NAME.c, NAME_FUNCTION.cl, NAME.json, NAMEConfig.cmake, NAME_check.c and
// graft_opencl.h. The library is of one platform and of code in CodeForm::opencl, one variant a function, whose
// constants are passed. NAME_check.c has inputs by a formula, and of each output a sample of what the workload's
// definition makes of them. UserError for names as library_files.
std::map<std::string, std::string> opencl_library_files(const Library& library);

}  // namespace graft::codegen
