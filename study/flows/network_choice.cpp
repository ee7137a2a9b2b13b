#include "study/flows/network_choice.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "codegen/program/constants.h"
#include "codegen/schedule/candidate_program.h"
#include "graph/inputs.h"
#include "search/run_directory.h"
#include "study/flows/network_program.h"
#include "study/knowledge/answer.h"
#include "tasks/host_runner.h"

namespace graft::study {
namespace {

constexpr std::size_t most_programs = 3;  // of a kernel
constexpr std::size_t most_answers = 64;  // of its run, the fastest ones
constexpr double slowest = 2;             // times the time of the fastest, alone
constexpr double fewer = 0.7;             // times the bytes of the one before
constexpr int repetitions = 5;
constexpr double timeout_seconds = 120;  // of a network

// Bytes of constants that a run of the program reads.
double constant_bytes(const codegen::LoopProgram& program) {
  double bytes = 0;
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    const codegen::Buffer& buffer = program.buffers[b];
    const bool is_read = buffer.role == codegen::Role::constant ? codegen::runs_with(program, int(b))
                                                                : codegen::is_prepared(program, int(b));
    if (is_read) bytes += double(buffer.bytes());
  }
  return bytes;
}

// The answer, then programs that are slower and have fewer bytes of constants, which do not fit the cache next to the
// core.
std::vector<KnownAnswer> programs_of(const NetworkKernel& kernel, const codegen::Target& target) {
  std::vector<KnownAnswer> programs = {*kernel.answer};
  const auto answer_program = codegen::program(kernel.answer->candidate, target);
  if (kernel.run.empty() || !answer_program) return programs;
  double bytes = constant_bytes(*answer_program);
  if (bytes <= double(target.l2_bytes.value_or(0)) / 2) return programs;
  const double most = slowest * datasets::seconds_of(kernel.answer->measurement);
  for (const Answer& answer : answers_of(search::read_run(kernel.run), kernel.workload, most_answers)) {
    if (programs.size() == most_programs || answer.seconds() > most) break;
    const auto program = codegen::program(answer.candidate, target);
    if (!program || constant_bytes(*program) > fewer * bytes) continue;
    bytes = constant_bytes(*program);
    KnownAnswer other = *kernel.answer;
    other.candidate = answer.candidate;
    other.program_hash = answer.program_hash;
    other.pipeline = answer.pipeline;
    other.measurement = answer.measurement;
    programs.push_back(std::move(other));
  }
  return programs;
}

}  // namespace

void choose_in_place(const graph::Plan& plan, TunedNetwork& network, const base::Deadline& deadline,
                     base::Monitor& monitor) {
  const bool is_whole = std::all_of(network.kernels.begin(), network.kernels.end(),
                                    [](const NetworkKernel& kernel) { return kernel.has_program(); });
  if (!network.platform.device->is_this_host() || !is_whole || network.kernels.empty()) return;
  std::vector<std::vector<KnownAnswer>> programs;
  std::size_t rounds = 1;
  for (const NetworkKernel& kernel : network.kernels) {
    programs.push_back(kernel.foreign ? std::vector<KnownAnswer>() : programs_of(kernel, network.platform.target));
    rounds = std::max(rounds, programs.back().size());
  }
  tasks::MeasureSettings settings;
  settings.repetitions = repetitions;
  settings.timeout_seconds = timeout_seconds;
  tasks::HostRunner runner(settings);
  std::vector<double> best(network.kernels.size(), std::numeric_limits<double>::infinity());
  std::vector<std::size_t> chosen(network.kernels.size());
  const auto elements = graph::check_inputs(plan.inputs, 1);
  std::vector<std::string> inputs;
  for (const graph::Plan::Tensor& input : plan.inputs) inputs.push_back(elements.at(input.name).bytes(input.type));
  base::Stopwatch watch;
  for (std::size_t round = 0; round < rounds; ++round) {
    base::check_stop(monitor);
    // Another round takes as long as those before it.
    if (round > 0 && deadline.left() < watch.seconds() / double(round)) break;
    monitor.progress("within the network", std::int64_t(round), std::int64_t(rounds));
    TunedNetwork tried = network;
    for (std::size_t k = 0; k < programs.size(); ++k)
      if (!programs[k].empty()) tried.kernels[k].answer = programs[k][std::min(round, programs[k].size() - 1)];
    base::QuietMonitor quiet(monitor);
    const NetworkProgram program = program_of(tried, plan, "network", quiet);
    const tasks::SequenceRun run = runner.run(program.sequence, inputs, &quiet);
    // A network that the worker does not take keeps what its kernels were alone.
    if (run.measurement.status != datasets::Status::ok || run.call_seconds.size() != program.sequence.calls.size())
      return;
    std::vector<double> seconds(network.kernels.size());
    for (std::size_t c = 0; c < run.call_seconds.size(); ++c)
      seconds[std::size_t(plan.calls[c].kernel)] += run.call_seconds[c];
    for (std::size_t k = 0; k < seconds.size(); ++k) {
      if (round >= std::max<std::size_t>(1, programs[k].size()) || seconds[k] >= best[k]) continue;
      best[k] = seconds[k];
      chosen[k] = round;
    }
  }
  network.in_place_seconds = 0;
  for (std::size_t k = 0; k < best.size(); ++k) {
    NetworkKernel& kernel = network.kernels[k];
    if (kernel.foreign)
      kernel.foreign_seconds = best[k] / double(kernel.calls);
    else
      kernel.answer = programs[k][chosen[k]];
    *network.in_place_seconds += best[k];
  }
}

}  // namespace graft::study
