#include "codegen/machine/cpuinfo.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/process.h"

namespace graft::codegen {
namespace {

TEST(Cpuinfo, ReadsRiscv) {
  const Target vector =
      target_of_cpuinfo("riscv64", "processor\t: 0\nisa\t\t: rv64imafdcv_zba_zbb_xunheardof\nmmu\t: sv39\n");
  EXPECT_EQ(vector.triple, "riscv64-unknown-linux-gnu");
  EXPECT_EQ(vector.cpu, "generic-rv64");
  EXPECT_EQ(vector.features, "+m,+a,+f,+d,+c,+v,+zba,+zbb");
  EXPECT_EQ(vector.vector_bits, 128);
  EXPECT_EQ(vector.vector_registers, 32);
  const Target scalar = target_of_cpuinfo("riscv64", "isa : rv64gc\n");
  EXPECT_EQ(scalar.features, "+m,+a,+f,+d,+c");
  EXPECT_EQ(scalar.vector_bits, 0);
  EXPECT_EQ(target_of_cpuinfo("riscv64", "").features, "+m,+a,+f,+d,+c");
}

TEST(Cpuinfo, ReadsArmAndX86) {
  const Target pi = target_of_cpuinfo("aarch64", "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd08\n");
  EXPECT_EQ(pi.cpu, "cortex-a72");
  EXPECT_EQ(pi.vector_bits, 128);
  EXPECT_EQ(target_of_cpuinfo("aarch64", "nothing of use\n").cpu, "generic");
  const std::string v3 = "flags : sse4_2 ssse3 popcnt cx16 avx2 fma bmi2 f16c movbe";
  EXPECT_EQ(target_of_cpuinfo("x86_64", v3 + "\n").cpu, "x86-64-v3");
  EXPECT_EQ(target_of_cpuinfo("x86_64", v3 + "\n").vector_bits, 256);
  EXPECT_EQ(target_of_cpuinfo("x86_64", v3 + " avx512f avx512bw avx512cd avx512dq avx512vl\n").vector_registers, 32);
  EXPECT_EQ(target_of_cpuinfo("x86_64", "flags : sse4_2 ssse3 popcnt cx16 avx\n").cpu, "x86-64-v2");
  EXPECT_EQ(target_of_cpuinfo("x86_64", "").cpu, "x86-64");
}

TEST(Cpuinfo, RefusesOtherArchitectures) {
  EXPECT_THROW(target_of_cpuinfo("sparc64", ""), base::UserError);
  EXPECT_FALSE(vector_length_program(target_of_cpuinfo("x86_64", "")).ok());
}

int exit_code_of(const std::vector<std::string>& qemu, const std::string& machine) {
  const auto program = vector_length_program(target_of_cpuinfo(machine, ""));
  if (!program) return -1;
  const auto path = std::filesystem::temp_directory_path() / ("graft-vectors-" + std::to_string(getpid()));
  std::ofstream(path, std::ios::binary) << *program;
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  std::vector<std::string> command = qemu;
  command.push_back(path.string());
  const base::Finished finished = base::run_process(command, std::chrono::seconds(20));
  std::filesystem::remove(path);
  return finished.signal != 0 ? 128 + finished.signal : finished.exit_code;
}

TEST(Cpuinfo, TheLengthOfVectorsIsAskedOfTheMachine) {
  if (std::system("qemu-riscv64 --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "qemu-riscv64 is not installed";
  EXPECT_EQ(exit_code_of({"qemu-riscv64", "-cpu", "rv64,v=true,vext_spec=v1.0,vlen=512"}, "riscv64"), 64);
  EXPECT_EQ(exit_code_of({"qemu-riscv64", "-cpu", "rv64,v=false"}, "riscv64"), 128 + 4);
  EXPECT_EQ(exit_code_of({"qemu-aarch64", "-cpu", "max,sve512=on"}, "aarch64"), 64);
}

}  // namespace
}  // namespace graft::codegen
