// A board's description without the board: from its /proc/cpuinfo, and from data sheets in platforms/boards/.
#include <filesystem>
#include <set>

#include "tests/cli/support.h"

namespace graft::cli {
namespace {

namespace fs = std::filesystem;

class Board : public testing::Test {
 protected:
  base::Finished probe(const std::string& cpuinfo, std::vector<std::string> more = {}) {
    base::replace_file(folder / "cpuinfo", cpuinfo);
    more.insert(more.begin(), {"platform", "probe", "--cpuinfo", (folder / "cpuinfo").string()});
    return graft(more);
  }
  // The platform of what is printed, as graft inspect reads it.
  base::Document described(const std::string& cpuinfo, const std::vector<std::string>& more = {}) {
    const base::Finished finished = probe(cpuinfo, more);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_NE(finished.out.find("# No program ran there"), std::string::npos) << finished.out;
    base::replace_file(folder / "board.yaml", finished.out);
    return json_of({"inspect", (folder / "board.yaml").string()});
  }
  std::int64_t vector_bits(const std::string& cpuinfo, const std::vector<std::string>& more = {}) {
    return described(cpuinfo, more).at("target").at("vector_bits").as_integer();
  }
  std::string target_text(const std::string& key, const std::string& cpuinfo,
                          const std::vector<std::string>& more = {}) {
    return described(cpuinfo, more).at("target").at(key).as_string();
  }
  base::Folder folder;
};

const std::string riscv = R"(processor       : 0
hart            : 0
isa             : rv64imafdcv_zicsr_zba_zbb_zvl256b
mmu             : sv39
uarch           : spacemit,x60
mvendorid       : 0x710

processor       : 1
hart            : 1
isa             : rv64imafdcv_zicsr_zba_zbb_zvl256b
)";

TEST_F(Board, OfRiscV) {
  const base::Document board = described(riscv);
  EXPECT_EQ(board.at("source").as_string(), "remote");
  EXPECT_EQ(board.at("platform").as_string(), "described:spacemit-x60");
  EXPECT_NE(base::read_file(folder / "board.yaml").find("  ssh: board  # write how ssh reaches yours"),
            std::string::npos);
  EXPECT_EQ(board.at("target").at("triple").as_string(), "riscv64-unknown-linux-gnu");
  EXPECT_EQ(board.at("target").at("cpu").as_string(), "spacemit-x60");
  EXPECT_EQ(board.at("target").at("vector_bits").as_integer(), 256);
  EXPECT_EQ(board.at("target").at("cores").as_integer(), 2);
  for (const char* const feature : {"+v", "+zba", "+zvl256b"})
    EXPECT_NE(board.at("target").at("features").as_string().find(feature), std::string::npos)
        << board.at("target").at("features").as_string();

  // The ISA string alone, in place of that of the text, and with versions as older kernels write them.
  EXPECT_EQ(vector_bits("processor : 0\n", {"--isa", "rv64imafdcv"}), 128);
  EXPECT_EQ(vector_bits(riscv, {"--isa", "rv64imafdc"}), 0);
  EXPECT_EQ(target_text("cpu", riscv, {"--isa", "rv64imafdc"}), "generic-rv64");  // LLVM's X60 has vectors
  EXPECT_EQ(vector_bits("isa : rv64i2p0_m2p0_a2p0_f2p0_d2p0_c2p0_v1p0_zvl512b1p0\n"), 512);
  const base::Document told = described(riscv, {"ssh://root@k1"});
  EXPECT_EQ(told.at("platform").as_string(), "ssh:k1");
  EXPECT_NE(base::read_file(folder / "board.yaml").find("ssh: \"root@k1\""), std::string::npos);
}

// What older kernels leave out: the core's name, and the length of its vectors, which is then said to be assumed.
TEST_F(Board, OfRiscVWithoutNames) {
  const std::string x60 = "isa : rv64imafdcv\nmvendorid : 0x710\nmarchid : 0x8000000058000001\n";
  EXPECT_EQ(target_text("cpu", x60), "spacemit-x60");
  EXPECT_EQ(vector_bits(x60), 256);
  const base::Finished known = probe(x60), unknown = probe("isa : rv64imafdcv\nmvendorid : 0x711\n");
  for (const std::string& said : {known.out, known.err})
    EXPECT_NE(said.find("model:spacemit-x60 is a model of its core"), std::string::npos) << said;
  EXPECT_EQ(known.out.find("are assumed"), std::string::npos) << known.out;
  EXPECT_NE(unknown.out.find("# vectors of 128 bits are assumed, "), std::string::npos) << unknown.out;
  EXPECT_EQ(unknown.out.find("is a model of its core"), std::string::npos) << unknown.out;
  EXPECT_EQ(probe("isa : rv64imafdcv_zvl128b\n").out.find("are assumed"), std::string::npos);
}

TEST_F(Board, IsShownWhole) {
  const base::Document board = described(riscv, {"ssh://root@k1", "--core", "1"});
  EXPECT_EQ(board.at("remote").at("ssh").as_string(), "root@k1");
  EXPECT_EQ(board.at("remote").at("core").as_integer(), 1);
  const std::string shown = graft({"inspect", (folder / "board.yaml").string()}).out;
  for (const char* const part : {"remote.ssh", "root@k1", "remote.core", "+zvl256b"})
    EXPECT_NE(shown.find(part), std::string::npos) << shown;
  EXPECT_EQ(shown.find("more characters"), std::string::npos) << shown;
  EXPECT_EQ(json_of({"inspect", "model:cortex-a72"}).at("modelled").at("out_of_order").as_bool(), true);
}

// XuanTie's C910 and C920 say "v", and mean RVV 0.7.1, whose code is another one.
TEST_F(Board, OfRiscVWithOldVectors) {
  for (const char* const who : {"uarch : thead,c910", "mvendorid : 0x5b7"}) {
    const base::Document board = described(std::string("processor : 0\nisa : rv64imafdcv_zfh\n") + who + "\n");
    EXPECT_EQ(board.at("target").at("vector_bits").as_integer(), 0) << who;
    EXPECT_EQ(board.at("target").at("features").as_string().find("+v"), std::string::npos)
        << board.at("target").at("features").as_string();
    EXPECT_NE(board.at("target").at("features").as_string().find("+zfh"), std::string::npos)
        << board.at("target").at("features").as_string();
  }
}

// Cores of two kinds, and why there are no vectors, are said in the file and on standard error.
TEST_F(Board, SaysWhatItDecided) {
  const std::string text =
      "processor : 0\nisa : rv64imafdcv_zvl256b\n\nprocessor : 1\nisa : rv64imafdcv_zvl1024b\n\n"
      "processor : 2\nisa : rv64imafdcv_zvl1024b\n";
  EXPECT_EQ(vector_bits(text), 256);
  EXPECT_EQ(vector_bits(text, {"--core", "1"}), 1024);
  EXPECT_EQ(described(text, {"--core", "1"}).at("target").at("cores").as_integer(), 2);
  const base::Finished both = probe(text), second = probe(text, {"--core", "2"});
  for (const std::string& said : {both.out, both.err})
    EXPECT_NE(said.find("cores of 2 kinds: "), std::string::npos) << said;
  EXPECT_NE(second.out.find("described is the kind of core 2"), std::string::npos) << second.out;
  EXPECT_NE(second.out.find("core: 2"), std::string::npos) << second.out;
  const base::Finished none = probe(text, {"--core", "3"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_NE(none.err.find("core 3: /proc/cpuinfo lists 0-2 only"), std::string::npos) << none.err;

  const base::Document old = json_of({"platform", "probe", "--cpuinfo", [&] {
                                        base::replace_file(folder / "old", "isa : rv64imafdcvsu\ncpu-vector : 0.7.1\n");
                                        return (folder / "old").string();
                                      }()});
  EXPECT_EQ(old.at("target").at("vector_bits").as_integer(), 0);
  EXPECT_NE(old.at("notes").as_list().at(0).as_string().find("RVV 0.7.1"), std::string::npos);
}

// A file that contradicts itself is the user's mistake, in one line with its place.
TEST_F(Board, ThatContradictsItselfIsRefused) {
  const std::string file = (folder / "board.yaml").string();
  base::replace_file(file,
                     "name: board\ntarget:\n  triple: riscv64-unknown-linux-gnu\n  cpu: generic-rv64\n"
                     "  features: \"+v,+zvl512b\"\n  vector_bits: 256\n  vector_registers: 32\n"
                     "remote:\n  prefix: [qemu-riscv64]\n");
  const base::Finished tuned = graft(quick(
      {"tune", small, "--platform", file, "--model", "random", "--trials", "2", "--out", (folder / "run").string()}));
  EXPECT_EQ(tuned.exit_code, 2);
  EXPECT_EQ(lines_in(tuned.err), 1u) << tuned.err;
  EXPECT_NE(tuned.err.find("board.yaml:6:3: vector_bits 256 is less than the 512 that +zvl512b says"),
            std::string::npos)
      << tuned.err;
  EXPECT_FALSE(fs::exists(folder / "run"));
}

TEST_F(Board, OfARaspberryPi) {
  std::string text;
  for (int core = 0; core < 4; ++core)
    text += "processor\t: " + std::to_string(core) +
            "\nBogoMIPS\t: 108.00\nFeatures\t: fp asimd evtstrm crc32 cpuid\nCPU implementer\t: 0x41\n"
            "CPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: 0xd08\nCPU revision\t: 3\n\n";
  text += "Revision\t: c03114\nModel\t\t: Raspberry Pi 4 Model B Rev 1.4\n";
  const base::Document board = described(text);
  EXPECT_EQ(board.at("target").at("triple").as_string(), "aarch64-unknown-linux-gnu");
  EXPECT_EQ(board.at("target").at("cpu").as_string(), "cortex-a72");
  EXPECT_EQ(board.at("target").at("vector_bits").as_integer(), 128);
  EXPECT_EQ(board.at("target").at("cores").as_integer(), 4);
  EXPECT_NE(probe(text).out.find("Raspberry Pi 4 Model B"), std::string::npos);
  // A part that LLVM does not know: what Linux lists.
  const std::string unknown =
      "processor : 0\nFeatures : fp asimd asimddp i8mm\nCPU implementer : 0x41\nCPU part : 0xfff\n";
  EXPECT_EQ(target_text("cpu", unknown), "generic");
  EXPECT_EQ(target_text("features", unknown), "+dotprod,+i8mm");
  EXPECT_EQ(target_text("features", unknown, {"--isa", "fp asimd"}), "");
}

TEST_F(Board, OfAPc) {
  const std::string text =
      "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Core(TM) i7-4770 CPU @ 3.40GHz\n"
      "cache size\t: 8192 KB\nflags\t\t: fpu sse sse2 ssse3 fma cx16 sse4_1 sse4_2 movbe popcnt avx f16c bmi1 avx2 "
      "bmi2\n";
  const base::Document board = described(text);
  EXPECT_EQ(board.at("target").at("triple").as_string(), "x86_64-unknown-linux-gnu");
  EXPECT_EQ(board.at("target").at("cpu").as_string(), "x86-64-v3");
  EXPECT_EQ(board.at("target").at("vector_bits").as_integer(), 256);
  EXPECT_EQ(target_text("cpu", text, {"--isa", "fpu sse sse2"}), "x86-64");
}

TEST_F(Board, RefusesWhatSaysNothing) {
  for (const std::string& text : {std::string(), std::string("hello\n"),
                                  std::string("processor : 0\nFeatures : half thumb neon vfpv4\nCPU part : 0xd03\n"),
                                  std::string("isa : rv32imac\n")}) {
    const base::Finished finished = probe(text);
    EXPECT_EQ(finished.exit_code, 2) << text;
    EXPECT_NE(finished.err.find("error: cpuinfo: it shows neither"), std::string::npos) << finished.err;
  }
  EXPECT_NE(graft({"platform", "probe", "--isa", "rv64gc"}).err.find("goes with --cpuinfo"), std::string::npos);
}

// What a runner on this machine lacks is left out of the description, and a platform whose code it cannot run is
// refused before there is a folder, with the line to write.
TEST_F(Board, IsFittedToItsRunner) {
  if (std::system("qemu-riscv64 --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "qemu-riscv64 is not installed";
  const std::string qemu = "qemu-riscv64 -cpu rv64,v=true,vext_spec=v1.0,zbb=false,vlen=";
  const base::Finished fitted = probe(riscv, {"--runner", qemu + "256"});
  EXPECT_EQ(fitted.exit_code, 0) << fitted.err;
  for (const std::string& said : {fitted.out, fitted.err})
    EXPECT_NE(said.find("left out, as qemu-riscv64 does not run "), std::string::npos) << said;
  EXPECT_NE(fitted.out.find("-zbb"), std::string::npos) << fitted.out;
  base::replace_file(folder / "fitted.yaml", fitted.out);
  const auto tuned = [&](const std::string& file, const std::string& run) {
    return graft(quick({"tune", small, "--platform", (folder / file).string(), "--model", "random", "--trials", "2",
                        "--out", (folder / run).string()}));
  };
  EXPECT_EQ(tuned("fitted.yaml", "fitted").exit_code, 0);
  // Its schedules are for an emulator.
  const base::Finished compiled = graft({"compile", (folder / "fitted").string(), "--out", (folder / "lib").string()});
  EXPECT_EQ(compiled.exit_code, 0) << compiled.err;
  EXPECT_NE(compiled.err.find("not for shipping; tune on model:spacemit-x60 instead"), std::string::npos)
      << compiled.err;

  const base::Finished none = probe(riscv, {"--runner", qemu + "128"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_NE(none.err.find("runs vectors of 128 bits only, and the target has vectors of 256 bits"), std::string::npos)
      << none.err;

  std::string yaml = fitted.out;
  const std::size_t left_out = yaml.find(",-");
  yaml.replace(left_out, yaml.find('"', left_out) - left_out, "");
  base::replace_file(folder / "whole.yaml", yaml);
  const base::Finished refused = tuned("whole.yaml", "whole");
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  EXPECT_EQ(lines_in(refused.err), 1u) << refused.err;
  EXPECT_NE(refused.err.find("' does not run zbb"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find(", which the target has; write in its YAML, under 'target', features: \""),
            std::string::npos)
      << refused.err;
  EXPECT_FALSE(fs::exists(folder / "whole"));
}

// Where every program crashed, one of them can be looked at.
TEST_F(Board, ShowsAProgramThatCrashed) {
  base::replace_file(folder / "dies.yaml",
                     "name: board\ntarget:\n  triple: riscv64-unknown-linux-gnu\n  cpu: generic-rv64\n"
                     "  features: \"+m,+a,+f,+d,+c\"\n  vector_bits: 0\n  vector_registers: 32\nremote:\n"
                     "  prefix: [sh, -c, 'echo \"{\\\"graft\\\":1}\"; echo \"{\\\"begin\\\":0}\"; kill -ILL $$']\n");
  const std::string run = (folder / "run").string();
  const base::Finished tuned = graft(quick({"tune", small, "--platform", (folder / "dies.yaml").string(), "--model",
                                            "random", "--trials", "2", "--out", run}));
  EXPECT_EQ(tuned.exit_code, 1) << tuned.err;
  const base::Document shown = json_of({"inspect", run, "--program", "--assembly"});
  EXPECT_EQ(shown.at("status").as_string(), "crashed");
  EXPECT_EQ(shown.at("trial").as_integer(), 0);
  EXPECT_NE(shown.at("reason").as_string().find("signal 4"), std::string::npos);
  EXPECT_NE(shown.at("assembly").as_string().find("graft_run"), std::string::npos);
  EXPECT_NE(graft({"inspect", run, "--program"}).out.find("is ok; trial 0, crashed: ended by signal 4"),
            std::string::npos);
}

TEST_F(Board, DataSheetsAreGoodPlatforms) {
  const fs::path boards = fs::path(GRAFT_SOURCE_DIR) / "platforms/boards";
  std::set<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(boards)) {
    SCOPED_TRACE(entry.path());
    const std::string text = base::read_file(entry.path());
    EXPECT_EQ(text.find("# Not measured by us: from the data sheet.\n# "), 0u);
    const base::Document board = json_of({"inspect", entry.path().string()});
    EXPECT_EQ(board.at("source").as_string(), "remote");
    EXPECT_EQ(board.at("platform").as_string(), "ssh:" + entry.path().stem().string());
    const base::Document& target = board.at("target");
    EXPECT_GT(target.at("l1_bytes").as_integer(), 0);
    EXPECT_GE(target.at("l2_bytes").as_integer(), target.at("l1_bytes").as_integer());
    EXPECT_GE(target.at("cores").as_integer(), 4);
    names.insert(entry.path().stem());
  }
  EXPECT_GE(names.size(), 7u);
}

}  // namespace
}  // namespace graft::cli
