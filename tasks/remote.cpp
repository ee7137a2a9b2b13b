#include "tasks/remote.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>

#include "base/document.h"
#include "base/error.h"
#include "base/process.h"
#include "base/text.h"
#include "codegen/machine/compile.h"
#include "codegen/machine/link.h"
#include "tasks/temporary_program.h"
#include "tasks/worker/wire.h"

namespace graft::tasks {
namespace {

using datasets::Measurement;
using datasets::Status;

std::string first_line(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

// Empty when every element is within `factor` times its tolerance.
std::string difference(const codegen::Tensor& tensor, const codegen::Parameter& parameter,
                       const std::vector<double>& expected, const std::vector<double>& magnitude,
                       std::int64_t reduction_length, double factor, std::string_view bytes) {
  const std::vector<double> numbers =
      unpacked(parameter.layout, parameter.shape, codegen::numbers_from(bytes, tensor.dtype));
  for (std::size_t e = 0; e < expected.size(); ++e) {
    const double got = numbers[e];
    const double allowed = factor * codegen::tolerance(tensor.dtype, reduction_length, magnitude[e]);
    if (!wire::within(got, expected[e], allowed)) {
      return fmt::format("{}: element {} is {:.9g} instead of {:.9g} (allowed error {:.3g})", tensor.name, e, got,
                         expected[e], allowed);
    }
  }
  return {};
}

// What the executable wrote: the JSON line, then the outputs' bytes.
void read_answer(const std::string& out, const Expected& expected, const codegen::Signature& signature,
                 Measurement& measurement) {
  const std::size_t line = out.find('\n');
  if (line == std::string::npos) {
    measurement.status = Status::crashed;
    measurement.reason = "no answer on its standard output";
    return;
  }
  std::string_view rest = std::string_view(out).substr(line + 1);
  const codegen::Reference& reference = expected.reference;
  std::vector<double> seconds;
  try {
    const base::Document answer = base::parse_json(std::string_view(out).substr(0, line), "answer");
    for (const base::Document& time : answer.at("seconds").as_list()) seconds.push_back(time.as_number());
    const base::Document::List& outputs = answer.at("outputs").as_list();
    std::size_t next = 0, parameter = 0;
    for (std::size_t t = 0; t < expected.computation.tensors.size(); ++t) {
      const codegen::Tensor& tensor = expected.computation.tensors[t];
      if (tensor.role != codegen::Role::temporary) ++parameter;
      if (tensor.role != codegen::Role::output) continue;
      const std::size_t bytes = std::size_t(tensor.bytes());
      if (next >= outputs.size() || outputs[next].at("bytes").as_integer() != tensor.bytes() || rest.size() < bytes) {
        measurement.status = Status::crashed;
        measurement.reason = fmt::format("the answer lacks output '{}'", tensor.name);
        return;
      }
      measurement.reason =
          difference(tensor, signature.parameters[parameter - 1], reference.tensors[t], reference.magnitude[t],
                     reference.reduction_length[t], signature.amplification, rest.substr(0, bytes));
      if (!measurement.reason.empty()) {
        measurement.status = Status::wrong_result;
        return;
      }
      rest.remove_prefix(bytes);
      ++next;
    }
  } catch (const base::UserError& error) {  // a line that is none of ours, as a shell on the way would write
    measurement.status = Status::crashed;
    measurement.reason = error.what();
    return;
  }
  measurement.status = Status::ok;
  measurement.seconds = std::move(seconds);
}

Measurement outcome(Status status, std::string reason) {
  return without_times(status, std::move(reason), "wall");
}

}  // namespace

Measurement run_under(const std::vector<std::string>& prefix, const codegen::LoopProgram& program,
                      const codegen::Target& target, const Expected& expected, int repetitions,
                      std::chrono::milliseconds deadline) {
  const auto object = codegen::compile(program, target);
  if (!object) return outcome(Status::does_not_compile, object.reason().text);
  const auto executable =
      codegen::link_executable(*object, target, expected.computation, expected.reference, repetitions);
  if (!executable) return outcome(Status::unsupported, executable.reason().text);

  std::int64_t output_bytes = 0;
  for (const codegen::Tensor& tensor : expected.computation.tensors) {
    if (tensor.role == codegen::Role::output) output_bytes += tensor.bytes();
  }
  const TemporaryProgram file(*executable);
  std::vector<std::string> command = prefix;
  command.push_back(file.path());
  constexpr std::int64_t line_bytes = 1 << 20;
  const base::Finished finished = base::run_process(command, deadline, output_bytes + line_bytes);

  if (finished.timed_out) {
    return outcome(Status::timed_out, fmt::format("no end within {:g} s", double(deadline.count()) * 1e-3));
  }
  if (finished.signal != 0) {
    return outcome(Status::crashed,
                   fmt::format("ended by signal {} ({})", finished.signal, ::strsignal(finished.signal)));
  }
  if (finished.exit_code != 0) {
    return outcome(Status::crashed,
                   fmt::format("ended with exit code {}: {}", finished.exit_code, first_line(finished.err)));
  }
  Measurement measurement = outcome(Status::ok, "");
  read_answer(finished.out, expected, object->signature, measurement);
  if (measurement.status != Status::crashed) {
    const bool emulated =
        std::filesystem::path(prefix.empty() ? "" : prefix[0]).filename().string().starts_with("qemu");
    measurement.check = emulated ? "qemu" : "remote";
  }
  return measurement;
}

const Expected& LatestExpected::of(const codegen::Workload& workload) {
  if (text_ != workload.text) {
    expected_.computation = codegen::computation(workload);
    expected_.reference = codegen::reference(expected_.computation, seed_);
    text_ = workload.text;
  }
  return expected_;
}

namespace {

class RemoteMeasurer : public Measurer {
 public:
  RemoteMeasurer(const Platform& platform, const MeasureSettings& settings)
      : target_(platform.target),
        prefix_(std::get<Remote>(platform.how).prefix),
        settings_(settings),
        expected_(settings.input_seed) {
    if (settings.repetitions < 1) {
      throw base::UserError("repetitions", fmt::format("{} is less than 1", settings.repetitions));
    }
    if (!(settings.timeout_seconds > 0)) {
      throw base::UserError("timeout_seconds", fmt::format("{:g} is not positive", settings.timeout_seconds));
    }
  }

  void measure(std::span<const codegen::Candidate> candidates, const std::function<void(const Measured&)>& on_trial,
               base::Monitor& monitor) override {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (monitor.stop_requested()) return;
      const auto program = codegen::program(candidates[i], target_);
      Measured result{std::int64_t(i), 0, {}};
      if (!program) {
        result.measurement = outcome(Status::does_not_lower, program.reason().text);
      } else {
        result.program_hash = codegen::hash(*program);
        result.measurement = measure_one(candidates[i].workload, *program, result.program_hash);
      }
      on_trial(result);
    }
  }

 private:
  const Measurement& measure_one(const codegen::Workload& workload, const codegen::LoopProgram& program,
                                 std::uint64_t program_hash) {
    const std::pair<std::string, std::uint64_t> key{workload.text, program_hash};
    const auto found = measured_.find(key);
    if (found != measured_.end()) return found->second;
    return measured_.emplace(key, execute(workload, program)).first->second;
  }

  // A first execution checks and tells how many runs make a repetition of minimum_seconds; a second one times them.
  Measurement execute(const codegen::Workload& workload, const codegen::LoopProgram& program) {
    Measurement first = under(workload, program, 1);
    if (first.status != Status::ok || first.seconds.empty()) return first;
    const double one_run = std::max(first.seconds[0], 1e-9);
    double& best = best_.emplace(workload.text, one_run).first->second;
    if (settings_.abort_factor > 0 && one_run > settings_.abort_factor * best) {
      first.status = Status::slower_than_limit;
      first.reason =
          fmt::format("first run took {:.3g} s, the limit is {:.3g} s", one_run, settings_.abort_factor * best);
      return first;
    }
    constexpr double most_runs = 1000;  // of one repetition: each writes its time into the answer's line
    const double runs_wanted = std::ceil(settings_.minimum_seconds / one_run);
    const double runs_affordable = settings_.timeout_seconds / one_run / settings_.repetitions;
    const int runs = int(std::clamp(std::min(runs_wanted, runs_affordable), 1.0, most_runs));
    Measurement timed = under(workload, program, runs * settings_.repetitions);
    if (timed.status != Status::ok) return timed;
    std::vector<double> means;
    for (std::size_t at = 0; at + std::size_t(runs) <= timed.seconds.size(); at += std::size_t(runs)) {
      double sum = 0;
      for (std::size_t i = at; i < at + std::size_t(runs); ++i) sum += timed.seconds[i];
      means.push_back(sum / runs);
    }
    timed.seconds = std::move(means);
    for (const double seconds : timed.seconds) best = std::min(best, seconds);
    return timed;
  }

  Measurement under(const codegen::Workload& workload, const codegen::LoopProgram& program, int repetitions) {
    return run_under(prefix_, program, target_, expected_.of(workload), repetitions,
                     std::chrono::milliseconds(std::int64_t(settings_.timeout_seconds * 1e3)));
  }

  codegen::Target target_;
  std::vector<std::string> prefix_;
  MeasureSettings settings_;
  LatestExpected expected_;
  std::map<std::pair<std::string, std::uint64_t>, Measurement> measured_;  // each distinct program once
  std::map<std::string, double> best_;                                     // seconds, by workload
};

}  // namespace

std::unique_ptr<Measurer> make_remote_measurer(const Platform& platform, const MeasureSettings& settings) {
  return std::make_unique<RemoteMeasurer>(platform, settings);
}

}  // namespace graft::tasks
