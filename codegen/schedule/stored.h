// A computation over tensors as they are stored, channels in blocks for example: not a schedule of the same workload
// but another workload, whose tensors simply have the stored shapes. Kernels of a network agree so on what lies between
// them.
#pragma once

#include <map>
#include <string>

#include "base/error.h"
#include "codegen/expression/computation.h"
#include "codegen/expression/layout.h"

namespace graft::codegen {

struct Stored {
  Computation computation;                // of stored shapes; no tensor has a layout
  std::map<std::string, Layout> layouts;  // of its inputs, constants and outputs that are stored in another order
};

// `layouts`: of inputs and outputs, by name. Temporaries, and constants of two dimensions and more, are stored in the
// same blocks where they are indexed along with these tensors: of the weights of a convolution, the channels that it
// sums and those of its result. A Reason where a blocked dimension is not indexed by a whole axis.
base::Result<Stored> stored_as(Computation computation, const std::map<std::string, Layout>& layouts);

}  // namespace graft::codegen
