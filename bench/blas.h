// OpenBLAS as a contender.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/problem.h"
#include "bench/timing.h"

namespace graft::bench {

// "openblas": sgemm, for matrix products; nothing for other workloads.
std::vector<Contender> openblas_contenders(const Problem& problem, int threads);

// The core whose kernels OpenBLAS uses in this process ("SkylakeX").
std::string openblas_core();
// A better one, for processors that OpenBLAS does not know: it takes what is newer than itself for one without any
// wide vectors. Nothing where its own choice uses what the processor has. Its loader reads OPENBLAS_CORETYPE only.
std::optional<std::string> better_openblas_core();

base::Document openblas_context();

}  // namespace graft::bench
