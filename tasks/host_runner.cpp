#include "tasks/host_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cmath>
#include <list>
#include <mutex>
#include <utility>
#include <vector>

#include "base/installation.h"
#include "base/memory.h"
#include "base/one_line.h"
#include "base/process.h"
#include "base/shortened.h"
#include "codegen/expression/reference.h"
#include "codegen/machine/compile.h"
#include "codegen/machine/link.h"
#include "tasks/expected.h"
#include "tasks/memory_file.h"
#include "tasks/worker/wire.h"

namespace graft::tasks {
namespace {

using datasets::Measurement;
using datasets::Status;

// Workloads whose files are kept for the case that they come again, as long as these are not large together.
constexpr std::size_t workloads_kept = 4;
static_assert(most_repetitions == wire::most_seconds);

constexpr std::int64_t bytes_kept = std::int64_t(1) << 30;

wire::Element element_of(codegen::DType type) {
  switch (type) {
#define X(name, element)     \
  case codegen::DType::name: \
    return wire::Element::name;
    GRAFT_DTYPES(X)
#undef X
  }
  assert(false);
  return wire::Element::f32;
}

Status status_of(wire::Outcome outcome) {
  switch (outcome) {
    case wire::Outcome::ok:
      return Status::ok;
    case wire::Outcome::wrong_result:
      return Status::wrong_result;
    case wire::Outcome::timed_out:
      return Status::timed_out;
    case wire::Outcome::out_of_memory:
      return Status::out_of_memory;
    case wire::Outcome::slower_than_limit:
      return Status::slower_than_limit;
    case wire::Outcome::does_not_compile:
      return Status::does_not_compile;
    case wire::Outcome::crashed:
      break;
  }
  return Status::crashed;  // also for a number that is not an outcome: the candidate has written over it
}

// A workload as the worker takes it, its parameters stored as a kernel's signature says.
struct Prepared {
  std::string text;  // of both
  std::vector<wire::Part> parts;
  MemoryFile file;
};

std::string text_of(const codegen::Workload& workload, const codegen::Signature& signature) {
  std::string text = workload.text();
  for (const codegen::Parameter& parameter : signature.parameters)
    if (!parameter.layout.is_plain()) text += fmt::format("; {} {}", parameter.name, to_text(parameter.layout));
  return text;
}

// Consecutive places in a memory file, aligned.
class Places {
 public:
  std::uint64_t take(std::int64_t bytes) {
    const std::int64_t begin = end_;
    end_ = (begin + bytes + 63) / 64 * 64;
    return std::uint64_t(begin);
  }
  std::int64_t end() const { return end_; }

 private:
  std::int64_t end_ = 0;
};

void require_parts(std::string_view whose, std::int64_t count) {
  if (count <= wire::most_parameters) return;
  throw base::UserError(base::shortened(whose),
                        fmt::format("{} inputs and outputs are too many; at most {}", count, wire::most_parameters));
}

// A parameter with places for its data, or for what is expected of it at the elements of the sample (empty: all).
wire::Part part_of(const codegen::Tensor& tensor, std::size_t sampled, Places& places) {
  wire::Part part;
  tensor.name.copy(part.name, sizeof part.name - 1);
  part.element = element_of(tensor.dtype);
  part.written = tensor.role == codegen::Role::output;
  part.constant = tensor.role == codegen::Role::constant;
  part.elements = std::uint64_t(tensor.elements());
  part.bytes = std::uint64_t(tensor.bytes());
  if (part.written == 0) {
    part.data = places.take(tensor.bytes());
    return part;
  }
  part.compared = sampled == 0 ? part.elements : sampled;
  const auto bytes = std::int64_t(part.compared * 8);
  if (sampled > 0) part.numbers = places.take(bytes);
  part.expected = places.take(bytes);
  part.tolerance = places.take(bytes);
  return part;
}

// What is expected of a part, and how far from it is right. `magnitude`: of what was summed.
void write_expected(const codegen::Elements& values, const codegen::Elements& magnitude, codegen::DType type,
                    std::int64_t reduction_length, wire::Part& part, MemoryFile& file) {
  part.others_are_numbers = codegen::is_floating(type);
  constexpr std::size_t at_a_time = 1 << 16;
  std::vector<double> expected, allowed;
  for (std::size_t c = 0; c < part.compared; ++c) {
    expected.push_back(values.held(c));
    allowed.push_back(codegen::tolerance(type, reduction_length, magnitude.held(c)));
    if (std::isnan(expected.back())) part.others_are_numbers = 0;
    if (expected.size() < at_a_time && c + 1 < part.compared) continue;
    const std::int64_t begin = std::int64_t(8 * (c + 1 - expected.size())), bytes = std::int64_t(8 * expected.size());
    file.write(std::int64_t(part.expected) + begin, expected.data(), bytes);
    file.write(std::int64_t(part.tolerance) + begin, allowed.data(), bytes);
    expected.clear();
    allowed.clear();
  }
  if (values.is_sample())
    file.write(std::int64_t(part.numbers), values.sample().data(), std::int64_t(8 * part.compared));
}

// The reference's tensors go as they are written: no tensor is held more than twice.
Prepared prepare(const codegen::Workload& workload, const codegen::Signature& signature, codegen::Reference reference) {
  const codegen::Computation computation = workload.computation();

  std::vector<wire::Part> parts;
  Places places;
  const auto count = std::count_if(computation.tensors.begin(), computation.tensors.end(),
                                   [](const auto& tensor) { return tensor.role != codegen::Role::temporary; });
  require_parts(workload.text(), count);
  places.take(count * std::int64_t(sizeof(wire::Part)));
  std::vector<std::size_t> tensor_of;
  for (std::size_t t = 0; t < computation.tensors.size(); ++t) {
    const codegen::Tensor& tensor = computation.tensors[t];
    if (tensor.role == codegen::Role::temporary) continue;
    const bool is_output = tensor.role == codegen::Role::output;
    parts.push_back(part_of(tensor, is_output ? reference.tensors[t].sample().size() : 0, places));
    tensor_of.push_back(t);
  }

  MemoryFile file(places.end());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t t = tensor_of[i];
    const codegen::Parameter& parameter = signature.parameters[i];
    const auto as_stored = [&](codegen::Elements& elements) {
      return packed(parameter.layout, parameter.shape, std::exchange(elements, {}));
    };
    codegen::Elements values = as_stored(reference.tensors[t]);
    if (parts[i].written == 0) {
      const std::string bytes = std::move(values).bytes(computation.tensors[t].dtype);
      file.write(std::int64_t(parts[i].data), bytes.data(), std::int64_t(bytes.size()));
      continue;
    }
    write_expected(values, as_stored(reference.magnitude[t]), computation.tensors[t].dtype,
                   reference.reduction_length[t], parts[i], file);
  }
  file.write(0, parts.data(), std::int64_t(parts.size() * sizeof(wire::Part)));
  return {text_of(workload, signature), std::move(parts), std::move(file)};
}

// A sequence with its inputs: its weights are in the file, too, and places for what comes back.
struct PreparedSequence {
  Prepared prepared;
  wire::Request request;  // of the candidate: what it says of the file
};

PreparedSequence prepare(const codegen::Sequence& sequence, const codegen::Signature& signature,
                         const std::vector<std::string>& inputs) {
  if (inputs.size() != sequence.inputs.size())
    throw base::UserError(sequence.name,
                          fmt::format("{} inputs are given, it has {}", inputs.size(), sequence.inputs.size()));
  require_parts(sequence.name, std::int64_t(signature.parameters.size()));
  Places places;
  places.take(std::int64_t(signature.parameters.size() * sizeof(wire::Part)));
  std::vector<wire::Part> parts;
  for (std::size_t p = 0; p < signature.parameters.size(); ++p) {
    const codegen::Parameter& parameter = signature.parameters[p];
    wire::Part part;
    parameter.name.copy(part.name, sizeof part.name - 1);
    part.element = element_of(parameter.dtype);
    part.bytes = std::uint64_t(parameter.bytes);
    part.elements = part.bytes / std::uint64_t(codegen::bytes_of(parameter.dtype));
    part.written = parameter.role == codegen::Role::output;
    if (part.written == 0 && std::int64_t(inputs[p].size()) != parameter.bytes)
      throw base::UserError(sequence.name, fmt::format("input {} has {} bytes, give {}", base::one_line(parameter.name),
                                                       inputs[p].size(), parameter.bytes));
    (part.written != 0 ? part.result : part.data) = places.take(parameter.bytes);
    parts.push_back(part);
  }
  wire::Request request;
  request.calls = std::int32_t(sequence.calls.size());
  request.call_seconds = places.take(std::int64_t(sequence.calls.size() * sizeof(double)));
  request.constants = places.take(signature.prepared_bytes);
  MemoryFile file(places.end() + 64);  // no place is the file's end
  file.write(0, parts.data(), std::int64_t(parts.size() * sizeof(wire::Part)));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    file.write(std::int64_t(parts[i].data), inputs[i].data(), std::int64_t(inputs[i].size()));
  file.write(std::int64_t(request.constants), sequence.weights.data(), std::int64_t(sequence.weights.size()));
  return {{"network " + sequence.name, std::move(parts), std::move(file)}, request};
}

// The time that a worker may take for clearing and reading the memory of a workload, several times.
double seconds_to_touch(const Prepared& workload) {
  constexpr double bytes_per_second = 1e8;
  double bytes = 0;
  for (const wire::Part& part : workload.parts) bytes += double(part.bytes);
  return std::floor(bytes / bytes_per_second);
}

void require(bool holds, std::string_view setting, std::string_view message) {
  if (!holds) throw base::UserError(setting, message);
}

}  // namespace

base::Result<HostBinary> compile_for_host(const codegen::LoopProgram& program, const codegen::Target& target,
                                          const std::string& pipeline) {
  base::Result<codegen::Code> object = codegen::compile(program, target, codegen::pipeline_named(pipeline, target));
  if (!object) return object.reason();
  auto linked = codegen::link_shared({&*object});
  if (!linked) return linked.reason();
  return HostBinary{std::move(linked).value(), std::move(object->signature), object->symbol};
}

class HostRunner::State {
 public:
  State(const MeasureSettings& settings, MakeReference make_reference, std::vector<std::string> worker)
      : settings_(settings), make_reference_(std::move(make_reference)), other_worker_(std::move(worker)) {
    const std::lock_guard lock(all_mutex);
    all.push_back(this);
  }
  ~State() {
    const std::lock_guard lock(all_mutex);
    std::erase(all, this);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Measurement run(const codegen::Workload& workload, const HostBinary& binary, double abort_seconds,
                  base::Monitor& monitor) {
    const std::lock_guard busy(busy_);
    const Prepared& inputs = prepared(workload, binary.signature, monitor);
    assert(inputs.parts.size() == binary.signature.parameters.size());
    wire::Request request;
    request.prepared_bytes = std::uint64_t(binary.signature.prepared_bytes);
    request.abort_seconds = abort_seconds;
    request.constants_bytes = std::uint64_t(settings_.constants_bytes);
    Measurement measurement = measured(inputs, binary, request, monitor);
    if (measurement.status == Status::ok || measurement.status == Status::wrong_result) measurement.check = "host";
    return measurement;
  }

  SequenceRun run(const codegen::Sequence& sequence, const std::vector<std::string>& inputs, base::Monitor& monitor) {
    const std::lock_guard busy(busy_);
    const codegen::Signature signature = codegen::signature(sequence);
    PreparedSequence ready = prepare(sequence, signature, inputs);
    const auto linked = codegen::link_shared_sequence(sequence);
    if (!linked) return {without_times(Status::does_not_compile, linked.reason().text), {}, {}};
    SequenceRun run;
    run.measurement = measured(ready.prepared, {*linked, signature, sequence.name}, ready.request, monitor);
    lose_worker();  // the memory of a network may be large
    if (run.measurement.status != Status::ok) return run;
    for (const wire::Part& part : ready.prepared.parts) {
      if (part.written == 0) continue;
      run.outputs.emplace_back(part.bytes, '\0');
      ready.prepared.file.read(std::int64_t(part.result), run.outputs.back().data(), std::int64_t(part.bytes));
    }
    run.call_seconds.resize(sequence.calls.size());
    ready.prepared.file.read(std::int64_t(ready.request.call_seconds), run.call_seconds.data(),
                             std::int64_t(run.call_seconds.size() * sizeof(double)));
    if (!run.call_seconds.empty() && run.call_seconds.front() == 0) run.call_seconds.clear();
    return run;
  }

 private:
  // `request`: what is particular to this kind of candidate.
  Measurement measured(const Prepared& inputs, const HostBinary& binary, wire::Request request,
                       base::Monitor& monitor) {
    Measurement measurement =
        without_times(Status::ok, "", binary.signature.threads > 1 || !other_worker_.empty() ? "wall" : "thread_cpu");
    const MemoryFile file(binary.bytes);
    request.kind = wire::Kind::candidate;
    if (binary.symbol.size() >= sizeof request.symbol)
      throw base::UserError(base::shortened(binary.symbol),
                            fmt::format("longer than {} letters; choose another name", sizeof request.symbol - 1));
    binary.symbol.copy(request.symbol, sizeof request.symbol - 1);
    request.scratch_bytes = std::uint64_t(binary.signature.most_scratch_bytes());
    request.repetitions = settings_.repetitions;
    request.minimum_seconds = settings_.minimum_seconds;
    request.timeout_seconds = settings_.timeout_seconds;
    request.tolerance_factor = binary.signature.amplification;
    request.threads = std::int32_t(binary.signature.threads);

    // The worker ends the candidate by CPU time. When it is not heard of for much longer, it is stuck itself.
    double patience = 2 * settings_.timeout_seconds + seconds_to_touch(inputs) + 5;
    if (!other_worker_.empty()) patience += wire::build_seconds;
    wire::Answer answer;
    auto received = base::Partner::Received::gone;
    // A worker that ends may have been killed by others; one that ends twice was ended by the candidate.
    for (int tries = 0; tries < 2 && received == base::Partner::Received::gone; ++tries) {
      if (!hand_over(inputs, measurement, monitor)) return measurement;
      received = ask(request, file, patience, answer, monitor);
      if (received != base::Partner::Received::all) lose_worker();
    }
    if (received == base::Partner::Received::gone) {
      measurement.status = Status::crashed;
      measurement.reason = "the worker process ended";
      return measurement;
    }
    if (received == base::Partner::Received::timed_out) {
      measurement.status = Status::timed_out;
      measurement.reason = fmt::format("no answer within {:g} s", patience);
      return measurement;
    }
    answer.message[sizeof answer.message - 1] = 0;
    measurement.status = status_of(answer.outcome);
    measurement.reason = base::one_line(answer.message);
    const int count = std::clamp(answer.count, 0, wire::most_seconds);
    measurement.seconds.assign(answer.seconds, answer.seconds + count);
    if (reference_start_ > 0 && answer.reference_seconds > 0) {
      measurement.reference_ratio = reference_start_ / answer.reference_seconds;
    }
    // It may have written anywhere before it was caught, or ends now.
    const bool ends = measurement.status == Status::timed_out && !other_worker_.empty();
    if (measurement.status == Status::crashed || ends) lose_worker();
    return measurement;
  }

  const Prepared& prepared(const codegen::Workload& workload, const codegen::Signature& signature,
                           base::Monitor& monitor) {
    const std::string text = text_of(workload, signature);
    const auto found =
        std::find_if(prepared_.begin(), prepared_.end(), [&](const auto& known) { return known.text == text; });
    if (found != prepared_.end()) {
      prepared_.splice(prepared_.begin(), prepared_, found);
    } else {
      make_room(memory_need(workload.computation(), Place::here).here);
      prepared_.push_front(prepare(workload, signature, reference_of(workload, monitor)));
    }
    return prepared_.front();
  }

  // For a new workload of that many bytes.
  void make_room(std::int64_t bytes) {
    std::int64_t kept = 0;
    for (const Prepared& workload : prepared_) kept += workload.file.bytes();
    while (!prepared_.empty() &&
           (prepared_.size() >= workloads_kept || kept > bytes_kept || base::capped_sum(kept, bytes) > bytes_kept)) {
      kept -= prepared_.back().file.bytes();
      prepared_.pop_back();
    }
    if (bytes > bytes_kept) lose_worker();  // it has another workload
    if (bytes <= base::available_memory()) return;
    // Runners that have nothing to do now, such as that of a search whose best program is built again.
    const std::lock_guard lock(all_mutex);
    for (State* const other : all) {
      if (other == this) continue;
      const std::unique_lock idle(other->busy_, std::try_to_lock);
      if (!idle) continue;
      other->prepared_.clear();
      other->lose_worker();
    }
  }

  std::int64_t worker_limit(const Prepared& workload) const {
    if (settings_.memory_limit_bytes) return *settings_.memory_limit_bytes;
    // The file has its memory already. What the program itself needs is little.
    constexpr std::int64_t least = std::int64_t(1) << 29;
    return std::max(least, base::capped_sum(base::available_memory(), workload.file.bytes()));
  }

  codegen::Reference reference_of(const codegen::Workload& workload, base::Monitor& monitor) {
    if (make_reference_) return make_reference_(workload, settings_.inputs.seed);
    require_memory(workload, Place::here, settings_);
    // Other layouts of a workload need it again, which need not be said again.
    base::QuietMonitor quiet(monitor);
    base::Monitor& told = last_told_ == workload.text() ? static_cast<base::Monitor&>(quiet) : monitor;
    codegen::Reference made =
        expected_results(workload, workload.computation(), settings_.inputs, settings_.threads, told);
    last_told_ = workload.text();
    return made;
  }

  base::Partner::Received ask(const wire::Request& request, const MemoryFile& file, double seconds,
                              wire::Answer& answer, base::Monitor& monitor) {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::milliseconds between_questions(100);
    if (!worker_->send(&request, sizeof request, {file.descriptor()})) return base::Partner::Received::gone;
    const auto end = Clock::now() + std::chrono::milliseconds(std::int64_t(seconds * 1e3));
    while (!worker_->wait(between_questions)) {
      if (monitor.stop_requested()) {
        lose_worker();
        throw base::Stopped();
      }
      if (Clock::now() >= end) return base::Partner::Received::timed_out;
    }
    return worker_->receive(&answer, sizeof answer, std::chrono::seconds(5));  // it comes in one piece
  }

  // Provides a living worker that has the workload; false if it has no memory for it, which the measurement then
  // reports.
  bool hand_over(const Prepared& workload, Measurement& measurement, base::Monitor& monitor) {
    // A worker may have been killed while it waited; one that ends again at once cannot work at all.
    for (int tries = 0; tries < 2; ++tries) {
      if (worker_ != nullptr && worker_->alive() && in_force_ == workload.text) return true;
      if (worker_ == nullptr || !worker_->alive()) {
        lose_worker();
        if (other_worker_.empty())
          worker_ = std::make_unique<base::Partner>(
              std::vector<std::string>{base::own_program("graft-worker").string()}, limit_ = worker_limit(workload));
        else
          worker_ = std::make_unique<base::Partner>(other_worker_, 0);
      }
      wire::Request request;
      request.kind = wire::Kind::workload;
      request.parts = std::uint32_t(workload.parts.size());
      request.file_bytes = std::uint64_t(workload.file.bytes());
      request.at_begin = settings_.guard_in_front;
      wire::Answer answer;
      const double patience = 60 + seconds_to_touch(workload);  // it copies the inputs, no more
      in_force_.clear();
      if (ask(request, workload.file, patience, answer, monitor) == base::Partner::Received::all) {
        if (reference_start_ == 0) reference_start_ = answer.reference_seconds;
        if (answer.outcome == wire::Outcome::ok) {
          in_force_ = workload.text;
          return true;
        }
        measurement.status = status_of(answer.outcome);
        measurement.reason = base::one_line(answer.message);
        return false;
      }
      lose_worker();
    }
    throw base::Failure(
        fmt::format("graft-worker ends as soon as it starts; is a memory limit of {} bytes enough for '{}'?", limit_,
                    base::shortened(workload.text)));
  }

  void lose_worker() {
    worker_.reset();
    in_force_.clear();
  }

  // All runners of this process.
  static inline std::mutex all_mutex;
  static inline std::vector<State*> all;

  std::mutex busy_;  // held during a run
  MeasureSettings settings_;
  MakeReference make_reference_;
  std::vector<std::string> other_worker_;  // empty: graft-worker
  std::unique_ptr<base::Partner> worker_;
  std::string in_force_;          // the workload that the worker has
  std::list<Prepared> prepared_;  // latest first
  std::string last_told_;         // the workload of the last reference
  std::int64_t limit_ = 0;        // of the worker's address space
  double reference_start_ = 0;    // what the reference kernel took when this run began
};

bool HostRunner::takes(const codegen::Sequence& sequence) {
  return sequence.inputs.size() + sequence.outputs.size() <= wire::most_parameters;
}

HostRunner::HostRunner(const MeasureSettings& settings, MakeReference make_reference, std::vector<std::string> worker)
    : state_(std::make_unique<State>(settings, std::move(make_reference), std::move(worker))) {
  require(settings.repetitions >= 0 && settings.repetitions <= wire::most_seconds, "repetitions",
          fmt::format("{} is not within 0 and {}", settings.repetitions, wire::most_seconds));
  require(settings.minimum_seconds >= 0, "minimum_seconds", fmt::format("{:g} is negative", settings.minimum_seconds));
  require(settings.timeout_seconds > 0, "timeout_seconds",
          fmt::format("{:g} is not positive", settings.timeout_seconds));
  const std::int64_t limit = settings.memory_limit_bytes.value_or(1);
  require(limit > 0, "memory_limit_bytes", fmt::format("{} is not positive", limit));
}

HostRunner::~HostRunner() = default;

Measurement HostRunner::run(const codegen::Workload& workload, const HostBinary& binary, double abort_seconds,
                            base::Monitor* monitor) {
  base::Monitor nobody;
  return state_->run(workload, binary, abort_seconds, monitor == nullptr ? nobody : *monitor);
}

SequenceRun HostRunner::run(const codegen::Sequence& sequence, const std::vector<std::string>& inputs,
                            base::Monitor* monitor) {
  base::Monitor nobody;
  return state_->run(sequence, inputs, monitor == nullptr ? nobody : *monitor);
}

Measurement HostRunner::run(const codegen::Workload& workload, const codegen::LoopProgram& program,
                            const codegen::Target& target) {
  const auto binary = compile_for_host(program, target);
  if (binary) return run(workload, *binary);
  return without_times(Status::does_not_compile, binary.reason().text);
}

}  // namespace graft::tasks
