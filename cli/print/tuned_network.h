// A tuned network, for people.
#pragma once

#include <optional>
#include <vector>

#include "cli/output.h"
#include "study/flows/explained.h"
#include "study/flows/network_shapes.h"

namespace graft::cli {

// All calls of a kernel; infinite without an answer.
double seconds_of(const study::NetworkKernel& kernel);
// Kernels by number, those that take most of the time first.
std::vector<std::size_t> by_share(const study::TunedNetwork& network);
// By kernel, as far as the platform's description says it (study::roof_of).
std::vector<std::optional<study::Roof>> roofs_of(const study::TunedNetwork& network);

// Its kernels by their share of the time; those with a roof compared with their bound.
Table kernels_table(const study::TunedNetwork& network, const std::vector<std::optional<study::Roof>>& roofs);

// That table, and the sum.
void print(const study::TunedNetwork& network, Output& out);
// A table of the shapes, where there are several.
void print(const study::ShapedNetworks& networks, Output& out);

}  // namespace graft::cli
