#include "tasks/platform.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "codegen/machine/compile.h"
#include "tasks/modelled/modelled.h"
#include "tasks/remote.h"
#include "tests/tasks/support.h"

namespace graft::tasks {
namespace {

using base::UserError;
using test::expect_contains;
using test::message_of;

const char* const board =
    "name: board\n"
    "target:\n"
    "  triple: riscv64-unknown-linux-gnu\n"
    "  cpu: sifive-p450\n"
    "  vector_bits: 0\n"
    "  vector_registers: 32\n"
    "  l1_bytes: 32768\n"
    "  l2_bytes: 262144\n"
    "  line_bytes: 64\n"
    "modelled:\n"
    "  gigahertz: 1.5\n"
    "  out_of_order: false\n"
    "  mispredict_cycles: 3\n"
    "  memory_parallelism: 2\n"
    "  l2_latency_cycles: 20\n"
    "  memory_nanoseconds: 120\n"
    "  memory_gigabytes_per_second: 12.5\n"
    "  l1_ways: 4\n"
    "  l2_ways: 16\n"
    "  l2_shared: true\n"
    "  prefetch_streams: 8\n"
    "  page_bytes: 4096\n"
    "  tlb_entries: 40\n"
    "  l2_tlb_entries: 512\n"
    "  l2_tlb_ways: 4\n"
    "  l2_tlb_cycles: 6\n"
    "  page_walk_cycles: 35\n"
    "  fork_join_microseconds: 3.5\n";

// `board` with one piece of its text replaced.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = board;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}
std::string refusal(const std::string& yaml) {
  return message_of<UserError>([&] { parse_platform(yaml, "board.yaml"); });
}

TEST(Platform, ReadsEveryField) {
  const Platform platform = parse_platform(board, "board.yaml");
  EXPECT_EQ(platform.name, "board");
  EXPECT_EQ(platform.long_name, "board");
  EXPECT_EQ(platform.yaml, board);
  EXPECT_EQ(platform.target.cpu, "sifive-p450");
  EXPECT_EQ(platform.target.l2_bytes, 262144);
  EXPECT_FALSE(platform.target.l3_bytes);
  EXPECT_EQ(platform.device->source(), "modelled");
  const Profile& profile = *profile_of(platform);
  EXPECT_EQ(profile.gigahertz, 1.5);
  EXPECT_FALSE(profile.out_of_order);
  EXPECT_EQ(profile.mispredict_cycles, 3);
  EXPECT_EQ(profile.memory_parallelism, 2);
  EXPECT_EQ(profile.l2_latency_cycles, 20);
  EXPECT_EQ(profile.l3_latency_cycles, 0);
  EXPECT_EQ(profile.memory_nanoseconds, 120);
  EXPECT_EQ(profile.memory_gigabytes_per_second, 12.5);
  EXPECT_EQ(profile.l1_ways, 4);
  EXPECT_EQ(profile.l2_ways, 16);
  EXPECT_TRUE(profile.l2_shared);
  EXPECT_EQ(profile.prefetch_streams, 8);
  EXPECT_EQ(profile.page_bytes, 4096);
  EXPECT_EQ(profile.huge_page_bytes, 0);
  EXPECT_EQ(profile.tlb_entries, 40);
  EXPECT_EQ(profile.l2_tlb_entries, 512);
  EXPECT_EQ(profile.l2_tlb_ways, 4);
  EXPECT_EQ(profile.l2_tlb_cycles, 6);
  EXPECT_EQ(profile.page_walk_cycles, 35);
  EXPECT_EQ(profile.fork_join_microseconds, 3.5);
  EXPECT_EQ(profile.noise_percent, 0);
  EXPECT_TRUE(profile.qemu.empty());
}

TEST(Platform, AnotherCpusModelMayTimeItsCode) {
  EXPECT_EQ(profile_of(parse_platform(board, "board.yaml"))->model_cpu, "");
  const std::string timed = std::string(board) + "  model_cpu: sifive-u54\n";
  EXPECT_EQ(profile_of(parse_platform(timed, "board.yaml"))->model_cpu, "sifive-u54");
}

TEST(Platform, ReadsARemoteOne) {
  std::string yaml = board;
  yaml = yaml.substr(0, yaml.find("modelled:")) + "remote:\n  prefix: [qemu-riscv64, -cpu, rv64]\n";
  const Platform platform = parse_platform(yaml, "board.yaml");
  EXPECT_EQ(platform.device->source(), "emulated");
  EXPECT_EQ(platform.device->runner().where->prefix, (std::vector<std::string>{"qemu-riscv64", "-cpu", "rv64"}));
}

TEST(Platform, ReadsBoards) {
  const std::string whole = board, target = whole.substr(0, whole.find("modelled:"));
  const Platform one = parse_platform(target + "remote: {ssh: root@board}\n", "board.yaml");
  EXPECT_EQ(one.device->source(), "remote");
  EXPECT_EQ(one.device->runner().where->ssh, std::vector<std::string>{"root@board"});
  EXPECT_EQ(one.device->runner().where->folder, "/tmp");
  const Platform several = parse_platform(
      target + "remote: {ssh: [a, b], core: 3, folder: /run, runner: [qemu-riscv64], attempts: 2}\n", "board.yaml");
  EXPECT_EQ(several.device->source(), "emulated");
  EXPECT_EQ(several.device->runner().where->ssh.size(), 2u);
  EXPECT_EQ(several.device->runner().where->core, 3);
  EXPECT_EQ(several.device->runner().where->attempts, 2);
  for (const char* remote : {"{ssh: -oProxyCommand=x}", "{ssh: []}", "{ssh: a, core: -1}", "{ssh: a, attempts: 0}",
                             "{ssh: a, prefix: [b]}", "{ssh: a, retry_seconds: -1}", "{}"})
    EXPECT_THROW(parse_platform(target + "remote: " + remote + "\n", "board.yaml"), base::UserError) << remote;
}

// A lab's configuration lies next to the YAML that names it, independent of the working folder.
TEST(Platform, SshConfigIsRelativeToItsYaml) {
  const std::string whole = board, target = whole.substr(0, whole.find("modelled:"));
  const auto config = [&](const std::string& given, const std::string& file) {
    return parse_platform(target + "remote: {ssh: a, ssh_config: " + given + "}\n", file)
        .device->runner()
        .where->ssh_config;
  };
  EXPECT_EQ(config("lab.conf", "boards/a.yaml"), "boards/lab.conf");
  EXPECT_EQ(config("../lab.conf", "/labs/boards/a.yaml"), "/labs/boards/../lab.conf");
  EXPECT_EQ(config("/etc/lab.conf", "boards/a.yaml"), "/etc/lab.conf");
  EXPECT_EQ(config("lab.conf", "a.yaml"), "lab.conf");
}

TEST(Platform, RefusesWithPlaceValueAndRemedy) {
  EXPECT_EQ(refusal(changed("vector_bits", "vectr_bits")),
            "board.yaml:5:3: unknown key 'vectr_bits'; did you mean 'vector_bits'?");
  expect_contains(refusal(changed("name: board", "nam: board")), "board.yaml:1:1: unknown key 'nam'");
  expect_contains(refusal(changed("name: board", "name: my board")), "board.yaml:1:1: 'my board' is not a name");
  expect_contains(refusal(changed("gigahertz: 1.5", "gigahertz: 0")), "board.yaml:11:3: gigahertz must be 0.01 to 20");
  expect_contains(refusal(changed("gigahertz: 1.5", "gigahertz: fast")), "board.yaml:11:3: ");
  expect_contains(refusal(changed("  gigahertz: 1.5\n", "")), "missing key 'gigahertz'");
  expect_contains(refusal(changed("  gigahertz: 1.5\n", "  gigahertz: 1.5\n  gigahertz: 2\n")), "board.yaml:12:3: ");
  expect_contains(refusal(changed("out_of_order: false", "out_of_order: 1")), "board.yaml:12:3: ");
  expect_contains(refusal(changed("  l2_latency_cycles: 20\n", "")), "missing key 'l2_latency_cycles'");
  expect_contains(refusal(changed("  l2_bytes: 262144\n", "")), "l2_ways without l2_bytes");
  expect_contains(refusal(changed("l2_bytes: 262144", "l2_bytes: 0")),
                  "board.yaml:8:3: l2_bytes must be at least 1, got "
                  "0; leave l2_bytes out");
  expect_contains(refusal(changed("l2_ways: 16", "l2_ways: 0")),
                  "leave out all keys that begin with l2_, in the target");
  expect_contains(refusal(changed("  line_bytes: 64\n", "")), "missing key 'line_bytes'");
  expect_contains(refusal(std::string(board) + "native:\n  threads: 1\n"), "exactly one of");
  expect_contains(refusal(changed("l1_ways: 4", "l1_ways: 0")), "board.yaml:18:3: l1_ways must be 1 to 1024, got 0");
  expect_contains(refusal(changed("l1_ways: 4", "l1_ways: 3")),
                  "board.yaml:7:3: l1_bytes of a modelled platform must be a multiple of 3 ways of 64 bytes");
  expect_contains(refusal(changed("page_bytes: 4096", "page_bytes: 5000")), "page_bytes must be a power of two");
  expect_contains(refusal(changed("line_bytes: 64", "line_bytes: 48")), "board.yaml:9:3: line_bytes must be a power");
  expect_contains(refusal(changed("tlb_entries: 40", "tlb_entries: 0")), "tlb_entries must be 1 to 4096, got 0");
  expect_contains(refusal(changed("l2_tlb_ways: 4", "l2_tlb_ways: 5")), "l2_tlb_entries must be a multiple of 5 ways");
  expect_contains(refusal(changed("l2_tlb_entries: 512", "l2_tlb_entries: 0")),
                  "l2_tlb_ways without l2_tlb_entries above 0");
  expect_contains(refusal(changed("  l2_shared: true\n", "")), "missing key 'l2_shared'");
  expect_contains(refusal(changed("memory_parallelism: 2", "memory_parallelism: 0.5")), "memory_parallelism must be 1");
  expect_contains(refusal(std::string(board) + "  l3_ways: 8\n"), "l3_ways without l3_bytes in the target");
  expect_contains(refusal(std::string(board) + "  noise_percent: 60\n"), "noise_percent must be 0 to 50, got 60");
  expect_contains(refusal(std::string(board) + "  huge_page_bytes: 4096\n"), "huge_page_bytes must be a power of two");
  expect_contains(refusal(changed("prefetch_streams: 8", "prefetch_stream: 8")), "did you mean 'prefetch_streams'?");
  expect_contains(refusal(std::string(board).substr(0, std::string(board).find("modelled:"))), "exactly one of");
  expect_contains(
      refusal(std::string(board).substr(0, std::string(board).find("modelled:")) + "remote:\n  prefix: []\n"),
      "board.yaml:11:3: expected a command");
}

TEST(Platform, RefusesATargetThatLlvmDoesNotKnow) {
  const std::string cpu = refusal(changed("cpu: sifive-p450", "cpu: sifive-p45"));
  expect_contains(cpu, "board.yaml:4:3: ");
  expect_contains(cpu, "'sifive-p45'");
  expect_contains(cpu, "did you mean 'sifive-p450'?");
  expect_contains(refusal(changed("riscv64-unknown", "riscy-unknown")), "board.yaml:3:3: ");
  expect_contains(refusal(changed("riscv64-unknown", "riscy-unknown")), "riscy-unknown-linux-gnu");
}

// LLVM would end the process.
TEST(Platform, RefusesATargetThatContradictsItself) {
  expect_contains(refusal(changed("cpu: sifive-p450\n  vector_bits: 0", "cpu: sifive-x280\n  vector_bits: 256")),
                  "board.yaml:5:3: vector_bits 256 is less than the 512 that the cpu 'sifive-x280' has; write 512");
  expect_contains(refusal(changed("cpu: sifive-p450\n  vector_bits: 0",
                                  "cpu: generic-rv64\n  features: \"+v,+zvl512b\"\n  vector_bits: 256")),
                  "board.yaml:6:3: vector_bits 256 is less than the 512 that +zvl512b says; write 512");
  expect_contains(refusal(changed("cpu: sifive-p450\n", "cpu: generic-rv64\n  features: \"+f,+zfinx\"\n")),
                  "board.yaml:5:3: features \"+f,+zfinx\": LLVM ");
  expect_contains(refusal(changed("cpu: sifive-p450\n", "cpu: sifive-p450\n  features: \"+zbaa\"\n")),
                  "board.yaml:5:3: this LLVM");
}

TEST(Platform, RefusesNativeCodeOfAnotherArchitectureAndThreadsWithoutCores) {
  const std::string target = std::string(board).substr(0, std::string(board).find("modelled:"));
  if (!codegen::host_target().triple.starts_with("riscv64")) {
    expect_contains(refusal(target + "native:\n  threads: 1\n"), "board.yaml:3:3: this host is ");
  }
  expect_contains(refusal(target + "native:\n  threads: 0\n"), "board.yaml:11:3: threads must be 1 to ");
  expect_contains(refusal(target + "native:\n  threads: 100000\n"), "the cores of this host; got 100000");
}

TEST(Platform, ThreadsOfANativePlatformAreThoseOfItsTarget) {
  const std::int64_t cores = codegen::host_target().cores;
  for (const std::string id : {"native", "native:v2"}) {
    EXPECT_EQ(platform_named(id).target.threads, 1);
    const std::string most = fmt::format("{},threads={}", id, cores);
    const Platform platform = platform_named(most);
    EXPECT_EQ(platform.target.threads, cores);
    if (cores > 1) {
      EXPECT_EQ(platform.name, most);
      EXPECT_NE(codegen::hash(platform.target), codegen::hash(platform_named(id).target));
    }
    EXPECT_EQ(parse_platform(platform.yaml, "again").target, platform.target);
    expect_contains(message_of<UserError>([&] { platform_named(fmt::format("{},threads={}", id, cores + 1)); }),
                    fmt::format("threads must be 1 to {}", cores));
  }
  std::string twice = platform_named("native").yaml;
  twice.insert(twice.find("  cpu:"), "  threads: 1\n");
  expect_contains(message_of<UserError>([&] { parse_platform(twice, "twice.yaml"); }), "are said under 'native'");
}

TEST(Platform, NativeIsThisHost) {
  const Platform platform = platform_named("native");
  EXPECT_EQ(platform.name, "native");
  EXPECT_EQ(platform.target, codegen::host_target());
  EXPECT_EQ(platform.device->source(), "native");
  EXPECT_EQ(platform_named("native,threads=1").name, "native");
  EXPECT_EQ(parse_platform(platform.yaml, "again").target, platform.target);
}

TEST(Platform, NativeLevelsCompileForTheLevel) {
  const std::vector<std::string> ids = platform_ids();
  EXPECT_EQ(ids.front(), "native");
  for (const std::string level : {"v2", "v3", "v4"}) {
    const std::string id = "native:" + level;
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) {
      const std::string message = message_of<UserError>([&] { platform_named(id); });
      expect_contains(message, id + ": this host (");
      expect_contains(message, "use one of: native");
      continue;
    }
    const Platform platform = platform_named(id);
    EXPECT_EQ(platform.name, id);
    EXPECT_EQ(platform.target.cpu, "x86-64-" + level);
    EXPECT_EQ(platform.target.vector_bits, level == "v2" ? 128 : level == "v3" ? 256 : 512);
    EXPECT_EQ(platform.target.vector_registers, level == "v4" ? 32 : 16);
    EXPECT_EQ(platform_named(id + ",threads=1").name, id);
  }
}

TEST(Platform, RefusesIdsThatAreNotKnown) {
  const auto refused = [](const std::string& id) { return message_of<UserError>([&] { platform_named(id); }); };
  expect_contains(refused("native:v9"), "native:v9: unknown platform");
  expect_contains(refused("native,threads=0"), "native,threads=0: threads must be 1 to ");
  expect_contains(refused("native,threads=two"), "threads must be 1 to ");
  expect_contains(refused("native,threads=1,threads=1"), "unknown suffix");
  expect_contains(refused("native,nan=keep"), "unknown suffix 'nan=keep'");
  expect_contains(refused("nowhere/board.yaml,nan=ignore"), "nowhere/board.yaml");
  expect_contains(refused("native,thread=1"), "unknown suffix 'thread=1'");
  expect_contains(refused("model:sifive-p45"), "did you mean 'model:sifive-p450'?");
  expect_contains(refused("nowhere/board.yaml"), "nowhere/board.yaml");
}

TEST(Platform, IgnoresNanIfItsNameSaysSo) {
  for (const char* const plain : {"native", "native,threads=1", "model:spacemit-x60"}) {
    EXPECT_FALSE(platform_named(plain).target.ignores_nan);
    const Platform platform = platform_named(fmt::format("{},nan=ignore", plain));
    EXPECT_TRUE(platform.target.ignores_nan);
    EXPECT_TRUE(platform.name.ends_with(",nan=ignore")) << platform.name;
    EXPECT_TRUE(parse_platform(platform.yaml, "again").target.ignores_nan);
    EXPECT_NE(codegen::hash(platform.target), codegen::hash(platform_named(plain).target));
  }
}

TEST(Platform, SuffixesOfAModelledOneStandInItsYaml) {
  const Platform plain = platform_named("model:cortex-a72"),
                 changed = platform_named("model:cortex-a72,threads=4,noise=1.5");
  EXPECT_EQ(changed.name, "model:cortex-a72,threads=4,noise=1.5");
  EXPECT_EQ(changed.long_name, plain.long_name + ",threads=4,noise=1.5");
  EXPECT_EQ(changed.target.threads, 4);
  EXPECT_EQ(profile_of(changed)->noise_percent, 1.5);
  EXPECT_EQ(profile_of(changed)->l2_latency_cycles, profile_of(plain)->l2_latency_cycles);
  EXPECT_EQ(profile_of(plain)->noise_percent, 0);
  const Platform again = parse_platform(changed.yaml, "again");
  EXPECT_EQ(again.target, changed.target);
  EXPECT_EQ(profile_of(again)->noise_percent, 1.5);
  const auto refused = [](const std::string& id) { return message_of<UserError>([&] { platform_named(id); }); };
  expect_contains(refused("model:cortex-a72,noise=90"), "noise_percent must be 0 to 50, got 90");
  expect_contains(refused("model:cortex-a72,noise"), "unknown suffix 'noise'; known: threads=n, noise=percent");
  expect_contains(refused("model:cortex-a72,threads=1.5"), "expected an integer");
  expect_contains(refused("model:cortex-a72,"), "unknown suffix");
}

TEST(Platform, ShippedOnesCanBeReadByShortAndLongIdAndByFile) {
  const Platform p450 = platform_named("model:sifive-p450");
  EXPECT_EQ(p450.long_name, "model:sifive-p450@p450-like");
  EXPECT_EQ(platform_named(p450.long_name).name, p450.name);
  EXPECT_EQ(p450.target.vector_bits, 0);
  int shipped = 0;
  for (const std::string& id : platform_ids()) {
    const Platform platform = platform_named(id);
    EXPECT_EQ(platform.name, id);
    EXPECT_FALSE(platform.description.empty()) << id;
    shipped += platform.device->source() == "modelled";
  }
  EXPECT_GE(shipped, 14);

  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "graft_platform_test.yaml";
  base::replace_file(file, board);
  EXPECT_EQ(platform_named(file.string()).name, "board");
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace graft::tasks
