// Private to this folder: kernels with built-in constants. Constants known when a kernel is compiled are prepared
// then, on this machine, and become data of the library.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/monitor.h"
#include "base/numpy.h"
#include "codegen/expression/workload.h"
#include "codegen/machine/code.h"
#include "codegen/program/constants.h"
#include "tasks/expected.h"

namespace graft::study {

// The operands of a reference: its inputs, and instead of its constants the arrays "FUNCTION/TENSOR". UserError for an
// array that is missing, of another shape, or that its tensor's type cannot hold. The names that it used are added to
// `used`.
std::vector<codegen::Elements> operands_with(const std::map<std::string, base::NumpyArray>& arrays,
                                             const std::string& function, const tasks::Expected& expected,
                                             std::set<std::string>& used);

bool has_constants(const codegen::Computation& computation);

// A program whose constants are known when it is compiled, in two: what prepares them, on this machine, and what runs.
class PreparedAhead {
 public:
  explicit PreparedAhead(const codegen::LoopProgram& program);

  // Takes the program's parameters, then the prepared constants as further ones, and prepares nothing.
  const codegen::LoopProgram& run() const { return halves_.run; }
  // By constant parameter of `run`, as stored; "" for one that it does not read. `elements`: of the computation's
  // tensors, by number; those of constants are used. Failure if this machine cannot prepare them.
  std::vector<std::string> contents(const codegen::Computation& computation,
                                    const std::vector<codegen::Elements>& elements, base::Monitor& monitor);

 private:
  std::vector<std::string> prepared(const codegen::Computation& computation,
                                    const std::vector<codegen::Elements>& elements, base::Monitor& monitor);

  codegen::LoopProgram program_;
  codegen::WithoutPrepare halves_;
  std::optional<codegen::Code> preparing_;  // compiled when it is first needed
};

struct WithConstants {
  codegen::LoopProgram program;        // PreparedAhead::run
  std::vector<std::string> constants;  // codegen::LibraryVariant::constants
  tasks::Expected expected;            // of that program
};

// `expected`: of the workload, with these constants. Failure if this machine cannot prepare them.
WithConstants with_constants(const codegen::LoopProgram& program, const tasks::Expected& expected,
                             base::Monitor& monitor);

}  // namespace graft::study
