// Boards that people own: what is read off their /proc/cpuinfo (tests/machine/cpuinfo, made by hand).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/text.h"
#include "codegen/machine/compile.h"
#include "codegen/machine/cpuinfo.h"
#include "tests/support/refusal.h"

namespace graft::codegen {
namespace {

namespace fs = std::filesystem;

const fs::path source = GRAFT_SOURCE_DIR;

CpuinfoTarget read(const std::string& file, std::int64_t core = -1) {
  const std::string text = base::read_file(source / "tests/machine/cpuinfo" / (file + ".txt"));
  return target_of_cpuinfo(machine_of_cpuinfo(text), text, core);
}

struct Board {
  const char *file, *title;
  const char *architecture, *cpu, *features;
  std::int64_t vector_bits, cores, kinds;
  const char* note = "";  // words that a note on it contains
};

const Board boards[] = {
    {"visionfive-2", "StarFive VisionFive 2 (JH7110)", "riscv64", "sifive-u74",
     "+m,+a,+f,+d,+c,+zicntr,+zicsr,+zifencei,+zihpm,+zba,+zbb", 0, 4, 1},
    {"bpi-f3", "Banana Pi BPI-F3 (SpacemiT K1)", "riscv64", "spacemit-x60",
     "+m,+a,+f,+d,+c,+v,+zicbom,+zicboz,+zicntr,+zicond,+zicsr,+zifencei,+zihintpause,+zihpm,+zfh,+zfhmin,+zba,+zbb,+"
     "zbc,+zbs,+zkt,+zve32f,+zve32x,+zve64d,+zve64f,+zve64x,+zvfh,+zvfhmin,+zvkt,+sscofpmf,+sstc,+svinval,+svnapot,+"
     "svpbmt,+zvl256b",
     256, 8, 1},
    {"spacemit-k3", "SpacemiT K3 (X100 and A100)", "riscv64", "generic-rv64",
     "+m,+a,+f,+d,+c,+v,+h,+zicbom,+zicboz,+zicntr,+zicond,+zicsr,+zifencei,+zihpm,+zfa,+zfh,+zba,+zbb,+zbc,+zbs,+"
     "zve32f,+zve64d,+zvfh,+sscofpmf,+sstc,+svpbmt,+zvl256b",
     256, 16, 2, "8 spacemit,x100 (0-7), 8 spacemit,a100 (8-15); described is what all of them run"},
    {"licheepi-4a", "LicheePi 4A (TH1520), maker's system", "riscv64", "generic-rv64", "+m,+a,+f,+d,+c", 0, 4, 1,
     "no vectors: 'cpu-vector : 0.7.1' means RVV 0.7.1"},
    {"licheepi-4a-mainline", "LicheePi 4A (TH1520), mainline Linux", "riscv64", "generic-rv64",
     "+m,+a,+f,+d,+c,+zicntr,+zicsr,+zifencei,+zihpm,+zfh", 0, 4, 1, "'xtheadvector'"},
    {"mango-pi-d1", "MangoPi MQ Pro (Allwinner D1)", "riscv64", "generic-rv64", "+m,+a,+f,+d,+c", 0, 1, 1,
     "'vector version : 0.7.1'"},
    {"milkv-duo", "Milk-V Duo (CV1800B)", "riscv64", "generic-rv64", "+m,+a,+f,+d,+c", 0, 1, 1,
     "'rv64imafdvcsu' is of a system older than RVV 1.0"},
    {"milkv-duo-s", "Milk-V Duo S (SG2000)", "riscv64", "generic-rv64",
     "+m,+a,+f,+d,+c,+zicntr,+zicsr,+zifencei,+zihpm,+zfh", 0, 1, 1, "mvendorid 0x5b7 with marchid and mimpid 0"},
    {"canmv-k230", "CanMV-K230 (C908)", "riscv64", "generic-rv64", "+m,+a,+f,+d,+c,+v", 128, 1, 1},
    {"hifive-premier-p550", "HiFive Premier P550 (EIC7700X)", "riscv64", "generic-rv64",
     "+m,+a,+f,+d,+c,+h,+zicntr,+zicsr,+zifencei,+zihpm,+zba,+zbb,+sscofpmf", 0, 4, 1},
    {"milkv-pioneer", "Milk-V Pioneer (SG2042)", "riscv64", "generic-rv64",
     "+m,+a,+f,+d,+c,+zicntr,+zicsr,+zifencei,+zihpm,+zfh", 0, 64, 1, "mvendorid 0x5b7 with marchid and mimpid 0"},
    {"sophgo-srd3-10", "Sophgo SRD3-10 (SG2044)", "riscv64", "generic-rv64",
     "+m,+a,+f,+d,+c,+v,+zicbom,+zicbop,+zicboz,+zicntr,+zicond,+zicsr,+zifencei,+zihintpause,+zihpm,+zfa,+zfh,+zfhmin,"
     "+zba,+zbb,+zbc,+zbs,+zve32f,+zve32x,+zve64d,+zve64f,+zve64x,+zvfh,+sscofpmf,+sstc,+svinval,+svnapot,+svpbmt",
     128, 64, 1},
    {"raspberry-pi-3", "Raspberry Pi 3", "aarch64", "cortex-a53", "", 128, 4, 1},
    {"raspberry-pi-4", "Raspberry Pi 4", "aarch64", "cortex-a72", "", 128, 4, 1},
    {"raspberry-pi-5", "Raspberry Pi 5", "aarch64", "cortex-a76", "", 128, 4, 1},
    {"rock-5b", "Radxa ROCK 5B (RK3588)", "aarch64", "generic", "+dotprod,+fullfp16", 128, 8, 2,
     "4 cortex-a55 (0-3), 4 cortex-a76 (4-7); described is what all of them run"},
    {"rockpro64", "ROCKPro64 (RK3399)", "aarch64", "generic", "", 128, 6, 2, "4 cortex-a53 (0-3), 2 cortex-a72 (4-5)"},
    {"odroid-n2", "Odroid N2 (S922X)", "aarch64", "generic", "", 128, 6, 2, "2 cortex-a53 (0-1), 4 cortex-a73 (2-5)"},
    {"odroid-c4", "Odroid C4 (S905X3)", "aarch64", "cortex-a55", "", 128, 4, 1},
    {"odroid-c2", "Odroid C2 (S905), Linux 3.14", "aarch64", "cortex-a53", "", 128, 4, 1},
    {"jetson-nano", "Jetson Nano", "aarch64", "cortex-a57", "", 128, 4, 1},
    {"jetson-agx-xavier", "Jetson AGX Xavier", "aarch64", "carmel", "", 128, 8, 1},
    {"jetson-agx-orin", "Jetson AGX Orin", "aarch64", "cortex-a78ae", "", 128, 12, 1},
    {"imx8m-plus", "NXP i.MX 8M Plus", "aarch64", "cortex-a53", "", 128, 4, 1},
    {"imx8qm", "NXP i.MX 8QuadMax", "aarch64", "generic", "", 128, 6, 2, "4 cortex-a53 (0-3), 2 cortex-a72 (4-5)"},
    {"graviton2", "AWS Graviton2 (m6g.4xlarge)", "aarch64", "neoverse-n1", "", 128, 16, 1},
    {"graviton3", "AWS Graviton3 (m7g.4xlarge)", "aarch64", "neoverse-v1", "", 128, 16, 1},
    {"graviton4", "AWS Graviton4 (m8g.4xlarge)", "aarch64", "neoverse-v2", "", 128, 16, 1},
    {"ampere-altra", "Ampere Altra (16 cores)", "aarch64", "neoverse-n1", "", 128, 16, 1},
    {"ampereone", "AmpereOne (16 cores)", "aarch64", "ampere1", "", 128, 16, 1},
    {"apple-m1", "Apple M1, Linux", "aarch64", "apple-m1", "", 128, 8, 2, "4 apple-m1 (0-3), 4 apple-m1 (4-7)"},
    {"apple-m2", "Apple M2, Linux", "aarch64", "apple-m2", "", 128, 8, 2, "4 apple-m2 (0-3), 4 apple-m2 (4-7)"},
    {"power9", "IBM POWER9 (16 threads)", "powerpc64le", "pwr9", "", 128, 16, 1},
    {"haswell", "Intel Core i7-4770 (Haswell)", "x86_64", "x86-64-v3", "", 256, 8, 1},
    {"alder-lake", "Intel Core i7-12700K (Alder Lake)", "x86_64", "x86-64-v3", "+avxvnni", 256, 20, 1},
    {"sapphire-rapids", "Intel Xeon 8480+ (Sapphire Rapids, 16 threads)", "x86_64", "x86-64-v4",
     "+avx512vnni,+avx512bf16,+avxvnni", 512, 16, 1},
    {"celeron-n5105", "Intel Celeron N5105 (Jasper Lake)", "x86_64", "x86-64-v2", "", 128, 4, 1},
    {"zen1", "AMD Ryzen 7 1700 (Zen)", "x86_64", "x86-64-v3", "", 256, 16, 1},
    {"zen2", "AMD Ryzen 5 3600 (Zen 2)", "x86_64", "x86-64-v3", "", 256, 12, 1},
    {"zen3", "AMD Ryzen 5 5600X (Zen 3)", "x86_64", "x86-64-v3", "", 256, 12, 1},
    {"zen4", "AMD Ryzen 5 7600 (Zen 4)", "x86_64", "x86-64-v4", "+avx512vnni,+avx512bf16", 512, 12, 1},
    {"zen5", "AMD Ryzen 5 9600X (Zen 5)", "x86_64", "x86-64-v4", "+avx512vnni,+avx512bf16,+avxvnni", 512, 12, 1},
};

std::string base_of(const std::string& triple) {
  return triple.substr(0, triple.find('-'));
}

TEST(Boards, AreReadRight) {
  for (const Board& board : boards) {
    SCOPED_TRACE(board.file);
    const CpuinfoTarget got = read(board.file);
    EXPECT_EQ(base_of(got.target.triple), board.architecture);
    EXPECT_EQ(got.target.cpu, board.cpu);
    EXPECT_EQ(got.target.features, board.features);
    EXPECT_EQ(got.target.vector_bits, board.vector_bits);
    EXPECT_EQ(got.target.cores, board.cores);
    EXPECT_EQ(got.kinds, board.kinds);
    const std::string notes = base::join(got.notes, "\n");
    EXPECT_NE(notes.find(board.note), std::string::npos) << notes;
    EXPECT_EQ(notes.empty(), *board.note == '\0') << notes;
    check_target(got.target);
  }
}

TEST(Boards, OfTheTableAreAllThatThereAre) {
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(source / "tests/machine/cpuinfo")) files += entry.is_regular_file();
  EXPECT_EQ(files, std::size(boards));
}

// The guide shows the same table.
TEST(Boards, AreThoseOfTheGuide) {
  const std::string guide = base::read_file(source / "docs/guides/bring-up-a-board.md");
  for (const Board& board : boards) {
    const std::string vectors = board.vector_bits == 0 ? "none" : std::to_string(board.vector_bits);
    const std::string row =
        fmt::format("| {} | {} | {} | {} | {} |", board.title, board.architecture, board.cpu, vectors, board.cores);
    EXPECT_NE(guide.find(row), std::string::npos) << row;
  }
}

TEST(Boards, HaveKindsOfCores) {
  const Target little = read("spacemit-k3", 0).target, big = read("spacemit-k3", 15).target;
  EXPECT_EQ(little.vector_bits, 256);
  EXPECT_EQ(big.vector_bits, 1024);
  EXPECT_EQ(little.cores, 8);
  EXPECT_EQ(big.cores, 8);
  EXPECT_NE(big.features.find("+zvl1024b"), std::string::npos) << big.features;
  EXPECT_EQ(read("rock-5b", 0).target.cpu, "cortex-a55");
  EXPECT_EQ(read("rock-5b", 7).target.cpu, "cortex-a76");
  EXPECT_EQ(read("rock-5b", 7).target.cores, 4);
  EXPECT_EQ(read("odroid-n2", 1).target.cores, 2);
  EXPECT_EQ(read("apple-m1", 4).target.cores, 4);
  const std::string note = read("rock-5b", 7).notes.at(0);
  EXPECT_TRUE(contains(note, "4 cortex-a55 (0-3), 4 cortex-a76 (4-7)")) << note;
  EXPECT_TRUE(contains(note, "described is the kind of core 7")) << note;
  EXPECT_EQ(refusal([] { read("rock-5b", 8); }), "core 8: /proc/cpuinfo lists 0-7 only; choose one of them");
}

// Which core comes first does not matter.
TEST(Boards, AreReadInEitherOrder) {
  const std::string shorter = "processor : {}\nisa : rv64imafdcv_zba_zvl256b\n\n",
                    longer = "processor : {}\nisa : rv64imafdcv_zvl1024b_zbb\n\n";
  const auto both = [](const std::string& first, const std::string& second) {
    return target_of_cpuinfo("riscv64", fmt::format(fmt::runtime(first), 0) + fmt::format(fmt::runtime(second), 1));
  };
  for (const CpuinfoTarget& got : {both(shorter, longer), both(longer, shorter)}) {
    EXPECT_EQ(got.target.vector_bits, 256);
    EXPECT_EQ(got.target.features, "+m,+a,+f,+d,+c,+v,+zvl256b");
    EXPECT_EQ(got.target.cores, 2);
    EXPECT_EQ(got.kinds, 2);
  }
  const std::string
      a55 = "processor : {}\nFeatures : fp asimd asimdhp asimddp\nCPU implementer : 0x41\nCPU part : 0xd05\n",
      a76 = "processor : {}\nFeatures : fp asimd asimdhp\nCPU implementer : 0x41\nCPU part : 0xd0b\n";
  for (const auto& [first, second] : {std::pair{a55, a76}, {a76, a55}}) {
    const Target got =
        target_of_cpuinfo("aarch64", fmt::format(fmt::runtime(first), 0) + fmt::format(fmt::runtime(second), 1)).target;
    EXPECT_EQ(got.cpu, "generic");
    EXPECT_EQ(got.features, "+fullfp16");  // the second kind's system lists no dot products
  }
}

// Vectors of RVV 0.7.1 have another code.
TEST(Boards, OfOldVectorsHaveNone) {
  const auto bits = [](const std::string& lines) {
    return target_of_cpuinfo("riscv64", "processor : 0\nisa : rv64imafdcv\n" + lines).target.vector_bits;
  };
  EXPECT_EQ(bits(""), 128);
  EXPECT_EQ(bits("cpu-vector : 0.7.1\n"), 0);
  EXPECT_EQ(bits("vector version : 0.7.1\n"), 0);
  EXPECT_EQ(bits("cpu-vector : 1.0\nmvendorid : 0x5b7\n"), 128);
  EXPECT_EQ(bits("mvendorid : 0x5b7\nmarchid : 0x0\nmimpid : 0x0\n"), 0);
  EXPECT_EQ(bits("mvendorid : 0x5b7\n"), 0);
  EXPECT_EQ(bits("mvendorid : 0x5b7\nmarchid : 0x8000000009140d00\nmimpid : 0x2047000\n"), 128);
  EXPECT_EQ(bits("uarch : thead,c910\n"), 0);
  EXPECT_EQ(bits("mvendorid : 0x710\nmarchid : 0x0\nmimpid : 0x0\n"), 128);
  const auto of_isa = [](const std::string& isa, const std::string& lines = "") {
    return target_of_cpuinfo("riscv64", "isa : " + isa + "\n" + lines).target.vector_bits;
  };
  EXPECT_EQ(of_isa("rv64imafdcvsu"), 0);
  EXPECT_EQ(of_isa("rv64imafdc_xtheadvector"), 0);
  EXPECT_EQ(of_isa("rv64imafdcv_zve64d", "mvendorid : 0x5b7\nmarchid : 0x0\nmimpid : 0x0\n"), 128);
  EXPECT_EQ(of_isa("rv64imafdc_zve64d_zvl256b"), 256);
  EXPECT_EQ(of_isa("rv64imafdc_zve32x"), 0);  // no floating point in vectors
}

// What a program finds takes the place of what the text says.
TEST(Boards, HaveTheVectorsThatAProgramFinds) {
  const auto found = [](const std::string& isa, std::int64_t bits, const std::string& lines = "") {
    return with_vectors(target_of_cpuinfo("riscv64", "isa : " + isa + "\n" + lines).target, bits);
  };
  EXPECT_EQ(found("rv64imafdcv_zvl1024b", 256).features, "+m,+a,+f,+d,+c,+v,+zvl256b");
  EXPECT_EQ(found("rv64imafdcv_zvl256b_zvfh", 0).features, "+m,+a,+f,+d,+c");
  EXPECT_EQ(found("rv64imafdc", 512).features, "+m,+a,+f,+d,+c,+v,+zvl512b");
  EXPECT_EQ(found("rv64imafdcv", 64).features, "+m,+a,+f,+d,+c,+zve64d");
  const Target x60 = found("rv64imafdcv", 128, "uarch : spacemit,x60\n");
  EXPECT_EQ(x60.cpu, "generic-rv64");  // LLVM's X60 has 256 bits
  EXPECT_EQ(x60.vector_bits, 128);
  check_target(x60);
  EXPECT_EQ(found("rv64imafdcv", 256, "uarch : spacemit,x60\n").cpu, "spacemit-x60");
  const Target v1 = with_vectors(read("graviton3").target, 256);
  EXPECT_EQ(v1.features, "+sve");
  EXPECT_EQ(v1.vector_bits, 256);
  check_target(v1);
}

}  // namespace
}  // namespace graft::codegen
