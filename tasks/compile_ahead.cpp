#include "tasks/compile_ahead.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "base/monitor.h"
#include "codegen/schedule/candidate_program.h"

namespace graft::tasks {
namespace {

// From now on the calling thread leaves its core to a worker that has something to measure (Linux counts nice values
// by thread). Without the right to it nothing changes.
void give_way() {
  const auto thread = id_t(gettid());
  setpriority(PRIO_PROCESS, thread, getpriority(PRIO_PROCESS, thread) + 10);
}

}  // namespace

std::uint64_t measured_identity(const codegen::Workload& workload, std::uint64_t program_hash) {
  return base::hash_combine(codegen::hash(workload), program_hash);
}

CompileAhead::Pause::Pause(CompileAhead& ahead) : ahead_(ahead) {
  std::unique_lock lock(ahead_.mutex_);
  ahead_.paused_ = true;
  ahead_.changed_.wait(lock, [&] { return ahead_.compiling_ == 0; });
}

CompileAhead::Pause::~Pause() {
  {
    const std::lock_guard lock(ahead_.mutex_);
    ahead_.paused_ = false;
  }
  ahead_.changed_.notify_all();
}

CompileAhead::CompileAhead(std::span<const codegen::Candidate> candidates, const codegen::Target& target,
                           std::set<std::uint64_t> known, int threads)
    : candidates_(candidates), target_(target), claimed_(std::move(known)), slots_(candidates.size()) {
  // The worker's core compiles, too, while the worker waits for code; more compilers than the worker can empty are of
  // no use.
  threads = std::clamp(threads, 1, 4);
  window_ = 4 * std::size_t(threads);
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

void CompileAhead::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
}

Compiled CompileAhead::take(std::size_t position) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stop_ || slots_[position].done; });
  if (!slots_[position].done) throw base::Stopped();
  taken_ = position + 1;
  Slot slot = std::move(slots_[position]);
  lock.unlock();
  changed_.notify_all();
  if (slot.error) std::rethrow_exception(slot.error);
  return std::move(slot.compiled);
}

void CompileAhead::work() {
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

CompileAhead::Slot CompileAhead::make(const codegen::Candidate& candidate) {
  Slot slot;
  Compiled& made = slot.compiled;
  try {
    auto program = codegen::program(candidate, target_);
    if (!program) {
      made.does_not_lower = program.reason();
      return slot;
    }
    made.program_hash = codegen::hash(*program);
    bool first = false;
    {
      const std::lock_guard lock(mutex_);
      first = claimed_.insert(measured_identity(candidate.workload, made.program_hash)).second;
    }
    if (first) made.binary = compile_for_host(*program, target_);
    if (!first) made.program = std::move(program).value();
  } catch (...) {
    slot.error = std::current_exception();
  }
  return slot;
}

}  // namespace graft::tasks
