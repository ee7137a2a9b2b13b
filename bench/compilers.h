// Traditional compilation as a contender: C compilers on the same loops, as a person would write them.
#pragma once

#include <string>
#include <vector>

#include "base/document.h"
#include "bench/problem.h"
#include "bench/timing.h"

namespace graft::bench {

struct CCompiler {
  std::string name;                  // "clang": the contenders are clang_naive, clang_interchanged
  std::vector<std::string> command;  // {"clang-19", "-O3", "-march=native"}
  // What is added to it where the results are wrong without: it assumes that there are no infinities and no NaN.
  std::vector<std::string> careful;
};
const std::vector<CCompiler>& c_compilers();

// COMPILER_naive: the plain nest of every stage in axis order (ijk); COMPILER_interchanged: the last reduction loop
// outside of the last spatial one (ikj). Integers wrap around (-fwrapv). Only those in `wanted`. Failure for code that
// does not compile, and for a compiler that cannot be started.
std::vector<Contender> c_contenders(const Problem& problem, const std::vector<std::string>& wanted);

// {"clang":"Debian clang version ..., -O3 -march=native"}; "not found" for one that is not there.
base::Document c_context();

}  // namespace graft::bench
