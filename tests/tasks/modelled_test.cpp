#include "tasks/modelled/modelled.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/process.h"
#include "base/random.h"
#include "codegen/program/forms.h"
#include "codegen/schedule/lower.h"
#include "codegen/schedule/space.h"
#include "tasks/modelled/traffic.h"

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
  l2_latency_cycles: 14
  l3_latency_cycles: 40
  memory_nanoseconds: 100
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
Profile& profile_of(Platform& platform) {
  return std::get<Modelled>(platform.how).profile;
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

// The oracle: a fully associative cache with least-recently-used replacement, fed with every access of two runs; the
// lines missed in the second. Buffers begin at lines of their own.
class Cache {
 public:
  Cache(const LoopProgram& program, std::int64_t capacity, std::int64_t line_bytes)
      : program_(program), capacity_(std::size_t(capacity / line_bytes)), line_bytes_(line_bytes) {
    std::int64_t end = 0;
    for (const codegen::Buffer& buffer : program.buffers) {
      bases_.push_back(end);
      end += (buffer.bytes() + 4095) / 4096 * 4096;
    }
    values_.resize(program.loops.size());
  }
  double misses() {
    run(0, int(program_.run.size()));
    misses_ = 0;
    run(0, int(program_.run.size()));
    return double(misses_);
  }

 private:
  void run(int begin, int end) {
    for (int n = begin; n < end; n = program_.run[std::size_t(n)].end) {
      const codegen::Node& node = program_.run[std::size_t(n)];
      if (node.kind == codegen::Node::Kind::store) {
        const codegen::Store& store = program_.stores[std::size_t(node.item)];
        for (const codegen::Access& access : store.value.loads) touch(access);
        touch(store.target);
        continue;
      }
      std::int64_t& value = values_[std::size_t(node.item)];
      for (value = 0; value < program_.loops[std::size_t(node.item)].extent; ++value) run(n + 1, node.end);
    }
  }
  void touch(const codegen::Access& access) {
    const codegen::Buffer& buffer = program_.buffers[std::size_t(access.tensor)];
    if (buffer.scope == codegen::Scope::registers) return;
    const std::int64_t element = codegen::evaluate(codegen::offset(program_, access), values_);
    const std::int64_t line =
        (bases_[std::size_t(access.tensor)] + element * codegen::bytes_of(buffer.dtype)) / line_bytes_;
    const auto found = place_.find(line);
    if (found != place_.end()) {
      recent_.splice(recent_.begin(), recent_, found->second);
      return;
    }
    ++misses_;
    recent_.push_front(line);
    place_[line] = recent_.begin();
    if (place_.size() > capacity_) {
      place_.erase(recent_.back());
      recent_.pop_back();
    }
  }

  const LoopProgram& program_;
  const std::size_t capacity_;
  const std::int64_t line_bytes_;
  std::vector<std::int64_t> bases_, values_;
  std::list<std::int64_t> recent_;
  std::unordered_map<std::int64_t, std::list<std::int64_t>::iterator> place_;
  std::int64_t misses_ = 0;
};

TEST(Traffic, NothingIsMissedWhenAllFits) {
  const auto missed = missed_lines(matmul(16, "ijk"), {3 * 16 * 16 * 4, 1 << 20}, 64);
  ASSERT_EQ(missed.size(), 2u);
  for (const Lines& lines : missed) EXPECT_EQ(lines.all(), 0);
}

TEST(Traffic, AStreamMissesEveryLineOnce) {
  const LoopProgram copy = codegen::parse_program(R"(buffer A f32 [100,320] input
buffer C f32 [100,320] output
run
  for i 100
    for j 320
      C[i,j] = A[i,j]
)",
                                                  "test");
  const Lines lines = missed_lines(copy, {4096}, 64)[0];
  EXPECT_EQ(lines.sequential, 2 * 2000);
  EXPECT_EQ(lines.scattered, 0);
  EXPECT_EQ(lines.written, 2000);
  EXPECT_EQ(lines.all(), Cache(copy, 4096, 64).misses());
}

TEST(Traffic, AColumnWalkIsScattered) {
  const LoopProgram transpose = codegen::parse_program(R"(buffer A f32 [256,256] input
buffer C f32 [256,256] output
run
  for i 256
    for j 256
      C[i,j] = A[j,i]
)",
                                                       "test");
  // Too small for a column's lines: each element of A comes with a line of its own.
  const Lines lines = missed_lines(transpose, {4096}, 64)[0];
  EXPECT_EQ(lines.scattered, 256 * 256);
  EXPECT_EQ(lines.sequential, 256 * 16);
}

TEST(Traffic, AgreesWithASimulatedCacheOnMatrixProducts) {
  for (const char* order : {"ijk", "ikj", "jik", "jki", "kij", "kji"}) {
    const LoopProgram program = matmul(32, order);
    for (std::int64_t capacity : {512, 2048, 8192}) {
      const double simulated = Cache(program, capacity, 64).misses();
      const double predicted = missed_lines(program, {capacity}, 64)[0].all();
      EXPECT_GT(predicted, simulated / 1.6) << order << " " << capacity;
      EXPECT_LT(predicted, simulated * 1.6) << order << " " << capacity;
    }
  }
}

TEST(Traffic, BiggerCachesMissLess) {
  const codegen::Space space = codegen::derive_space(codegen::parse_workload("matmul(m=96,n=96,k=96)"), p450().target);
  const std::uint64_t seed = 5;
  base::Stream stream(seed, "traffic");
  for (int i = 0; i < 20; ++i) {
    const auto program = codegen::program(space.sample(stream), p450().target);
    ASSERT_TRUE(program) << program.reason().text;
    const auto missed = missed_lines(*program, {4096, 16384, 65536, 1 << 20}, 64);
    for (std::size_t level = 1; level < missed.size(); ++level)
      EXPECT_LE(missed[level].all(), missed[level - 1].all() * 1.001) << "seed " << seed << " sample " << i;
  }
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
  profile_of(platform).out_of_order = false;
  const auto in_order = modelled_time(program, platform);
  EXPECT_DOUBLE_EQ(in_order->seconds, (in_order->core_cycles + in_order->memory_cycles) / 2e9);
  EXPECT_GT(in_order->seconds, out_of_order->seconds);
}

TEST(ModelledTime, MemoryTermKnowsWhereLinesComeFrom) {
  // 4 MB in, 4 MB out: all from memory. 128 KB each: from the second cache, just so.
  const auto copy = [](int rows) {
    return codegen::parse_program(fmt::format("buffer A f32 [{0},1024] input\nbuffer C f32 [{0},1024] output\nrun\n"
                                              "  for i {0}\n    for j 1024\n      C[i,j] = A[i,j]\n",
                                              rows),
                                  "test");
  };
  Platform platform = p450();
  const double lines = 2 * 1024 * 64;
  const auto far = modelled_time(copy(1024), platform);
  const double each = 100 * 2 / 6. / 2.5;
  EXPECT_NEAR(far->memory_cycles, lines * each + lines / 2 * (2 + 3 + 3), 1);
  const auto near = modelled_time(copy(32), platform);
  EXPECT_NEAR(near->memory_cycles, lines / 32 * 1 + lines / 2 / 32 * 2, 1);
  profile_of(platform).memory_nanoseconds *= 2;
  EXPECT_NEAR(modelled_time(copy(1024), platform)->memory_cycles - far->memory_cycles, lines * each, 1);
  EXPECT_EQ(modelled_time(copy(32), platform)->memory_cycles, near->memory_cycles);
  // One miss at a time leaves nothing for a prefetcher.
  platform = p450();
  profile_of(platform).memory_parallelism = 1;
  EXPECT_NEAR(modelled_time(copy(1024), platform)->memory_cycles, lines * 200 + lines / 2 * (2 + 3 + 3), 1);
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
  // 30 iterations on 4 cores: one of them has 8.
  EXPECT_NEAR(modelled_time(program(" parallel"), platform)->seconds / serial, 8. / 30, 0.01);
}

TEST(ModelledTime, ABandIsDividedAsAWhole) {
  const auto seconds = [](const std::string& loops, std::int64_t threads) {
    Platform platform = p450();
    platform.target.threads = threads;
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

struct Notes : base::Monitor {
  std::vector<std::string> lines;
  int stop_after = -1;
  int asked = 0;
  void note(std::string_view line) override { lines.emplace_back(line); }
  bool stop_requested() override { return stop_after >= 0 && asked++ >= stop_after; }
};

std::vector<codegen::Candidate> sampled(const std::string& workload, const Platform& platform, int count) {
  const codegen::Space space = codegen::derive_space(codegen::parse_workload(workload), platform.target);
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

bool qemu_installed() {
  try {
    return base::run_process({"qemu-riscv64", "--version"}, std::chrono::seconds(10)).exit_code == 0;
  } catch (const base::Failure&) {
    return false;
  }
}

TEST(ModelledMeasurer, CrossCodeIsRightUnderQemu) {
  if (!qemu_installed()) GTEST_SKIP() << "qemu-riscv64 is not installed";
  for (const Platform& platform : {p450(), x280()}) {
    Notes notes;
    const auto measured =
        measure(*make_modelled_measurer(platform, {}, 1), sampled("matmul(m=32,n=32,k=32)", platform, 4), notes);
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
    const auto measured =
        measure(*make_modelled_measurer(platform, {}, 1), sampled("matmul(m=16,n=16,k=16)", platform, 3), notes);
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
  for (
      const Case& one :
      {Case{
           R"([bash, -c, "printf '{\"outputs\":[{\"name\":\"C\",\"bytes\":1024}],\"seconds\":[1]}\\n'; head -c 1024 /dev/zero"])",
           Status::wrong_result},
       Case{"[bash, -c, \"exit 3\"]", Status::crashed}}) {
    const Platform platform =
        platform_of("sifive-p450", "vector_bits: 0", "out_of_order: true\n  memory_parallelism: 6", one.command);
    Notes notes;
    const auto measured =
        measure(*make_modelled_measurer(platform, {}, 1), sampled("matmul(m=16,n=16,k=16)", platform, 1), notes);
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
  Notes notes;
  notes.stop_after = 2;
  EXPECT_EQ(
      measure(*make_modelled_measurer(platform, {}), sampled("matmul(m=16,n=16,k=16)", platform, 5), notes).size(), 2u);
}

void expect_refused(const Platform& platform, const std::string& word, int qemu_every = 100) {
  try {
    make_modelled_measurer(platform, {}, qemu_every);
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
  profile_of(platform).l2_latency_cycles.reset();
  expect_refused(platform, "l2_latency_cycles");
  platform = p450();
  profile_of(platform).gigahertz = 0;
  expect_refused(platform, "gigahertz");
  platform = p450();
  profile_of(platform).memory_parallelism = -1;
  expect_refused(platform, "memory_parallelism");
  platform.how = Native{};
  expect_refused(platform, "modelled");
  expect_refused(p450(), "qemu_every", 0);
}

}  // namespace
}  // namespace graft::tasks
