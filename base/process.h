// Child processes with a deadline: run to the end and collect the output, talk to, or keep as a partner on a socket.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace graft::base {

struct Finished {
  int exit_code = -1;  // -1 when a signal ended it
  int signal = 0;
  bool timed_out = false;  // killed at the deadline
  std::string out, err;    // at most `limit_bytes` of each, the rest is read and dropped
};

// Runs argv[0] (searched in PATH) to its end in a process group of its own, which is killed at the deadline, and also
// when the program has ended: processes that it left running do not outlive it. Standard input is empty. Throws Failure
// if the program cannot be started.
Finished run_process(const std::vector<std::string>& argv, std::chrono::milliseconds deadline,
                     std::int64_t limit_bytes = 64 << 20);

// Input to a program, and what happens to its output.
struct Exchange {
  std::string_view input;                           // on its standard input
  bool input_ends = true;                           // after `input`; otherwise it stays open
  std::function<void(std::string_view)> on_output;  // each piece of its standard output as it comes; must not throw
  // Each piece of its standard error as it comes, `err` stays empty; must not throw. Without it: into `err`.
  std::function<void(std::string_view)> on_error = {};
  // The program is killed (timed_out) if it neither takes input nor writes anything for this long.
  std::chrono::milliseconds silence = std::chrono::hours(24);
  std::function<bool()> stop = {};  // asked a few times a second; true: it is killed (timed_out)
  std::function<bool()> done = {};  // asked after output; true: the exchange is over, though the program keeps running
  // The exchange is over, though the program keeps running, when it has written nothing for this long; 0: it is not.
  std::chrono::milliseconds quiet{0};
};
// Otherwise as run_process above, without `done`; `out` stays empty.
Finished run_process(const std::vector<std::string>& argv, const Exchange& exchange, std::chrono::milliseconds deadline,
                     std::int64_t limit_bytes = 1 << 20);

// A program that is talked to over its standard input and output, in any number of exchanges while it runs. One thread
// at a time. Throws Failure if it cannot be started.
class Dialogue {
 public:
  // `address_space_bytes`: as of Partner.
  explicit Dialogue(const std::vector<std::string>& argv, std::int64_t address_space_bytes = 0);
  ~Dialogue();  // kills its process group and reaps
  Dialogue(const Dialogue&) = delete;
  Dialogue& operator=(const Dialogue&) = delete;

  bool alive();  // false once it has ended
  // nullopt if the exchange completed; otherwise how the program ended, and no more exchanges are possible. `err` is of
  // this exchange, `out` stays empty.
  std::optional<Finished> exchange(const Exchange& exchange, std::chrono::milliseconds deadline,
                                   std::int64_t limit_bytes = 1 << 20);

 private:
  class State;
  std::unique_ptr<State> state_;
};

// A persistent child that talks over a Unix stream socket, which it finds as descriptor 3; 0 is empty, 1 and 2 are our
// standard error, all others are closed. It dies with its parent process (PR_SET_PDEATHSIG), whatever becomes of the
// thread that made it. `address_space_bytes` = 0 means no limit (RLIMIT_AS). One thread at a time. Throws Failure if
// the program cannot be started.
class Partner {
 public:
  Partner(const std::vector<std::string>& argv, std::int64_t address_space_bytes);
  ~Partner();  // kills and reaps
  Partner(const Partner&) = delete;
  Partner& operator=(const Partner&) = delete;

  bool alive();  // false once it has ended
  // Whole messages of raw bytes; `descriptors` are sent with the first byte by SCM_RIGHTS. False if the partner is
  // gone; a partner that takes nothing for a minute is killed.
  bool send(const void* bytes, std::size_t count, const std::vector<int>& descriptors = {});
  // Whether there is something to receive, or the partner is gone; waits at most `longest`.
  bool wait(std::chrono::milliseconds longest);
  enum class Received { all, gone, timed_out };
  // After `timed_out` or `gone` a part of the message may have been taken: the partner is no longer usable.
  Received receive(void* bytes, std::size_t count, std::chrono::milliseconds deadline);
  void kill();  // its whole process group

 private:
  int process_ = -1;
  int socket_ = -1;
};

}  // namespace graft::base
