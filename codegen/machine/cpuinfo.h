// A target from what a Linux machine reports about its cpu: for boards that graft itself cannot run on.
#pragma once

#include <string>

#include "base/error.h"
#include "codegen/expression/target.h"

namespace graft::codegen {

// Triple, cpu, features, vector bits and registers, from `uname -m` and the text of /proc/cpuinfo (may be empty: then
// the least that the architecture has). RVV is as long as the extensions say (zvl256b), 128 bits where they do not, and
// SVE is left out, because its length is not among them: see probe_program. XuanTie's C9xx before 2024 say "v" of RVV
// 0.7.1, whose code is another one: they have none. UserError for an architecture other than x86_64, aarch64 and
// riscv64.
Target target_of_cpuinfo(const std::string& machine, const std::string& cpuinfo);

// `uname -m`, as the text itself shows it: by "isa : rv64...", "Features" with asimd, or "flags" of x86. "" where it
// shows none of these.
std::string machine_of_cpuinfo(const std::string& cpuinfo);
// Number of processors that it lists, at least 1.
std::int64_t cores_of_cpuinfo(const std::string& cpuinfo);
// What it calls the machine ("Raspberry Pi 4 Model B Rev 1.4", a processor's name); "" where it does not say.
std::string name_of_cpuinfo(const std::string& cpuinfo);

// A static executable that finds out what a machine really runs. It writes {"graft":1} as its first line, executes what
// every program of ours may have in it (riscv64: rv64gc; aarch64: ASIMD; x86_64: SSE2), writes {"begin":0}, executes an
// instruction or two of the longest vectors (RVV 1.0; SVE; for x86_64 the extension that the target's vector_bits mean:
// SSE4.2, AVX2 with FMA, AVX-512 with BW), and leaves with the bytes of such a vector as its exit code, 0 meaning 256.
// A machine that lacks the instructions ends it by SIGILL. A Reason for other architectures.
base::Result<std::string> probe_program(const Target& target);

}  // namespace graft::codegen
