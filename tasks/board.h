// Runs an executable of kernels (codegen/machine/link.h) on its target: with a command prefix on this
// machine, or on a board. A board needs sshd, a POSIX shell, mktemp and head, nothing of ours, and nothing listens
// there: one shell on one ssh connection receives each executable, runs it, and sends back what it
// writes. When the connection ends, for whatever reason, that shell kills the program and removes the file.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "base/process.h"

namespace graft::tasks {

// An executable, run with a command prefix here or on boards that the OpenSSH client reaches.
struct Remote {
  std::vector<std::string>
      prefix;  // {"qemu-riscv64", "-cpu", "..."}: gets the executable's path (no word: run as it is); or:
  std::vector<std::string> ssh;     // destinations as ssh takes them: equal boards, all measured on at the same time
  std::string ssh_config;           // a file for ssh -F, in a YAML as seen from its folder; "": the user's own
  std::vector<std::string> runner;  // what runs the executable on a board; none: the board itself
  std::string folder = "/tmp";      // on a board, where executables are stored while they run
  std::int64_t core = -1;           // of a board, to which they are pinned if it has taskset; -1: any
  std::int64_t attempts = 6;        // consecutive attempts without a result at a board that does not answer
  double retry_seconds = 1;         // before the second one; then twice as long each time
  bool is_emulated() const;         // by qemu: no time is one of a device
};

// The words of a command in YAML; UserError if there are none.
std::vector<std::string> command_from(const base::Document& list);

// The executable's answer for one of its kernels.
struct Answer {
  int kernel = 0;
  double first = 0;             // seconds of the first run
  std::vector<double> seconds;  // of one run, by repetition
  std::string outputs;          // bytes
};

// Parses the output of an executable, piece by piece as it arrives.
class AnswerReader {
 public:
  // `kernels` of the executable. on_answer gets each of them at most once, in their order.
  AnswerReader(int kernels, std::function<void(Answer)> on_answer)
      : kernels_(kernels), on_answer_(std::move(on_answer)) {}
  // Bytes before the executable's first line (greetings of shells) are skipped, as is everything after a line that is
  // not its own.
  void read(std::string_view piece);

  bool has_begun() const { return stage_ != Stage::greetings; }  // the executable's first line was received
  int began_kernel() const { return began_; }                    // the last one that began; -1
  int answered() const { return answered_; }                     // the number of kernels that have ended
  int exit_code() const { return exit_code_; }         // as reported by the board's shell at the end; -1: not reported
  const std::string& state() const { return state_; }  // the board's report about itself; ""
  bool is_garbled() const { return stage_ == Stage::garbled; }

 private:
  enum class Stage { greetings, lines, outputs, garbled };
  void line(std::string_view text);
  void end_answer();

  const int kernels_;
  std::function<void(Answer)> on_answer_;
  Stage stage_ = Stage::greetings;
  std::string pending_;  // of a line, or of outputs
  std::size_t wanted_ = 0;
  Answer answer_;
  std::string state_;
  int began_ = -1, answered_ = 0, exit_code_ = -1;
};

// One execution.
struct Delivery {
  int answered = 0;
  bool started = false;  // the executable's first line was received
  int began = -1;        // the last kernel that began
  bool ended = false;    // the program itself ended, in a known way:
  int exit_code = 0;     // 128 + signal if a signal ended it
  std::string reason;    // why it ended too early, one line; empty if all is well
  // Retrying cannot help (a missing file of ssh's configuration, an unknown host key, a refused key, a folder that
  // is missing or full, a runner that does not start): `reason` ends with the remedy.
  bool permanent = false;
  std::string state;  // "performance governor, 45 C": the board's state before the run, if it could be read
};

// The destination `ssh[which]`, or the command prefix. The connection for executables stays until the object's end; a
// lost one is reopened.
class Board {
 public:
  Board(const Remote& remote, std::size_t which);
  const std::string& name() const { return name_; }
  // Begins to connect, so that the first executable need not wait for it. Errors are reported by the first
  // run, which connects if this was not called. Throws Failure if the command cannot be started.
  void open();
  // Runs an executable; each kernel's answer is passed on as soon as its outputs are complete. `silence`: the longest
  // time without a sign of life; `stop` is asked from time to time whether to end it. Throws Failure when the command
  // cannot be started.
  Delivery run(std::string_view executable, int kernels, std::chrono::milliseconds silence,
               const std::function<void(Answer)>& on_answer, const std::function<bool()>& stop = {});
  // The output of a POSIX shell script there, over a separate connection; on this machine for a command prefix. Failure
  // with ssh's message, and the remedy if one is known.
  std::string shell(const std::string& script, std::chrono::milliseconds deadline) const;

 private:
  std::vector<std::string> command(std::string_view script) const;
  // How it ended, if not at the end of the exchange.
  std::optional<base::Finished> converse(std::string_view executable, base::Exchange exchange);

  Remote remote_;
  std::string name_;
  bool reached_ = false;  // once
  std::unique_ptr<base::Dialogue> session_;
};

}  // namespace graft::tasks
