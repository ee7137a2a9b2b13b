// Compiles a batch of candidates for this machine on its own threads, a few ahead of the one that is measured.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <thread>
#include <vector>

#include "base/error.h"
#include "codegen/expression/target.h"
#include "codegen/program/program.h"
#include "codegen/space/candidate.h"
#include "tasks/host_runner.h"

namespace graft::tasks {

// The identity of a measured candidate: programs of different workloads may be equal (their inputs are not).
std::uint64_t measured_identity(const codegen::Workload& workload, std::uint64_t program_hash);

// One candidate of a batch on its way to the worker.
struct Compiled {
  std::optional<base::Reason> does_not_lower;
  std::uint64_t program_hash = 0;
  std::optional<codegen::LoopProgram> program;  // without a binary: an equal program came before
  std::optional<base::Result<HostBinary>> binary;
};

class CompileAhead {
 public:
  // While one exists nothing is compiled, for kernels that want all cores. Waits for what is being compiled.
  class Pause {
   public:
    explicit Pause(CompileAhead& ahead);
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    CompileAhead& ahead_;
  };

  // `known`: identities of candidates already measured, which need no binary. Candidates and target must outlive it; of
  // `threads` at most four are used.
  CompileAhead(std::span<const codegen::Candidate> candidates, const codegen::Target& target,
               std::set<std::uint64_t> known, int threads);
  ~CompileAhead() { stop(); }

  // Nothing more is begun, and waiting callers return.
  void stop();
  // Waits for a candidate; candidates are requested in order. Rethrows what its compilation threw; Stopped after
  // stop().
  Compiled take(std::size_t position);

 private:
  struct Slot {
    bool done = false;
    Compiled compiled;
    std::exception_ptr error;
  };

  void work();
  Slot make(const codegen::Candidate& candidate);

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

}  // namespace graft::tasks
