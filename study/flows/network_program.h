// A tuned network as one program: its kernels compiled, its constants prepared, its buffers placed in one memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/monitor.h"
#include "codegen/machine/sequence.h"
#include "study/flows/network.h"

namespace graft::study {

struct NetworkProgram {
  graph::Plan plan;
  codegen::Sequence sequence;   // calls in the order of the plan
  std::int64_t peak_bytes = 0;  // that live at once at most: no arena can be smaller
};

// `plan`: the network's (plan_of). UserError if a kernel has no answer; Failure if code cannot be made of it;
// base::Stopped when the monitor asks for it.
NetworkProgram program_of(const TunedNetwork& tuned, graph::Plan plan, const std::string& name, base::Monitor& monitor);

// The networks as one program: kernels and constants that they have in common are there once. `made` is called with
// each program, which has the constants of those before it, too, and with its place among them; it must leave it as it
// is. Errors as above.
codegen::ShapedSequences programs_of(const std::vector<TunedNetwork>& networks, const std::string& name,
                                     const std::function<void(const NetworkProgram&, std::size_t)>& made,
                                     base::Monitor& monitor);

// The same sequence with every buffer of the arena in memory of its own, as a further output, so that what each call
// reads and writes can be looked at.
struct Observed {
  codegen::Sequence sequence;
  std::vector<int> buffers;  // of the plan, by output
};
Observed observed(const NetworkProgram& program);

}  // namespace graft::study
