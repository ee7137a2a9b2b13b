#include "codegen/machine/cpuinfo.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
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

// What a program says under a command, and how it ends.
Met met(const std::vector<std::string>& prefix, const base::Result<std::string>& program) {
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

Met met(const std::vector<std::string>& prefix, const Target& target) {
  return met(prefix, probe_program(target));
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

TEST(Cpuinfo, EachExtensionHasAnInstructionThatLlvmKnows) {
  const Target riscv = described("riscv64",
                                 "isa : rv64gcv_zba_zbb_zbs_zbc_zbkb_zbkc_zbkx_zcb_zicond_zfa_zfhmin_zfh_zvfhmin_zvfh_"
                                 "zvbb_zvkb_zvbc\n");
  EXPECT_EQ(extensions_to_try(riscv).size(), 17u);
  Target arm = described("aarch64", "");
  arm.features = "+lse,+fullfp16,+dotprod,+i8mm,+bf16";
  EXPECT_EQ(extensions_to_try(arm).size(), 5u);
  Target x86 = described("x86_64", "");
  x86.cpu = "x86-64-v4";
  x86.features = "+avx512vnni,+avx512bf16,+avxvnni";
  EXPECT_EQ(extensions_to_try(x86).size(), 5u);
  for (const Target& target : {riscv, arm, x86})
    for (const std::string& extension : extensions_to_try(target)) {
      const auto program = extension_program(target, {extension});
      EXPECT_TRUE(program.ok()) << extension << ": " << program.reason().text;
    }
  EXPECT_TRUE(extensions_to_try(described("riscv64", "isa : rv64gc\n")).empty());
  EXPECT_TRUE(extensions_to_try(described("ppc64le", "")).empty());
}

TEST(Cpuinfo, ExtensionsAreAskedOfTheMachine) {
  if (std::system("qemu-riscv64 --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "qemu-riscv64 is not installed";
  const Target riscv = described("riscv64", "isa : rv64gcv_zba_zbb_zbs_zbc\n");
  const std::string cpu = "rv64,v=true,vext_spec=v1.0,vlen=128";
  const Met fine{went_on, 0}, illegal{went_on, 128 + SIGILL};
  for (const std::string& extension : extensions_to_try(riscv)) {
    const auto program = extension_program(riscv, {extension});
    EXPECT_EQ(met({"qemu-riscv64", "-cpu", cpu}, program), fine) << extension;
    EXPECT_EQ(met({"qemu-riscv64", "-cpu", cpu + "," + extension + "=false"}, program), illegal) << extension;
  }
  EXPECT_EQ(met({"qemu-riscv64", "-cpu", cpu}, extension_program(riscv, extensions_to_try(riscv))), fine);
  Target arm = described("aarch64", "");
  arm.features = "+dotprod";
  EXPECT_EQ(met({"qemu-aarch64", "-cpu", "max"}, extension_program(arm, {"dotprod"})), fine);
  EXPECT_EQ(met({"qemu-aarch64", "-cpu", "cortex-a72"}, extension_program(arm, {"dotprod"})), illegal);
}

TEST(Cpuinfo, ExtensionsAreLeftOut) {
  Target target;
  target.triple = "riscv64-unknown-linux-gnu";
  target.cpu = "spacemit-x60";  // brings zicond, and zfh, which needs zfhmin
  target.features = "+zba,+zfh";
  target.vector_bits = 256;
  const Target without = without_extensions(target, {"zicond", "zfhmin", "zfh"});
  EXPECT_EQ(without.features, "+zba,-zicond,-zfhmin");
  const std::vector<std::string> left = extensions_to_try(without);
  for (const char* const extension : {"zicond", "zfhmin", "zfh", "zvfh"})
    EXPECT_EQ(std::count(left.begin(), left.end(), extension), 0) << extension;
  EXPECT_EQ(std::count(left.begin(), left.end(), "zbb"), 1);
  target.cpu = "generic-rv64";
  target.features = "+v,+zba,+zvl256b";
  EXPECT_EQ(without_extensions(target, {"zba"}).features, "+v,+zvl256b");
  EXPECT_EQ(without_extensions(target, {}), target);
}

}  // namespace
}  // namespace graft::codegen
