#include "codegen/machine/cpuinfo.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "base/process.h"
#include "codegen/machine/compile.h"
#include "tests/base/support.h"

namespace graft::codegen {
namespace {

Target described(const std::string& machine, const std::string& cpuinfo) {
  return target_of_cpuinfo(machine, cpuinfo).target;
}

TEST(Cpuinfo, ReadsRiscv) {
  const Target vector = described("riscv64", "processor\t: 0\nisa\t\t: rv64imafdcv_zba_zbb_xunheardof\nmmu\t: sv39\n");
  EXPECT_EQ(vector.triple, "riscv64-unknown-linux-gnu");
  EXPECT_EQ(vector.cpu, "generic-rv64");
  EXPECT_EQ(vector.features, "+m,+a,+f,+d,+c,+v,+zba,+zbb");
  EXPECT_EQ(vector.vector_bits, 128);
  EXPECT_EQ(vector.vector_registers, 32);
  const Target scalar = described("riscv64", "isa : rv64gc\n");
  EXPECT_EQ(scalar.features, "+m,+a,+f,+d,+c");
  EXPECT_EQ(scalar.vector_bits, 0);
  EXPECT_EQ(described("riscv64", "").features, "+m,+a,+f,+d,+c");
}

TEST(Cpuinfo, ReadsArmAndX86) {
  const Target pi = described("aarch64", "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd08\n");
  EXPECT_EQ(pi.cpu, "cortex-a72");
  EXPECT_EQ(pi.vector_bits, 128);
  EXPECT_EQ(described("aarch64", "nothing of use\n").cpu, "generic");
  const std::string v3 = "flags : sse4_2 ssse3 popcnt cx16 avx2 fma bmi2 f16c movbe";
  EXPECT_EQ(described("x86_64", v3 + "\n").cpu, "x86-64-v3");
  EXPECT_EQ(described("x86_64", v3 + "\n").vector_bits, 256);
  EXPECT_EQ(described("x86_64", v3 + " avx512f avx512bw avx512cd avx512dq avx512vl\n").vector_registers, 32);
  EXPECT_EQ(described("x86_64", "flags : sse4_2 ssse3 popcnt cx16 avx\n").cpu, "x86-64-v2");
  EXPECT_EQ(described("x86_64", "").cpu, "x86-64");
  EXPECT_EQ(described("ppc64le", "").cpu, "ppc64le");
}

TEST(Cpuinfo, RefusesOtherArchitectures) {
  EXPECT_THROW(described("sparc64", ""), base::UserError);
  Target other = described("x86_64", "");
  other.triple = "s390x-unknown-linux-gnu";
  other.cpu = "z14";
  EXPECT_FALSE(probe_program(other).ok());
}

struct Met {
  std::string out;
  int code;
  bool operator==(const Met&) const = default;
};
std::ostream& operator<<(std::ostream& stream, const Met& met) {
  return stream << met.code << " after " << met.out;
}

// What the program says under a command, and how it ends.
Met met(const std::vector<std::string>& prefix, const Target& target) {
  const auto program = probe_program(target);
  if (!program) return {program.reason().text, -1};
  const base::Folder folder;
  const auto path = folder / "program";
  std::ofstream(path, std::ios::binary) << *program;
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  std::vector<std::string> command = prefix;
  command.push_back(path.string());
  const base::Finished finished = base::run_process(command, std::chrono::seconds(20));
  return {finished.out, finished.signal != 0 ? 128 + finished.signal : finished.exit_code};
}

const std::string started = "{\"graft\":1}\n", went_on = started + "{\"begin\":0}\n";

TEST(Cpuinfo, TheLengthOfVectorsIsAskedOfTheMachine) {
  if (std::system("qemu-riscv64 --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "qemu-riscv64 is not installed";
  const Target riscv = described("riscv64", ""), arm = described("aarch64", ""), power = described("ppc64le", "");
  EXPECT_EQ(met({"qemu-riscv64", "-cpu", "rv64,v=true,vext_spec=v1.0,vlen=512"}, riscv), Met({went_on, 64}));
  EXPECT_EQ(met({"qemu-riscv64", "-cpu", "rv64,v=false"}, riscv), Met({went_on, 128 + SIGILL}));
  EXPECT_EQ(met({"qemu-riscv64", "-cpu", "rv64,d=false,f=false"}, riscv), Met({started, 128 + SIGILL}));
  EXPECT_EQ(met({"qemu-aarch64", "-cpu", "max,sve512=on"}, arm), Met({went_on, 64}));
  EXPECT_EQ(met({"qemu-aarch64", "-cpu", "cortex-a72"}, arm), Met({went_on, 128 + SIGILL}));
  EXPECT_EQ(met({"qemu-ppc64le", "-cpu", "power9"}, power), Met({went_on, 16}));
}

TEST(Cpuinfo, TheVectorsOfThisHostRun) {
  const Target host = host_target();
  if (!host.triple.starts_with("x86_64")) GTEST_SKIP() << "not for " << host.triple;
  EXPECT_EQ(met({}, host), Met({went_on, int(host.vector_bits / 8)}));
  if (std::system("qemu-x86_64 --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "qemu-x86_64 is not installed";
  const std::string v3 = "flags : sse4_2 ssse3 popcnt cx16 avx2 fma bmi2 f16c movbe";
  EXPECT_EQ(met({"qemu-x86_64", "-cpu", "Nehalem"}, described("x86_64", v3)), Met({went_on, 128 + SIGILL}));
  EXPECT_EQ(met({"qemu-x86_64", "-cpu", "Nehalem"}, described("x86_64", "flags : sse4_2 ssse3 popcnt cx16")),
            Met({went_on, 16}));
}

}  // namespace
}  // namespace graft::codegen
