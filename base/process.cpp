#include "base/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <cerrno>
#include <climits>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/posix.h"

namespace graft::base {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(std::string_view action, int error) {
  throw Failure(fmt::format("cannot {}: {}", action, system_message(error)));
}

std::pair<Descriptor, Descriptor> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail("make a pipe", errno);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// Clock::now() plus milliseconds::max() would be in the past.
Clock::time_point after(std::chrono::milliseconds wait) {
  return Clock::now() + std::min<std::chrono::milliseconds>(wait, std::chrono::hours(24 * 365));
}

// The time left for poll: rounded up, so that a wait does not end just before its deadline and spin.
int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return int(std::clamp<std::int64_t>(left, 0, INT_MAX));
}

// PR_SET_PDEATHSIG fires when the *thread* that forked ends, not its process. A partner may be started by a thread that
// ends long before the partner shall, so all children are forked by one thread that never ends. A copy of the process
// (os.fork() of Python) has no such thread, and makes one.
class Forker {
 public:
  static void run(const std::function<void()>& job) {
    Forker& forker = of_this_process();
    bool done = false;
    std::unique_lock lock(forker.mutex_);
    forker.jobs_.push_back({&job, &done});
    forker.changed_.notify_all();
    forker.changed_.wait(lock, [&] { return done; });
  }

 private:
  struct Job {
    const std::function<void()>* call;
    bool* done;
  };

  static Forker& of_this_process() {
    [[maybe_unused]] static const int in_copies = ::pthread_atfork(nullptr, nullptr, [] { current_ = nullptr; });
    if (Forker* const forker = current_) return *forker;
    // Never destroyed: the thread waits in it until the process ends.
    auto made = std::make_unique<Forker>();
    Forker* before = nullptr;
    if (!current_.compare_exchange_strong(before, made.get())) return *before;
    made->begin();
    return *made.release();
  }

  void begin() {
    // Signals belong to the program's own threads: a handler shall interrupt their calls, not this one's.
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([this] { serve(); }).detach();
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return !jobs_.empty(); });
      const Job job = jobs_.front();
      jobs_.pop_front();
      (*job.call)();
      *job.done = true;
      changed_.notify_all();
    }
  }

  static inline std::atomic<Forker*> current_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
};

struct Wiring {
  std::array<int, 4> descriptors;  // of ours, to become 0, 1, 2, 3 in the child; -1 is closed there
  std::int64_t address_space_bytes = 0;
};

// Between vfork and exec, in the memory of a process with other threads: only async-signal-safe calls, no allocation. No
// signal is taken before its handler is the standard one: the thread that forks blocks all of them.
[[noreturn]] void become(char* const* argv, const Wiring& wiring, int error_pipe, pid_t parent) {
  const auto give_up = [](int pipe) {
    const int error = errno;
    [[maybe_unused]] const ssize_t written = ::write(pipe, &error, sizeof error);
    ::_exit(127);
  };
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it ended before the line above

  // First away from the numbers that are to be given.
  const int report = ::fcntl(error_pipe, F_DUPFD_CLOEXEC, 16);
  if (report < 0) give_up(error_pipe);
  std::array<int, 4> sources = wiring.descriptors;
  for (int& source : sources) {
    if (source >= 0 && (source = ::fcntl(source, F_DUPFD_CLOEXEC, 16)) < 0) give_up(report);
  }
  for (int i = 0; i < 4; ++i) {
    if (sources[std::size_t(i)] < 0) {
      ::close(i);
    } else if (::dup2(sources[std::size_t(i)], i) < 0) {
      give_up(report);
    }
  }
  if (::dup3(report, 4, O_CLOEXEC) < 0) give_up(report);
  ::close_range(5, UINT_MAX, 0);

  if (wiring.address_space_bytes > 0) {
    const rlimit limit{rlim_t(wiring.address_space_bytes), rlim_t(wiring.address_space_bytes)};
    if (::setrlimit(RLIMIT_AS, &limit) != 0) give_up(4);
  }
  const rlimit no_core{0, 0};  // a crashing candidate is daily business
  ::setrlimit(RLIMIT_CORE, &no_core);

  // Signals ignored or blocked here would remain so in the new program.
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) ::sigaction(number, &standard, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);

  ::execvp(argv[0], argv);
  give_up(4);
  ::_exit(127);
}

// The process number of the new program, which leads its own process group.
pid_t start(const std::vector<std::string>& argv, const Wiring& wiring) {
  assert(!argv.empty());
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  auto [error_in, error_out] = make_pipe();

  pid_t process = -1;
  int error = 0;
  const pid_t parent = ::getpid();
  const int error_pipe = error_out.get();
  Forker::run([&] {
    process = ::vfork();  // fork copies the tables of all memory that a search holds: 9 ms of a gigabyte
    if (process == 0) become(arguments.data(), wiring, error_pipe, parent);
    if (process < 0) error = errno;
  });
  if (process < 0) fail(fmt::format("start '{}'", argv[0]), error);
  // Also here, for the child may not have come that far when the group is needed.
  ::setpgid(process, process);
  error_out.reset();
  ssize_t got;
  do {
    got = ::read(error_in.get(), &error, sizeof error);  // ends empty at the exec
  } while (got < 0 && errno == EINTR);
  if (got == ssize_t(sizeof error)) {
    ::waitpid(process, nullptr, 0);
    fail(fmt::format("start '{}'", argv[0]), error);
  }
  return process;
}

int wait_for(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// Passes on the available bytes. False at the end of the stream.
bool drain(int descriptor, const std::function<void(std::string_view)>& take) {
  char buffer[1 << 16];
  for (;;) {
    const ssize_t got = ::read(descriptor, buffer, sizeof buffer);
    if (got == 0) return false;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN;
    take({buffer, std::size_t(got)});
  }
}

// Writes what fits. False when nothing more is to be written, or will be taken.
bool pour(int socket, std::string_view& input) {
  while (!input.empty()) {
    const ssize_t sent = ::send(socket, input.data(), input.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno == EAGAIN;
    input.remove_prefix(std::size_t(sent));
  }
  return false;
}

// At most `limit_bytes`, the rest is dropped.
std::function<void(std::string_view)> into(std::string& collected, std::int64_t limit_bytes) {
  return [&collected, limit_bytes](std::string_view piece) {
    const std::int64_t room = limit_bytes - std::int64_t(collected.size());
    collected.append(piece.substr(0, std::size_t(std::clamp<std::int64_t>(room, 0, std::int64_t(piece.size())))));
  };
}

}  // namespace

Finished run_process(const std::vector<std::string>& argv, std::chrono::milliseconds deadline,
                     std::int64_t limit_bytes) {
  std::string out;
  Exchange exchange;
  exchange.on_output = into(out, limit_bytes);
  Finished finished = run_process(argv, exchange, deadline, limit_bytes);
  finished.out = std::move(out);
  return finished;
}

Finished run_process(const std::vector<std::string>& argv, const Exchange& exchange, std::chrono::milliseconds deadline,
                     std::int64_t limit_bytes) {
  assert(!exchange.done);
  return *Dialogue(argv).exchange(exchange, deadline, limit_bytes);
}

class Dialogue::State {
 public:
  State(const std::vector<std::string>& argv, std::int64_t address_space_bytes) {
    int ends[2];  // a socket, for writing to a pipe that nobody reads is a signal
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) fail("make a socket", errno);
    input_ = Descriptor(ends[0]);
    const Descriptor child_input(ends[1]);
    auto [out, child_out] = make_pipe();
    auto [err, child_err] = make_pipe();
    ::fcntl(out.get(), F_SETFL, O_NONBLOCK);
    ::fcntl(err.get(), F_SETFL, O_NONBLOCK);
    out_ = std::move(out);
    err_ = std::move(err);
    process_ = start(argv, {.descriptors = {child_input.get(), child_out.get(), child_err.get(), -1},
                            .address_space_bytes = address_space_bytes});
    // Readable at the process's end. (glibc 2.36 declares pidfd_open without extern "C".)
    watch_ = Descriptor(int(::syscall(SYS_pidfd_open, process_, 0)));
    if (watch_.get() < 0) {
      const int error = errno;
      end();
      fail("watch a process", error);
    }
  }
  ~State() { end(); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  bool alive() {
    if (process_ < 0) return false;
    pollfd wait{watch_.get(), POLLIN, 0};
    return ::poll(&wait, 1, 0) <= 0;
  }

  std::optional<Finished> exchange(const Exchange& exchange, std::chrono::milliseconds deadline,
                                   std::int64_t limit_bytes) {
    assert(process_ >= 0);
    const Clock::time_point end_at = after(deadline);
    Finished finished;
    std::string_view left = exchange.input;
    if (left.empty() && exchange.input_ends) input_.reset();
    const auto take_err = exchange.on_error ? exchange.on_error : into(finished.err, limit_bytes);
    Clock::time_point silent = after(exchange.silence);
    for (bool ended = false; !ended;) {
      const bool pouring = input_.get() >= 0 && !left.empty();
      pollfd waits[] = {{watch_.get(), POLLIN, 0},
                        {out_.get(), POLLIN, 0},
                        {err_.get(), POLLIN, 0},
                        {pouring ? input_.get() : -1, POLLOUT, 0}};
      constexpr int between_questions = 200;  // milliseconds
      const bool may_be_quiet = exchange.quiet.count() > 0;
      const int most = may_be_quiet ? int(exchange.quiet.count()) : exchange.stop ? between_questions : INT_MAX;
      const int ready = ::poll(waits, 4, std::min(most, milliseconds_until(std::min(end_at, silent))));
      if (ready < 0 && errno != EINTR) fail("wait for a process", errno);
      finished.timed_out =
          (ready == 0 && Clock::now() >= std::min(end_at, silent)) || (exchange.stop && exchange.stop());
      if (ready > 0) silent = after(exchange.silence);
      // The program has ended or must end. Its children must not outlive it, and are killed while its number, still
      // unreaped, cannot belong to another group.
      ended = finished.timed_out || (ready > 0 && waits[0].revents != 0);
      if (ended) ::kill(-process_, SIGKILL);
      if (pouring && waits[3].revents != 0) {
        if (!pour(input_.get(), left)) left = {};
        if (left.empty() && exchange.input_ends) input_.reset();
      }
      if (out_.get() >= 0 && !drain(out_.get(), exchange.on_output)) out_.reset();
      if (err_.get() >= 0 && !drain(err_.get(), take_err)) err_.reset();
      if (!ended && exchange.done && exchange.done()) return std::nullopt;
      if (!ended && may_be_quiet && ready == 0) return std::nullopt;
    }
    const int status = end();
    if (WIFEXITED(status)) finished.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) finished.signal = WTERMSIG(status);
    return finished;
  }

 private:
  int end() {
    if (process_ < 0) return 0;
    ::kill(-process_, SIGKILL);
    return wait_for(std::exchange(process_, -1));
  }

  pid_t process_ = -1;
  Descriptor input_, out_, err_, watch_;
};

Dialogue::Dialogue(const std::vector<std::string>& argv, std::int64_t address_space_bytes)
    : state_(std::make_unique<State>(argv, address_space_bytes)) {}
Dialogue::~Dialogue() = default;

bool Dialogue::alive() {
  return state_->alive();
}

std::optional<Finished> Dialogue::exchange(const Exchange& exchange, std::chrono::milliseconds deadline,
                                           std::int64_t limit_bytes) {
  return state_->exchange(exchange, deadline, limit_bytes);
}

Partner::Partner(const std::vector<std::string>& argv, std::int64_t address_space_bytes) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) fail("make a socket", errno);
  Descriptor ours(ends[0]);
  const Descriptor theirs(ends[1]);
  const Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (nothing.get() < 0) fail("open /dev/null", errno);
  // Its standard output is our standard error: ours carries results only.
  process_ = start(argv, {.descriptors = {nothing.get(), STDERR_FILENO, STDERR_FILENO, theirs.get()},
                          .address_space_bytes = address_space_bytes});
  socket_ = ours.release();
}

Partner::~Partner() {
  kill();
  ::close(socket_);
}

bool Partner::alive() {
  if (process_ < 0) return false;
  siginfo_t ended{};
  // Looks without reaping, so that `kill` can still reach the rest of the group.
  if (::waitid(P_PID, id_t(process_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == 0) return true;
  kill();
  return false;
}

bool Partner::send(const void* bytes, std::size_t count, const std::vector<int>& descriptors) {
  assert(count > 0 || descriptors.empty());  // descriptors travel with the first byte
  // A partner that takes nothing for so long is lost, and is made so.
  const Clock::time_point end = after(std::chrono::seconds(60));
  std::vector<char> control(descriptors.empty() ? 0 : CMSG_SPACE(sizeof(int) * descriptors.size()));
  const char* next = static_cast<const char*>(bytes);
  while (count > 0) {
    pollfd wait{socket_, POLLOUT, 0};
    const int ready = ::poll(&wait, 1, milliseconds_until(end));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      kill();
      return false;
    }
    iovec piece{const_cast<char*>(next), count};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    if (!control.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* const header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int) * descriptors.size());
      std::memcpy(CMSG_DATA(header), descriptors.data(), sizeof(int) * descriptors.size());
    }
    const ssize_t sent = ::sendmsg(socket_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (sent < 0) {
      if (errno == EPIPE || errno == ECONNRESET) return false;
      fail("send to a partner", errno);
    }
    control.clear();
    next += sent;
    count -= std::size_t(sent);
  }
  return true;
}

bool Partner::wait(std::chrono::milliseconds longest) {
  const Clock::time_point end = after(longest);
  for (;;) {
    pollfd wait{socket_, POLLIN, 0};
    const int ready = ::poll(&wait, 1, milliseconds_until(end));
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) fail("wait for a partner", errno);
    return ready > 0;
  }
}

Partner::Received Partner::receive(void* bytes, std::size_t count, std::chrono::milliseconds deadline) {
  const Clock::time_point end = after(deadline);
  char* next = static_cast<char*>(bytes);
  while (count > 0) {
    pollfd wait{socket_, POLLIN, 0};
    const int ready = ::poll(&wait, 1, milliseconds_until(end));
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) fail("receive from a partner", errno);
    if (ready == 0) return Received::timed_out;
    const ssize_t got = ::recv(socket_, next, count, MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0 && errno != ECONNRESET) fail("receive from a partner", errno);
    if (got <= 0) return Received::gone;
    next += got;
    count -= std::size_t(got);
  }
  return Received::all;
}

void Partner::kill() {
  if (process_ < 0) return;
  ::kill(-process_, SIGKILL);
  wait_for(process_);
  process_ = -1;
  // What it started may hold the other end a moment longer. What has already arrived can still be received.
  ::shutdown(socket_, SHUT_RDWR);
}

}  // namespace graft::base
