// graft-worker: runs candidates in a process where they cannot harm the tuner. One request, one answer (wire.h); a
// candidate that crashes or hangs is ended by a signal guard and costs an answer, and one that takes the process with
// it costs the parent a new worker.
//
// It is linked with libc and libdl alone, so that it starts in a millisecond and a damaged heap does no harm. Times
// of a kernel on one thread are the thread's CPU time: pre-emption by others does not count. Those of a kernel on
// several threads are of the wall clock.
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/float16.h"
#include "base/within.h"
#include "codegen/deployed/graft_pool.h"
#include "tasks/worker/checking.h"
#include "tasks/worker/conversation.h"
#include "tasks/worker/wire.h"

namespace {

using namespace graft::tasks::wire;

constexpr std::size_t alignment = 64;
constexpr std::size_t huge_page = std::size_t(2) << 20;
// Address space between a buffer and the next: a stride that leaves one seldom reaches the other.
constexpr std::size_t guard_bytes = std::size_t(256) << 10;
constexpr unsigned char canary = 0xa5;

using Body = void (*)(void* closure, std::int64_t index);
using ParallelFor = void (*)(void* context, Body body, void* closure, std::int64_t n);
using Prepare = void (*)(void* const* buffers, void* prepared, void* scratch);
using Run = void (*)(void* const* buffers, const void* prepared, void* scratch, ParallelFor, void* context);

double seconds_on(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}
double thread_seconds() {
  return seconds_on(CLOCK_THREAD_CPUTIME_ID);
}

// The threads of the candidate at hand. The pool is started by the first one that wants more than one.
graft_pool* pool = nullptr;
int pool_threads = 1;
bool on_pool = false;
constexpr int most_helpers = 256;
std::atomic<pthread_t> helper[most_helpers];  // those that have been in a body, 0 after the last one
std::atomic<int> helpers{0};
// What limits and times are in.
double clock_seconds() {
  return on_pool ? seconds_on(CLOCK_MONOTONIC) : thread_seconds();
}

std::size_t round_up(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// ---- the guard

thread_local sigjmp_buf guard_place;
thread_local volatile sig_atomic_t guard_armed = 0;
thread_local bool is_main = false, is_known = false;
double guard_stop = 0;                      // clock_seconds() at which the guarded call ends with SIGALRM
volatile std::uintptr_t fault_address = 0;  // of the latest segmentation fault or bus error; 0: the kernel does not say
timer_t guard_timer;

constexpr int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};

// Between helpers and the main thread.
constexpr int leave_signal = SIGUSR2;
std::atomic<bool> leaving{false};  // helpers begin no body
std::atomic<int> helper_fault{0};  // the signal of one that had to leave its body

// Helpers use the stack that the main thread is about to leave: they must be out of their bodies first.
void recall_helpers() {
  leaving.store(true);
  while (graft_pool_leave(pool) != 0) {
    for (int i = 0; i < most_helpers && helper[i].load() != 0; ++i) pthread_kill(helper[i].load(), leave_signal);
    const timespec moment{0, 50000};
    nanosleep(&moment, nullptr);
  }
  leaving.store(false);
}

[[noreturn]] void leave_guard(int number) {
  guard_armed = 0;
  if (is_main) recall_helpers();
  siglongjmp(guard_place, number);
}

void set_timer(double seconds) {
  itimerspec when{};
  when.it_value.tv_sec = time_t(seconds);
  when.it_value.tv_nsec = long((seconds - double(when.it_value.tv_sec)) * 1e9);
  timer_settime(guard_timer, 0, &when, nullptr);
}

// The timer runs on the wall clock, whose timers are exact, and is set again while time is left: on a busy machine a
// candidate on one thread is not slower.
void on_timer(int) {
  if (!guard_armed) return;
  const double left = guard_stop - clock_seconds();
  if (left > 0) {
    set_timer(left > 1e-5 ? left : 1e-5);
    return;
  }
  leave_guard(SIGALRM);
}

void on_fault(int number, siginfo_t* info, void*) {
  if (!guard_armed) {
    signal(number, SIG_DFL);  // our own fault: the parent sees a dead worker
    return;
  }
  fault_address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  leave_guard(number);
}

void on_leave(int) {
  if (guard_armed && !is_main) leave_guard(leave_signal);
}

bool install_guard() {
  static unsigned char stack[1 << 16];
  stack_t alternate{};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof stack;
  if (sigaltstack(&alternate, nullptr) != 0) return false;
  struct sigaction action {};
  action.sa_flags = SA_ONSTACK;
  action.sa_handler = on_leave;
  if (sigaction(leave_signal, &action, nullptr) != 0) return false;
  action.sa_flags |= SA_SIGINFO;
  action.sa_sigaction = on_fault;
  for (const int number : faults) {
    if (sigaction(number, &action, nullptr) != 0) return false;
  }
  action.sa_flags = SA_ONSTACK;
  action.sa_handler = on_timer;
  if (sigaction(SIGALRM, &action, nullptr) != 0) return false;
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGALRM;
  return timer_create(CLOCK_MONOTONIC, &event, &guard_timer) == 0;
}

// Calls the kernel; returns 0, or the signal that ended it (SIGALRM at clock_seconds() `stop`). The kernel holds
// nothing that a jump out of it could leak.
template <class Body>
int guarded(double stop, const Body& body) {
  const double left = stop - clock_seconds();
  if (left <= 0) return SIGALRM;
  guard_stop = stop;
  helper_fault.store(0);
  if (const int number = sigsetjmp(guard_place, 1)) {
    set_timer(0);
    return number;
  }
  guard_armed = 1;
  set_timer(left > 1e-5 ? left : 1e-5);
  body();
  guard_armed = 0;
  set_timer(0);
  return helper_fault.load();
}

// What helpers take; all else is the main thread's.
sigset_t helper_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, leave_signal);
  for (const int number : faults) sigaddset(&signals, number);
  return signals;
}

struct Job {
  Body body;
  void* closure;
};
// A body on a thread of the pool; the main thread is guarded already.
void guarded_body(void* closure, std::int64_t index) {
  const Job& job = *static_cast<const Job*>(closure);
  if (is_main) return job.body(job.closure, index);
  if (!is_known) helper[helpers.fetch_add(1)].store(pthread_self());
  is_known = true;
  // Without the signal mask, which costs a system call each time: what handlers that were left block is undone here.
  if (const int number = sigsetjmp(guard_place, 0)) {
    const sigset_t signals = helper_signals();
    pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
    if (number != leave_signal) helper_fault.store(number);
    return;
  }
  guard_armed = 1;
  if (!leaving.load()) job.body(job.closure, index);
  guard_armed = 0;
}

// What kernels are given.
void parallel_for(void*, Body body, void* closure, std::int64_t n) {
  Job job{body, closure};
  graft_pool_for(on_pool ? pool : nullptr, guarded_body, &job, n);
}

// Threads for a candidate that needs them; false if there are none.
bool use_threads(int threads) {
  on_pool = threads > 1;
  if (!on_pool || pool_threads == threads) return true;
  graft_pool_stop(pool);
  helpers.store(0);
  for (std::atomic<pthread_t>& each : helper) each.store(0);
  // Helpers inherit what is blocked here.
  sigset_t all, before;
  const sigset_t theirs = helper_signals();
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_sigmask(SIG_UNBLOCK, &theirs, nullptr);
  pool = graft_pool_start(threads);
  pool_threads = pool != nullptr ? threads : 1;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return pool != nullptr;
}

const char* fault_name(int number) {
  switch (number) {
    case SIGSEGV:
      return "segmentation fault";
    case SIGBUS:
      return "bus error";
    case SIGILL:
      return "illegal instruction";
    default:
      return "arithmetic fault";
  }
}

// ---- memory

// `bytes` at `data`, 64-byte aligned, between inaccessible pages. The data end at the last page's end,
// less the padding to 64 bytes: a load or store after that is a fault, and so is one before the first page. The rest
// of their pages is filled with marks, which reveal stores there; loads from there are not noticed. `at_begin`
// puts the data at the first page's begin instead, so that both together leave nothing unseen but loads from the
// padding.
struct Region {
  char* map = nullptr;
  std::size_t mapped = 0;
  char* usable = nullptr;
  std::size_t usable_bytes = 0;
  char* data = nullptr;
  std::size_t bytes = 0;

  bool make(std::size_t wanted, bool at_begin) {
    const std::size_t page = std::size_t(sysconf(_SC_PAGESIZE));
    const std::size_t padded = round_up(wanted > 0 ? wanted : 1, alignment);
    const bool huge = padded >= huge_page;
    const std::size_t unit = huge ? huge_page : page;
    usable_bytes = round_up(padded, unit);
    mapped = guard_bytes + unit + usable_bytes + guard_bytes;
    void* const got = mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) {
      mapped = 0;
      return false;
    }
    map = static_cast<char*>(got);
    usable = reinterpret_cast<char*>(round_up(reinterpret_cast<std::uintptr_t>(map) + guard_bytes, unit));
    if (mprotect(usable, usable_bytes, PROT_READ | PROT_WRITE) != 0) {
      drop();
      return false;
    }
    if (huge) madvise(usable, usable_bytes, MADV_HUGEPAGE);
    data = at_begin ? usable : usable + usable_bytes - padded;
    bytes = wanted;
    return true;
  }

  void drop() {
    if (map != nullptr) munmap(map, mapped);
    *this = Region{};
  }

  // The marks: up to a page on either side.
  static constexpr std::size_t marked = 4096;
  char* marks_begin() const { return std::size_t(data - usable) > marked ? data - marked : usable; }
  char* marks_end() const {
    char* const end = usable + usable_bytes;
    return std::size_t(end - data) - bytes > marked ? data + bytes + marked : end;
  }

  // Contents that no kernel may rely on, and the marks.
  void spoil(unsigned char pattern) {
    memset(data, pattern, bytes);
    memset(marks_begin(), canary, std::size_t(data - marks_begin()));
    memset(data + bytes, canary, std::size_t(marks_end() - data) - bytes);
  }
  // How many bytes outside of the data the nearest store was; 0 if there was none.
  std::size_t overrun() const {
    for (const char* at = data + bytes; at < marks_end(); ++at) {
      if (static_cast<unsigned char>(*at) != canary) return std::size_t(at - data) - bytes + 1;
    }
    for (const char* at = data; at-- > marks_begin();) {
      if (static_cast<unsigned char>(*at) != canary) return std::size_t(data - at);
    }
    return 0;
  }
  // Makes a store to it a fault.
  void make_constant() const { mprotect(usable, usable_bytes, PROT_READ); }
  // The distance of an address from the data; 0 inside.
  std::uintptr_t distance(std::uintptr_t address) const {
    const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(data), end = begin + bytes;
    return address < begin ? begin - address : address >= end ? address - end + 1 : 0;
  }
};

struct WorkloadState {
  bool ready = false;
  bool at_begin = false;       // the position of buffers in their pages
  const char* file = nullptr;  // mapped whole
  std::size_t file_bytes = 0;
  int parts = 0;
  Part part[most_parameters];
  Region region[most_parameters];
  void* buffers[most_parameters];

  void drop() {
    for (int i = 0; i < parts; ++i) region[i].drop();
    if (file != nullptr) munmap(const_cast<char*>(file), file_bytes);
    parts = 0;
    file = nullptr;
    ready = false;
  }
};
WorkloadState workload;

// Bytes for the other side; kernels cannot write to the file.
void leave(std::uint64_t place, const void* from, std::size_t bytes) {
  char* const file = const_cast<char*>(workload.file);
  mprotect(file, workload.file_bytes, PROT_READ | PROT_WRITE);
  memcpy(file + place, from, bytes);
  mprotect(file, workload.file_bytes, PROT_READ);
}

void say(Answer& answer, Outcome outcome, const char* text) {
  answer.outcome = outcome;
  snprintf(answer.message, sizeof answer.message, "%s", text);
}

void take_workload(const Request& request, int file, Answer& answer) {
  workload.drop();
  void* const map = mmap(nullptr, request.file_bytes, PROT_READ, MAP_SHARED, file, 0);
  if (map == MAP_FAILED) return say(answer, Outcome::out_of_memory, "no room for the workload's inputs");
  workload.file = static_cast<const char*>(map);
  workload.file_bytes = request.file_bytes;
  workload.at_begin = request.at_begin != 0;
  memcpy(workload.part, workload.file, request.parts * sizeof(Part));
  for (std::uint32_t i = 0; i < request.parts; ++i) {
    const Part& part = workload.part[i];
    Region& region = workload.region[i];
    if (!region.make(part.bytes, request.at_begin != 0)) {
      workload.drop();
      return say(answer, Outcome::out_of_memory, "no room for the workload's buffers");
    }
    workload.parts = int(i) + 1;
    workload.buffers[i] = region.data;
    if (part.written == 0) {
      memcpy(region.data, workload.file + part.data, part.bytes);
      mprotect(region.usable, region.usable_bytes, PROT_READ);  // a stray store to an input is a crash
    }
  }
  workload.ready = true;
}

// ---- checking

bool stored_outside(const Region& region, const char* name, Answer& answer) {
  const std::size_t bytes = region.overrun();
  if (bytes == 0) return false;
  answer.outcome = Outcome::wrong_result;
  snprintf(answer.message, sizeof answer.message, "a store outside of %s by %zu bytes", name, bytes);
  return true;
}

// The memory of a candidate itself.
struct CandidateMemory {
  static constexpr const char* prepared_name = "the prepared constants";
  static constexpr const char* scratch_name = "the scratch";
  Region prepared, scratch;

  bool make(const Request& request, bool at_begin) {
    return prepared.make(request.prepared_bytes, at_begin) && scratch.make(request.scratch_bytes, at_begin);
  }
  bool was_overrun(Answer& answer) const {
    return stored_outside(prepared, prepared_name, answer) || stored_outside(scratch, scratch_name, answer);
  }
  void drop() {
    prepared.drop();
    scratch.drop();
  }
};

bool check_outputs(const CandidateMemory& own, double factor, Answer& answer) {
  if (own.was_overrun(answer)) return false;
  for (int i = 0; i < workload.parts; ++i) {
    const Part& part = workload.part[i];
    if (part.written == 0) continue;
    if (stored_outside(workload.region[i], part.name, answer)) return false;
    const char* const data = workload.region[i].data;
    if (!compare(part, workload.file, data, factor, answer)) return false;
  }
  return true;
}

// ---- timing

// A fixed piece of arithmetic, the same in every run of every worker: how fast the machine is just now. Latency-bound
// multiply-adds within the registers.
double reference_kernel_once() {
  double a = 1, b = 1, c = 1, d = 1;
  const double begin = thread_seconds();
  for (int i = 0; i < 10000; ++i) {
    a = a * 0.999 + 0.001;
    b = b * 0.998 + 0.002;
    c = c * 0.997 + 0.003;
    d = d * 0.996 + 0.004;
    asm volatile("" : "+m"(a), "+m"(b), "+m"(c), "+m"(d));
  }
  return thread_seconds() - begin;
}
double reference_kernel(int tries) {
  double best = reference_kernel_once();
  for (int i = 1; i < tries; ++i) best = std::min(best, reference_kernel_once());
  return best;
}

// The constants of a kernel in several places, of which each call is given the next: as in a whole whose other
// constants are read in between.
class SpreadConstants {
 public:
  // Copies what the kernel reads as constants, its prepared memory included, so often that they are `wanted` bytes
  // together. False without the memory for it.
  bool make(std::uint64_t wanted, const char* prepared, std::uint64_t prepared_bytes) {
    memcpy(buffers_, workload.buffers, sizeof(void*) * std::size_t(workload.parts));
    prepared_bytes_ = prepared_bytes;
    stride_ = round_up(prepared_bytes, alignment);
    for (int i = 0; i < workload.parts; ++i) {
      if (workload.part[i].constant != 0) stride_ += round_up(workload.part[i].bytes, alignment);
    }
    count_ = stride_ > 0 ? std::max<std::uint64_t>(std::min(wanted, most_bytes) / stride_, 1) : 1;
    if (is_one_place()) return true;
    if (!memory_.make(count_ * stride_, true)) return false;
    for (std::uint64_t copy = 0; copy < count_; ++copy) {  // back at the first one then
      const void* place = nullptr;
      void* const* const to = next(place);
      memcpy(const_cast<void*>(place), prepared, prepared_bytes);
      for (int i = 0; i < workload.parts; ++i) {
        if (workload.part[i].constant != 0) memcpy(to[i], workload.buffers[i], workload.part[i].bytes);
      }
    }
    return true;
  }
  bool is_one_place() const { return count_ <= 1; }
  // The buffers and the prepared memory of the next call.
  void* const* next(const void*& prepared) {
    char* at = memory_.data + turn_ * stride_;
    turn_ = turn_ + 1 == count_ ? 0 : turn_ + 1;
    prepared = at;
    at += round_up(prepared_bytes_, alignment);
    for (int i = 0; i < workload.parts; ++i) {
      if (workload.part[i].constant == 0) continue;
      buffers_[i] = at;
      at += round_up(workload.part[i].bytes, alignment);
    }
    return buffers_;
  }
  void drop() {
    memory_.drop();
    count_ = 1;
  }

 private:
  static constexpr std::uint64_t most_bytes = std::uint64_t(256) << 20;  // more than caches hold
  Region memory_;
  std::uint64_t count_ = 1, turn_ = 0, stride_ = 0, prepared_bytes_ = 0;
  void* buffers_[most_parameters];
};

struct Kernel {
  Prepare prepare = nullptr;
  Run run = nullptr;
  const Run* table = nullptr;  // the calls of a sequence
  CandidateMemory own;
  const void* prepared = nullptr;
  SpreadConstants spread;
  double stop = 0;              // clock_seconds() at which the candidate is out of time
  volatile double elapsed = 0;  // of the latest `time`, also when it was ended

  // `calls` calls of run; returns what `guarded` returns.
  int time(std::int64_t calls, double until) {
    const double begin = clock_seconds();
    const int number = guarded(until < stop ? until : stop, [&] {
      for (std::int64_t i = 0; i < calls; ++i) {
        const void* constants = prepared;
        void* const* const buffers = spread.is_one_place() ? workload.buffers : spread.next(constants);
        run(buffers, constants, own.scratch.data, parallel_for, nullptr);
      }
    });
    elapsed = clock_seconds() - begin;
    return number;
  }
};

// What a fault's address says about it: " (outside of C by 64 bytes)". The nearest buffer is meant, unless all are far.
void explain_fault(std::uintptr_t address, const CandidateMemory& own, char* text, std::size_t size) {
  constexpr std::uintptr_t far_away = std::uintptr_t(1) << 32;
  const char *kind = "", *name = CandidateMemory::scratch_name;
  std::uintptr_t nearest = own.scratch.distance(address);
  const auto compare_with = [&](const Region& region, const char* its_kind, const char* its_name) {
    const std::uintptr_t distance = region.distance(address);
    if (distance < nearest) nearest = distance, kind = its_kind, name = its_name;
  };
  compare_with(own.prepared, "", CandidateMemory::prepared_name);
  for (int i = 0; i < workload.parts; ++i) compare_with(workload.region[i], "input ", workload.part[i].name);
  if (nearest == 0) {
    snprintf(text, size, " (a store to %s%s)", kind, name);
  } else if (address == 0 || nearest > far_away) {
    snprintf(text, size, " (far outside of all buffers)");
  } else {
    snprintf(text, size, " (outside of %s by %llu bytes)", name, static_cast<unsigned long long>(nearest));
  }
}

void end_by_signal(int number, const char* phase, const CandidateMemory& own, Answer& answer) {
  if (number == SIGALRM) {
    answer.outcome = Outcome::timed_out;
    snprintf(answer.message, sizeof answer.message, "%s: out of time", phase);
    return;
  }
  char where[128] = "";
  if (number == SIGSEGV || number == SIGBUS) explain_fault(fault_address, own, where, sizeof where);
  answer.outcome = Outcome::crashed;
  snprintf(answer.message, sizeof answer.message, "%s: %s%s", phase, fault_name(number), where);
}

void end_as_slower(double seconds, double limit, Answer& answer) {
  answer.outcome = Outcome::slower_than_limit;
  answer.count = 1;
  answer.seconds[0] = seconds;
  snprintf(answer.message, sizeof answer.message, "first run took %.3g s or more, the limit is %.3g s", seconds, limit);
}

// Repetitions of as many calls as the least time of one takes, until there are enough or the time is up. The signal
// that ended a call; 0: none.
int repeat(Kernel& kernel, const Request& request, double one_call, Answer& answer) {
  std::int64_t calls = 1;
  if (one_call < request.minimum_seconds) calls = std::int64_t(request.minimum_seconds / std::max(one_call, 1e-9)) + 1;
  while (answer.count < request.repetitions && clock_seconds() + one_call * double(calls) <= kernel.stop) {
    const int number = kernel.time(calls, kernel.stop);
    if (number == SIGALRM) return 0;
    if (number != 0) return number;
    const double elapsed = std::max(double(kernel.elapsed), 1e-9);
    one_call = elapsed / double(calls);
    if (elapsed < request.minimum_seconds) {  // more calls than the slower first run let expect
      const double factor = std::min(1.1 * request.minimum_seconds / elapsed, 10.0);
      calls = std::int64_t(double(calls) * factor) + 1;
      continue;
    }
    answer.seconds[answer.count++] = one_call;
  }
  return 0;
}

void measure(Kernel& kernel, const Request& request, Answer& answer) {
  CandidateMemory& own = kernel.own;
  const auto prepare = [&] { kernel.prepare(workload.buffers, own.prepared.data, own.scratch.data); };
  if (const int number = guarded(kernel.stop, prepare)) return end_by_signal(number, "prepare", own, answer);
  if (request.prepared_bytes > 0) {
    // What run may rely on, and must keep, is this alone.
    if (own.was_overrun(answer)) return;
    own.prepared.make_constant();
    own.scratch.spoil(0xff);
  }

  // The first run is cold: it may take twice the limit, and at least a millisecond more, before it is cut off, and a
  // second one decides.
  const double limit = request.abort_seconds;
  const auto cut_off = [&] { return limit > 0 ? clock_seconds() + limit + std::max(limit, 1e-3) : kernel.stop; };
  if (const int number = kernel.time(1, cut_off())) {
    if (number == SIGALRM && clock_seconds() < kernel.stop) return end_as_slower(kernel.elapsed, limit, answer);
    return end_by_signal(number, "run", own, answer);
  }
  const double first = kernel.elapsed;
  if (!check_outputs(own, request.tolerance_factor, answer)) return;
  for (int i = 0; i < workload.parts; ++i) {
    const Part& part = workload.part[i];
    if (part.result != 0) leave(part.result, workload.region[i].data, part.bytes);
  }
  if (request.constants_bytes > 0 &&
      !kernel.spread.make(request.constants_bytes, own.prepared.data, request.prepared_bytes))
    return say(answer, Outcome::out_of_memory, "no room for the constants in several places");
  double one_call = first;
  if (limit > 0 && first > limit) {
    const int number = kernel.time(1, cut_off());
    if (number != 0 && number != SIGALRM) return end_by_signal(number, "run", own, answer);
    one_call = kernel.elapsed;
    if (number != 0 || one_call > limit) return end_as_slower(one_call, limit, answer);
  }

  // Where slow candidates are cut off, times are for choosing the fastest: a long enough first run is one of them.
  if (limit > 0 && one_call >= request.minimum_seconds && answer.count < request.repetitions) {
    answer.seconds[answer.count++] = one_call;
  }
  if (const int number = repeat(kernel, request, one_call, answer)) return end_by_signal(number, "run", own, answer);
  // Constants in another place must make no difference.
  if (!kernel.spread.is_one_place() && answer.count > 0 && !check_outputs(own, request.tolerance_factor, answer))
    return;
  // Correct, but too slow to be run again in the time allowed: the run that was checked is its measurement.
  if (request.repetitions > 0 && answer.count == 0) answer.seconds[answer.count++] = first;
}

// The calls of a sequence in order, as often as there are repetitions.
void measure_calls(Kernel& kernel, const Request& request, Answer& answer) {
  constexpr int least_rounds = 3;
  const std::size_t bytes = std::size_t(request.calls) * sizeof(double);
  Region times;
  if (!times.make(bytes, false)) return say(answer, Outcome::out_of_memory, "no room for the times of calls");
  double* const seconds = reinterpret_cast<double*>(times.data);
  volatile int rounds = 0;
  const int number = guarded(kernel.stop, [&] {
    for (int round = 0; round < std::max<int>(request.repetitions, least_rounds); ++round) {
      for (int c = 0; c < request.calls; ++c) {
        const double begin = seconds_on(CLOCK_MONOTONIC);
        kernel.table[c](workload.buffers, kernel.prepared, kernel.own.scratch.data, parallel_for, nullptr);
        const double took = seconds_on(CLOCK_MONOTONIC) - begin;
        if (round == 0 || took < seconds[c]) seconds[c] = took;
      }
      rounds = round + 1;
    }
  });
  if (number != 0 && number != SIGALRM) {
    end_by_signal(number, "run", kernel.own, answer);
  } else if (rounds > 0) {
    leave(request.call_seconds, seconds, bytes);
  }
  times.drop();
}

void take_candidate(const Request& request, int file, Answer& answer) {
  if (!workload.ready) return say(answer, Outcome::crashed, "there is no workload");
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    answer.outcome = Outcome::crashed;
    snprintf(answer.message, sizeof answer.message, "cannot be loaded: %s", dlerror());
    return;
  }
  char name[96];
  Kernel kernel;
  snprintf(name, sizeof name, "%s_prepare", request.symbol);
  kernel.prepare = reinterpret_cast<Prepare>(dlsym(library, name));
  snprintf(name, sizeof name, "%s_run", request.symbol);
  kernel.run = reinterpret_cast<Run>(dlsym(library, name));
  snprintf(name, sizeof name, "%s_calls", request.symbol);
  kernel.table = reinterpret_cast<const Run*>(dlsym(library, name));

  CandidateMemory& own = kernel.own;
  if (kernel.prepare == nullptr || kernel.run == nullptr || (request.calls > 0 && kernel.table == nullptr)) {
    say(answer, Outcome::crashed, "has no kernel of that name");
  } else if (!use_threads(request.threads)) {
    answer.outcome = Outcome::out_of_memory;
    snprintf(answer.message, sizeof answer.message, "no room for %d threads", request.threads);
  } else if (!own.make(request, workload.at_begin)) {
    answer.outcome = Outcome::out_of_memory;
    snprintf(answer.message, sizeof answer.message, "no room for %llu bytes of prepared constants and scratch",
             static_cast<unsigned long long>(request.prepared_bytes + request.scratch_bytes));
  } else {
    own.prepared.spoil(0xff);
    own.scratch.spoil(0xff);
    kernel.prepared = request.constants != 0 ? workload.file + request.constants : own.prepared.data;
    for (int i = 0; i < workload.parts; ++i) {
      // NaN in floating point: an element that is never written cannot pass, nor one left by the candidate before.
      if (workload.part[i].written != 0)
        workload.region[i].spoil(is_floating(workload.part[i].element) ? unwritten : 0xa5);
    }
    kernel.stop = clock_seconds() + request.timeout_seconds;
    measure(kernel, request, answer);
    if (request.calls > 0 && answer.outcome == Outcome::ok) measure_calls(kernel, request, answer);
  }
  kernel.spread.drop();
  own.drop();
  dlclose(library);
}

}  // namespace

int main() {
  is_main = true;
  if (!install_guard()) return 1;
  constexpr double reference_every = 2;  // seconds
  double reference_seconds = reference_kernel(20);
  double reference_at = seconds_on(CLOCK_MONOTONIC);
  Request request;
  int file = -1;
  while (receive(request, file)) {
    Answer answer;
    if (request.kind == Kind::workload) {
      take_workload(request, file, answer);
    } else {
      if (seconds_on(CLOCK_MONOTONIC) - reference_at > reference_every) {
        reference_seconds = reference_kernel(5);
        reference_at = seconds_on(CLOCK_MONOTONIC);
      }
      take_candidate(request, file, answer);
    }
    answer.reference_seconds = reference_seconds;
    if (file >= 0) close(file);
    if (!reply(answer)) return 1;
  }
  return 0;
}
