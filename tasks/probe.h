// Probes a board or this machine: the YAML of a platform to measure on.
#pragma once

#include <string>
#include <vector>

#include "base/monitor.h"
#include "tasks/board.h"
#include "tasks/platform.h"

namespace graft::tasks {

struct Probed {
  std::string yaml;
  std::string saw;                 // what our probe program found there: "riscv64 with RVV of 256 bits"
  std::vector<std::string> notes;  // what was decided on the way (codegen/machine/cpuinfo.h), also in the YAML
};

// `board` says how to reach it: one destination, and the runner if there is one; or a prefix on this machine. The
// platform "ssh:NAME" (NAME: the destination's host) or "here:ARCH" with all that its /proc and /sys report:
// architecture, cpu, features, cores, caches; comments name the cpu, its clock and its governor. Under qemu-ARCH the
// architecture is that one, its cpu unknown and its caches absent. The length of vectors is found by a program of ours
// (codegen::probe_program), which runs as candidates will. Failure, with the remedy if one is known, if the
// board does not answer or that program does not run; UserError for an architecture that graft cannot generate code
// for.
Probed probed(const Remote& board);
// The same without a board, from what its /proc/cpuinfo says. `isa`: in place of what the text says of extensions (the
// line "isa" of riscv64, "Features" of aarch64, "flags" of x86_64), or all that is known where there is no text; "":
// none. `board` says how it will be reached; where nothing does, the YAML says what to write there, and its name is
// "described:CPU". Nothing is run, so `saw` says so, and
// caches, which /proc/cpuinfo does not tell, are left out. But a prefix on this machine, such as qemu, is asked which
// of the board's extensions it runs; the others are left out, which a note says. UserError for a text that shows no
// architecture of ours, or with vectors that are longer than those of the prefix.
Probed described(const std::string& cpuinfo, const std::string& isa, Remote board);
// Throws UserError, with the line to write, if the prefix (on this machine) that `platform` is measured under ends a
// program of an extension or of vectors that the target has by an illegal instruction. Whatever else goes wrong there
// is left to the measurer to say.
void require_runs(const Platform& platform, const Remote& prefix);
// The id of the modelled platform of a core, by LLVM's name of it or Linux's ("spacemit-x60", "spacemit,x60"); "" if
// there is none.
std::string modelled_platform_of(std::string core);
// A note where a platform's times were an emulator's: what was fastest there need not be fast on hardware.
void note_emulated(const Platform& platform, base::Monitor& monitor);
// The platform `native`, when such a program has run on this machine.
Probed probed_here();

}  // namespace graft::tasks
