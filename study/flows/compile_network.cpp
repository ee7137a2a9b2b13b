#include "study/flows/compile_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/statistics.h"
#include "base/text.h"
#include "codegen/machine/link.h"
#include "graph/check.h"
#include "graph/inputs.h"
#include "study/flows/network_shapes.h"
#include "tasks/host_runner.h"
#include "tasks/probe.h"
#include "tasks/remote.h"

namespace graft::study {
namespace {

constexpr std::chrono::minutes most_time{30};  // of a check; emulated ones of large networks take minutes
constexpr int bench_repetitions = 20;
constexpr double bench_seconds = 1e-2;  // of a repetition

// By name: the numbers that a reference takes, and the bytes that a program does, in which integers of 64 bits are
// exact.
struct Inputs {
  std::map<std::string, codegen::Elements> numbers;
  std::map<std::string, std::string> bytes;
};

Inputs inputs_of(const codegen::Sequence& sequence, std::map<std::string, codegen::Elements> numbers) {
  Inputs inputs{std::move(numbers), {}};
  for (const codegen::Sequence::Tensor& input : sequence.inputs)
    inputs.bytes[input.name] = inputs.numbers.at(input.name).bytes(input.dtype);
  return inputs;
}

std::string bytes_of(const base::NumpyArray& array, codegen::DType type) {
  if (type != codegen::DType::i64 || array.integers.empty()) return codegen::as_bytes(array.values, type);
  return graph::known(type, array.shape, array.integers)->bytes;
}

std::vector<std::string> bytes_of(const codegen::Sequence& sequence, const Inputs& inputs) {
  std::vector<std::string> all;
  for (const codegen::Sequence::Tensor& input : sequence.inputs) all.push_back(inputs.bytes.at(input.name));
  return all;
}

// The consecutive outputs, as the program wrote them.
std::vector<std::string> outputs_of(const codegen::Sequence& sequence, std::string_view bytes) {
  std::vector<std::string> outputs;
  for (const codegen::Sequence::Tensor& output : sequence.outputs) {
    outputs.emplace_back(bytes.substr(0, std::size_t(output.bytes())));
    bytes.remove_prefix(std::size_t(output.bytes()));
  }
  return outputs;
}

tasks::ProgramRun run_on(const tasks::CodeRunner& runner, const codegen::Sequence& sequence, const Inputs& inputs,
                         const codegen::RunSettings& settings, const std::string& place, base::Monitor& monitor) {
  const auto executable = codegen::link_sequence_program(sequence, bytes_of(sequence, inputs), settings);
  if (!executable) throw base::Failure(executable.reason().text);
  tasks::ProgramRun run = tasks::run_program(*runner.where, *executable, most_time, &monitor);
  if (run.measurement.status != datasets::Status::ok)
    throw base::Failure(
        fmt::format("{}: {}: {}", place, datasets::name_of(run.measurement.status), run.measurement.reason));
  return run;
}

// The same on the threads that its kernels may use, which the worker of this machine has.
tasks::ProgramRun run_on_threads(const codegen::Sequence& sequence, const Inputs& inputs,
                                 const RunNetworkRequest& request, const std::string& place, base::Monitor& monitor) {
  tasks::ProgramRun all;
  std::int64_t left = request.repetitions;
  do {
    tasks::MeasureSettings settings;
    settings.repetitions = int(std::min<std::int64_t>(left, tasks::most_repetitions));
    if (request.minimum_ms > 0) settings.minimum_seconds = request.minimum_ms * 1e-3;
    settings.timeout_seconds = std::chrono::duration<double>(most_time).count();
    tasks::SequenceRun run = tasks::HostRunner(settings).run(sequence, bytes_of(sequence, inputs), &monitor);
    if (run.measurement.status != datasets::Status::ok)
      throw base::Failure(
          fmt::format("{}: {}: {}", place, datasets::name_of(run.measurement.status), run.measurement.reason));
    run.measurement.seconds.insert(run.measurement.seconds.begin(), all.measurement.seconds.begin(),
                                   all.measurement.seconds.end());
    all.measurement = std::move(run.measurement);
    all.outputs = base::join(run.outputs, "");
    left -= settings.repetitions;
  } while (left > 0);
  return all;
}

// `outputs`: what the program itself wrote. They must be those of the same calls without a common arena.
NetworkCheck checked(const tasks::CodeRunner& runner, const NetworkProgram& program, const Inputs& inputs,
                     const std::string& outputs, const std::string& place, base::Monitor& monitor) {
  const graph::Plan& plan = program.plan;
  const Observed look = observed(program);
  const std::string all = run_on(runner, look.sequence, inputs, {0}, place, monitor).outputs;
  NetworkCheck check;
  if (!all.starts_with(outputs)) {
    check.of_bound = std::numeric_limits<double>::infinity();
    check.call = "the plan of memory";
    check.difference = "calls disturb each other's buffers";
  }
  std::vector<codegen::Elements> got;
  const std::vector<std::string> written = outputs_of(look.sequence, all);
  for (std::size_t o = 0; o < written.size(); ++o)
    got.emplace_back(codegen::numbers_from(written[o], look.sequence.outputs[o].dtype));
  graph::BufferElements buffers(plan);
  buffers.write_inputs(inputs.numbers);
  const std::vector<codegen::Elements> expected = graph::reference(plan, inputs.numbers, monitor);
  for (std::size_t o = 0; o < expected.size(); ++o)
    check.outputs.push_back(graph::output_error(program.sequence.outputs[o].name, got[o], expected[o]));
  for (std::size_t o = 0; o < got.size(); ++o) buffers.write(look.buffers[o], std::move(got[o]));
  for (std::size_t c = 0; c < plan.calls.size(); ++c) {
    base::check_stop(monitor);
    monitor.progress("checking calls", std::int64_t(c), std::int64_t(plan.calls.size()));
    const graph::Plan::Call& call = plan.calls[c];
    const double amplification = program.sequence.kernels[std::size_t(call.kernel)].signature.amplification;
    const graph::CallError error = graph::call_error(plan, call, buffers, amplification);
    check.elements += error.elements;
    check.unbounded += error.unbounded;
    if (error.of_bound <= check.of_bound) continue;
    check.of_bound = error.of_bound;
    check.call = call.label;
    check.difference = fmt::format("element {}: {}, expected {}", error.element, error.got, error.expected);
  }
  return check;
}

void refuse_wrong(const std::string& place, const NetworkCheck& check) {
  if (!check.right())
    throw base::Failure(fmt::format("{}: wrong results: {}: {}", place, check.call, check.difference));
}

std::string name_of(const CompileNetworkRequest& request, const TunedNetwork& tuned) {
  return request.name.empty() ? tuned.model.stem().string() : request.name;
}

codegen::LibraryFormat library_format(const CompileNetworkRequest& request) {
  return request.format == CompileFormat::object ? codegen::LibraryFormat::object : codegen::LibraryFormat::library;
}

codegen::WeightsIn weights_of(const CompileNetworkRequest& request) {
  return request.weights_in_file ? codegen::WeightsIn::file : codegen::WeightsIn::code;
}

struct CheckedProgram {
  CompiledNetwork network;  // without files
  Inputs inputs;
  std::string outputs;  // that it gave, if it could be run
};

// Failure for wrong results.
CheckedProgram check_program(const CompileNetworkRequest& request, const TunedNetwork& tuned,
                             const NetworkProgram& program, const tasks::CodeRunner& runner, base::Monitor& monitor) {
  CheckedProgram out;
  out.network.name = program.sequence.name;
  out.network.platform = tuned.platform.name;
  out.network.arena_bytes = program.sequence.arena_bytes;
  out.network.peak_bytes = program.peak_bytes;
  out.network.calls = program.sequence.calls.size();
  out.network.kernels = program.sequence.kernels.size();
  tasks::note_emulated(tuned.platform, monitor);
  out.network.check = runner.check;
  out.network.unchecked = runner.reason;
  out.inputs = inputs_of(program.sequence, graph::check_inputs(program.plan.inputs, request.seed));
  if (!runner.where) return out;
  const std::string place = tuned.model.string();
  out.outputs = run_on(runner, program.sequence, out.inputs, {0}, place, monitor).outputs;
  out.network.results = checked(runner, program, out.inputs, out.outputs, place, monitor);
  refuse_wrong(place, *out.network.results);
  return out;
}

CompiledNetwork compile_shapes(const CompileNetworkRequest& request, const std::vector<std::filesystem::path>& folders,
                               base::Monitor& monitor) {
  if (request.format == CompileFormat::bench)
    throw base::UserError(
        request.folder.string(),
        fmt::format("is for several shapes; give one of its folders, such as {}", folders.front().string()));
  std::vector<TunedNetwork> networks;
  std::vector<graph::Shapes> shapes;
  for (const std::filesystem::path& folder : folders) {
    networks.push_back(read_tuned_network(folder));
    shapes.push_back(networks.back().options.shapes);
  }
  const Extents extents = extents_of(shapes);
  const tasks::CodeRunner runner = networks.front().platform.device->runner();
  CompiledNetwork out;
  codegen::ShapedSequences all = programs_of(
      networks, name_of(request, networks.front()),
      [&](const NetworkProgram& program, std::size_t n) {
        out.shapes.push_back(check_program(request, networks[n], program, runner, monitor).network);
        out.shapes.back().shape = to_text(extents.names, extents.by_shape[n]);
        out.arena_bytes = std::max(out.arena_bytes, program.sequence.arena_bytes);
        out.peak_bytes = std::max(out.peak_bytes, program.peak_bytes);
        out.calls += program.sequence.calls.size();
      },
      monitor);
  out.name = all.name;
  out.platform = networks.front().platform.name;
  out.check = runner.check;
  out.unchecked = runner.reason;
  out.weights_bytes = std::int64_t(all.weights.size());
  all.exported = request.exported;
  all.extents = extents.names;
  std::set<std::string> kernels;
  for (std::size_t s = 0; s < all.shapes.size(); ++s) {
    all.shapes[s].extents = extents.by_shape[s];
    for (const codegen::Code& kernel : all.shapes[s].sequence.kernels) kernels.insert(kernel.symbol);
  }
  out.kernels = kernels.size();
  out.files = codegen::sequence_files(std::move(all), library_format(request), weights_of(request));
  return out;
}

// The network whose inputs have the shapes of those that are given. UserError if none has, or several.
std::filesystem::path network_for(const RunNetworkRequest& request) {
  const std::vector<std::filesystem::path> folders = networks_in(request.folder);
  std::vector<std::filesystem::path> fitting;
  std::vector<std::string> texts;
  for (const std::filesystem::path& folder : folders) {
    const std::vector<graph::Plan::Tensor> inputs =
        folders.size() == 1 ? std::vector<graph::Plan::Tensor>() : inputs_in(folder);
    const bool fits = std::all_of(inputs.begin(), inputs.end(), [&](const graph::Plan::Tensor& input) {
      const auto given = request.inputs.find(input.name);
      return given == request.inputs.end() || given->second.shape == input.shape;
    });
    if (fits) fitting.push_back(folder);
    texts.push_back(folder.string());
  }
  if (fitting.size() == 1) return fitting.front();
  throw base::UserError(
      request.folder.string(),
      fmt::format("{} of its networks {} inputs of these shapes; give one of the folders {}",
                  fitting.empty() ? "none" : "several", fitting.empty() ? "has" : "have", base::join(texts, ", ")));
}

}  // namespace

CompiledNetwork compile_network(const CompileNetworkRequest& request, base::Monitor& monitor) {
  const std::vector<std::filesystem::path> folders = networks_in(request.folder);
  if (is_shaped(request.folder)) return compile_shapes(request, folders, monitor);
  const TunedNetwork tuned = read_tuned_network(request.folder);
  NetworkProgram program = program_of(tuned, plan_of(tuned), name_of(request, tuned), monitor);
  const tasks::CodeRunner runner = tuned.platform.device->runner();
  CheckedProgram made = check_program(request, tuned, program, runner, monitor);
  CompiledNetwork& out = made.network;
  out.weights_bytes = std::int64_t(program.sequence.weights.size());
  if (request.format == CompileFormat::bench) {
    if (!runner.where)
      throw base::Failure(
          fmt::format("{}: a program that checks itself must run here once, but {}", out.name, runner.reason));
    codegen::RunSettings settings{bench_repetitions, bench_seconds, 0, 0, {}};
    settings.self_checks = {{name_of(request, tuned), base::hash_bytes(made.outputs)}};
    auto executable =
        codegen::link_sequence_program(program.sequence, bytes_of(program.sequence, made.inputs), settings);
    if (!executable) throw base::Failure(executable.reason().text);
    out.files[program.sequence.name] = std::move(executable).value();
    out.executable = true;
    return std::move(out);
  }
  program.sequence.exported = request.exported;
  out.files = codegen::sequence_files(std::move(program.sequence), library_format(request), weights_of(request));
  return std::move(out);
}

NetworkRun run_network(const RunNetworkRequest& request, base::Monitor& monitor) {
  const TunedNetwork tuned = read_tuned_network(network_for(request));
  const NetworkProgram program = program_of(tuned, plan_of(tuned), "network", monitor);
  const tasks::CodeRunner runner = tuned.platform.device->runner();
  if (!runner.where) throw base::Failure(fmt::format("{} cannot be run here: {}", tuned.model.string(), runner.reason));
  Inputs inputs = inputs_of(program.sequence, graph::check_inputs(program.plan.inputs, request.seed));
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
    inputs.bytes[name] = bytes_of(array, at->dtype);
    inputs.numbers[name] = codegen::Elements(codegen::numbers_from(inputs.bytes[name], at->dtype));
  }
  const bool on_threads = runner.check == "host" && codegen::signature(program.sequence).threads > 1 &&
                          tasks::HostRunner::takes(program.sequence);
  for (const std::string& line : graph::indices_outside(program.plan.inputs, inputs.numbers)) monitor.note(line);
  const tasks::ProgramRun run =
      on_threads ? run_on_threads(program.sequence, inputs, request, tuned.model.string(), monitor)
                 : run_on(runner, program.sequence, inputs, {int(request.repetitions), request.minimum_ms * 1e-3},
                          tuned.model.string(), monitor);
  NetworkRun out;
  out.where = runner.check;
  out.seconds = run.measurement.seconds;
  out.median_seconds = base::median(out.seconds);
  out.tensors = program.sequence.outputs;
  out.outputs = outputs_of(program.sequence, run.outputs);
  if (request.check) out.results = checked(runner, program, inputs, run.outputs, tuned.model.string(), monitor);
  return out;
}

}  // namespace graft::study
