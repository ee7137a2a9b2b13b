// Measures candidates: lower, compile, check, time. Each result is passed on as soon as it exists, so that a journal
// has it before anyone else; a failing candidate affects only itself.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/monitor.h"
#include "base/parallel.h"
#include "codegen/expression/inputs.h"
#include "codegen/space/candidate.h"
#include "datasets/trial.h"
#include "tasks/platform.h"

namespace graft::tasks {

struct Measured {
  std::int64_t position = 0;       // in the batch
  std::uint64_t program_hash = 0;  // 0 when it did not lower
  datasets::Measurement measurement;
};

inline constexpr int most_repetitions = 64;

struct MeasureSettings {
  int repetitions = 3;  // timed ones, at most most_repetitions; each is `run` called until minimum_seconds are over;
                        // fewer if timeout_seconds allows no more; 0 only checks (not over a remote prefix)
  double minimum_seconds = 1e-3;  // of one repetition
  // The constants of the whole that the kernel is a part of, such as a network: timed calls read the kernel's own from
  // several places in turn, about as many bytes apart. On this machine; 0: always from one place, warm in the caches.
  std::int64_t constants_bytes = 0;
  double timeout_seconds = 10;  // of one candidate in total: CPU time in the worker, wall time elsewhere
  double abort_factor = 0;      // > 0: a first run slower than this times the best so far of its workload (and than
                                // minimum_seconds: shorter ones are mostly cold caches and clock) ends as
                                // slower_than_limit, and one of at least minimum_seconds counts as the first
                                // repetition; 0 aborts nothing (collect)
  // The worker's address space; nothing: what this machine has available when the worker starts.
  std::optional<std::int64_t> memory_limit_bytes = {};
  codegen::InputSource inputs = {};
  // Whether a page that faults is placed before buffers, instead of after them: for checks; no
  // difference to a right program.
  bool guard_in_front = false;
  // Threads that make programs (lower, compile, model) before they are measured; results do not depend on it. While a
  // kernel is timed on this machine, at most four.
  int threads = base::hardware_threads();
  bool operator==(const MeasureSettings&) const = default;
};

// A measurement without times and without a check; `clock` is the clock that would have timed it, if known.
datasets::Measurement without_times(datasets::Status status, std::string reason, std::string clock = "");

class Measurer {
 public:
  virtual ~Measurer() = default;
  // Calls on_trial once per candidate, from the calling thread, in the order of the batch or as results come:
  // Measured::position says which one it is. Returns early (having reported fewer) only when the monitor asks to stop.
  virtual void measure(std::span<const codegen::Candidate> candidates,
                       const std::function<void(const Measured&)>& on_trial, base::Monitor& monitor) = 0;
};

// Results that measurers of several modelled platforms share: checks on this host, by program, and traffic, by
// program and geometry of the caches. Filled by the first make_measurer that needs it.
class HostChecks;
class TrafficMemo;
struct Shared {
  std::shared_ptr<HostChecks> host_checks;
  std::shared_ptr<TrafficMemo> memo;
};

// `shared`, if given, must be used with equal settings for all of its measurers.
std::unique_ptr<Measurer> make_measurer(const Platform& platform, const MeasureSettings& settings,
                                        Shared* shared = nullptr);

}  // namespace graft::tasks
