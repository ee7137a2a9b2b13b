#include "datasets/formats/auto_scheduler.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <set>

#include "base/random.h"
#include "base/text.h"
#include "codegen/program/forms.h"
#include "codegen/schedule/candidate_program.h"
#include "tests/datasets/formats_support.h"
#include "tests/schedule/support.h"

namespace graft::datasets::formats {
namespace {

constexpr const char* matmul = R"([\"ansor_mm\", 64, 48, 32, \"float32\"])";

std::string record(std::string_view key, std::string_view steps, std::string_view result = "[[0.5, 0.25], 0, 1.5, 17]",
                   std::string_view target = "llvm -keys=cpu ",
                   std::string_view hardware = "8, 64, 64, 0, 0, 0, 0, 0") {
  std::string line(steps);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return fmt::format(R"({{"i": [["{}", "{}", [{}], "", 1, []], [[], [{}]]], "r": {}, "v": "v0.6"}})"
                     "\n",
                     key, target, hardware, line, result);
}

Imported one(const std::string& text) {
  return imported_text("auto_scheduler", "log.json", text);
}

std::string sketch_of(const Imported& in, std::size_t row) {
  return codegen::to_text(*in.dataset.sketches[std::size_t(in.dataset.rows[row].sketch)]);
}

TEST(AutoSchedulerFormat, TilesOfAMatmulAreReplayed) {
  // Written straight into the result.
  const Imported in =
      one(record(matmul, R"(["SP", 2, 0, 64, [2, 4, 1], 1], ["SP", 2, 4, 32, [1, 2, 8], 1], ["SP", 2, 8, 48, [6], 1],
      ["RE", 2, [0, 4, 1, 5, 8, 2, 6, 9, 3, 7]], ["FU", 2, [0, 1]], ["AN", 2, 0, 3],
      ["PR", 2, 0, "auto_unroll_max_step$16"], ["AN", 2, 8, 2])"));
  ASSERT_EQ(in.dataset.rows.size(), 1u);
  EXPECT_EQ(in.counts.templates.at("ansor_mm").with_program, 1);
  EXPECT_EQ(in.dataset.workloads[0].text(), "matmul(m=64,n=32,k=48,dtype=f32)");
  // Loops: i 8 x 2 x 4 x 1, j 2 x 1 x 2 x 8, l 8 x 6. From the inside out, without the vector of 8: l.1 (6) fits into
  // 16 steps, j.2 (2) too, i.2 (4) does not.
  EXPECT_EQ(sketch_of(in, 0),
            "sketch ansor\n"
            "tile C i $i0 $i1 $i2\ntile C j $j3 $j4 $j5\ntile C l $l6\n"
            "order C i.0 j.0 i.1 j.1 l.0 i.2 j.2 l.1 i.3 j.3\n"
            "parallel C i.0 j.0\nvector C j.3\nunroll C j.2 l.1\n");
  EXPECT_EQ(in.dataset.rows[0].arguments, (std::vector<std::int64_t>{8, 4, 1, 16, 16, 8, 6}));
  EXPECT_EQ(in.dataset.rows[0].measurement.seconds, (std::vector<double>{0.5, 0.25}));
  const auto program = codegen::program(in.dataset.candidate(in.dataset.rows[0]), in.dataset.target);
  ASSERT_TRUE(program) << program.reason().text;
  EXPECT_EQ(codegen::hash(*program), in.dataset.rows[0].program_hash);
  const std::string text = codegen::to_text(*program);
  EXPECT_TRUE(contains(text, "for i.0 8 parallel\n    for j.0 2 parallel\n")) << text;
  EXPECT_TRUE(contains(text, "for l.1 6 unrolled\n")) << text;
  EXPECT_TRUE(contains(text, "for j.3 8 vector\n")) << text;
}

TEST(AutoSchedulerFormat, ACachedResultIsKeptInATile) {
  const char* const splits =
      R"(["CHW", 2, "local"], ["SP", 2, 0, 64, [2, 4, 2], 1], ["SP", 2, 4, 32, [1, 2, 8], 1], ["SP", 2, 8, 48, [6], 1],
         ["RE", 2, [0, 4, 1, 5, 8, 2, 6, 9, 3, 7]])";
  // The copy has the first two levels (FSP 2), or the first (FSP 1).
  const Imported in =
      one(record(matmul, fmt::format(R"({}, ["FSP", 3, 0, 1, 2], ["FSP", 3, 3, 2, 2], ["RE", 3, [0, 3, 1, 4, 2, 5]],
                     ["CA", 2, 3, 3], ["FU", 3, [0, 1, 2, 3]], ["AN", 3, 0, 3], ["PR", 2, 0, "auto_unroll_max_step$0"],
                     ["AN", 2, 9, 2])",
                                     splits)) +
          record(matmul, fmt::format(R"({}, ["FSP", 3, 0, 1, 1], ["FSP", 3, 2, 2, 1], ["RE", 3, [0, 2, 1, 3]],
                     ["CA", 2, 3, 1], ["AN", 3, 0, 3])",
                                     splits)));
  ASSERT_EQ(in.counts.templates.at("ansor_mm").with_program, 2) << in.counts.without_program.begin()->first;
  EXPECT_TRUE(contains(sketch_of(in, 0),
                       "order C i.0 j.0 i.1 j.1 l.0 i.2 j.2 l.1 i.3 j.3\nparallel C i.0 j.0 i.1 j.1\nvector C j.3\n"
                       "accumulate C above l.0\n"))
      << sketch_of(in, 0);
  EXPECT_TRUE(contains(sketch_of(in, 1),
                       "order C i.0 j.0 i.1 j.1 l.0 i.2 j.2 l.1 i.3 j.3\nparallel C i.0\naccumulate C above i.1\n"))
      << sketch_of(in, 1);
}

TEST(AutoSchedulerFormat, ConvolutionsWithTheirPadding) {
  const char* const conv = R"([\"conv2d_ansor\", [1, 4, 8, 8], [16, 4, 3, 3]])";
  const std::string splits =
      R"(["SP", 3, 0, 1, [1, 1, 1], 1], ["SP", 3, 4, 16, [1, 4, 2], 1], ["SP", 3, 8, 8, [1, 1, 2], 1],
         ["SP", 3, 12, 8, [2, 2, 2], 1], ["SP", 3, 16, 4, [2], 1], ["SP", 3, 18, 3, [1], 1], ["SP", 3, 20, 3, [3], 1],
         ["RE", 3, [0, 4, 8, 12, 1, 5, 9, 13, 16, 18, 20, 2, 6, 10, 14, 17, 19, 21, 3, 7, 11, 15]])";
  const Imported in = one(record(conv, splits + R"(, ["CA", 1, 3, 3], ["FU", 3, [0, 1, 2]], ["AN", 3, 0, 3])") +
                          record(conv, splits + R"(, ["CI", 1])") +
                          record(conv, splits + R"(, ["CR", 1], ["FU", 1, [0, 1]], ["AN", 1, 0, 3])"));
  ASSERT_EQ(in.counts.templates.at("conv2d_ansor").with_program, 3) << in.counts.without_program.begin()->first;
  EXPECT_EQ(in.dataset.workloads[0].text(), "conv2d(n=1,c=4,h=8,w=8,k=16,r=3,s=3,stride=1,pad=1,dtype=f32)");
  EXPECT_TRUE(contains(sketch_of(in, 0), "compute Y P above b.1\n")) << sketch_of(in, 0);
  EXPECT_TRUE(contains(sketch_of(in, 1), "sketch ansor\nabsorb Y P\n")) << sketch_of(in, 1);
  EXPECT_TRUE(contains(sketch_of(in, 2), "parallel P b.0 i.0\n")) << sketch_of(in, 2);
  const Imported depthwise =
      one(record(R"([\"depthwise\", [2, 8, 9, 9], [8, 1, 3, 3], \"float32\"])",
                 R"(["SP", 3, 0, 2, [1, 1, 1], 1], ["SP", 3, 4, 8, [1, 1, 4], 1], ["SP", 3, 8, 4, [1, 1, 2], 1],
         ["SP", 3, 12, 4, [1, 1, 4], 1], ["SP", 3, 16, 3, [1], 1], ["SP", 3, 18, 3, [1], 1],
         ["RE", 3, [0, 4, 8, 12, 1, 5, 9, 13, 16, 18, 2, 6, 10, 14, 17, 19, 3, 7, 11, 15]])"));
  EXPECT_EQ(depthwise.counts.templates.at("depthwise").with_program, 1)
      << depthwise.counts.without_program.begin()->first;
  EXPECT_EQ(depthwise.dataset.workloads[0].text(),
            "depthwise_conv2d(n=2,c=8,h=9,w=9,r=3,s=3,stride=2,pad=0,dtype=f32)");
}

TEST(AutoSchedulerFormat, WhatHasNoCounterpartKeepsItsNumbers) {
  const std::string rest = R"(, ["RE", 2, [0, 2, 1]])";
  const auto split = [](int extent) { return fmt::format(R"(["SP", 2, 0, {}, [4], 1])", extent); };
  const Imported in = one(record(matmul, split(64) + R"(, ["RF", 2, 0, 1])") +                  //
                          record(matmul, split(63)) +                                           //
                          record(matmul, split(64) + R"(, ["AN", 2, 0, 5])") +                  //
                          record(matmul, split(64) + R"(, ["PR", 2, 0, "other$3"])") +          //
                          record(matmul, split(64) + R"(, ["RE", 2, [0, 0, 1, 2]])") +          //
                          record(matmul, split(64) + R"(, ["AN", 2, 1, 3])") +                  //
                          record(matmul, R"(["CHR", 0, "shared", [2]])") +                      //
                          record(matmul, split(64), "[[0.5], 0, 1, 2]", "cuda -arch=sm_70") +   //
                          record(R"([\"conv2d_layer\", 1, 7, 7, 512, \"SAME\"])", split(64)) +  //
                          record("6d125280c99b", "") +                                          //
                          record(matmul, R"(["SP", 2, 0, 64, [4], 1], ["AN", 2, 3, 2])"));
  const Counts& counts = in.counts;
  EXPECT_EQ(counts.records, 11);
  EXPECT_EQ(counts.rows, 11);
  const std::pair<const char*, int> reasons[] = {
      {"RF: has no counterpart", 1},  {"SP: other extents than those of the workload", 1},
      {"AN: GPU threads", 1},         {"PR: another pragma", 1},
      {"RE: no permutation", 1},      {"AN: parallel loops inside of others", 1},
      {"CHR: has no counterpart", 1}, {"a GPU whose limits are not told", 1},
      {"an unknown workload", 2},     {"axes that are not split", 1}};
  std::int64_t named = 0;
  for (const auto& [reason, count] : reasons) {
    const auto found = counts.without_program.find(reason);
    ASSERT_NE(found, counts.without_program.end()) << reason;
    EXPECT_EQ(found->second, count) << reason;
    named += count;
  }
  std::int64_t all = 0;
  for (const auto& [reason, count] : counts.without_program) all += count;
  EXPECT_EQ(all, 11);
  EXPECT_EQ(named, 11);
  EXPECT_EQ(in.dataset.rows[0].arguments, (std::vector<std::int64_t>{64, 4}));
  EXPECT_EQ(in.dataset.workloads[std::size_t(in.dataset.rows[8].workload)].text(),
            "table(name=conv2d_layer_SAME,a0=1,a1=7,a2=7,a3=512)");
  EXPECT_EQ(in.dataset.workloads[std::size_t(in.dataset.rows[9].workload)].text(), "table(name=_6d125280c99b)");
}

TEST(AutoSchedulerFormat, FailuresKeepTheirNames) {
  std::string text;
  for (int error = 1; error <= 9; ++error) text += record(matmul, "", fmt::format("[[1e+10], {}, 0, 0]", error));
  text += record(matmul, "", "[[1e+10], 0, 0, 0]") + record(matmul, "", "[[], 0, 0, 0]") +
          record(matmul, "", "[[Infinity], 0, 0, 0]") + record(matmul, "", "[[0.5, 1e10], 0, NaN, 0]");
  const Imported in = one(text);
  const Status expected[] = {Status::does_not_lower,
                             Status::does_not_compile,
                             Status::does_not_compile,
                             Status::crashed,
                             Status::wrong_result,
                             Status::timed_out,
                             Status::timed_out,
                             Status::crashed,
                             Status::crashed,
                             Status::crashed,
                             Status::crashed,
                             Status::crashed,
                             Status::ok};
  ASSERT_EQ(in.dataset.rows.size(), std::size(expected));
  for (std::size_t i = 0; i < std::size(expected); ++i) {
    EXPECT_EQ(in.dataset.rows[i].measurement.status, expected[i]) << i;
    EXPECT_EQ(in.dataset.rows[i].measurement.seconds.empty(), expected[i] != Status::ok) << i;
  }
  EXPECT_EQ(in.dataset.rows[4].measurement.reason, "WRONG_ANSWER");
  EXPECT_EQ(in.dataset.rows[9].measurement.reason, "1e+10 in place of a time");
  EXPECT_EQ(in.dataset.rows[10].measurement.reason, "no time");
  EXPECT_EQ(in.dataset.rows[11].measurement.reason, "infinity in place of a time");
}

TEST(AutoSchedulerFormat, BrokenLinesAreRefused) {
  const std::string good = record(matmul, "");
  const std::pair<std::string, const char*> refusals[] = {
      {good + "{", "in:2:"},
      {good + "[]\n", "in:2:1: expected a map"},
      {good + R"({"i": [], "r": []})", "in:2:"},
      {good + R"({"v": "v0.6"})", "in:2:"},
      {record(matmul, "", "[[-0.5], 0, 0, 0]"), "a time of -0.5 seconds"},
      {record(matmul, "", "[[0.5], 0, 0, 0], \"r\": [[0.5], 0, 0, 0]"), "key 'r' is there twice"},
      {record(matmul, "[]"), "an empty step"},
      {record(matmul, R"(["SP", 2, 0.5])"), "expected an integer"},
      {record(matmul, R"(["SP", 2, 99999999999999999999])"), "beyond 64 bits"},
      {record(matmul, R"(["SP", )" + std::string(300, '[')), "nested deeper than 200 levels"},
      {record(R"([17])", ""), "expected a string"},
  };
  for (const auto& [text, words] : refusals) {
    const std::string message = refusal_of("auto_scheduler", text);
    EXPECT_TRUE(contains(message, words)) << text << ": " << message;
  }
  // What is not a line of JSON is refused with the line, too.
  const auto ones = [](int count) {
    std::string list = "1";
    for (int i = 1; i < count; ++i) list += ", 1";
    return list;
  };
  const auto split = [&](int length) { return fmt::format(R"(["SP", 2, 0, 64, [{}], 1])", ones(length)); };
  EXPECT_EQ(refusal_of("auto_scheduler", good + record(matmul, "", "[[" + ones(1001) + "], 0, 0, 0]")),
            "in:2: a record of 1001 times; at most 1000 are read");
  EXPECT_EQ(refusal_of("auto_scheduler", good + record("6d125280c99b", split(2100) + ", " + split(2100))),
            "in:2: a record of 4202 arguments; at most 4096 are read");
  EXPECT_EQ(refusal_of("auto_scheduler", good + record(std::string(2100, 'a'), "")),
            "in:2: a workload of more than 2000 characters");
}

const std::string three_splits =
    R"(["SP", 2, 0, 64, [2, 4, 1], 1], ["SP", 2, 4, 32, [1, 2, 8], 1], ["SP", 2, 8, 48, [6], 1])";

TEST(AutoSchedulerFormat, SizesBeyondAnyRealTensorCostNothing) {
  const auto peak_kib = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return std::int64_t(usage.ru_maxrss);
  };
  one(record(matmul, three_splits));
  const std::int64_t before = peak_kib();
  const auto start = std::chrono::steady_clock::now();
  const std::string lengths = "[1048576, 1048576, 1048576], 1]";
  const Imported in = one(
      record(matmul, fmt::format(R"(["SP", 2, 0, 64, {0}, ["SP", 2, 4, 32, {0}, ["SP", 2, 8, 48, {0})", lengths)) +
      record(R"([\"ansor_mm\", 1000000000, 1000000000, 1000000000])",
             fmt::format(R"(["SP", 2, 0, 1000000000, {})", lengths)) +
      record(
          R"([\"conv2d_ansor\", [1, 4, 8, 8], [16, 4, 1000000000000, 3]])",
          R"(["SP", 3, 0, 1, [1], 1], ["SP", 3, 4, 16, [1], 1], ["SP", 3, 8, 8, [1], 1], ["SP", 3, 12, 8, [2], 1])"));
  EXPECT_EQ(in.counts.without_program, (Counts::ByName{{"a tile out of range", 1}, {"an unknown workload", 2}}));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  EXPECT_LT(peak_kib() - before, 64 << 10);
}

TEST(AutoSchedulerFormat, NumbersBeyondTheLoopsAreReasons) {
  const Imported in =
      one(record(matmul, three_splits + R"(, ["FU", 2, [9223372036854775807, -9223372036854775808]])") +
          record(matmul, three_splits + R"(, ["FU", 2, [9, 10]])") +
          record(matmul, three_splits + R"(, ["FU", 2, [0, 2]])") +
          record(matmul, three_splits + R"(, ["PR", 2, 0, "auto_unroll_max_step$99999999999999999999"])"));
  EXPECT_EQ(
      in.counts.without_program,
      (Counts::ByName{{"FU: no such loop", 2}, {"FU: loops that are not adjacent", 1}, {"PR: another pragma", 1}}));
}

TEST(AutoSchedulerFormat, RowsOfOtherStepsAreOthers) {
  const char* const steps[] = {R"(["FU", 2, [0, 1]])",
                               R"(["FU", 2, [3, 4]])",
                               R"(["FU", 2, [0, 1, 2]])",
                               R"(["FU", 2, [0, 2]])",
                               R"(["SP", 2, 0, 64, [4], 1])",
                               R"(["SP", 2, 0, 128, [4], 1])",
                               R"(["SP", 2, 0, 128, [4], 0])",
                               R"(["PR", 2, 0, "auto_unroll_max_step$16"])",
                               R"(["PR", 2, 0, "other$16"])",
                               R"(["PR", 2, 0, "other$64"])",
                               R"(["PR", 2, 0, "auto_unroll_max_step$64"])"};
  std::string text;
  for (const char* each : steps) text += record("6d125280c99b", each);
  const Dataset data = one(text).dataset;
  std::set<std::pair<int, std::vector<std::int64_t>>> different;
  for (const Dataset::Row& row : data.rows) different.emplace(row.sketch, row.arguments);
  EXPECT_EQ(different.size(), std::size(steps));
  // Tile sizes, and extents that follow from them, are columns of one sketch.
  EXPECT_EQ(data.rows[4].sketch, data.rows[5].sketch);
  EXPECT_EQ(data.rows[0].sketch, data.rows[2].sketch);
}

// --- GPUs

constexpr const char* gpu = "cuda -keys=cuda,gpu -max_num_threads=64";
constexpr const char* limits = "-1, 16, 64, 16384, 2147483647, 64, 8, 32";

std::string gpu_record(std::string_view key, std::string_view steps, std::string_view hardware = limits) {
  return record(key, steps, "[[0.5], 0, 1.5, 17]", gpu, hardware);
}

std::string list(int begin, int end) {
  std::vector<std::string> all;
  for (int i = begin; i < end; ++i) all.push_back(std::to_string(i));
  return base::join(all, ", ");
}

// What Ansor writes for a sum of products on GPUs: tiles of blocks, virtual threads, items and two levels of results;
// both operands shared by the group, in parts of as many elements as `parts` says.
struct GpuSchedule {
  std::vector<std::int64_t> spatial = {}, reduced = {};          // extents
  std::vector<std::vector<std::int64_t>> tiles = {}, sums = {};  // lengths: four, and two
  std::vector<std::int64_t> parts = {};                          // of both operands
  int second = 1, first = 0, main = 2;                           // stages; a padding is before the second operand
  std::vector<int> dimensions = {};                              // of both operands
  int unroll = 0;

  std::string steps() const {
    const int n = int(spatial.size()), r = int(reduced.size());
    std::vector<std::string> all{fmt::format(R"(["CHW", {}, "local"])", main)};
    const auto add = [&](std::string step) { all.push_back("[" + std::move(step) + "]"); };
    for (int a = 0; a < n; ++a)
      add(fmt::format(R"("SP", {}, {}, {}, [{}], 1)", main, 5 * a, spatial[std::size_t(a)],
                      fmt::join(tiles[std::size_t(a)], ", ")));
    for (int a = 0; a < r; ++a)
      add(fmt::format(R"("SP", {}, {}, {}, [{}], 1)", main, 5 * n + 3 * a, reduced[std::size_t(a)],
                      fmt::join(sums[std::size_t(a)], ", ")));
    std::vector<int> order;
    const auto spatial_level = [&](int level, int levels) {
      for (int a = 0; a < n; ++a) order.push_back(levels * a + level);
    };
    const auto sum_level = [&](int level) {
      for (int a = 0; a < r; ++a) order.push_back(5 * n + 3 * a + level);
    };
    for (int level = 0; level < 3; ++level) spatial_level(level, 5);
    sum_level(0);
    sum_level(1);
    spatial_level(3, 5);
    sum_level(2);
    spatial_level(4, 5);
    add(fmt::format(R"("RE", {}, [{}])", main, fmt::join(order, ", ")));
    for (int a = 0; a < n; ++a) add(fmt::format(R"("FSP", {}, {}, {}, 3)", main + 1, 4 * a, a + 1));
    order.clear();
    for (int level = 0; level < 4; ++level) spatial_level(level, 4);
    add(fmt::format(R"("RE", {}, [{}])", main + 1, fmt::join(order, ", ")));
    add(fmt::format(R"("CA", {}, {}, {})", main, main + 1, 3 * n - 1));
    add(fmt::format(R"("CHR", {}, "shared", [{}])", second, main));
    add(fmt::format(R"("CA", {}, {}, {})", second + 1, main + 1, 3 * n + r - 1));
    add(fmt::format(R"("CHR", {}, "shared", [{}])", first, main + 1));
    add(fmt::format(R"("CA", {}, {}, {})", first + 1, main + 2, 3 * n + r - 1));
    if (first == 1) add(R"("CI", 1)");
    for (int level = 0; level < 3; ++level) {
      add(fmt::format(R"("FU", {}, [{}])", main + 3, list(level, level + n)));
      add(fmt::format(R"("AN", {}, {}, {})", main + 3, level, std::vector<int>{5, 4, 6}[std::size_t(level)]));
    }
    for (int copy = 1; copy >= 0; --copy) {
      const int stage = copy == 1 ? second + 2 : first + 1;
      add(fmt::format(R"("FU", {}, [{}])", stage, list(0, dimensions[std::size_t(copy)])));
      add(fmt::format(R"("SP", {}, 0, 1, [{}], 1)", stage, parts[std::size_t(copy)]));
      add(fmt::format(R"("AN", {}, 1, 2)", stage));
      add(fmt::format(R"("FFSP", {}, 0, [{}], 1, 1)", stage, list(1, n + 1)));
      add(fmt::format(R"("AN", {}, 1, 6)", stage));
    }
    add(fmt::format(R"("PR", {}, 0, "auto_unroll_max_step${}")", main + 2, unroll));
    return base::join(all, ", ");
  }
};

GpuSchedule gpu_matmul() {
  return {.spatial = {64, 32},
          .reduced = {48},
          .tiles = {{2, 4, 2, 1}, {1, 8, 1, 2}},
          .sums = {{4, 2}},
          .parts = {4, 32},
          .dimensions = {2, 2},
          .unroll = 16};
}

// The program of the only record, checked against the reference.
std::string checked_program(const Imported& in, const std::string& what) {
  const Dataset::Row& row = in.dataset.rows.at(0);
  if (!in.counts.without_program.empty()) {
    ADD_FAILURE() << what << ": " << in.counts.without_program.begin()->first;
    return "";
  }
  const codegen::Candidate candidate = in.dataset.candidate(row);
  const auto program = codegen::program(candidate, in.dataset.target);
  EXPECT_TRUE(program) << what << ": " << program.reason().text;
  if (!program) return "";
  EXPECT_EQ(codegen::hash(*program), row.program_hash);
  codegen::check(*program, what);
  EXPECT_LE(codegen::test::worst_excess(candidate.workload.padded(), *program, 1, program->amplification), 0) << what;
  return codegen::to_text(*program);
}

TEST(AutoSchedulerFormat, GroupsOfAGpuShareCopies) {
  const Imported in = one(gpu_record(matmul, gpu_matmul().steps()));
  const std::string text = checked_program(in, "matmul");
  EXPECT_EQ(in.dataset.target.group_items, 64);
  EXPECT_EQ(in.dataset.target.group_bytes, 16384);
  EXPECT_EQ(in.dataset.target.triple, "cuda");
  // Blocks of 16 x 16 (i: 2 virtual threads, 4 items, 2 results; j: 8 items, 2 results), 8 of the sum at a time. A part
  // of 4 elements of A is half of a row of 8; one of 32 of B is two rows of 16.
  EXPECT_EQ(sketch_of(in, 0), R"(sketch ansor
copy C A
copy C B
tile C i $i0 $i1 $i2 $i3
tile C j $j4 $j5 $j6 $j7
tile C l $l8 $l9
order C i.0 j.0 l.0 i.1 j.1 i.2 j.2 l.1 i.3 j.3 l.2 i.4 j.4
bind C block_x i.0 j.0
bind C virtual_thread i.1 j.1
bind C thread_x i.2 j.2
unroll C i.3 l.2 j.4
accumulate C above l.0
compute C C.A above i.1
compute C C.B above i.1
tile C.A d1 $part10
order C.A d0.0 d1.0 d1.1
bind C.A thread_x d0.0 d1.0
vector C.A d1.1
tile C.B d0 $part11
order C.B d0.0 d0.1 d1.0
bind C.B thread_x d0.0
vector C.B d1.0
)");
  EXPECT_TRUE(contains(text, "C.B f32 [8,16] temporary group")) << text;
  EXPECT_TRUE(contains(text, "temporary registers")) << text;
  EXPECT_TRUE(contains(text, "C.A.d0.0 16 thread_x\n")) << text;
}

std::vector<std::int64_t> factors(base::Stream& stream, std::int64_t whole, int count, std::int64_t most) {
  std::vector<std::int64_t> result;
  for (int i = 0; i < count; ++i) {
    std::int64_t factor = 0;
    while (factor < 1 || factor > most || whole % factor != 0) factor = 1 + stream.below(whole);
    result.push_back(factor);
    whole /= factor;
  }
  return result;
}

TEST(AutoSchedulerFormat, SchedulesOfGpusComputeTheirOperators) {
  base::Stream stream(7, "schedules");
  const auto draw = [&](GpuSchedule schedule) {
    for (const std::int64_t extent : schedule.spatial) schedule.tiles.push_back(factors(stream, extent, 4, 3));
    for (const std::int64_t extent : schedule.reduced) schedule.sums.push_back(factors(stream, extent, 2, extent));
    schedule.parts = {1 + stream.below(6), 1 + stream.below(6)};
    schedule.unroll = stream.below(2) == 0 ? 0 : 64;
    return schedule.steps();
  };
  const auto any = [](std::string_view key, const std::string& steps) {
    return gpu_record(key, steps, "-1, 16, 64, 16384, 2147483647, 4096, 8, 32");
  };
  for (int i = 0; i < 12; ++i) {
    checked_program(
        one(any(R"([\"matmul_layer\", 12, 6, 8])", draw({.spatial = {12, 8}, .reduced = {6}, .dimensions = {2, 2}}))),
        "matmul");
    checked_program(one(any(R"([\"conv2d_layer\", 2, 4, 6, 6, 6, 3, 3, 1, \"SAME\"])", draw({.spatial = {2, 6, 6, 6},
                                                                                             .reduced = {4, 3, 3},
                                                                                             .second = 2,
                                                                                             .first = 1,
                                                                                             .main = 3,
                                                                                             .dimensions = {4, 4}}))),
                    "conv2d");
    checked_program(one(any(R"([\"conv2d_layer\", 1, 4, 8, 8, 6, 1, 1, 2, 0])", draw({.spatial = {1, 6, 4, 4},
                                                                                      .reduced = {4, 1, 1},
                                                                                      .second = 2,
                                                                                      .first = 1,
                                                                                      .main = 3,
                                                                                      .dimensions = {4, 4}}))),
                    "conv2d without padding");
    checked_program(
        one(any(R"([\"depthwise_conv2d_layer\", 2, 4, 6, 6, 3, 3, 1, \"SAME\"])", draw({.spatial = {2, 4, 6, 6},
                                                                                        .reduced = {3, 3},
                                                                                        .second = 2,
                                                                                        .first = 1,
                                                                                        .main = 3,
                                                                                        .dimensions = {4, 4}}))),
        "depthwise");
  }
}

TEST(AutoSchedulerFormat, WhatAGpuCannotRunOrIsNotKnownIsAReason) {
  const auto with = [](std::string_view from, std::string_view to) {
    std::string steps = gpu_matmul().steps();
    const std::size_t at = steps.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    if (at != std::string::npos) steps.replace(at, from.size(), to);
    return gpu_record(matmul, steps);
  };
  const std::pair<std::string, const char*> refusals[] = {
      {with("[2, 4, 2, 1]", "[1, 16, 2, 1]"), "group: # work-items, the target has #"},
      {with("[4, 2]", "[48, 1]"), ""},
      {with(R"(["AN", 5, 2, 6])", R"(["AN", 5, 2, 11])"), "AN: tensor cores"},
      {with(R"("AN", 5, 2, 6)", R"("AN", 5, 9, 6)"), "AN: no such loop"},
      {with(R"("AN", 5, 2, 6)", R"("AN", 4, 6, 6)"), "AN: a reduction across work-items"},
      {with(R"("shared")", R"("local")"), "CHR: into memory that a group does not share"},
      {with(R"("CHR", 1, "shared", [2])", R"("CHR", 1, "shared", [0])"), "CHR: for another stage than the main one"},
      {with(R"("FFSP", 3, 0, [1, 2], 1, 1)", R"("FFSP", 3, 0, [0, 2], 1, 1)"), "FFSP: of no such splits"},
      {with(R"("FFSP", 3, 0, [1, 2], 1, 1)", R"("FFSP", 3, 0, [1], 1, 1)"), "a copy that other work-items make"},
      {with(R"("CA", 1, 4, 6)", R"("CA", 1, 4, 99)"), "CA: no such loop"},
      {record(matmul, gpu_matmul().steps(), "[[0.5], 0, 1, 2]", gpu, "-1, 16"), "a GPU whose limits are not told"},
      {record(matmul, gpu_matmul().steps(), "[[0.5], 0, 1, 2]", " ", limits), "a GPU without a name"},
      {gpu_record(matmul, three_splits), "no loops of groups, or none of work-items"},
  };
  for (const auto& [text, reason] : refusals) {
    const Imported in = one(text);
    Counts::ByName expected;
    if (*reason != 0) expected[reason] = 1;
    EXPECT_EQ(in.counts.without_program, expected) << text;
  }
  const Imported two = one(record(matmul, three_splits) + gpu_record(matmul, gpu_matmul().steps()));
  EXPECT_EQ(two.counts.without_program,
            (Counts::ByName{{"a device of other limits than those of the records before", 1}}));
}

}  // namespace
}  // namespace graft::datasets::formats
