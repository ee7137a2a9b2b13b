#include "tasks/native.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/one_line.h"
#include "base/parallel.h"
#include "base/process.h"
#include "base/shortened.h"
#include "codegen/expression/reference.h"
#include "codegen/machine/link.h"
#include "tasks/expected.h"
#include "tasks/memory_file.h"
#include "tasks/worker/wire.h"

namespace graft::tasks {
namespace {

using datasets::Measurement;
using datasets::Status;

constexpr std::size_t workloads_kept = 4;

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
    case wire::Outcome::crashed:
      break;
  }
  return Status::crashed;  // also for a number that is no outcome: the candidate has written over it
}

// A workload as the worker takes it, its parameters stored as a kernel's signature says.
struct Prepared {
  std::string text;  // of both
  std::vector<wire::Part> parts;
  MemoryFile file;
};

std::string text_of(const codegen::Workload& workload, const codegen::Signature& signature) {
  std::string text = workload.text;
  for (const codegen::Parameter& parameter : signature.parameters)
    if (!parameter.layout.is_plain()) text += fmt::format("; {} {}", parameter.name, to_text(parameter.layout));
  return text;
}

Prepared prepare(const codegen::Workload& workload, const codegen::Signature& signature,
                 const codegen::Reference& reference) {
  const codegen::Computation computation = codegen::computation(workload);

  std::vector<wire::Part> parts;
  std::int64_t end = 0;
  const auto place = [&end](std::int64_t bytes) {
    const std::int64_t begin = end;
    end = (begin + bytes + 63) / 64 * 64;
    return std::uint64_t(begin);
  };
  const auto count = std::count_if(computation.tensors.begin(), computation.tensors.end(),
                                   [](const auto& tensor) { return tensor.role != codegen::Role::temporary; });
  if (count > wire::most_parameters) {
    throw base::UserError(base::shortened(workload.text),
                          fmt::format("{} inputs and outputs are too many; at most {}", count, wire::most_parameters));
  }
  place(count * std::int64_t(sizeof(wire::Part)));
  std::vector<std::size_t> tensor_of;
  for (std::size_t t = 0; t < computation.tensors.size(); ++t) {
    const codegen::Tensor& tensor = computation.tensors[t];
    if (tensor.role == codegen::Role::temporary) continue;
    wire::Part part;
    tensor.name.copy(part.name, sizeof part.name - 1);
    part.element = element_of(tensor.dtype);
    part.written = tensor.role == codegen::Role::output;
    part.elements = std::uint64_t(tensor.elements());
    part.bytes = std::uint64_t(tensor.bytes());
    if (part.written != 0) {
      part.expected = place(tensor.elements() * 8);
      part.tolerance = place(tensor.elements() * 8);
    } else {
      part.data = place(tensor.bytes());
    }
    parts.push_back(part);
    tensor_of.push_back(t);
  }

  MemoryFile file(end);
  file.write(0, parts.data(), std::int64_t(parts.size() * sizeof(wire::Part)));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t t = tensor_of[i];
    const codegen::DType type = computation.tensors[t].dtype;
    const codegen::Parameter& parameter = signature.parameters[i];
    const std::vector<double> values = packed(parameter.layout, parameter.shape, reference.tensors[t]);
    if (parts[i].written == 0) {
      const std::string bytes = codegen::as_bytes(values, type);
      file.write(std::int64_t(parts[i].data), bytes.data(), std::int64_t(bytes.size()));
      continue;
    }
    std::vector<double> allowed(values.size());
    for (std::size_t e = 0; e < values.size(); ++e) {
      allowed[e] = codegen::tolerance(type, reference.reduction_length[t], reference.magnitude[t][e]);
    }
    allowed = packed(parameter.layout, parameter.shape, std::move(allowed));
    file.write(std::int64_t(parts[i].expected), values.data(), std::int64_t(values.size() * 8));
    file.write(std::int64_t(parts[i].tolerance), allowed.data(), std::int64_t(allowed.size() * 8));
  }
  return {text_of(workload, signature), std::move(parts), std::move(file)};
}

void require(bool holds, std::string_view setting, std::string_view message) {
  if (!holds) throw base::UserError(setting, message);
}

base::Result<HostBinary> linked_for_host(base::Result<codegen::Object> object) {
  if (!object) return object.reason();
  auto linked = codegen::link_shared({&*object});
  if (!linked) return linked.reason();
  return HostBinary{std::move(linked).value(), std::move(object->signature), object->symbol};
}

}  // namespace

base::Result<HostBinary> compile_for_host(const codegen::LoopProgram& program, const codegen::Target& target) {
  return linked_for_host(codegen::compile(program, target));
}

base::Result<HostBinary> compile_for_host(const codegen::LoopProgram& program, const codegen::Target& target,
                                          const codegen::Pipeline& pipeline) {
  return linked_for_host(codegen::compile(program, target, pipeline));
}

class HostRunner::State {
 public:
  State(const MeasureSettings& settings, MakeReference make_reference)
      : settings_(settings), make_reference_(std::move(make_reference)) {}

  Measurement run(const codegen::Workload& workload, const HostBinary& binary, double abort_seconds,
                  base::Monitor& monitor) {
    Measurement measurement = without_times(Status::ok, "", binary.signature.threads > 1 ? "wall" : "thread_cpu");
    const Prepared& inputs = prepared(workload, binary.signature, monitor);
    assert(inputs.parts.size() == binary.signature.parameters.size());
    const MemoryFile file(binary.bytes);

    wire::Request request;
    request.kind = wire::Kind::candidate;
    assert(binary.symbol.size() < sizeof request.symbol);
    binary.symbol.copy(request.symbol, sizeof request.symbol - 1);
    request.workspace_bytes = std::uint64_t(binary.signature.workspace_bytes);
    request.repetitions = settings_.repetitions;
    request.minimum_seconds = settings_.minimum_seconds;
    request.timeout_seconds = settings_.timeout_seconds;
    request.abort_seconds = abort_seconds;
    request.tolerance_factor = binary.signature.amplification;
    request.threads = std::int32_t(binary.signature.threads);

    // The worker ends the candidate by CPU time. When it is not heard of for much longer, it is stuck itself.
    const double patience = 2 * settings_.timeout_seconds + 5;
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
    if (measurement.status == Status::ok || measurement.status == Status::wrong_result) measurement.check = "host";
    // It may have written anywhere before it was caught.
    if (measurement.status == Status::crashed) lose_worker();
    return measurement;
  }

 private:
  const Prepared& prepared(const codegen::Workload& workload, const codegen::Signature& signature,
                           base::Monitor& monitor) {
    const std::string text = text_of(workload, signature);
    const auto found =
        std::find_if(prepared_.begin(), prepared_.end(), [&](const auto& known) { return known.text == text; });
    if (found != prepared_.end()) {
      prepared_.splice(prepared_.begin(), prepared_, found);
    } else {
      prepared_.push_front(prepare(workload, signature, reference_of(workload, monitor)));
      if (prepared_.size() > workloads_kept) prepared_.pop_back();
    }
    return prepared_.front();
  }

  codegen::Reference reference_of(const codegen::Workload& workload, base::Monitor& monitor) {
    if (make_reference_) return make_reference_(workload, settings_.input_seed);
    require_memory(workload, Place::here, settings_);
    // Other layouts of a workload need it again, which need not be said again.
    base::QuietMonitor quiet(monitor);
    base::Monitor& told = last_told_ == workload.text ? static_cast<base::Monitor&>(quiet) : monitor;
    codegen::Reference made = expected_results(workload, codegen::computation(workload), settings_.input_seed,
                                               settings_.threads, told);
    last_told_ = workload.text;
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

  // A living worker that has the workload; false when it has no room for it, and then the measurement says so.
  bool hand_over(const Prepared& workload, Measurement& measurement, base::Monitor& monitor) {
    // A worker may have been killed while it waited; one that ends again at once cannot work at all.
    for (int tries = 0; tries < 2; ++tries) {
      if (worker_ != nullptr && worker_->alive() && in_force_ == workload.text) return true;
      if (worker_ == nullptr || !worker_->alive()) {
        lose_worker();
        worker_ = std::make_unique<base::Partner>(
            std::vector<std::string>{base::beside_program("graft-worker").string()}, settings_.memory_limit_bytes);
      }
      wire::Request request;
      request.kind = wire::Kind::workload;
      request.parts = std::uint32_t(workload.parts.size());
      request.file_bytes = std::uint64_t(workload.file.bytes());
      request.at_begin = settings_.guard_in_front;
      wire::Answer answer;
      constexpr double patience = 60;  // it copies the inputs, no more
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
        fmt::format("graft-worker ends as soon as it starts; is a memory limit of {} bytes enough for '{}'?",
                    settings_.memory_limit_bytes, base::shortened(workload.text)));
  }

  void lose_worker() {
    worker_.reset();
    in_force_.clear();
  }

  MeasureSettings settings_;
  MakeReference make_reference_;
  std::unique_ptr<base::Partner> worker_;
  std::string in_force_;          // the workload that the worker has
  std::list<Prepared> prepared_;  // latest first
  std::string last_told_;         // the workload of the last reference
  double reference_start_ = 0;    // what the reference kernel took when this run began
};

HostRunner::HostRunner(const MeasureSettings& settings, MakeReference make_reference)
    : state_(std::make_unique<State>(settings, std::move(make_reference))) {
  require(settings.repetitions >= 0 && settings.repetitions <= wire::most_seconds, "repetitions",
          fmt::format("{} is not within 0 and {}", settings.repetitions, wire::most_seconds));
  require(settings.minimum_seconds >= 0, "minimum_seconds", fmt::format("{:g} is negative", settings.minimum_seconds));
  require(settings.timeout_seconds > 0, "timeout_seconds",
          fmt::format("{:g} is not positive", settings.timeout_seconds));
  require(settings.memory_limit_bytes > 0, "memory_limit_bytes",
          fmt::format("{} is not positive", settings.memory_limit_bytes));
}

HostRunner::~HostRunner() = default;

Measurement HostRunner::run(const codegen::Workload& workload, const HostBinary& binary, double abort_seconds,
                            base::Monitor* monitor) {
  base::Monitor nobody;
  return state_->run(workload, binary, abort_seconds, monitor == nullptr ? nobody : *monitor);
}

Measurement HostRunner::run(const codegen::Workload& workload, const codegen::LoopProgram& program,
                            const codegen::Target& target) {
  const auto binary = compile_for_host(program, target);
  if (binary) return run(workload, *binary);
  return without_times(Status::does_not_compile, binary.reason().text);
}

namespace {

// Identity of what is measured: programs of different workloads may be equal (their inputs are not).
std::uint64_t identity(const codegen::Workload& workload, std::uint64_t program_hash) {
  return base::hash_combine(codegen::hash(workload), program_hash);
}

// One candidate of a batch on its way to the worker.
struct Slot {
  bool done = false;
  std::optional<base::Reason> does_not_lower;
  std::uint64_t program_hash = 0;
  std::optional<codegen::LoopProgram> program;  // without a binary: an equal program came before
  std::optional<base::Result<HostBinary>> binary;
  std::exception_ptr error;
};

// From now on the calling thread leaves its core to a worker that has something to measure (Linux counts nice values
// by thread). Without the right to it nothing changes.
void give_way() {
  const auto thread = id_t(gettid());
  setpriority(PRIO_PROCESS, thread, getpriority(PRIO_PROCESS, thread) + 10);
}

// Compiles a batch on threads of its own, a few candidates ahead of the one that is taken.
class CompileAhead {
 public:
  // While one exists nothing is compiled, for kernels that want all cores. Waits for what is being compiled.
  class Pause {
   public:
    explicit Pause(CompileAhead& ahead) : ahead_(ahead) {
      std::unique_lock lock(ahead_.mutex_);
      ahead_.paused_ = true;
      ahead_.changed_.wait(lock, [&] { return ahead_.compiling_ == 0; });
    }
    ~Pause() {
      {
        const std::lock_guard lock(ahead_.mutex_);
        ahead_.paused_ = false;
      }
      ahead_.changed_.notify_all();
    }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    CompileAhead& ahead_;
  };

  CompileAhead(std::span<const codegen::Candidate> candidates, const codegen::Target& target,
               std::set<std::uint64_t> known, int threads)
      : candidates_(candidates), target_(target), claimed_(std::move(known)), slots_(candidates.size()) {
    // The worker's core compiles, too, while the worker waits for code; more compilers than the worker can empty are of
    // no use.
    threads = std::clamp(threads, 1, 4);
    window_ = 4 * std::size_t(threads);
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }
  ~CompileAhead() { stop(); }

  // Nothing more is begun, and who waits for it is not kept waiting.
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
  }

  // Waits for a candidate; asked for in order. Rethrows what its compilation threw; Stopped after stop().
  Slot take(std::size_t position) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stop_ || slots_[position].done; });
    if (!slots_[position].done) throw base::Stopped();
    taken_ = position + 1;
    Slot slot = std::move(slots_[position]);
    lock.unlock();
    changed_.notify_all();
    if (slot.error) std::rethrow_exception(slot.error);
    return slot;
  }

 private:
  void work() {
    give_way();
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || next_ >= slots_.size() || (!paused_ && next_ < taken_ + window_); });
      if (stop_ || next_ >= slots_.size()) return;
      const std::size_t position = next_++;
      ++compiling_;
      lock.unlock();
      Slot slot = make(candidates_[position]);
      slot.done = true;
      lock.lock();
      slots_[position] = std::move(slot);
      --compiling_;
      lock.unlock();
      changed_.notify_all();
    }
  }

  Slot make(const codegen::Candidate& candidate) {
    Slot slot;
    try {
      auto program = codegen::program(candidate, target_);
      if (!program) {
        slot.does_not_lower = program.reason();
        return slot;
      }
      slot.program_hash = codegen::hash(*program);
      bool first = false;
      {
        const std::lock_guard lock(mutex_);
        first = claimed_.insert(identity(candidate.workload, slot.program_hash)).second;
      }
      if (first) slot.binary = compile_for_host(*program, target_);
      if (!first) slot.program = std::move(program).value();
    } catch (...) {
      slot.error = std::current_exception();
    }
    return slot;
  }

  std::span<const codegen::Candidate> candidates_;
  const codegen::Target& target_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::uint64_t> claimed_;
  std::vector<Slot> slots_;
  std::size_t next_ = 0, taken_ = 0, window_ = 1, compiling_ = 0;
  bool stop_ = false, paused_ = false;
  std::vector<std::jthread> threads_;  // last: joined before the rest goes
};

// Takes results from a thread of its own, in order: while the caller writes one to disk, the next is measured. Little
// is ahead of the caller, so that little is lost when the process is killed.
class MeasureAhead {
 public:
  // `next` measures one candidate after the other on the thread; nullopt after the last.
  explicit MeasureAhead(std::function<std::optional<Measured>()> next)
      : thread_([this, next = std::move(next)] { work(next); }) {}
  ~MeasureAhead() { stop(); }

  // Whether `take` need not wait; waits for that at most so long.
  bool wait(std::chrono::milliseconds longest) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, longest, [&] { return ended_ || !waiting_.empty(); });
  }
  // Waits for the next result; nullopt after the last. Rethrows what measuring threw.
  std::optional<Measured> take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended_ || !waiting_.empty(); });
    if (waiting_.empty()) {
      if (error_) std::rethrow_exception(error_);
      return std::nullopt;
    }
    Measured result = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    changed_.notify_all();
    return result;
  }
  // The candidate that is being measured becomes the last.
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
  }

 private:
  static constexpr std::size_t most_waiting = 2;

  void work(const std::function<std::optional<Measured>()>& next) {
    std::exception_ptr error;
    try {
      for (bool wanted = true; wanted;) {
        std::optional<Measured> result = next();
        if (!result) break;
        std::unique_lock lock(mutex_);
        waiting_.push_back(std::move(*result));
        changed_.notify_all();
        changed_.wait(lock, [&] { return stop_ || waiting_.size() < most_waiting; });
        wanted = !stop_;
      }
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    error_ = error;
    ended_ = true;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Measured> waiting_;
  std::exception_ptr error_;
  bool ended_ = false, stop_ = false;
  std::jthread thread_;  // last: joined before the rest goes
};

class NativeMeasurer : public Measurer {
 public:
  NativeMeasurer(const Platform& platform, const MeasureSettings& settings)
      : target_(platform.target), settings_(settings), runner_(settings) {
    require(settings.abort_factor >= 0, "abort_factor", fmt::format("{:g} is negative", settings.abort_factor));
  }

  void measure(std::span<const codegen::Candidate> candidates, const std::function<void(const Measured&)>& on_trial,
               base::Monitor& monitor) override {
    std::set<std::uint64_t> known;
    for (const auto& [key, measurement] : measured_) known.insert(key);
    constexpr std::chrono::milliseconds between_questions(100);
    base::RelayMonitor relay;
    CompileAhead compiled(candidates, target_, std::move(known), settings_.threads);
    MeasureAhead results([&, next = std::size_t(0)]() mutable -> std::optional<Measured> {
      if (next == candidates.size() || relay.stop_requested()) return std::nullopt;
      const std::size_t position = next++;
      try {
        return measured(candidates[position].workload, std::int64_t(position), compiled, relay);
      } catch (const base::Stopped&) {
        return std::nullopt;
      }
    });
    for (;;) {
      // What was measured by now is reported all the same.
      if (relay.pass_on(monitor)) results.stop(), compiled.stop();
      if (!results.wait(between_questions)) continue;
      const std::optional<Measured> result = results.take();
      if (!result) return;
      try {
        on_trial(*result);
      } catch (...) {  // nobody waits for what runs
        relay.stop();
        compiled.stop();
        throw;
      }
    }
  }

 private:
  Measured measured(const codegen::Workload& workload, std::int64_t position, CompileAhead& compiled,
                    base::Monitor& monitor) {
    Slot slot = compiled.take(std::size_t(position));
    if (slot.does_not_lower) {
      return {position, slot.program_hash, without_times(Status::does_not_lower, slot.does_not_lower->text)};
    }
    return {position, slot.program_hash, measure_one(workload, slot, compiled, monitor)};
  }

  const Measurement& measure_one(const codegen::Workload& workload, Slot& slot, CompileAhead& compiled,
                                 base::Monitor& monitor) {
    const std::uint64_t key = identity(workload, slot.program_hash);
    const auto found = measured_.find(key);
    if (found != measured_.end()) return found->second;
    // The equal program whose compilation was begun first may stand later in the batch.
    if (!slot.binary) slot.binary = compile_for_host(*slot.program, target_);
    std::optional<CompileAhead::Pause> quiet;
    if (target_.threads > 1) quiet.emplace(compiled);
    return measured_.emplace(key, run(workload, *slot.binary, monitor)).first->second;
  }

  Measurement run(const codegen::Workload& workload, const base::Result<HostBinary>& binary, base::Monitor& monitor) {
    if (!binary) return without_times(Status::does_not_compile, binary.reason().text);
    const auto best = best_.find(workload.text);
    // A first run of a few microseconds is mostly cold caches and clock: nothing that short is worth stopping.
    const double limit = best == best_.end() || settings_.abort_factor == 0
                             ? 0
                             : std::max(settings_.abort_factor * best->second, settings_.minimum_seconds);
    Measurement measurement = runner_.run(workload, *binary, limit, &monitor);
    if (measurement.status == Status::ok && !measurement.seconds.empty()) {
      const double seconds = datasets::seconds_of(measurement);
      const auto [entry, fresh] = best_.emplace(workload.text, seconds);
      if (!fresh) entry->second = std::min(entry->second, seconds);
    }
    return measurement;
  }

  codegen::Target target_;
  MeasureSettings settings_;
  HostRunner runner_;
  std::map<std::uint64_t, Measurement> measured_;  // each distinct program once
  std::map<std::string, double> best_;             // seconds, by workload
};

}  // namespace

std::unique_ptr<Measurer> make_native_measurer(const Platform& platform, const MeasureSettings& settings) {
  return std::make_unique<NativeMeasurer>(platform, settings);
}

}  // namespace graft::tasks
