#include "graph/check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/within.h"
#include "codegen/expression/reference.h"
#include "graph/operators.h"
#include "graph/reference.h"

namespace graft::graph {

codegen::Elements BufferElements::read(int buffer) const {
  const Plan::Buffer& own = plan_.buffers[std::size_t(buffer)];
  if (own.known) return own.known->elements();
  if (own.part_of < 0) return whole_[std::size_t(buffer)];
  const codegen::Elements& whole = whole_[std::size_t(own.part_of)];
  const std::size_t first = std::size_t(own.offset / codegen::bytes_of(own.type));
  std::vector<double> part;
  for (std::size_t e = 0; e < std::size_t(elements_of(own.shape)); ++e) part.push_back(whole[first + e]);
  return part;
}

void BufferElements::write(int buffer, codegen::Elements elements) {
  const Plan::Buffer& own = plan_.buffers[std::size_t(buffer)];
  if (own.part_of < 0) {
    whole_[std::size_t(buffer)] = std::move(elements);
    return;
  }
  const Plan::Buffer& other = plan_.buffers[std::size_t(own.part_of)];
  codegen::Elements& whole = whole_[std::size_t(own.part_of)];
  std::vector<double> all(std::size_t(elements_of(other.shape)));
  for (std::size_t e = 0; e < whole.size(); ++e) all[e] = whole[e];
  const std::size_t first = std::size_t(own.offset / codegen::bytes_of(own.type));
  for (std::size_t e = 0; e < elements.size(); ++e) all[first + e] = elements[e];
  whole = std::move(all);
}

void BufferElements::write_inputs(const std::map<std::string, codegen::Elements>& inputs) {
  for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
    const Plan::Buffer& buffer = plan_.buffers[b];
    if (buffer.where == Plan::Buffer::Where::input && buffer.part_of < 0)
      write(int(b), inputs.at(plan_.inputs[std::size_t(buffer.number)].name));
  }
}

std::vector<codegen::Elements> reference(const Plan& plan, const std::map<std::string, codegen::Elements>& inputs,
                                         base::Monitor& monitor) {
  BufferElements buffers(plan);
  buffers.write_inputs(inputs);
  const ArenaUse use = arena_use(plan, std::vector<std::int64_t>(plan.kernels.size()));
  for (std::size_t c = 0; c < plan.calls.size(); ++c) {
    base::check_stop(monitor);
    monitor.progress("reference", std::int64_t(c), std::int64_t(plan.calls.size()));
    const Plan::Call& call = plan.calls[c];
    const Plan::Kernel& kernel = plan.kernels[std::size_t(call.kernel)];
    const auto read = [&](int number) { return buffers.read(call.operands.at(std::size_t(number))); };
    buffers.write(call.result, evaluated(kernel.workload.computation(), read, kernel.foreign.get()));
    for (const int operand : call.operands)
      if (const int own = use.lifetime_of_buffer[whole_of(plan, operand)];
          own >= 0 && use.lifetimes[std::size_t(own)].last == int(c))
        buffers.drop(whole_of(plan, operand));
  }
  std::vector<codegen::Elements> outputs(plan.outputs.size());
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    const Plan::Buffer& buffer = plan.buffers[b];
    if (buffer.where == Plan::Buffer::Where::output && buffer.part_of < 0)
      outputs[std::size_t(buffer.number)] = buffers.read(int(b));
  }
  return outputs;
}

namespace {

// A foreign kernel gives the same numbers everywhere: its code says every operation.
CallError foreign_error(const codegen::Elements& expected, const codegen::Elements& got) {
  CallError worst;
  worst.elements = std::int64_t(expected.size());
  for (std::size_t e = 0; e < expected.size(); ++e) {
    if (got[e] == expected[e] || (std::isnan(got[e]) && std::isnan(expected[e]))) continue;
    worst.of_bound = std::numeric_limits<double>::infinity();
    worst.element = std::int64_t(e);
    worst.got = got[e], worst.expected = expected[e];
    break;
  }
  return worst;
}

}  // namespace

CallError call_error(const Plan& plan, const Plan::Call& call, const BufferElements& buffers, double amplification) {
  const Plan::Kernel& kernel = plan.kernels[std::size_t(call.kernel)];
  const codegen::Computation& computation = kernel.workload.computation();
  std::vector<codegen::Elements> operands(computation.tensors.size());
  for (std::size_t t = 0; t < operands.size(); ++t)
    if (const int number = operand_of(computation.tensors[t]); number >= 0)
      operands[t] = buffers.read(call.operands.at(std::size_t(number)));
  if (kernel.foreign)
    return foreign_error(codegen::evaluated(*kernel.foreign, computation, operands), buffers.read(call.result));
  const codegen::Reference all = codegen::reference(computation, std::move(operands));
  const std::size_t output = std::size_t(computation.tensor_named("y"));
  const codegen::DType type = computation.tensors[output].dtype;
  const codegen::Elements &expected = all.tensors[output], got = buffers.read(call.result);
  CallError worst;
  worst.elements = std::int64_t(expected.size());
  for (std::size_t e = 0; e < expected.size(); ++e) {
    const double bound =
        amplification * codegen::tolerance(type, all.reduction_length[output], all.magnitude[output][e]);
    if (std::isinf(bound)) ++worst.unbounded;
    if (base::within(got[e], expected[e], 0, codegen::largest(type))) continue;
    const double difference = std::abs(got[e] - expected[e]);
    const double ratio =
        std::isnan(difference) || bound == 0 ? std::numeric_limits<double>::infinity() : difference / bound;
    if (ratio <= worst.of_bound) continue;
    worst.of_bound = ratio;
    worst.element = std::int64_t(e);
    worst.got = got[e], worst.expected = expected[e];
  }
  return worst;
}

OutputError output_error(const std::string& name, const codegen::Elements& got, const codegen::Elements& expected) {
  OutputError error{name, 0, 0};
  for (std::size_t e = 0; e < expected.size(); ++e) {
    const double wanted = expected[e];
    if (std::isfinite(wanted)) error.largest = std::max(error.largest, std::abs(wanted));
    if (got[e] == wanted || (std::isnan(got[e]) && std::isnan(wanted))) continue;
    const double difference = std::abs(got[e] - wanted);
    error.largest_error =
        std::max(error.largest_error, std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference);
  }
  return error;
}

}  // namespace graft::graph
