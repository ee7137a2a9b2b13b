#include "graph/rounding.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/random.h"
#include "codegen/expression/reference.h"
#include "graph/operators.h"

namespace graft::graph {
std::map<std::string, codegen::Elements> check_inputs(const Graph& graph, std::uint64_t seed) {
  base::Stream random(seed, "check inputs");
  std::map<std::string, codegen::Elements> inputs;
  for (const int input : graph.inputs) {
    const Value& value = graph.values[std::size_t(input)];
    std::vector<double> numbers(std::size_t(elements_of(*value.shape)));
    for (double& number : numbers)
      number = codegen::is_floating(*value.type) ? double(float(2 * random.uniform() - 1)) : double(random.below(2));
    inputs[value.name] = std::move(numbers);
  }
  return inputs;
}

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

std::vector<codegen::Elements> moved_by_rounding(const Plan& plan, const Graph& graph,
                                                 const std::map<std::string, codegen::Elements>& inputs,
                                                 std::uint64_t seed, base::Monitor& monitor) {
  base::Stream random(seed, "rounding");
  BufferElements buffers(plan);
  std::vector<codegen::Elements> outputs(graph.outputs.size());
  std::vector<std::size_t> last(plan.buffers.size());
  for (std::size_t c = 0; c < plan.calls.size(); ++c)
    for (const int operand : plan.calls[c].operands) last[whole_of(plan, operand)] = c;
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    const Plan::Buffer& buffer = plan.buffers[b];
    if (buffer.where != Plan::Buffer::Where::input || buffer.part_of >= 0) continue;
    buffers.write(int(b), inputs.at(graph.values[std::size_t(graph.inputs[std::size_t(buffer.number)])].name));
  }
  for (std::size_t c = 0; c < plan.calls.size(); ++c) {
    base::check_stop(monitor);
    monitor.progress("bounds of rounding", std::int64_t(c), std::int64_t(plan.calls.size()));
    const Plan::Call& call = plan.calls[c];
    const codegen::Computation& computation = plan.kernels[std::size_t(call.kernel)].workload.computation();
    std::vector<codegen::Elements> operands(computation.tensors.size());
    for (std::size_t t = 0; t < operands.size(); ++t) {
      const int number = operand_of(computation.tensors[t]);
      if (number < 0) continue;
      operands[t] = buffers.read(call.operands.at(std::size_t(number)));
    }
    codegen::Reference all = codegen::reference(computation, std::move(operands));
    const std::size_t output = std::size_t(computation.tensor_named("y"));
    const codegen::DType type = computation.tensors[output].dtype;
    std::vector<double> moved(all.tensors[output].size());
    for (std::size_t e = 0; e < moved.size(); ++e) {
      moved[e] = all.tensors[output][e];
      if (!codegen::is_floating(type)) continue;
      const double most = codegen::tolerance(type, all.reduction_length[output], all.magnitude[output][e]);
      if (std::isfinite(most)) moved[e] += most * (2 * random.uniform() - 1);
    }
    buffers.write(call.result, std::move(moved));
    for (const int operand : call.operands) {
      const std::size_t whole = whole_of(plan, operand);
      if (last[whole] == c && plan.buffers[whole].where == Plan::Buffer::Where::arena) buffers.drop(whole);
    }
  }
  for (std::size_t b = 0; b < plan.buffers.size(); ++b)
    if (plan.buffers[b].where == Plan::Buffer::Where::output && plan.buffers[b].part_of < 0)
      outputs[std::size_t(plan.buffers[b].number)] = buffers.read(int(b));
  return outputs;
}

OutputError compared(const std::string& name, codegen::DType type, const codegen::Elements& got,
                     const codegen::Elements& expected, const codegen::Elements& moved) {
  OutputError error{name, 0, 0, 0};
  for (std::size_t e = 0; e < expected.size(); ++e) {
    const double wanted = expected[e];
    if (std::isfinite(wanted)) error.largest = std::max(error.largest, std::abs(wanted));
    if (got[e] == wanted || (std::isnan(got[e]) && std::isnan(wanted))) continue;
    const double difference = std::abs(got[e] - wanted);
    error.largest_error =
        std::max(error.largest_error, std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference);
  }
  for (std::size_t e = 0; e < expected.size(); ++e) {
    const double rounding = std::abs(moved[e] - expected[e]);
    if (std::isfinite(rounding)) error.bound = std::max(error.bound, rounding);
  }
  if (codegen::is_floating(type)) error.bound = std::max(error.bound, codegen::tolerance(type, 1, error.largest));
  return error;
}

}  // namespace graft::graph
