// oneDNN as a contender. Its memory is ours (the same pages for everyone); weights are packed and activations brought
// into its layouts before the clock runs, results brought back after it.
#pragma once

#include <vector>

#include "bench/problem.h"
#include "bench/timing.h"

namespace graft::bench {

// For matrix products: "onednn", row-major in and out. For convolutions, with weights packed in the library's preferred
// layout:
//   onednn_direct    activations in blocks of the vector's channels (nChw16c, nChw8c), or NCHW in and blocks out
//   onednn_winograd  the same, if the library has it
//   onednn_any       activations in the library's preferred layout, if that is different
//   onednn_plain     NCHW or NHWC activations, as the workload has them
//   onednn_reordered the same, reordered into blocks and back with each call
// None for other workloads.
std::vector<Contender> onednn_contenders(const Problem& problem, int threads);

base::Document onednn_context();

}  // namespace graft::bench
