// Private to this folder: kernels with built-in constants. Constants known when a kernel is compiled are prepared
// then, on this machine, and become data of the library.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/monitor.h"
#include "base/numpy.h"
#include "codegen/expression/workload.h"
#include "codegen/machine/compile.h"
#include "tasks/remote.h"

namespace graft::study {

// The operands of a reference: its inputs, and instead of its constants the arrays "FUNCTION/TENSOR". UserError for an
// array that is missing, of another shape, or that its tensor's type cannot hold. The names that it used are added to
// `used`.
std::vector<codegen::Elements> operands_with(const std::map<std::string, base::NumpyArray>& arrays,
                                             const std::string& function, const tasks::Expected& expected,
                                             std::set<std::string>& used);

bool has_constants(const codegen::Computation& computation);

struct WithConstants {
  codegen::LoopProgram program;        // takes the prepared constants as further parameters and prepares nothing
  std::vector<std::string> constants;  // codegen::LibraryVariant::constants
  tasks::Expected expected;            // of that program
};

// `expected`: of the workload, with these constants. Failure if this machine cannot prepare them.
WithConstants with_constants(const codegen::LoopProgram& program, const tasks::Expected& expected,
                             base::Monitor& monitor);

}  // namespace graft::study
