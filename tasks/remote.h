// Measures on remote machines: programs become static executables, several of one workload in each, which a board runs
// (board.h); their outputs are compared with the reference here. qemu-user is such a board, for checks: its times are
// never measurements, and the platform's source says "emulated".
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codegen/expression/target.h"
#include "codegen/machine/code.h"
#include "codegen/program/program.h"
#include "datasets/trial.h"
#include "tasks/board.h"
#include "tasks/device.h"
#include "tasks/expected.h"
#include "tasks/measurer.h"

namespace graft::tasks {

// One program alone: prepare once, run once, and `repetitions` times more that are timed on the other side's wall clock
// (0: the first run is the only time). Never throws for faults of the program: ok with the seconds, wrong_result,
// crashed, timed_out, does_not_compile, or unsupported if freestanding code cannot run it. `check` is "qemu" for
// a prefix of qemu, else "remote". Throws Failure when the command cannot be started, base::Stopped when the monitor
// asks for it.
datasets::Measurement run_under(const std::vector<std::string>& prefix, const codegen::LoopProgram& program,
                                const codegen::Target& target, const Expected& expected, int repetitions,
                                std::chrono::milliseconds deadline, base::Monitor* monitor = nullptr);

// The same for a kernel that is compiled already, where `remote` runs it (a prefix of no words: on this machine).
// `outputs`, if given: as the kernel stored them, consecutively.
datasets::Measurement run_object(const Remote& remote, const codegen::Code& object, const codegen::Target& target,
                                 const Expected& expected, int repetitions, std::chrono::milliseconds deadline,
                                 base::Monitor* monitor = nullptr, std::string* outputs = nullptr);

// What a program wrote that runs one kernel, or a sequence of them, without anyone who knows the results.
struct ProgramRun {
  datasets::Measurement measurement;  // ok with the seconds of each repetition, crashed or timed_out
  std::string outputs;                // as the kernel stored them, consecutively
};
// How this machine can run code of a platform, or why it cannot.
struct CodeRunner {
  std::optional<Remote> where;
  std::string check, reason;  // "host", "qemu", "remote", or "none" and why
};
// Runs an executable of codegen::link_sequence_program where `remote` says (a prefix of no words: on this machine).
// Throws as run_under.
ProgramRun run_program(const Remote& remote, const std::string& executable, std::chrono::milliseconds deadline,
                       base::Monitor* monitor = nullptr);

// Boards, or a prefix. Its measurer: candidates of one workload are sent together, four and later eight at a time;
// boards of a list work on different ones at the same time, each on one. A program that crashes or hangs ends its
// executable: it gets its status, the others are sent again. A wrong result or a crash counts only for the first
// program of its executable: for others it may be the effect of an earlier one, and they are run again alone. A board
// that does not answer or is lost in the middle is tried again after retry_seconds, twice as long each time, with what
// has no result yet; a program during which it was lost twice is `crashed`. After `attempts` without any result, or at
// once if retrying cannot help (Delivery::permanent), measure() throws Failure, unless another board is left. UserError
// for settings with less than one repetition or no time.
std::shared_ptr<const Device> remote_device(Remote remote);
std::shared_ptr<const Device> read_remote(const base::Document& own, const base::Document& whole,
                                          const std::string& file, codegen::Target& target);

}  // namespace graft::tasks
