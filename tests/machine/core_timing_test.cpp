#include "codegen/machine/core_timing.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "codegen/machine/compile.h"
#include "codegen/program/forms.h"

namespace graft::codegen {
namespace {

Target riscv(const std::string& cpu) {
  Target target;
  target.triple = "riscv64-unknown-linux-gnu";
  target.cpu = cpu;
  target.vector_registers = 32;
  if (cpu == "sifive-x280") target.vector_bits = 512;
  return target;
}

LoopProgram matmul(int m, int n, int k) {
  return parse_program(fmt::format(R"(buffer A f32 [{0},{2}] input
buffer B f32 [{2},{1}] input
buffer C f32 [{0},{1}] output
run
  for i {0}
    for j {1}
      C[i,j] = 0
  for i {0}
    for k {2}
      for j {1}
        C[i,j] += A[i,k] * B[k,j]
)",
                                   m, n, k),
                       "test");
}

LoopProgram addition(int n) {
  return parse_program(fmt::format(R"(buffer A f32 [{0}] input
buffer B f32 [{0}] input
buffer C f32 [{0}] output
run
  for i {0}
    C[i] = A[i] + B[i]
)",
                                   n),
                       "test");
}

CoreTiming timing_of(const LoopProgram& program, const Target& target, const CoreTimingSettings& settings = {}) {
  const base::Result<CoreTiming> timing = core_timing(program, target, settings);
  if (!timing) throw std::runtime_error(timing.reason().text);
  return *timing;
}

TEST(CoreTiming, CountsTheInstructionsOfALoopExactly) {
  const Target target = riscv("sifive-p450");
  const double thousand = timing_of(addition(1000), target).instructions;
  const double two_thousand = timing_of(addition(2000), target).instructions;
  const double per_iteration = (two_thousand - thousand) / 1000;
  // Two loads, an addition, a store, a branch, one to three moving pointers, and a counter where no pointer is one.
  EXPECT_GE(per_iteration, 6);
  EXPECT_LE(per_iteration, 9);
  // The code before and after the loop is the same except for the constant of its end.
  EXPECT_NEAR(per_iteration, std::round(per_iteration), 2e-3);
  EXPECT_LE(thousand - 1000 * std::round(per_iteration), 20);
}

TEST(CoreTiming, CountsWhatTheAssemblySays) {
  for (const char* cpu : {"sifive-p450", "sifive-x280"}) {
    const LoopProgram straight = parse_program(R"(buffer A f32 [8] input
buffer B f32 [8] input
buffer C f32 [8] output
run
  for i 8 unrolled
    C[i] = A[i] * B[i] + 2.5
)",
                                               "test");
    const std::string text = listing(straight, riscv(cpu))->assembly;
    std::istringstream lines(text.substr(text.find("\ngraft_run.0:\n") + 1));
    std::string line;
    std::getline(lines, line);
    int instructions = 0;
    while (std::getline(lines, line) && line.rfind(".Lfunc_end", 0) != 0)
      instructions += line.size() > 1 && line[0] == '\t' && line[1] != '.' && line[1] != '#';
    EXPECT_GT(instructions, 20) << text;
    EXPECT_EQ(timing_of(straight, riscv(cpu)).instructions, instructions) << text;
  }
}

TEST(CoreTiming, CountsScaleWithTheOutermostLoop) {
  for (const char* cpu : {"sifive-p450", "sifive-u74"}) {
    const Target target = riscv(cpu);
    const double one = timing_of(matmul(100, 40, 30), target).instructions;
    const double two = timing_of(matmul(200, 40, 30), target).instructions;
    const double four = timing_of(matmul(400, 40, 30), target).instructions;
    EXPECT_GT(one, 100. * 40 * 30 * 6) << cpu;
    EXPECT_NEAR(four - two, 2 * (two - one), 8) << cpu;
    EXPECT_NEAR(one, two - one, 40) << cpu;
  }
}

TEST(CoreTiming, CountsAreExactInDeepNests) {
  // Six loops deep, no trip a power of two: the innermost block runs 3*5*7*11*13*17 times.
  const LoopProgram program = parse_program(R"(buffer A f32 [3,5,7,11,13,17] input
buffer C f32 [3,5,7,11,13,17] output
run
  for a 3
    for b 5
      for c 7
        for d 11
          for e 13
            for f 17
              C[a,b,c,d,e,f] = A[a,b,c,d,e,f] * 3
)",
                                            "test");
  const double instructions = timing_of(program, riscv("sifive-p450")).instructions;
  EXPECT_EQ(instructions, std::round(instructions));
  EXPECT_GT(instructions, 255255. * 4);
}

TEST(CoreTiming, CyclesGrowWithWork) {
  for (const char* cpu : {"sifive-u54", "sifive-u74", "sifive-p450", "xiangshan-nanhu"}) {
    double before = 0;
    for (int size : {8, 16, 32, 64, 128}) {
      const double cycles = timing_of(matmul(size, size, size), riscv(cpu)).cycles;
      EXPECT_GT(cycles, 3 * before) << cpu << " " << size;
      before = cycles;
    }
  }
}

TEST(CoreTiming, MatmulOnAThreeWideCoreIsPlausible) {
  const CoreTiming timing = timing_of(matmul(64, 64, 64), riscv("sifive-p450"));
  EXPECT_TRUE(timing.unsupported.empty());
  EXPECT_GT(timing.cycles, 0.3 * timing.instructions / 3);
  EXPECT_LT(timing.cycles, 3 * timing.instructions / 3);
}

TEST(CoreTiming, VectorCodeIsTimedAndFaster) {
  const LoopProgram vectors = parse_program(R"(buffer A f32 [64,64] input
buffer B f32 [64,64] input
buffer C f32 [64,64] output
buffer acc f32 [4,16] temporary registers
run
  for i 16
    for j 4
      for u 4 unrolled
        for v 16 vector
          acc[u,v] = 0
      for k 64
        for u 4 unrolled
          for v 16 vector
            acc[u,v] += A[4*i + u,k] * B[k,16*j + v]
      for u 4 unrolled
        for v 16 vector
          C[4*i + u,16*j + v] = acc[u,v]
)",
                                            "test");
  const Target target = riscv("sifive-x280");
  const CoreTimingSettings in_order{.out_of_order = false};
  const CoreTiming fast = timing_of(vectors, target, in_order);
  const CoreTiming slow = timing_of(matmul(64, 64, 64), target, in_order);
  EXPECT_TRUE(fast.unsupported.empty()) << fast.unsupported.begin()->first;
  EXPECT_TRUE(slow.unsupported.empty());
  EXPECT_LT(fast.instructions, slow.instructions / 4);
  EXPECT_LT(fast.cycles, slow.cycles / 2);
  // 64*64*64/16 vector multiply-adds of 512 bits, two cycles each on the 256-bit data path.
  EXPECT_GT(fast.cycles, 64. * 64 * 64 / 16);
}

TEST(CoreTiming, EveryExitOfALongLoopMayBeMispredicted) {
  const LoopProgram program = matmul(50, 100, 20);
  const Target target = riscv("sifive-p450");
  CoreTimingSettings none, hundred;
  none.mispredict_cycles = 0;
  hundred.mispredict_cycles = 100;
  const double added = timing_of(program, target, hundred).cycles - timing_of(program, target, none).cycles;
  // Filling: i once, j 50 times. Multiplying: i once, j 50*20 times; k has only 20 trips.
  EXPECT_NEAR(added, 100 * (1 + 50 + 1 + 50 * 20), 1e-3);
}

TEST(CoreTiming, AnInOrderCoreIsChargedAllOfFillAndDrain) {
  const LoopProgram program = matmul(16, 40, 16);
  CoreTimingSettings settings;
  const double out_of_order = timing_of(program, riscv("sifive-p450"), settings).cycles;
  settings.out_of_order = false;
  EXPECT_GT(timing_of(program, riscv("sifive-p450"), settings).cycles, out_of_order);
}

TEST(CoreTiming, ParallelLoopsAreTimedOnOneCoreAndPrepareNotAtAll) {
  const auto program = [](const std::string& kind, const std::string& prepare) {
    return parse_program(fmt::format(R"(buffer A f32 [64,64] constant
buffer C f32 [64,64] output
buffer P f32 [64,64] temporary
{}run
  for i 64{}
    for j 64
      C[i,j] = P[i,j] * 2
)",
                                     prepare, kind),
                         "test");
  };
  const std::string prepare = "prepare\n  for i 64\n    for j 64\n      P[i,j] = A[j,i]\n";
  const Target target = riscv("sifive-p450");
  const CoreTiming serial = timing_of(program("", prepare), target);
  const CoreTiming parallel = timing_of(program(" parallel", prepare), target);
  const CoreTiming bare = timing_of(program("", ""), target);
  EXPECT_EQ(serial.cycles, parallel.cycles);
  EXPECT_EQ(serial.instructions, parallel.instructions);
  EXPECT_EQ(serial.cycles, bare.cycles);
  EXPECT_EQ(serial.instructions, bare.instructions);
}

TEST(CoreTiming, AnotherModelTimesTheSameCode) {
  CoreTimingSettings settings;
  const CoreTiming own = timing_of(matmul(40, 40, 40), riscv("sifive-p450"), settings);
  settings.model_cpu = "sifive-u54";
  const CoreTiming other = timing_of(matmul(40, 40, 40), riscv("sifive-p450"), settings);
  EXPECT_EQ(own.instructions, other.instructions);
  EXPECT_GT(other.cycles, 1.5 * own.cycles);
  // Vectors shorter than those of the cpu that has the model.
  settings.model_cpu = "sifive-x280";
  Target shorter = riscv("spacemit-x60");
  shorter.vector_bits = 256;
  EXPECT_GT(timing_of(matmul(40, 40, 40), shorter, settings).cycles, 0);
  settings.model_cpu = "spacemit-x60";
  EXPECT_THROW((void)core_timing(addition(8), riscv("sifive-p450"), settings), base::UserError);
}

TEST(CoreTiming, ANarrowerFrontIsNoFaster) {
  CoreTimingSettings one;
  one.dispatch_width = 1;
  const CoreTiming own = timing_of(matmul(40, 40, 40), riscv("sifive-p450"));
  EXPECT_GT(timing_of(matmul(40, 40, 40), riscv("sifive-p450"), one).cycles, 1.3 * own.cycles);
  EXPECT_GE(timing_of(matmul(40, 40, 40), riscv("sifive-p450"), one).cycles, 0.95 * own.instructions);
}

TEST(CoreTiming, ZeroedAccumulatorsDependOnNothing) {
  // Chains of four multiply-adds of 4 cycles each, begun 64 * 64 times: cores overlap them. LLVM's own model of
  // Sapphire Rapids would not, as it takes the register that is zeroed for an operand.
  const LoopProgram chains = parse_program(R"(buffer A f32 [64,4] input
buffer B f32 [4,512] input
buffer C f32 [64,512] output
buffer acc f32 [8] temporary registers
run
  for i 64
    for j 64
      for v 8 vector
        acc[v] = 0
      for k 4 unrolled
        for v 8 vector
          acc[v] += A[i,k] * B[k,8*j + v]
      for v 8 vector
        C[i,8*j + v] = acc[v]
)",
                                           "test");
  Target target;
  target.triple = "x86_64-unknown-linux-gnu";
  target.cpu = "x86-64-v3";
  target.vector_bits = 256;
  target.vector_registers = 16;
  for (const char* cpu : {"haswell", "sapphirerapids", "znver4"}) {
    CoreTimingSettings settings;
    settings.model_cpu = cpu;
    EXPECT_LT(timing_of(chains, target, settings).cycles, 10. * 64 * 64) << cpu;
  }
}

// The time of a vector instruction follows from the last vsetvli, which is before its loop.
TEST(CoreTiming, LongerVectorGroupsTakeLonger) {
  const auto streaming = [](int lanes) {
    return parse_program(fmt::format(R"(buffer A f32 [4096] input
buffer C f32 [4096] output
run
  for i {0}
    for u 4 unrolled
      for v {1} vector
        C[{2}*i + {1}*u + v] = A[{2}*i + {1}*u + v] * A[{2}*i + {1}*u + v]
)",
                                     4096 / (4 * lanes), lanes, 4 * lanes),
                         "test");
  };
  const auto per_iteration = [&](const std::string& cpu, int bits, int registers) {
    Target target = riscv(cpu);
    target.vector_bits = bits;
    const int lanes = registers * bits / 32;
    const CoreTiming timing = timing_of(streaming(lanes), target, {.out_of_order = cpu == "sifive-p670"});
    EXPECT_TRUE(timing.unsupported.empty()) << cpu;
    return timing.cycles / (4096 / (4. * lanes));
  };
  // Four loads, multiplications and stores. llvm-mca says 36 cycles when told of single registers, and 145 when told
  // nothing, as it then takes groups of eight.
  EXPECT_NEAR(per_iteration("sifive-x280", 512, 1), 36, 3);
  // 256 bits a cycle: 4 multiplications of 4 registers take 32 cycles at least.
  EXPECT_GT(per_iteration("sifive-x280", 512, 4), 32);
  EXPECT_LT(per_iteration("sifive-x280", 512, 4), 60);
  // Out of order, throughput counts alone, which is lower for single registers by other instructions only.
  EXPECT_GT(per_iteration("sifive-p670", 128, 4) / per_iteration("sifive-p670", 128, 1), 2);
}

TEST(CoreTiming, PartsAreLoopsOfTheProgramAndSumUp) {
  // Two nests side by side: loops 0, 1 and 2, 3, 4.
  const CoreTiming timing = timing_of(matmul(60, 50, 40), riscv("sifive-p450"));
  double cycles = 0, instructions = 0;
  std::map<int, double> share;
  for (const CorePart& part : timing.parts) {
    EXPECT_TRUE(share.emplace(part.loop, part.cycles / timing.cycles).second) << part.loop;
    EXPECT_GE(part.loop, -1);
    EXPECT_LT(part.loop, 5);
    cycles += part.cycles;
    instructions += part.instructions;
  }
  EXPECT_NEAR(cycles, timing.cycles, 1e-6 * timing.cycles);
  EXPECT_NEAR(instructions, timing.instructions, 0.01 * timing.instructions);
  EXPECT_GT(share[2] + share[3] + share[4], 0.9);
  EXPECT_GT(share[0] + share[1], 0.005);
}

Target avx2() {
  Target target;
  target.triple = "x86_64-unknown-linux-gnu";
  target.cpu = "x86-64-v3";
  target.vector_bits = 256;
  target.vector_registers = 16;
  return target;
}

TEST(CoreTiming, AFoldedLoadDoesNotLengthenAChain) {
  // One chain of fused multiply-adds, an operand of each from memory: four cycles each (Intel 248966, Golden Cove).
  const LoopProgram program = parse_program(R"(buffer A f32 [4096] input
buffer B f32 [4096,8] input
buffer C f32 [8] output
buffer acc f32 [8] temporary registers
run
  for v 8 vector
    acc[v] = 0
  for k 4096
    for v 8 vector
      acc[v] += A[k] * B[k,v]
  for v 8 vector
    C[v] = acc[v]
)",
                                            "test");
  CoreTimingSettings settings;
  for (const char* cpu : {"sapphirerapids", "skylake", "znver4"}) {
    settings.model_cpu = cpu;
    EXPECT_NEAR(timing_of(program, avx2(), settings).cycles / 4096, 4, 0.1) << cpu;
  }
}

TEST(CoreTiming, Zen4MovesHalfOfA512BitVectorACycle) {
  Target zen4 = avx2();
  zen4.cpu = "znver4";
  zen4.vector_bits = 512;
  zen4.vector_registers = 32;
  const auto copy = [](int lanes) {
    return parse_program(fmt::format(R"(buffer A f32 [2048,{0}] input
buffer C f32 [2048,{0}] output
run
  for i 2048
    for v {0} vector
      C[i,v] = A[i,v]
)",
                                     lanes),
                         "test");
  };
  EXPECT_NEAR(timing_of(copy(16), zen4).cycles / 2048, 2, 0.1);
  EXPECT_LT(timing_of(copy(8), zen4).cycles / 2048, 1.6);
  // Two loads for each of four sums: a load a cycle.
  const LoopProgram products = parse_program(R"(buffer A f32 [2048,4,16] input
buffer B f32 [2048,4,16] input
buffer C f32 [4,16] output
buffer acc f32 [4,16] temporary registers
run
  for a 4 unrolled
    for u 16 vector
      acc[a,u] = 0
  for k 2048
    for b 4 unrolled
      for v 16 vector
        acc[b,v] += A[k,b,v] * B[k,b,v]
  for c 4 unrolled
    for w 16 vector
      C[c,w] = acc[c,w]
)",
                                             "test");
  EXPECT_NEAR(timing_of(products, zen4).cycles / 2048, 8, 0.5);
  // Eight numbers, each for two vectors of sums: one multiply-add a cycle, and nothing for the numbers.
  const LoopProgram tile = parse_program(R"(buffer A f32 [2048,8] input
buffer B f32 [2048,2,16] input
buffer C f32 [8,2,16] output
buffer acc f32 [8,2,16] temporary registers
run
  for i.a 8 unrolled
    for j.a 2 unrolled
      for u 16 vector
        acc[i.a,j.a,u] = 0
  for k 2048
    for i.b 8 unrolled
      for j.b 2 unrolled
        for v 16 vector
          acc[i.b,j.b,v] += A[k,i.b] * B[k,j.b,v]
  for i.c 8 unrolled
    for j.c 2 unrolled
      for w 16 vector
        C[i.c,j.c,w] = acc[i.c,j.c,w]
)",
                                         "test");
  EXPECT_NEAR(timing_of(tile, zen4).cycles / 2048, 16, 0.5);
}

// `rows` vectors of sums, that is as many registers and two more.
LoopProgram tile(int rows) {
  return parse_program(fmt::format(R"(buffer A f32 [4096,{0}] input
buffer B f32 [4096,8] input
buffer C f32 [{0},8] output
buffer acc f32 [{0},8] temporary registers
run
  for i.a {0} unrolled
    for v 8 vector
      acc[i.a,v] = 0
  for k 4096
    for i.b {0} unrolled
      for v 8 vector
        acc[i.b,v] += A[k,i.b] * B[k,v]
  for i.c {0} unrolled
    for v 8 vector
      C[i.c,v] = acc[i.c,v]
)",
                                   rows),
                       "test");
}

TEST(CoreTiming, WhatIsSpilledWaitsForItsStore) {
  CoreTimingSettings settings;
  settings.model_cpu = "sapphirerapids";
  const auto per_step = [&](int rows) { return timing_of(tile(rows), avx2(), settings).cycles / 4096; };
  EXPECT_LT(per_step(12), 8);  // two multiply-adds a cycle
  // A sum of the many that registers have no room for is stored, loaded and added to once a step: 4 + 8 + 1 cycles.
  EXPECT_GE(per_step(17), 12);
}

TEST(CoreTiming, SpilledRegistersWaitForTheirOwnStoresOnly) {
  // Four parallel chains take no longer than one, however the analyser represents them.
  CoreTimingSettings settings;
  for (const char* cpu : {"sapphirerapids", "znver4"}) {
    settings.model_cpu = cpu;
    EXPECT_LT(timing_of(tile(20), avx2(), settings).cycles / 4096, 24) << cpu;
  }
}

// Sums in memory: a loop around runs through `count` of them again and again, or through others every time.
LoopProgram sums(int count, bool others) {
  return parse_program(fmt::format(R"(buffer A f32 [2048] input
buffer B f32 [2048,{0}] input
buffer C f32 [{1},{0}] output
run
  for k 2048
    for j {0}
      C[{2},j] += A[k] * B[k,j]
)",
                                   count, others ? 2048 : 1, others ? "k" : "0"),
                       "test");
}

TEST(CoreTiming, WhatIsAddedToInMemoryWaitsForItsStore) {
  for (const char* cpu : {"sapphirerapids", "skylake", "znver4"}) {
    CoreTimingSettings settings;
    settings.model_cpu = cpu;
    const auto per_round = [&](int count, bool others) {
      return timing_of(sums(count, others), avx2(), settings).cycles / 2048;
    };
    // Load, multiply-add, store: 5 + 4 + 1 cycles at least before the next round begins, for any few sums.
    for (const int count : {2, 3, 4}) {
      EXPECT_GE(per_round(count, false), 10) << cpu << ", " << count;
      EXPECT_LT(per_round(count, false), 14) << cpu << ", " << count;
      EXPECT_LT(per_round(count, true), 8) << cpu << ", " << count;
    }
    EXPECT_NEAR(per_round(64, false), per_round(64, true), 0.05 * per_round(64, true)) << cpu;
  }
}

TEST(CoreTiming, SumsInMemoryDoNotWaitForThoseBefore) {
  // Three rounds of two sums, then two others: an out-of-order core has begun with these before the first are done.
  const LoopProgram program = parse_program(R"(buffer A f32 [2048,3] input
buffer B f32 [3,2] input
buffer C f32 [2048,2] output
run
  for i 2048
    for k 3
      for j 2
        C[i,j] += A[i,k] * B[k,j]
)",
                                            "test");
  CoreTimingSettings settings;
  settings.model_cpu = "sapphirerapids";
  EXPECT_LT(timing_of(program, avx2(), settings).cycles / (3 * 2048), 5);  // one round after the other: 10
}

TEST(CoreTiming, SpilledVectorsLieInWholeLines) {
  const base::Result<Listing> code = listing(tile(20), avx2());
  ASSERT_TRUE(code) << code.reason().text;
  EXPECT_NE(code->assembly.find("vmovaps\t%ymm0, "), std::string::npos);
  std::istringstream lines(code->assembly);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("(%rsp)") == std::string::npos) continue;
    EXPECT_EQ(line.find("vmovups"), std::string::npos) << line;
  }
}

TEST(CoreTiming, ACpuWithoutASchedulingModelIsRefused) {
  for (const char* cpu : {"spacemit-x60", "generic-rv64"}) {
    try {
      (void)core_timing(addition(8), riscv(cpu), {});
      FAIL() << cpu;
    } catch (const base::UserError& error) {
      EXPECT_NE(std::string(error.what()).find(cpu), std::string::npos);
      EXPECT_NE(std::string(error.what()).find("scheduling model"), std::string::npos);
    }
  }
}

TEST(CoreTiming, OpcodesThatTheModelLacksAreNamed) {
  // The model of this core was made without floating point.
  Target target = riscv("syntacore-scr3-rv64");
  target.features = "+f,+d";
  const auto unsupported = timing_of(addition(100), target).unsupported;
  // Two loads, an addition, a store.
  EXPECT_EQ(unsupported, (std::map<std::string, int>{{"FADD_S", 1}, {"FLW", 2}, {"FSW", 1}}));
}

TEST(CoreTiming, SameNumbersOnEveryCallAndThread) {
  struct Case {
    LoopProgram program;
    Target target;
  };
  std::vector<Case> cases;
  for (const char* cpu : {"sifive-p450", "sifive-u74", "sifive-x280"})
    for (int size : {8, 24, 60}) cases.push_back({matmul(size, size, size), riscv(cpu)});
  std::vector<CoreTiming> alone;
  for (const Case& one : cases) alone.push_back(timing_of(one.program, one.target));
  std::vector<CoreTiming> together(2 * cases.size());
  base::parallel_for(std::int64_t(together.size()), 2, [&](std::int64_t i) {
    const Case& one = cases[std::size_t(i) % cases.size()];
    together[std::size_t(i)] = timing_of(one.program, one.target);
  });
  for (std::size_t i = 0; i < together.size(); ++i) {
    EXPECT_EQ(together[i].cycles, alone[i % cases.size()].cycles) << i;
    EXPECT_EQ(together[i].instructions, alone[i % cases.size()].instructions) << i;
  }
}

}  // namespace
}  // namespace graft::codegen
