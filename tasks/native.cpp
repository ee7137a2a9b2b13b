#include "tasks/native.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

#include "base/error.h"
#include "codegen/machine/compile.h"
#include "tasks/compile_ahead.h"
#include "tasks/host_runner.h"
#include "tasks/measurer.h"
#include "tasks/platform.h"
#include "tasks/remote.h"

namespace graft::tasks {
namespace {

using datasets::Measurement;
using datasets::Status;

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
    if (!(settings.abort_factor >= 0))
      throw base::UserError("abort_factor", fmt::format("{:g} is negative", settings.abort_factor));
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
      // Measurements made so far are reported all the same.
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
    Compiled slot = compiled.take(std::size_t(position));
    if (slot.does_not_lower) {
      return {position, slot.program_hash, without_times(Status::does_not_lower, slot.does_not_lower->text)};
    }
    return {position, slot.program_hash, measure_one(workload, slot, compiled, monitor)};
  }

  const Measurement& measure_one(const codegen::Workload& workload, Compiled& slot, CompileAhead& compiled,
                                 base::Monitor& monitor) {
    const std::uint64_t key = measured_identity(workload, slot.program_hash);
    const auto found = measured_.find(key);
    if (found != measured_.end()) return found->second;
    // The equal program whose compilation was begun first may come later in the batch.
    if (!slot.binary) slot.binary = compile_for_host(*slot.program, target_);
    std::optional<CompileAhead::Pause> quiet;
    if (target_.threads > 1) quiet.emplace(compiled);
    return measured_.emplace(key, run(workload, *slot.binary, monitor)).first->second;
  }

  Measurement run(const codegen::Workload& workload, const base::Result<HostBinary>& binary, base::Monitor& monitor) {
    if (!binary) return without_times(Status::does_not_compile, binary.reason().text);
    const auto best = best_.find(workload.text());
    // A first run of a few microseconds is mostly cold caches and clock: nothing that short is worth stopping.
    const double limit = best == best_.end() || settings_.abort_factor == 0
                             ? 0
                             : std::max(settings_.abort_factor * best->second, settings_.minimum_seconds);
    Measurement measurement = runner_.run(workload, *binary, limit, &monitor);
    if (measurement.status == Status::ok && !measurement.seconds.empty()) {
      const double seconds = datasets::seconds_of(measurement);
      const auto [entry, fresh] = best_.emplace(workload.text(), seconds);
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

class NativeDevice : public Device {
  std::string source() const override { return "native"; }
  Place place() const override { return Place::here; }
  std::unique_ptr<Measurer> measurer(const Platform& platform, const MeasureSettings& settings,
                                     Shared*) const override {
    return std::make_unique<NativeMeasurer>(platform, settings);
  }
  CodeRunner runner() const override { return {Remote{}, "host", ""}; }
  bool is_this_host() const override { return true; }
};

std::string_view architecture(std::string_view triple) {
  return triple.substr(0, triple.find('-'));
}

}  // namespace

std::shared_ptr<const Device> this_host() {
  static const std::shared_ptr<const Device> device = std::make_shared<NativeDevice>();
  return device;
}

std::shared_ptr<const Device> read_native(const base::Document& own, const base::Document& whole, const std::string&,
                                          codegen::Target& target) {
  const base::Document& target_node = whole.at("target");
  const codegen::Target& host = codegen::host_target();
  own.only_keys({"threads"});
  const base::Document& node = own.at("threads");
  const std::int64_t threads = node.as_integer();
  if (threads < 1 || threads > host.cores)
    throw base::UserError(node.place(),
                          fmt::format("threads must be 1 to {}, the cores of this host; got {}", host.cores, threads));
  if (const base::Document* const twice = target_node.find("threads"))
    throw base::UserError(twice->place(), "of a native platform threads are said under 'native'");
  if (architecture(host.triple) != architecture(target.triple)) {
    throw base::UserError(target_node.at("triple").place(),
                          fmt::format("this host is {} and cannot run code for '{}'; use remote or modelled",
                                      architecture(host.triple), target.triple));
  }
  target.threads = threads;
  return this_host();
}

}  // namespace graft::tasks
