#include "tasks/modelled/modelled.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/process.h"
#include "base/random.h"
#include "codegen/machine/compile.h"
#include "codegen/program/forms.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/schedule/lower.h"
#include "codegen/space/space.h"
#include "tests/support/judged_space.h"
#include "tests/tasks/support.h"

namespace graft::tasks {
namespace {

using codegen::LoopProgram;
using datasets::Status;

Platform platform_of(const std::string& cpu, const std::string& vectors, const std::string& profile_lines,
                     const std::string& qemu = "[qemu-riscv64, -cpu, \"rv64,v=true,vlen=512,elen=64\"]") {
  return parse_platform(fmt::format(R"(name: model:{0}
long_name: model:{0}@{0}-like
description: a test
target:
  triple: riscv64-unknown-linux-gnu
  cpu: {0}
  {1}
  vector_registers: 32
  cores: 1
  l1_bytes: 32768
  l2_bytes: 262144
  l3_bytes: 2097152
  line_bytes: 64
modelled:
  gigahertz: 2
  mispredict_cycles: 8
  l1_ways: 8
  l2_ways: 8
  l2_shared: false
  l2_latency_cycles: 14
  l3_ways: 16
  l3_shared: true
  l3_latency_cycles: 40
  memory_nanoseconds: 100
  memory_gigabytes_per_second: 64
  prefetch_streams: 16
  page_bytes: 4096
  tlb_entries: 64
  l2_tlb_entries: 1024
  l2_tlb_ways: 8
  l2_tlb_cycles: 7
  page_walk_cycles: 30
  fork_join_microseconds: 5
  qemu: {3}
  {2}
)",
                                    cpu, vectors, profile_lines, qemu),
                        "test.yaml");
}
Platform p450() {
  return platform_of("sifive-p450", "vector_bits: 0", "out_of_order: true\n  memory_parallelism: 6");
}
Platform x280() {
  return platform_of("sifive-x280", "vector_bits: 512", "out_of_order: false\n  memory_parallelism: 4");
}
// To change it: the platform gets a device of its own.
Profile& own_profile(Platform& platform) {
  platform.device = modelled_device(*profile_of(platform));
  return const_cast<Profile&>(*profile_of(platform));
}

LoopProgram matmul(int size, const std::string& order) {
  std::string text = fmt::format(
      "buffer A f32 [{0},{0}] input\nbuffer B f32 [{0},{0}] input\nbuffer C f32 [{0},{0}] output\nrun\n", size);
  std::string indent = "  ";
  for (char loop : order) {
    text += fmt::format("{}for {} {}\n", indent, loop, size);
    indent += "  ";
  }
  return codegen::parse_program(text + indent + "C[i,j] += A[i,k] * B[k,j]\n", "test");
}

TEST(ModelledTime, FollowsItsFormula) {
  Platform platform = p450();
  const LoopProgram program = matmul(200, "ijk");
  const auto out_of_order = modelled_time(program, platform);
  ASSERT_TRUE(out_of_order) << out_of_order.reason().text;
  const double core = out_of_order->core_cycles, memory = out_of_order->memory_cycles;
  EXPECT_GT(core, 200. * 200 * 200);
  EXPECT_GT(memory, 0);
  EXPECT_DOUBLE_EQ(out_of_order->seconds, (std::max(core, memory) + 0.15 * std::min(core, memory)) / 2e9);
  own_profile(platform).out_of_order = false;
  const auto in_order = modelled_time(program, platform);
  EXPECT_DOUBLE_EQ(in_order->seconds, (in_order->core_cycles + in_order->memory_cycles) / 2e9);
  EXPECT_GT(in_order->seconds, out_of_order->seconds);
}

TEST(ModelledTime, PhasesDoNotOverlap) {
  // A copy of 4 MB, which waits for memory, and arithmetic on one line, which does not.
  const std::string buffers =
      "buffer A f32 [1024,1024] input\nbuffer B f32 [1024,1024] output\n"
      "buffer P f32 [16] input\nbuffer Q f32 [16] output\nrun\n";
  const std::string copy = "  for i 1024\n    for j 1024\n      B[i,j] = A[i,j]\n";
  const std::string sums = "  for n 500000\n    for m 16\n      Q[m] += P[m] * P[15-m]\n";
  const auto time = [&](const std::string& nests) {
    return *modelled_time(codegen::parse_program(buffers + nests, "test"), p450(), {0});
  };
  const ModelledTime first = time(copy), second = time(sums), both = time(copy + sums);
  ASSERT_GT(first.memory_cycles, first.core_cycles);
  ASSERT_GT(second.core_cycles, 100 * second.memory_cycles);
  ASSERT_GT(second.core_cycles, first.memory_cycles);
  EXPECT_NEAR(both.seconds, first.seconds + second.seconds, 0.02 * both.seconds);
  // Each store has caused what its own nest does.
  ASSERT_EQ(both.traffic.stores.size(), 2);
  EXPECT_EQ(both.traffic.stores[0].levels[0].missed(), first.traffic.levels[0].missed());
  EXPECT_LT(both.traffic.stores[1].levels[0].missed(), 10);
  EXPECT_EQ(both.traffic.stores[0].tlb_misses + both.traffic.stores[1].tlb_misses, both.traffic.tlb_misses);
}

TEST(ModelledTime, TheMemoryTermIsItsFormula) {
  const Platform platform = p450();
  const Profile& profile = *profile_of(platform);
  const Geometry geometry = geometry_of(platform);
  Traffic traffic;
  traffic.levels = {{100, 1000, 10}, {40, 600, 5}, {30, 500, 2}};
  traffic.tlb_misses = 20;
  traffic.page_walks = 3;
  // Latencies 14, 40 and 200 cycles, 6 at a time; lines that were seen coming 2.5 times cheaper, but two cycles at
  // least, as 32 bytes a cycle are all that comes from any level.
  const double lines = 60 * 14 / 6. + 400 * 2 + 10 * 40 / 6. + 100 * 40 / 15. + 30 * 200 / 6. + 500 * 200 / 15.;
  EXPECT_NEAR(memory_cycles(traffic, geometry, profile), lines + 10 * 2 + 7 * 3 + 20 * 7 + 3 * 30, 1e-9);
  // Eight cores: a line of the shared third cache every 16 cycles, one of memory every 16.
  const double crowded = 60 * 14 / 6. + 400 * 2 + 10 * 16 + 100 * 16 + 30 * 200 / 6. + 500 * 16;
  EXPECT_NEAR(memory_cycles(traffic, geometry, profile, 8), crowded + 10 * 2 + 7 * 3 + 20 * 7 + 3 * 30, 1e-9);
}

TEST(ModelledTime, MemoryTermKnowsWhereLinesComeFrom) {
  // 4 MB in, 4 MB out: all from memory, one cycle after the other. 128 KB in all: from the second cache.
  const auto copy = [](int rows) {
    return codegen::parse_program(fmt::format("buffer A f32 [{0},1024] input\nbuffer C f32 [{0},1024] output\nrun\n"
                                              "  for i {0}\n    for j 1024\n      C[i,j] = A[i,j]\n",
                                              rows),
                                  "test");
  };
  Platform platform = p450();
  const double lines = 2 * 1024 * 64, pages = 2 * 1024;
  const auto far = modelled_time(copy(1024), platform, {0});
  const Traffic& seen = far->traffic;
  for (const LevelTraffic& level : seen.levels) {
    EXPECT_EQ(level.missed(), lines);
    EXPECT_EQ(level.written, lines / 2);
    EXPECT_GT(level.prefetched, 0.9 * lines);
  }
  EXPECT_EQ(seen.tlb_misses, pages);
  EXPECT_EQ(far->memory_cycles, memory_cycles(seen, geometry_of(platform), *profile_of(platform)));
  const auto near = modelled_time(copy(16), platform, {0});
  EXPECT_EQ(near->traffic.levels[0].missed(), lines / 64);
  EXPECT_EQ(near->traffic.levels[2].missed(), 0);
  own_profile(platform).memory_nanoseconds *= 2;
  EXPECT_GT(modelled_time(copy(1024), platform, {0})->memory_cycles, 1.5 * far->memory_cycles);
  EXPECT_EQ(modelled_time(copy(16), platform, {0})->memory_cycles, near->memory_cycles);
  // Without a prefetcher nothing is seen coming.
  own_profile(platform).prefetch_streams = 0;
  EXPECT_EQ(modelled_time(copy(1024), platform, {0})->traffic.levels[0].prefetched, 0);
}

TEST(ModelledTime, OneSimulationServesAllPlatformsOfItsGeometry) {
  TrafficMemo memo;
  Platform platform = p450();
  const LoopProgram program = matmul(100, "ikj");
  const auto first = modelled_time(program, platform, {}, &memo);
  own_profile(platform).memory_nanoseconds = 500;
  const auto second = modelled_time(program, platform, {}, &memo);
  EXPECT_EQ(memo.simulations(), 1);
  EXPECT_EQ(first->traffic, second->traffic);
  EXPECT_EQ(first->traffic, modelled_time(program, platform)->traffic);
  platform.target.l2_bytes = 131072;
  EXPECT_TRUE(modelled_time(program, platform, {}, &memo));
  EXPECT_TRUE(modelled_time(program, platform, {1000}, &memo));
  EXPECT_EQ(memo.simulations(), 3);
}

TEST(ModelledTime, ParallelLoopsAreDividedAmongTheThreads) {
  const auto program = [](const std::string& kind) {
    return codegen::parse_program(fmt::format(R"(buffer A f32 [30,64] input
buffer C f32 [30,64] output
run
  for i 30{}
    for r 50
      for j 64
        C[i,j] += A[i,j]
)",
                                              kind),
                                  "test");
  };
  Platform platform = p450();
  const double serial = modelled_time(program(""), platform)->seconds;
  EXPECT_DOUBLE_EQ(modelled_time(program(" parallel"), platform)->seconds, serial);
  platform.target.threads = 4;
  EXPECT_DOUBLE_EQ(modelled_time(program(""), platform)->seconds, serial);
  // 30 iterations on 4 cores: one of them has 8. Starting them costs what the profile says.
  const auto parallel = modelled_time(program(" parallel"), platform);
  EXPECT_DOUBLE_EQ(parallel->fork_join_seconds, 5e-6);
  EXPECT_NEAR((parallel->seconds - 5e-6) / serial, 8. / 30, 0.01);
}

TEST(ModelledTime, ABandIsDividedAsAWhole) {
  const auto seconds = [](const std::string& loops, std::int64_t threads) {
    Platform platform = p450();
    platform.target.threads = threads;
    own_profile(platform).fork_join_microseconds = 0;
    return modelled_time(
               codegen::parse_program("buffer A f32 [6,5,64] input\nbuffer C f32 [6,5,64] output\nrun\n" + loops +
                                          "      for r 50\n        for j 64\n          C[h,i,j] += A[h,i,j]\n",
                                      "test"),
               platform)
        ->seconds;
  };
  const std::string fused = "  for h 6 parallel\n    for i 5 parallel\n";
  const double serial = seconds(fused, 1);
  EXPECT_NEAR(seconds(fused, 6) / serial, 5. / 30, 0.01);
  EXPECT_NEAR(seconds(fused, 10) / serial, 3. / 30, 0.01);
  EXPECT_NEAR(seconds(fused, 4) / serial, 8. / 30, 0.01);
  EXPECT_NEAR(seconds("  for h 6 parallel\n    for i 5\n", 10) / serial, 5. / 30, 0.01) << "6 tasks, no more";
}

TEST(ModelledTime, CoresShareTheLastLevelAndMemory) {
  // Each core reads its own 512 KB again and again: four of them do not fit 1 MB together.
  Platform platform = p450();
  platform.target.l3_bytes = 1 << 20;
  platform.target.threads = 4;
  const LoopProgram program = codegen::parse_program(R"(buffer A f32 [4,131072] input
buffer C f32 [4,131072] output
run
  for i 4 parallel
    for r 4
      for j 131072
        C[i,0] += A[i,j]
)",
                                                     "test");
  const auto crowded = modelled_time(program, platform);
  own_profile(platform).l3_shared = false;
  const auto alone = modelled_time(program, platform);
  EXPECT_GT(crowded->traffic.levels[2].missed(), 4 * 8000);
  EXPECT_LT(alone->traffic.levels[2].missed(), 1000);
  EXPECT_GT(crowded->memory_cycles, alone->memory_cycles);
  // Memory that gives the four cores together one line in 32 cycles.
  own_profile(platform).l3_shared = true;
  own_profile(platform).memory_gigabytes_per_second = 4;
  const auto starved = modelled_time(program, platform);
  EXPECT_GE(starved->memory_cycles, starved->traffic.levels[2].missed() * 4 * 32);
}

TEST(Noise, IsSeededAndHasTheSpreadThatItSays) {
  const std::vector<double> many = noisy(1e-3, 2, 7, 20000);
  EXPECT_EQ(many, noisy(1e-3, 2, 7, 20000));
  EXPECT_NE(many, noisy(1e-3, 2, 8, 20000));
  const std::vector<double> few = noisy(1e-3, 2, 7, 3);
  EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin()));
  double squares = 0;
  int usual = 0, slow = 0;
  for (double seconds : many) {
    const double log = std::log(seconds / 1e-3);
    EXPECT_LT(log, std::log(2.) + 0.1);
    if (log > 0.12) {
      ++slow;
    } else {
      ++usual;
      squares += log * log;
    }
  }
  EXPECT_NEAR(std::sqrt(squares / usual), 0.02, 0.001);
  EXPECT_NEAR(slow / 20000., 0.02, 0.004);
}

TEST(Noise, IsOnWhereTheProfileSaysSo) {
  Platform platform = p450();
  own_profile(platform).noise_percent = 2;
  MeasureSettings settings;
  settings.repetitions = 5;
  const auto candidates = [&] {
    const codegen::JudgedSpace space =
        codegen::judged_space(codegen::parse_workload("matmul(m=32,n=32,k=32)"), platform.target);
    base::Stream stream(7, "modelled");
    return std::vector<codegen::Candidate>{space.sample(stream)};
  }();
  const auto once = [&] {
    base::Monitor quiet;
    datasets::Measurement result;
    make_modelled_measurer(platform, settings)
        ->measure(
            candidates, [&](const Measured& measured) { result = measured.measurement; }, quiet);
    return result;
  };
  const datasets::Measurement first = once();
  ASSERT_EQ(first.status, Status::ok) << first.reason;
  EXPECT_EQ(first.seconds.size(), 5u);
  EXPECT_EQ(first.seconds, once().seconds);
  EXPECT_NE(first.seconds[0], first.seconds[1]);
  const double exact = modelled_time(*codegen::program(candidates[0], platform.target), platform)->seconds;
  for (double seconds : first.seconds) EXPECT_NEAR(std::log(seconds / exact), 0, 0.8);
  platform.long_name += "-other";
  EXPECT_NE(first.seconds, once().seconds);
}

LoopProgram parsed_vectors() {
  return codegen::parse_program(
      "buffer A f32 [64,16] input\nbuffer B f32 [64,16] input\nbuffer C f32 [64,16] output\nrun\n  for i 64\n"
      "    for j 16 vector\n      C[i,j] += A[i,j] * B[i,j]\n",
      "test");
}

TEST(ModelledPlatforms, AllThatAreShippedTimeTheirCode) {
  int modelled = 0;
  for (const std::string& id : platform_ids()) {
    if (id.starts_with("native")) continue;
    const Platform platform = platform_named(id);
    ++modelled;

    for (const char* text : {"matmul(m=256,n=256,k=256)", "conv2d(n=1,c=16,h=16,w=16,k=16,r=3,s=3,stride=1,pad=1)",
                             "depthwise_conv2d(n=1,c=32,h=16,w=16,r=3,s=3,stride=1,pad=1)"}) {
      const codegen::Workload workload = codegen::parse_workload(text);
      const codegen::JudgedSpace space = codegen::judged_space(workload, platform.target);
      base::Stream stream(11, "shipped");
      for (int i = 0; i < 2; ++i) {
        const auto program = codegen::program(space.sample(stream), platform.target);
        ASSERT_TRUE(program) << id << " " << program.reason().text;
        const auto time = modelled_time(*program, platform);
        ASSERT_TRUE(time) << id << " " << time.reason().text;
        EXPECT_TRUE(time->unsupported.empty()) << id << " " << text << ": " << time->unsupported.begin()->first;
        const double gigaflops = double(codegen::flops(workload)) / time->seconds * 1e-9;
        EXPECT_GT(gigaflops, 0.02) << id << " " << text;
        EXPECT_LT(gigaflops, 400) << id << " " << text;
      }
    }
  }
  EXPECT_GE(modelled, 19);
}

TEST(ModelledPlatforms, VectorsAreThoseOfTheirTargets) {
  const LoopProgram program = parsed_vectors();
  for (const auto& [id, wanted] : std::vector<std::pair<const char*, const char*>>{{"model:a64fx", "z0"},
                                                                                   {"model:znver4", "zmm"},
                                                                                   {"model:haswell", "ymm"},
                                                                                   {"model:sifive-x280", "vfmacc"},
                                                                                   {"model:spacemit-x60", "vfmacc"},
                                                                                   {"model:spacemit-x100", "vfmacc"},
                                                                                   {"model:neoverse-v1", "z0"},
                                                                                   {"model:znver2", "ymm"}}) {
    const auto code = codegen::listing(program, platform_named(id).target);
    ASSERT_TRUE(code) << id;
    EXPECT_NE(code->assembly.find(wanted), std::string::npos) << id << ":\n" << code->assembly;
  }
}

struct Notes : base::Monitor {
  std::vector<std::string> lines;
  void note(std::string_view line) override { lines.emplace_back(line); }
};

// Every program also runs under qemu.
const ModelledSettings every_one{.qemu_every = 1, .caches = {}, .memo = {}};

std::vector<codegen::Candidate> sampled(const std::string& workload, const Platform& platform, int count) {
  const codegen::JudgedSpace space = codegen::judged_space(codegen::parse_workload(workload), platform.target);
  base::Stream stream(7, "modelled");
  std::vector<codegen::Candidate> candidates;
  for (int i = 0; i < count; ++i) candidates.push_back(space.sample(stream));
  return candidates;
}

std::vector<Measured> measure(Measurer& measurer, const std::vector<codegen::Candidate>& candidates,
                              base::Monitor& monitor) {
  std::vector<Measured> all;
  measurer.measure(
      candidates, [&](const Measured& measured) { all.push_back(measured); }, monitor);
  return all;
}

TEST(ModelledMeasurer, MeasuresSampledCandidatesInOrderAndAlikeEveryTime) {
  for (const Platform& platform : {p450(), x280()}) {
    const auto candidates = sampled("matmul(m=64,n=64,k=64)", platform, 10);
    Notes notes;
    const auto first = measure(*make_modelled_measurer(platform, {}), candidates, notes);
    const auto second = measure(*make_measurer(platform, {}), candidates, notes);
    ASSERT_EQ(first.size(), candidates.size());
    ASSERT_EQ(second.size(), candidates.size());
    double fastest = INFINITY, slowest = 0;
    for (std::size_t i = 0; i < first.size(); ++i) {
      const datasets::Measurement& measurement = first[i].measurement;
      EXPECT_EQ(first[i].position, std::int64_t(i));
      ASSERT_EQ(measurement.status, Status::ok) << platform.name << " " << i << ": " << measurement.reason;
      EXPECT_EQ(measurement.clock, "modelled");
      EXPECT_TRUE(measurement.check == "host" || measurement.check == "qemu") << measurement.check;
      ASSERT_EQ(measurement.seconds.size(), 1u);
      EXPECT_EQ(measurement.seconds, second[i].measurement.seconds);
      EXPECT_EQ(first[i].program_hash, codegen::hash(*codegen::program(candidates[i], platform.target)));
      EXPECT_EQ(measurement.seconds[0],
                modelled_time(*codegen::program(candidates[i], platform.target), platform)->seconds);
      fastest = std::min(fastest, measurement.seconds[0]);
      slowest = std::max(slowest, measurement.seconds[0]);
    }
    // 2*64^3 operations at 2 GHz: at most 64 operations a cycle, and somewhat more than none.
    EXPECT_GT(fastest, 2. * 64 * 64 * 64 / 64 / 2e9);
    EXPECT_LT(slowest, 2. * 64 * 64 * 64 * 50 / 2e9);
    EXPECT_GT(slowest, 1.2 * fastest);
  }
}

TEST(HostChecks, WhatWasStoppedIsNotKnown) {
  const codegen::Workload workload = codegen::parse_workload("matmul(m=1500,n=1500,k=1500)");
  const auto binary = compile_for_host(codegen::naive_program(workload.computation()), codegen::host_target());
  HostChecks checks{MeasureSettings{}};
  test::StopAfterSeconds at_once(-1);
  EXPECT_THROW((void)checks.check(workload, 7, binary, &at_once), base::Stopped);
  EXPECT_FALSE(checks.knows(workload, 7));
}

TEST(HostChecks, AProgramOfSeveralPlatformsIsCheckedOnce) {
  const auto candidates = sampled("matmul(m=32,n=32,k=32)", p450(), 4);
  ModelledSettings settings;
  settings.host_checks = std::make_shared<HostChecks>(MeasureSettings{});
  Notes notes;
  Platform other = p450();
  own_profile(other).gigahertz = 1;
  const auto first = measure(*make_modelled_measurer(p450(), {}, settings), candidates, notes);
  const std::int64_t runs = settings.host_checks->runs();
  EXPECT_GE(runs, 1);
  EXPECT_LE(runs, 4);
  const auto second = measure(*make_modelled_measurer(other, {}, settings), candidates, notes);
  EXPECT_EQ(settings.host_checks->runs(), runs);
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(second[i].measurement.status, Status::ok) << second[i].measurement.reason;
    EXPECT_NE(second[i].measurement.check, "none");
    EXPECT_GT(second[i].measurement.seconds[0], first[i].measurement.seconds[0]);
  }
}

TEST(HostChecks, WhatWasRightElsewhereIsNotRunAgain) {
  const auto candidates = sampled("matmul(m=32,n=32,k=32)", p450(), 4);
  ModelledSettings settings{.qemu_every = 1'000'000'000, .caches = {}, .memo = {}};
  settings.host_checks = std::make_shared<HostChecks>(MeasureSettings{});
  for (const codegen::Candidate& candidate : candidates)
    settings.host_checks->add(candidate.workload, codegen::hash(*codegen::program(candidate, p450().target)));
  Notes notes;
  for (const Measured& one : measure(*make_modelled_measurer(p450(), {}, settings), candidates, notes)) {
    EXPECT_EQ(one.measurement.status, Status::ok);
    EXPECT_EQ(one.measurement.check, "host");
  }
  EXPECT_EQ(settings.host_checks->runs(), 0);
}

TEST(HostChecks, MeasurersMadeWithSharedHaveTheSame) {
  const auto candidates = sampled("matmul(m=32,n=32,k=32)", p450(), 3);
  Platform other = p450();
  own_profile(other).gigahertz = 1;
  Shared shared;
  Notes notes;
  measure(*make_measurer(p450(), {}, &shared), candidates, notes);
  ASSERT_NE(shared.host_checks, nullptr);
  ASSERT_NE(shared.memo, nullptr);
  const std::int64_t runs = shared.host_checks->runs();
  EXPECT_GE(runs, 1);
  measure(*make_measurer(other, {}, &shared), candidates, notes);
  EXPECT_EQ(shared.host_checks->runs(), runs);
}

bool qemu_installed() {
  try {
    return base::run_process({"qemu-riscv64", "--version"}, std::chrono::seconds(10)).exit_code == 0;
  } catch (const base::Failure&) {
    return false;
  }
}

TEST(ModelledMeasurer, HeavyProgramsRunUnderQemuLessOften) {
  if (!qemu_installed()) GTEST_SKIP() << "qemu-riscv64 is not installed";
  ModelledSettings settings;
  settings.qemu_every = 3;
  for (const auto& [text, every] :
       std::map<std::string, std::uint64_t>{{"matmul(m=16,n=16,k=16)", 3}, {"matmul(m=400,n=400,k=400)", 12}}) {
    Notes notes;
    const auto measured = measure(*make_modelled_measurer(p450(), {}, settings), sampled(text, p450(), 12), notes);
    for (const Measured& one : measured)
      EXPECT_EQ(one.measurement.check, one.program_hash % every == 0 ? "qemu" : "host") << one.measurement.reason;
  }
}

TEST(ModelledMeasurer, CrossCodeIsRightUnderQemu) {
  if (!qemu_installed()) GTEST_SKIP() << "qemu-riscv64 is not installed";
  for (const Platform& platform : {p450(), x280()}) {
    Notes notes;
    const auto measured = measure(*make_modelled_measurer(platform, {}, every_one),
                                  sampled("matmul(m=32,n=32,k=32)", platform, 4), notes);
    ASSERT_EQ(measured.size(), 4u);
    for (const Measured& one : measured) {
      EXPECT_EQ(one.measurement.status, Status::ok) << platform.name << ": " << one.measurement.reason;
      EXPECT_EQ(one.measurement.check, "qemu");
    }
    EXPECT_TRUE(notes.lines.empty()) << notes.lines[0];
  }
}

TEST(ModelledMeasurer, WithoutQemuTheCheckIsTheHosts) {
  for (const char* qemu : {"[no-such-qemu]", "[\"false\"]"}) {
    const Platform platform =
        platform_of("sifive-p450", "vector_bits: 0", "out_of_order: true\n  memory_parallelism: 6", qemu);
    Notes notes;
    const auto measured = measure(*make_modelled_measurer(platform, {}, every_one),
                                  sampled("matmul(m=16,n=16,k=16)", platform, 3), notes);
    ASSERT_EQ(measured.size(), 3u);
    for (const Measured& one : measured) {
      EXPECT_EQ(one.measurement.status, Status::ok) << one.measurement.reason;
      EXPECT_EQ(one.measurement.check, "host");
    }
    ASSERT_EQ(notes.lines.size(), 1u);
    EXPECT_NE(notes.lines[0].find("install qemu-user"), std::string::npos) << notes.lines[0];
  }
}

TEST(ModelledMeasurer, AFailingCheckLeavesNoTime) {
  struct Case {
    const char* command;
    Status status;
  };
  // What an executable says whose outputs are all zero.
  const Case wrong{R"([bash, -c, "printf '{\"graft\":1,\"kernels\":1}\\n{\"begin\":0}\\n{\"end\":0,\"first\":1,)"
                   R"(\"runs\":1,\"times\":[],\"bytes\":1024}\\n'; head -c 1024 /dev/zero"])",
                   Status::wrong_result};
  for (const Case& one : {wrong, Case{"[bash, -c, \"exit 3\"]", Status::crashed}}) {
    const Platform platform =
        platform_of("sifive-p450", "vector_bits: 0", "out_of_order: true\n  memory_parallelism: 6", one.command);
    Notes notes;
    const auto measured = measure(*make_modelled_measurer(platform, {}, every_one),
                                  sampled("matmul(m=16,n=16,k=16)", platform, 1), notes);
    ASSERT_EQ(measured.size(), 1u);
    EXPECT_EQ(measured[0].measurement.status, one.status) << measured[0].measurement.reason;
    EXPECT_TRUE(measured[0].measurement.seconds.empty());
    EXPECT_NE(measured[0].measurement.reason.find("under qemu"), std::string::npos);
  }
}

TEST(ModelledMeasurer, CodeThatTheModelLacksIsUnsupported) {
  const Platform platform = platform_of("syntacore-scr3-rv64", "features: \"+f,+d\"\n  vector_bits: 0",
                                        "out_of_order: false\n  memory_parallelism: 1");
  Notes notes;
  const auto measured =
      measure(*make_modelled_measurer(platform, {}), sampled("matmul(m=16,n=16,k=16)", platform, 1), notes);
  ASSERT_EQ(measured.size(), 1u);
  EXPECT_EQ(measured[0].measurement.status, Status::unsupported);
  EXPECT_NE(measured[0].measurement.reason.find("FMADD_S"), std::string::npos) << measured[0].measurement.reason;
  EXPECT_TRUE(measured[0].measurement.seconds.empty());
}

TEST(ModelledMeasurer, ACandidateThatDoesNotLowerCostsItselfOnly) {
  const Platform platform = p450();
  auto candidates = sampled("matmul(m=16,n=16,k=16)", platform, 3);
  candidates[1].arguments.push_back(1);
  Notes notes;
  const auto measured = measure(*make_modelled_measurer(platform, {}), candidates, notes);
  ASSERT_EQ(measured.size(), 3u);
  EXPECT_EQ(measured[0].measurement.status, Status::ok);
  EXPECT_EQ(measured[1].measurement.status, Status::does_not_lower);
  EXPECT_EQ(measured[1].program_hash, 0u);
  EXPECT_FALSE(measured[1].measurement.reason.empty());
  EXPECT_EQ(measured[2].measurement.status, Status::ok);
}

TEST(ModelledMeasurer, StopsWhenAsked) {
  const Platform platform = p450();
  struct : base::Monitor {
    bool stop_requested() override { return measured == 2; }
    int measured = 0;
  } monitor;
  make_modelled_measurer(platform, {})
      ->measure(
          sampled("matmul(m=16,n=16,k=16)", platform, 5), [&](const Measured&) { ++monitor.measured; }, monitor);
  EXPECT_EQ(monitor.measured, 2);
}

void expect_refused(const Platform& platform, const std::string& word, ModelledSettings modelled = {}) {
  try {
    make_modelled_measurer(platform, {}, modelled);
    ADD_FAILURE() << "not refused: " << word;
  } catch (const base::UserError& error) {
    EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }
}

TEST(ModelledMeasurer, RefusesWhatCannotBeModelled) {
  Platform platform = p450();
  platform.target.cpu = "spacemit-x60";
  expect_refused(platform, "spacemit-x60");
  platform = p450();
  platform.target.l1_bytes.reset();
  expect_refused(platform, "l1_bytes");
  platform = p450();
  own_profile(platform).l2_latency_cycles = 0;
  expect_refused(platform, "l2_latency_cycles");
  platform = p450();
  own_profile(platform).gigahertz = 0;
  expect_refused(platform, "gigahertz");
  platform = p450();
  own_profile(platform).memory_parallelism = -1;
  expect_refused(platform, "memory_parallelism");
  platform.device = this_host();
  expect_refused(platform, "modelled");
  ModelledSettings never;
  never.qemu_every = 0;
  expect_refused(p450(), "qemu_every", never);
}

}  // namespace
}  // namespace graft::tasks
