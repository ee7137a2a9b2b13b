// OpenBLAS as a contender.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/problem.h"
#include "bench/timing.h"

namespace graft::bench {

// "openblas": sgemm, for matrix products; empty for other workloads.
std::vector<Contender> openblas_contenders(const Problem& problem, int threads);

// The core whose kernels OpenBLAS uses in this process ("SkylakeX").
std::string openblas_core();
// A better one, for processors that OpenBLAS does not know: it treats processors newer than itself as ones without
// wide vectors. nullopt if its own choice uses the processor's vectors. Its loader reads only OPENBLAS_CORETYPE.
std::optional<std::string> better_openblas_core();

base::Document openblas_context();

}  // namespace graft::bench
