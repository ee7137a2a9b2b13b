// lld, in process, behind one lock: the only linker.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "codegen/expression/reference.h"
#include "codegen/expression/target.h"
#include "codegen/machine/code.h"

namespace graft::codegen {

// A relocatable object as pieces of memory that follow one another, so that large data need not be copied.
class Pieces {
 public:
  Pieces(std::string_view whole) : all_{whole} {}
  Pieces(const std::string& whole) : all_{whole} {}
  explicit Pieces(std::vector<std::string_view> all) : all_(std::move(all)) {}
  const std::vector<std::string_view>& all() const { return all_; }

 private:
  std::vector<std::string_view> all_;
};

// A shared object (bytes of an ELF file) for this host's dynamic loader; no libraries needed.
base::Result<std::string> link_shared(const std::vector<const Code*>& objects);
base::Result<std::string> link_shared_pieces(const std::vector<Pieces>& objects);

// How an executable runs each of its kernels, in a measurer's terms (tasks/measurer.h).
struct RunSettings {
  int repetitions = 3;         // timed ones; 0: the first run only
  double minimum_seconds = 0;  // of a repetition, which has as many runs as that takes
  double timeout_seconds = 0;  // of one kernel in total, wall time: SIGALRM ends the program; 0: no limit
  double abort_seconds = 0;    // > 0: a kernel whose first run takes longer is not timed
  // For a program that checks itself, by kernel: its name for people, and base::hash_bytes of its outputs. Empty:
  // the program writes the outputs instead.
  struct SelfCheck {
    std::string name;
    std::uint64_t digest = 0;
  };
  std::vector<SelfCheck> self_checks = {};
};

// A static, freestanding executable for the target (Linux system calls only: write, exit, clock_gettime, setitimer)
// with kernels of one computation, whose symbols differ. For each in turn: inputs as reference(computation, seed) has
// them, outputs and memory of its own filled with ones (floats: NaN), prepare, scratch
// filled again, a first run, then `repetitions` of as many runs
// as make minimum_seconds (fewer of either where they would take more than half of timeout_seconds). On standard
// output, one line before and one after each kernel; times are in nanoseconds, each for all runs of a repetition:
//   {"graft":1,"kernels":2}
//   {"begin":0}
//   {"end":0,"first":1200,"runs":3,"times":[3300,3250,3270],"bytes":N}
// and after the latter N raw bytes: the outputs as the kernel stores them, consecutively. Inputs are embedded as
// data that cannot be written. It has one thread: parallel loops run one iteration after the other. One that checks
// itself writes a line for each kernel instead, "NAME: 1100 ns, results right" (or "results WRONG"), with the least
// time of a run, and ends with 1 if a result was wrong. A Reason for an architecture other than x86_64, riscv64,
// aarch64, ppc64le. At least one object.
base::Result<std::string> link_executable(const std::vector<const Code*>& objects, const Target& target,
                                          const Computation& computation, const Reference& reference,
                                          const RunSettings& settings);

// A static executable of relocatable objects, one of which has `_start`.
base::Result<std::string> link_program(const std::vector<Pieces>& objects);

// One relocatable object of several.
base::Result<std::string> link_relocatable(const std::vector<Pieces>& objects);

// The symbols that an ELF file defines, by name: the linked addresses of its code and data, for observers of its
// execution.
struct Symbol {
  std::uint64_t address = 0, bytes = 0;
};
std::map<std::string, Symbol> symbols_of(const std::string& elf);  // Failure if it is not an ELF file

}  // namespace graft::codegen
