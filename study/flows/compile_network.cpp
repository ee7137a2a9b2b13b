#include "study/flows/compile_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "codegen/machine/link.h"
#include "graph/reference.h"
#include "study/flows/code_runner.h"
#include "tasks/remote.h"

namespace graft::study {
namespace {

constexpr std::chrono::minutes most_time{30};  // of a check; emulated ones of large networks take minutes
constexpr int bench_repetitions = 20;
constexpr double bench_seconds = 1e-2;  // of a repetition

using Inputs = std::map<std::string, codegen::Elements>;

std::vector<std::string> bytes_of(const codegen::Sequence& sequence, const Inputs& inputs) {
  std::vector<std::string> all;
  for (const codegen::Sequence::Tensor& input : sequence.inputs)
    all.push_back(inputs.at(input.name).bytes(input.dtype));
  return all;
}

// The outputs one after the other, as the program wrote them.
std::vector<codegen::Elements> outputs_of(const codegen::Sequence& sequence, std::string_view bytes) {
  std::vector<codegen::Elements> outputs;
  for (const codegen::Sequence::Tensor& output : sequence.outputs) {
    outputs.emplace_back(codegen::numbers_from(bytes.substr(0, std::size_t(output.bytes())), output.dtype));
    bytes.remove_prefix(std::size_t(output.bytes()));
  }
  return outputs;
}

std::vector<graph::OutputError> errors_of(const NetworkProgram& program, const Inputs& inputs,
                                          const std::vector<codegen::Elements>& got, std::uint64_t seed,
                                          base::Monitor& monitor) {
  const Network& network = program.network;
  const std::vector<codegen::Elements> expected =
      graph::reference(network.graph, inputs, network.model.string(), monitor);
  const std::vector<codegen::Elements> moved =
      graph::moved_by_rounding(network.plan, network.graph, inputs, seed, monitor);
  std::vector<graph::OutputError> errors;
  for (std::size_t o = 0; o < got.size(); ++o) {
    const codegen::Sequence::Tensor& output = program.sequence.outputs[o];
    errors.push_back(graph::compared(output.name, output.dtype, got[o], expected[o], moved[o]));
  }
  return errors;
}

tasks::ProgramRun run_on(const CodeRunner& runner, const NetworkProgram& program, const Inputs& inputs,
                         const codegen::RunSettings& settings, base::Monitor& monitor) {
  const auto executable =
      codegen::link_sequence_program(program.sequence, bytes_of(program.sequence, inputs), settings);
  if (!executable) throw base::Failure(executable.reason().text);
  tasks::ProgramRun run = tasks::run_program(*runner.where, *executable, most_time, &monitor);
  if (run.measurement.status != datasets::Status::ok)
    throw base::Failure(fmt::format("{}: {}: {}", program.network.model.string(),
                                    datasets::name_of(run.measurement.status), run.measurement.reason));
  return run;
}

void refuse_wrong(const NetworkProgram& program, const std::vector<graph::OutputError>& errors) {
  for (const graph::OutputError& error : errors) {
    if (!error.right())
      throw base::Failure(fmt::format("{}: output {} is wrong by {:g}, rounding explains {:g}",
                                      program.network.model.string(), graph::in_quotes(error.name), error.largest_error,
                                      error.bound));
  }
}

}  // namespace

CompiledNetwork compile_network(const CompileNetworkRequest& request, base::Monitor& monitor) {
  const TunedNetwork tuned = read_tuned_network(request.folder);
  NetworkProgram program = program_of(tuned, request.name, monitor);
  CompiledNetwork out;
  out.platform = tuned.platform.name;
  out.arena_bytes = program.sequence.arena_bytes;
  out.peak_bytes = program.peak_bytes;
  out.weights_bytes = std::int64_t(program.sequence.weights.size());
  out.calls = program.sequence.calls.size();
  out.kernels = program.sequence.kernels.size();
  const CodeRunner runner = runner_of(tuned.platform);
  out.check = runner.check;
  out.unchecked = runner.reason;
  const Inputs inputs = graph::check_inputs(program.network.graph, request.seed);
  std::string outputs;
  if (runner.where) {
    outputs = run_on(runner, program, inputs, {0}, monitor).outputs;
    out.errors = errors_of(program, inputs, outputs_of(program.sequence, outputs), request.seed, monitor);
    refuse_wrong(program, out.errors);
  }
  if (request.format == CompileFormat::bench) {
    if (!runner.where)
      throw base::Failure(
          fmt::format("{}: a program that checks itself must run here once, but {}", request.name, runner.reason));
    codegen::RunSettings settings{bench_repetitions, bench_seconds, 0, 0, {}};
    settings.self_checks = {{request.name, base::hash_bytes(outputs)}};
    auto executable = codegen::link_sequence_program(program.sequence, bytes_of(program.sequence, inputs), settings);
    if (!executable) throw base::Failure(executable.reason().text);
    out.files[program.sequence.name] = std::move(executable).value();
    out.executable = true;
    return out;
  }
  out.files = codegen::sequence_files(
      std::move(program.sequence),
      request.format == CompileFormat::object ? codegen::LibraryFormat::object : codegen::LibraryFormat::library,
      request.weights_in_file ? codegen::WeightsIn::file : codegen::WeightsIn::code);
  return out;
}

NetworkRun run_network(const RunNetworkRequest& request, base::Monitor& monitor) {
  const TunedNetwork tuned = read_tuned_network(request.folder);
  const NetworkProgram program = program_of(tuned, "network", monitor);
  const CodeRunner runner = runner_of(tuned.platform);
  if (!runner.where) throw base::Failure(fmt::format("{} cannot be run here: {}", tuned.model.string(), runner.reason));
  Inputs inputs = graph::check_inputs(program.network.graph, request.seed);
  for (const auto& [name, array] : request.inputs) {
    const auto at = std::find_if(program.sequence.inputs.begin(), program.sequence.inputs.end(),
                                 [&](const codegen::Sequence::Tensor& input) { return input.name == name; });
    if (at == program.sequence.inputs.end()) {
      std::vector<std::string> names;
      for (const codegen::Sequence::Tensor& input : program.sequence.inputs) names.push_back(input.name);
      throw base::UserError(
          "inputs", fmt::format("{} is not an input{}", graph::in_quotes(name), base::did_you_mean(name, names)));
    }
    if (array.shape != at->shape)
      throw base::UserError("inputs", fmt::format("{} has the shape {}, the network takes {}", graph::in_quotes(name),
                                                  graph::to_text(array.shape), graph::to_text(at->shape)));
    inputs[name] = codegen::Elements(codegen::numbers_from(codegen::as_bytes(array.values, at->dtype), at->dtype));
  }
  const tasks::ProgramRun run =
      run_on(runner, program, inputs, {int(request.repetitions), request.minimum_seconds}, monitor);
  NetworkRun out;
  out.where = runner.check;
  out.seconds = run.measurement.seconds;
  const std::vector<codegen::Elements> got = outputs_of(program.sequence, run.outputs);
  for (std::size_t o = 0; o < got.size(); ++o) {
    out.tensors.push_back(program.sequence.outputs[o]);
    out.outputs.push_back(got[o]);
  }
  if (request.check) out.errors = errors_of(program, inputs, got, request.seed, monitor);
  return out;
}

}  // namespace graft::study
