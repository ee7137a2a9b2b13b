// A target from what a Linux machine reports about its cpu: for boards that graft itself cannot run on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "codegen/expression/target.h"

namespace graft::codegen {

struct CpuinfoTarget {
  Target target;                     // without caches, of which the text says nothing
  std::int64_t kinds = 1;            // of cores
  bool assumes_vector_bits = false;  // nothing says how long vectors are: the least length
  std::vector<std::string> notes;    // on what was decided: for people, a line each
};

// Triple, cpu, features, vector bits and registers, and cores, from `uname -m` and the text of /proc/cpuinfo (may be
// empty: then the least that the architecture has). Cores of several kinds: those of the kind of processor `core`, or,
// by -1, all, with what all of them run. RVV is as long as the extensions or the cpu say (zvl256b), 128 bits where they
// do not; SVE is left out, because its length is not in the text: see probe_program. Vectors of RVV 0.7.1, whose code
// is another one, count as none: by the version where the text gives it, by vendor, architecture and implementation,
// by the core's name. UserError for an architecture other than x86_64, aarch64, riscv64 and ppc64le, and for a
// processor that the text does not list.
CpuinfoTarget target_of_cpuinfo(const std::string& machine, const std::string& cpuinfo, std::int64_t core = -1);

// The target with vectors of the length that a program found (probe_program): 0 bits are none of RVV, or no SVE. Other
// architectures stay as they are.
Target with_vectors(Target target, std::int64_t bits);

// `uname -m`, as the text itself shows it: by "isa : rv64...", "Features" with asimd, "flags" of x86, or "cpu :
// POWER...". "" where it shows none of these.
std::string machine_of_cpuinfo(const std::string& cpuinfo);
// What it calls the machine ("Raspberry Pi 4 Model B Rev 1.4", a processor's name); "" where it does not say.
std::string name_of_cpuinfo(const std::string& cpuinfo);

// A static executable that finds out what a machine really runs. It writes {"graft":1} as its first line, executes what
// every program of ours may have in it (riscv64: rv64gc; aarch64: ASIMD; x86_64: SSE2; ppc64le: VSX), writes
// {"begin":0}, executes an instruction or two of the longest vectors (RVV 1.0; SVE; for x86_64 the extension that the
// target's vector_bits mean: SSE4.2, AVX2 with FMA, AVX-512 with BW; for ppc64le VSX again), and leaves with the bytes
// of such a vector as its exit code, 0 meaning 256. A machine that lacks the instructions ends it by SIGILL. A Reason
// for other architectures.
base::Result<std::string> probe_program(const Target& target);

// Extensions of the target, by LLVM's names, that its code may use and machines of its architecture may lack: those
// that extension_program has an instruction of.
std::vector<std::string> extensions_to_try(const Target& target);
// A static executable that writes the lines of probe_program, executes an instruction of each of these extensions of
// the target, and leaves with 0. A machine that lacks one of them ends it by SIGILL. A Reason as for probe_program.
base::Result<std::string> extension_program(const Target& target, const std::vector<std::string>& extensions);
// The target without these extensions, and without those that need them.
Target without_extensions(Target target, const std::vector<std::string>& extensions);

}  // namespace graft::codegen
