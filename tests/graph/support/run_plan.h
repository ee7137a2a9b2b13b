// A plan, call by call, in double precision: what its kernels compute if each does what its workload says.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "codegen/expression/reference.h"
#include "graph/operators.h"
#include "graph/plan.h"
#include "graph/reference.h"
#include "graph/check.h"

namespace graft::graph {

inline std::vector<codegen::Elements> run(const Plan& plan, const Graph& graph,
                                          const std::map<std::string, codegen::Elements>& inputs) {
  BufferElements buffers(plan);
  std::vector<codegen::Elements> outputs(graph.outputs.size());
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    const Plan::Buffer& buffer = plan.buffers[b];
    if (buffer.where == Plan::Buffer::Where::input && buffer.part_of < 0)
      buffers.write(int(b), inputs.at(graph.values[std::size_t(graph.inputs[std::size_t(buffer.number)])].name));
  }
  for (const Plan::Call& call : plan.calls) {
    const codegen::Computation& computation = plan.kernels[std::size_t(call.kernel)].workload.computation();
    buffers.write(call.result, evaluated(computation, [&](int operand) {
                    return buffers.read(call.operands.at(std::size_t(operand)));
                  }));
  }
  for (std::size_t b = 0; b < plan.buffers.size(); ++b)
    if (plan.buffers[b].where == Plan::Buffer::Where::output && plan.buffers[b].part_of < 0)
      outputs[std::size_t(plan.buffers[b].number)] = buffers.read(int(b));
  return outputs;
}

}  // namespace graft::graph
