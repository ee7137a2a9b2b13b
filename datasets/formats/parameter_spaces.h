// Files of spaces of parameters (codegen/space/parameter_space.h).
#pragma once

#include <string>
#include <string_view>

#include "codegen/space/parameter_space.h"

namespace graft::datasets::formats {

// A file's space, by its content: T1 of the FAIR auto-tuning format ("ConfigurationSpace" with "TuningParameters" and
// "Conditions"; what Kernel Tuner and KTT read), or our own, in YAML or JSON:
//
//   name: stencil                                   # of the workload
//   sizes: {n: 4096}                                # of the problem, if any: other sizes are other workloads
//   parameters:
//     tile_x: [16, 32, 64]
//     tile_y: {from: 1, to: 64, powers_of: 2}       # or `step: 8`, also of fractions; without both: every integer
//     flags: ["-O2", "-O3"]
//     unroll: [false, true]
//   constraints:
//     - tile_x * tile_y <= 1024
//   default: {tile_x: 16, tile_y: 16, flags: "-O2", unroll: false}
//
// Parameters that a default does not name have their first values in it. UserError at the place for all else, and for a
// default that a constraint of our own form forbids (published T1 files have such; what is nearest to it is taken).
// `place` is the file's name, whose stem names a workload without a name.
codegen::ParameterSpace parse_parameter_space(std::string_view text, const std::string& place);

}  // namespace graft::datasets::formats
