// oneDNN as a contender. Its memory is ours (the same pages for everyone); weights are packed and activations brought
// into its layouts before the clock runs, results brought back after it.
#pragma once

#include <vector>

#include "bench/problem.h"
#include "bench/timing.h"

namespace graft::bench {

// Of matrix products: "onednn", row-major in and out. Of convolutions, with weights packed as the library likes:
//   onednn_direct    activations in blocks of the vector's channels (nChw16c, nChw8c), or NCHW in and blocks out
//   onednn_winograd  the same, where the library has it
//   onednn_any       activations as the library likes, where that is something else
//   onednn_plain     NCHW activations, for workloads that have them like that
// Nothing for other workloads.
std::vector<Contender> onednn_contenders(const Problem& problem, int threads);

base::Document onednn_context();

}  // namespace graft::bench
