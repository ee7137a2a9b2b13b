// Traces of MetaSchedule replayed on functions of TIR. The loops that are expected are those of TVM 0.27 for the same
// traces; that programs compute what their workload says is checked apart from it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "codegen/program/forms.h"
#include "codegen/schedule/candidate_program.h"
#include "tests/datasets/formats_support.h"
#include "tests/datasets/tir_text.h"
#include "tests/schedule/support.h"

namespace graft::datasets::formats {
namespace {

using Axes = std::vector<TirText::Axis>;

std::string matmul(Release release, std::int64_t m, std::int64_t n, std::int64_t k,
                   const std::vector<std::int64_t>& free = {}) {
  TirText tir(release);
  const int a = tir.buffer("A", {m, k}), b = tir.buffer("B", {k, n}), c = tir.buffer("C", {m, n});
  Axes axes{{"i", m}, {"j", n}, {"k", k, true}};
  tir.axes(axes);
  const int i = axes[0].variable, j = axes[1].variable, l = axes[2].variable;
  const int value = tir.binary("Mul", tir.load(a, {i, l}), tir.load(b, {l, j}));
  return tir.packed(tir.module({a, b, c}, tir.nest("C", axes, c, value), free));
}

// 3x3, stride 1, padding 1, of 4 x 4 pixels.
std::string convolution() {
  TirText tir(Release::with_buffer_map);
  const int x = tir.buffer("X", {1, 2, 4, 4}), w = tir.buffer("W", {4, 2, 3, 3}), y = tir.buffer("Y", {1, 4, 4, 4});
  const int p = tir.buffer("P", {1, 2, 6, 6});
  Axes padded{{"i0", 1}, {"i1", 2}, {"i2", 6}, {"i3", 6}};
  tir.axes(padded);
  int inside = -1;
  std::vector<int> index{padded[0].variable, padded[1].variable};
  for (const int d : {2, 3}) {
    const int at = padded[std::size_t(d)].variable;
    for (const int condition : {tir.binary("LE", tir.integer(1), at), tir.binary("LT", at, tir.integer(5))})
      inside = inside < 0 ? condition : tir.binary("And", inside, condition);
    index.push_back(tir.binary("Sub", at, tir.integer(1)));
  }
  const int padding = tir.nest("P", padded, p, tir.call("if_then_else", {inside, tir.load(x, index), tir.real(0)}));
  Axes axes{{"n", 1}, {"o", 4}, {"y", 4}, {"x", 4}, {"i", 2, true}, {"u", 3, true}, {"v", 3, true}};
  tir.axes(axes);
  const auto at = [&](std::size_t axis) { return axes[axis].variable; };
  const int value =
      tir.binary("Mul", tir.load(p, {at(0), at(4), tir.binary("Add", at(2), at(5)), tir.binary("Add", at(3), at(6))}),
                 tir.load(w, {at(1), at(4), at(5), at(6)}));
  return tir.packed(tir.module({x, w, y}, tir.sequence({padding, tir.nest("Y", axes, y, value)})));
}

// Channels last; the weights have a dimension of one element.
std::string depthwise() {
  TirText tir(Release::with_types);
  const int x = tir.buffer("X", {1, 6, 6, 8}), w = tir.buffer("W", {3, 3, 8, 1}), y = tir.buffer("Y", {1, 4, 4, 8});
  const int p = tir.buffer("P", {1, 6, 6, 8});
  Axes padded{{"a", 1}, {"b", 6}, {"c", 6}, {"d", 8}};
  tir.axes(padded);
  const int padding = tir.nest(
      "P", padded, p, tir.load(x, {padded[0].variable, padded[1].variable, padded[2].variable, padded[3].variable}));
  Axes axes{{"n", 1}, {"y", 4}, {"x", 4}, {"c", 8}, {"u", 3, true}, {"v", 3, true}};
  tir.axes(axes);
  const auto at = [&](std::size_t axis) { return axes[axis].variable; };
  const int value =
      tir.binary("Mul", tir.load(p, {at(0), tir.binary("Add", at(1), at(4)), tir.binary("Add", at(2), at(5)), at(3)}),
                 tir.load(w, {at(4), at(5), at(3), tir.integer(0)}));
  return tir.packed(tir.module({x, w, y}, tir.sequence({padding, tir.nest("Y", axes, y, value)})));
}

// One record for each trace.
Imported replay(const std::string& module, const std::vector<std::pair<std::string, std::string>>& traces,
                std::string_view target = R"({"kind": "llvm"})") {
  std::string records;
  for (const auto& [instructions, decisions] : traces) {
    std::string line = fmt::format("[0, [[[{}], [{}]], [0.5], {}, []]]", instructions, decisions, target);
    std::replace(line.begin(), line.end(), '\n', ' ');
    records += line + "\n";
  }
  const Folder folder;
  write_plainly(folder / "workloads", fmt::format("[\"17\", \"{}\"]\n", module));
  write_plainly(folder / "records", records);
  return imported_platforms("metaschedule", folder, {folder / "workloads", folder / "records"}, "p", {}, true).at("p");
}

std::string reasons_of(const Imported& in) {
  std::string all;
  for (const auto& [reason, count] : in.counts.without_program) all += fmt::format("{} ({})\n", reason, count);
  return all;
}

// The text of a row's program, which is checked against its workload; "" if it has none.
std::string program_of(const Imported& in, std::size_t row = 0) {
  const codegen::Candidate candidate = in.dataset.candidate(in.dataset.rows.at(row));
  const auto program = codegen::program(candidate, in.dataset.target);
  if (!program) {
    ADD_FAILURE() << program.reason().text << "; " << reasons_of(in);
    return "";
  }
  EXPECT_EQ(codegen::hash(*program), in.dataset.rows[row].program_hash);
  EXPECT_LE(codegen::test::worst_excess(candidate.workload.computation(), *program, 7), 0)
      << codegen::to_text(*program);
  return codegen::to_text(*program);
}

constexpr const char* tiles = R"(["GetBlock", [], ["C", "main"], ["b0"]], ["GetBlock", [], ["root", "main"], ["b1"]],
  ["Annotate", ["b0", "\"SSRSRS\""], ["meta_schedule.tiling_structure"], []],
  ["GetLoops", ["b0"], [], ["l2", "l3", "l4"]],
  ["SamplePerfectTile", ["l2"], [4, 64], ["v5", "v6", "v7", "v8"]],
  ["Split", ["l2", "v5", "v6", "v7", "v8"], [1], ["l9", "l10", "l11", "l12"]],
  ["SamplePerfectTile", ["l3"], [4, 64], ["v13", "v14", "v15", "v16"]],
  ["Split", ["l3", "v13", "v14", "v15", "v16"], [1], ["l17", "l18", "l19", "l20"]],
  ["SamplePerfectTile", ["l4"], [2, 64], ["v21", "v22"]],
  ["Split", ["l4", "v21", "v22"], [1], ["l23", "l24"]],
  ["Reorder", ["l9", "l17", "l10", "l18", "l23", "l11", "l19", "l24", "l12", "l20"], [], []],
  ["GetConsumers", ["b0"], [], []])";
constexpr const char* marks = R"(["Annotate", ["b1", 64], ["meta_schedule.parallel"], []],
  ["Annotate", ["b1", 64], ["meta_schedule.vectorize"], []],
  ["SampleCategorical", [], [[0, 16, 64, 512], [0.25, 0.25, 0.25, 0.25]], ["v26"]],
  ["Annotate", ["b1", "v26"], ["meta_schedule.unroll_explicit"], []])";
constexpr const char* unmarked = R"(["EnterPostproc", [], [], []], ["GetBlock", [], ["root", "main"], ["b27"]],
  ["Unannotate", ["b27"], ["meta_schedule.parallel"], []], ["Unannotate", ["b27"], ["meta_schedule.vectorize"], []],
  ["Unannotate", ["b27"], ["meta_schedule.unroll_explicit"], []])";

// The result cached in a tile, as MetaSchedule's own rules make it.
const std::string cached = fmt::format(
    R"({}, ["CacheWrite", ["b0", []], [0, "global"], ["b25"]], ["ReverseComputeAt", ["b25", "l18"], [1, -1], []],
  {}, {}, ["GetChildBlocks", ["b27"], [], ["b28", "b29"]],
  ["GetLoops", ["b28"], [], ["l30", "l31", "l32", "l33", "l34", "l35", "l36", "l37", "l38", "l39"]],
  ["Fuse", ["l30", "l31", "l32", "l33"], [1], ["l40"]], ["Parallel", ["l40"], [], []],
  ["Fuse", ["l39"], [1], ["l41"]], ["Vectorize", ["l41"], [], []],
  ["Annotate", ["l40", "v26"], ["pragma_auto_unroll_max_step"], []],
  ["Annotate", ["l40", 1], ["pragma_unroll_explicit"], []],
  ["GetLoops", ["b29"], [], ["l42", "l43", "l44"]], ["Fuse", ["l44"], [1], ["l45"]], ["Vectorize", ["l45"], [], []],
  ["GetBlock", [], ["C", "main"], ["b46"]],
  ["GetLoops", ["b46"], [], ["l47", "l48", "l49", "l50", "l51", "l52", "l53"]],
  ["DecomposeReduction", ["b46", "l48"], [], ["b54"]])",
    tiles, marks, unmarked);
constexpr const char* sizes = "[4, [2, 1, 2, 2]], [6, [1, 3, 1, 4]], [8, [2, 2]], [16, 1]";

TEST(MetaScheduleReplay, AMatmulOfEveryRelease) {
  for (const Release release : {Release::with_type_keys, Release::with_buffer_map, Release::with_types}) {
    const Imported in = replay(matmul(release, 8, 12, 4), {{cached, sizes}});
    EXPECT_EQ(in.counts.templates.at("C").with_program, 1);
    EXPECT_EQ(in.dataset.workloads[0].text(), "matmul(m=8,n=12,k=4,dtype=f32)");
    EXPECT_EQ(program_of(in), R"(buffer A f32 [8,4] input
buffer B f32 [4,12] input
buffer C f32 [8,12] output
buffer C_global f32 [4,4] temporary
run
  for i.0 2 parallel
    for j.1 3 parallel
      for i.2 2 unrolled
        for i.3 2 unrolled
          for j.3 4 vector
            C_global[2*i.2 + i.3,j.3] = 0
      for k.0 2 unrolled
        for i.2 2 unrolled
          for k.1 2 unrolled
            for i.3 2 unrolled
              for j.3 4 vector
                C_global[2*i.2 + i.3,j.3] += A[4*i.0 + 2*i.2 + i.3,2*k.0 + k.1] * B[2*k.0 + k.1,4*j.1 + j.3]
      for ax0 4 unrolled
        for ax1 4 vector
          C[4*i.0 + ax0,4*j.1 + ax1] = C_global[ax0,ax1]
)");
  }
}

// From the inside out, as long as the body stays within the steps.
TEST(MetaScheduleReplay, StepsThatAreUnrolled) {
  const Imported in = replay(matmul(Release::with_types, 8, 12, 8),
                             {{cached, "[4, [2, 1, 2, 2]], [6, [1, 3, 1, 4]], [8, [2, 4]], [16, 1]"},
                              {cached, "[4, [2, 1, 2, 2]], [6, [1, 3, 1, 4]], [8, [2, 4]], [16, 0]"}});
  const std::string some = program_of(in, 0), none = program_of(in, 1);
  EXPECT_TRUE(contains(some, "for k.0 2\n        for i.2 2 unrolled\n          for k.1 4 unrolled\n")) << some;
  EXPECT_FALSE(contains(none, "unrolled")) << none;
}

constexpr const char* convolved = R"(["GetBlock", [], ["P", "main"], ["b0"]], ["GetBlock", [], ["Y", "main"], ["b1"]],
  ["GetLoops", ["b1"], [], ["l0", "l1", "l2", "l3", "l4", "l5", "l6"]],
  ["SamplePerfectTile", ["l2"], [2, 64], ["v0", "v1"]], ["Split", ["l2", "v0", "v1"], [1], ["l7", "l8"]],
  ["Reorder", ["l7", "l1"], [], []], ["SampleComputeLocation", ["b0"], [], ["l9"]],
  ["ComputeAt", ["b0", "l9"], [1, -1], []], ["EnterPostproc", [], [], []], ["Fuse", ["l0", "l7"], [1], ["l10"]],
  ["Parallel", ["l10"], [], []], ["DecomposeReduction", ["b1", "l4"], [], ["b2"]])";

TEST(MetaScheduleReplay, PaddingWhereItIsComputed) {
  const Imported in = replay(
      convolution(),
      {{convolved, "[3, [2, 2]], [6, 1]"}, {convolved, "[3, [2, 2]], [6, -2]"}, {convolved, "[3, [2, 2]], [6, -1]"}});
  EXPECT_EQ(in.counts.templates.at("P_Y").with_program, 3) << reasons_of(in);
  EXPECT_EQ(in.dataset.workloads.size(), 1u);
  EXPECT_EQ(in.dataset.workloads[0].text(), "conv2d(n=1,c=2,h=4,w=4,k=4,r=3,s=3,stride=1,pad=1,dtype=f32)");
  // What a task reads of it: two rows and the border.
  const std::string tiled = program_of(in, 0);
  EXPECT_TRUE(contains(tiled, R"(buffer W f32 [4,2,3,3] constant
buffer Y f32 [1,4,4,4] output
buffer P f32 [1,2,4,6] temporary
run
  for y.0 2 parallel
    for ax1 2
      for ax2 4
        for ax3 6
          P[0,ax1,ax2,ax3] = select(position(2*y.0 + ax2 - 1) >= 0, select()"))
      << tiled;
  EXPECT_TRUE(contains(tiled, R"(    for o 4
      for y.1 2
        for x 4
          Y[0,o,2*y.0 + y.1,x] = 0
          for i 2
            for u 3
              for v 3
                Y[0,o,2*y.0 + y.1,x] += P[0,i,y.1 + u,x + v] * W[o,i,u,v]
)")) << tiled;
  const std::string inlined = program_of(in, 1);
  EXPECT_TRUE(contains(inlined, "buffer Y f32 [1,4,4,4] output\nrun\n  for y.0 2 parallel\n    for o 4\n")) << inlined;
  EXPECT_TRUE(contains(inlined, "Y[0,o,2*y.0 + y.1,x] += select(position(2*y.0 + y.1 + u - 1) >= 0, ")) << inlined;
  const std::string apart = program_of(in, 2);
  EXPECT_TRUE(contains(apart, "run\n  for i1 2\n    for i2 6\n      for i3 6\n        P[0,i1,i2,i3] = ")) << apart;
}

// TVM writes a vector whose lanes are at the border in part as a loop.
TEST(MetaScheduleReplay, VectorsOfPadding) {
  const char* const vectors = R"(["GetBlock", [], ["P", "main"], ["b0"]], ["GetBlock", [], ["Y", "main"], ["b1"]],
  ["GetLoops", ["b0"], [], ["l0", "l1", "l2", "l3"]], ["{}", ["{}"], [], []],
  ["GetLoops", ["b1"], [], ["l4", "l5", "l6", "l7", "l8", "l9", "l10"]],
  ["DecomposeReduction", ["b1", "l8"], [], ["b2"]])";
  const Imported in = replay(convolution(), {{fmt::format(fmt::runtime(vectors), "Vectorize", "l3"), ""},
                                             {fmt::format(fmt::runtime(vectors), "Unroll", "l3"), ""}});
  EXPECT_TRUE(contains(program_of(in, 0), "  for i1 2\n    for i2 6\n      for i3 6\n        P"));
  EXPECT_TRUE(contains(program_of(in, 1), "  for i1 2\n    for i2 6\n      for i3 6 unrolled\n        P"));
}

TEST(MetaScheduleReplay, PaddingOfATemporary) {
  TirText tir(Release::with_buffer_map);
  const int x = tir.buffer("X", {8}), r = tir.buffer("R", {8}), y = tir.buffer("Y", {10});
  Axes plain{{"i", 8}}, padded{{"j", 10}};
  tir.axes(plain);
  tir.axes(padded);
  const int i = plain[0].variable, j = padded[0].variable;
  const int first = tir.nest("R", plain, r, tir.binary("Add", tir.load(x, {i}), tir.real(1)));
  const int inside = tir.binary("And", tir.binary("GE", j, tir.integer(1)), tir.binary("GT", tir.integer(9), j));
  const int moved = tir.load(r, {tir.binary("Sub", j, tir.integer(1))});
  const int second = tir.nest("Y", padded, y, tir.call("if_then_else", {inside, moved, tir.real(3)}));
  const std::string module = tir.packed(tir.module({x, y}, tir.sequence({first, second})));
  const char* const inlined = R"(["GetBlock", [], ["R", "main"], ["b0"]], ["ComputeInline", ["b0"], [], []])";
  const Imported in = replay(module, {{"", ""}, {inlined, ""}});
  EXPECT_EQ(program_of(in), R"(buffer X f32 [8] input
buffer Y f32 [10] output
buffer R f32 [8] temporary
run
  for i 8
    R[i] = X[i] + 1
  for j 10
    Y[j] = select(position(j - 1) >= 0, select(position(j - 1) < 8, R[at(min(max(position(j - 1), 0), 7))], 3), 3)
)");
  EXPECT_EQ(reasons_of(in), "ComputeInline: a padded load of it (1)\n");
}

TEST(MetaScheduleReplay, DepthwiseWithoutPadding) {
  const char* const trace = R"(["GetSBlock", [], ["P", "main"], ["b0"]], ["GetSBlock", [], ["Y", "main"], ["b1"]],
  ["ComputeInline", ["b0"], [], []], ["GetLoops", ["b1"], [], ["l0", "l1", "l2", "l3", "l4", "l5"]],
  ["Reorder", ["l4", "l5", "l2", "l3"], [], []], ["Fuse", ["l2", "l3"], [1], ["l6"]], ["Vectorize", ["l6"], [], []],
  ["DecomposeReduction", ["b1", "l4"], [], ["b2"]])";
  const Imported in = replay(depthwise(), {{trace, ""}});
  ASSERT_EQ(in.counts.templates.at("P_Y").with_program, 1) << reasons_of(in);
  EXPECT_EQ(in.dataset.workloads[0].text(), "depthwise_conv2d_nhwc(n=1,c=8,h=6,w=6,r=3,s=3,stride=1,pad=0,dtype=f32)");
  // The inner one of two loops in one vector is the vector.
  EXPECT_EQ(program_of(in), R"(buffer X f32 [1,6,6,8] input
buffer W f32 [3,3,8] constant
buffer Y f32 [1,4,4,8] output
run
  for y 4
    for x 4 unrolled
      for c 8 vector
        Y[0,y,x,c] = 0
    for u 3
      for v 3
        for x 4 unrolled
          for c 8 vector
            Y[0,y,x,c] += X[0,y + u,v + x,c] * W[u,v,c]
)");
}

TEST(MetaScheduleReplay, SumsInParts) {
  const char* const parts = R"(["GetBlock", [], ["C", "main"], ["b0"]], ["GetLoops", ["b0"], [], ["l0", "l1", "l2"]],
  ["SamplePerfectTile", ["l2"], [2, 64], ["v0", "v1"]], ["Split", ["l2", "v0", "v1"], [1], ["l3", "l4"]],
  ["RFactor", ["{}"], [2], ["b1"]], ["GetLoops", ["b1"], [], ["l5", "l6", "l7", "l8"]],
  ["GetBlock", [], ["C_rf", "main"], ["b2"]], ["GetLoops", ["b0"], [], ["l9", "l10", "l11"]],
  ["DecomposeReduction", ["b1", "{}"], [], ["b3"]], ["DecomposeReduction", ["b0", "l11"], [], ["b4"]])";
  const Imported in =
      replay(matmul(Release::with_type_keys, 4, 6, 8), {{fmt::format(fmt::runtime(parts), "l3", "l8"), "[2, [2, 4]]"},
                                                        {fmt::format(fmt::runtime(parts), "l4", "l7"), "[2, [1, 8]]"}});
  EXPECT_EQ(program_of(in, 0), R"(buffer A f32 [4,8] input
buffer B f32 [8,6] input
buffer C f32 [4,6] output
buffer C_rf f32 [4,6,2] temporary
run
  for i 4
    for j 6
      for k.0 2
        C_rf[i,j,k.0] = 0
        for k.1 4
          C_rf[i,j,k.0] += A[i,4*k.0 + k.1] * B[4*k.0 + k.1,j]
  for i 4
    for j 6
      C[i,j] = 0
      for k.0 2
        C[i,j] += C_rf[i,j,k.0]
)");
  EXPECT_TRUE(contains(program_of(in, 1), "buffer C_rf f32 [4,6,8] temporary\n"));
}

// Weights whose layout is free are repacked once: in `prepare`, which is not timed.
TEST(MetaScheduleReplay, LayoutsOfWeights) {
  TirText tir(Release::with_types);
  const int i = tir.variable("i"), j = tir.variable("j"), four = tir.integer(4);
  const int map = tir.index_map({i, j}, {tir.binary("FloorDiv", j, four), i, tir.binary("FloorMod", j, four)});
  std::string text = tir.json(map);
  for (std::size_t at = 0; (at = text.find('"', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  const std::string trace = fmt::format(
      R"(["GetBlock", [], ["C", "main"], ["b0"]], ["GetLoops", ["b0"], [], ["l0", "l1", "l2"]],
  ["DecomposeReduction", ["b0", "l2"], [], ["b1"]], ["CacheRead", ["b0", []], [2, "global"], ["b2"]],
  ["Annotate", ["b2", 1], ["meta_schedule.layout_rewrite_preproc"], []],
  ["TransformLayout", ["b0", "{}"], [2, 0, null, false], []])",
      text);
  const Imported in = replay(matmul(Release::with_type_keys, 4, 12, 8, {1}), {{trace, ""}});
  EXPECT_EQ(in.dataset.workloads[0].text(),
            "input A[4,8]; constant B[8,12]; output C[i,j] += A[i,k] * B[k,j] where i=4, j=12, k=8");
  EXPECT_EQ(program_of(in), R"(buffer A f32 [4,8] input
buffer B f32 [8,12] constant
buffer C f32 [4,12] output
buffer B_global f32 [3,8,4] temporary
prepare
  for ax0 8
    for ax1.0 3
      for ax1.1 4
        B_global[ax1.0,ax0,ax1.1] = B[ax0,4*ax1.0 + ax1.1]
run
  for i 4
    for j.0 3
      for j.1 4
        C[i,4*j.0 + j.1] = 0
        for k 8
          C[i,4*j.0 + j.1] += A[i,k] * B_global[j.0,k,j.1]
)");
}

// E = max(C + 1, 0) of a matmul C, in two blocks.
std::string epilogue() {
  TirText tir(Release::with_type_keys);
  const int a = tir.buffer("A", {8, 4}), b = tir.buffer("B", {4, 12}), e = tir.buffer("E", {8, 12});
  const int c = tir.buffer("C", {8, 12}), d = tir.buffer("D", {8, 12});
  Axes product{{"i", 8}, {"j", 12}, {"k", 4, true}}, sum{{"i", 8}, {"j", 12}}, largest = sum;
  for (Axes* const each : {&product, &sum, &largest}) tir.axes(*each);
  const auto at = [&](const Axes& axes) { return std::vector<int>{axes[0].variable, axes[1].variable}; };
  const int k = product[2].variable;
  const int value = tir.binary("Mul", tir.load(a, {at(product)[0], k}), tir.load(b, {k, at(product)[1]}));
  const int plus_one = tir.binary("Add", tir.load(c, at(sum)), tir.real(1));
  const int positive = tir.binary("Max", tir.load(d, at(largest)), tir.real(0));
  return tir.packed(
      tir.module({a, b, e}, tir.sequence({tir.nest("C", product, c, value), tir.nest("D", sum, d, plus_one),
                                          tir.nest("E", largest, e, positive)})));
}

TEST(MetaScheduleReplay, EpiloguesAndCachedOperands) {
  const char* const trace = R"(["GetBlock", [], ["C", "main"], ["b0"]], ["GetConsumers", ["b0"], [], ["b1"]],
  ["GetConsumers", ["b1"], [], ["b2"]], ["GetProducers", ["b2"], [], ["b3"]], ["ReverseComputeInline", ["b2"], [], []],
  ["GetLoops", ["b0"], [], ["l0", "l1", "l2"]], ["CacheRead", ["b0", ["b0"]], [0, "global"], ["b4"]],
  ["ComputeAt", ["b4", "l0"], [1, -1], []], ["ReverseComputeAt", ["b3", "l0"], [0, -1], []],
  ["GetLoops", ["b3"], [], ["l3", "l4"]], ["AddUnitLoop", ["b3"], [], ["l5"]],
  ["GetLoops", ["b3"], [], ["l6", "l7", "l8"]], ["Parallel", ["l0"], [], []],
  ["DecomposeReduction", ["b0", "l1"], [], ["b5"]])";
  const Imported in = replay(epilogue(), {{trace, ""}});
  ASSERT_EQ(in.counts.templates.at("C").with_program, 1) << reasons_of(in);
  EXPECT_EQ(program_of(in), R"(buffer A f32 [8,4] input
buffer B f32 [4,12] input
buffer E f32 [8,12] output
buffer C f32 [1,12] temporary
buffer A_global f32 [1,4] temporary
run
  for i 8 parallel
    for ax1 4
      A_global[0,ax1] = A[i,ax1]
    for j 12
      C[0,j] = 0
    for j 12
      for k 4
        C[0,j] += A_global[0,k] * B[k,j]
    for ax1 12
      E[i,ax1] = max(C[0,ax1] + 1, 0)
)");
}

// TVM's vectors of 16 run over rows of 12: here they end with the row.
TEST(MetaScheduleReplay, WhatIsNoLongerThereIsNoBlock) {
  const std::string begin = R"(["GetBlock", [], ["C", "main"], ["b0"]], ["GetConsumers", ["b0"], [], ["b1"]],
  ["GetConsumers", ["b1"], [], ["b2"]], ["ReverseComputeInline", ["b2"], [], []], )";
  const std::pair<std::string, const char*> traces[] = {
      {R"(["GetLoops", ["b2"], [], ["l0", "l1"]])", "GetLoops: not a block (1)\n"},
      {R"(["ReverseComputeInline", ["b2"], [], []])", "ReverseComputeInline: not a block (1)\n"},
      {R"(["ComputeInline", ["b2"], [], []])", "ComputeInline: not a block (1)\n"},
      {R"(["CacheWrite", ["b2"], [0, "global"], ["b3"]])", "CacheWrite: not a block (1)\n"},
      {R"(["GetLoops", ["b1"], [], ["l0", "l1"]], ["ComputeAt", ["b2", "l0"], [1, -1], []])",
       "ComputeAt: not a block (1)\n"},
      {R"(["SampleComputeLocation", ["b0"], [], ["l0"]], ["GetChildBlocks", ["l0"], [], ["b3"]])",
       "GetChildBlocks: a location where no loop is (1)\n"},
      {R"(["SampleComputeLocation", ["b0"], [], ["l0"]], ["AddUnitLoop", ["l0"], [], ["l1"]])",
       "AddUnitLoop: a location where no loop is (1)\n"},
  };
  for (const auto& [trace, reasons] : traces)
    EXPECT_EQ(reasons_of(replay(epilogue(), {{begin + trace, "[4, -2]"}})), reasons) << trace;
}

TEST(MetaScheduleReplay, ElementWiseNestsAreCutNearby) {
  const char* const trace = R"(["GetBlock", [], ["C", "main"], ["b0"]], ["GetBlock", [], ["D", "main"], ["b1"]],
  ["GetBlock", [], ["E", "main"], ["b2"]], ["ReverseComputeInline", ["b2"], [], []],
  ["GetLoops", ["b1"], [], ["l0", "l1"]], ["Fuse", ["l0", "l1"], [1], ["l2"]],
  ["Split", ["l2", null, {}], [1], ["l3", "l4"]], ["Parallel", ["l3"], [], []], ["Vectorize", ["l4"], [], []],
  ["GetLoops", ["b0"], [], ["l5", "l6", "l7"]], ["DecomposeReduction", ["b0", "l7"], [], ["b3"]])";
  std::vector<std::pair<std::string, std::string>> traces;
  for (const int lanes : {16, 12, 8, 24, 5}) traces.emplace_back(fmt::format(fmt::runtime(trace), lanes), "");
  const Imported in = replay(epilogue(), traces);
  ASSERT_EQ(in.counts.templates.at("C_D_E").with_program, 5) << reasons_of(in);
  const std::string_view loops[] = {"  for i 8 parallel\n    for j 12 vector\n      E",
                                    "  for i 8 parallel\n    for j 12 vector\n      E",
                                    "  for i 8 parallel\n    for j.0 2 parallel\n      for j.1 6 vector\n        E",
                                    "  for i.0 4 parallel\n    for i.1 2 unrolled\n      for j 12 vector\n        E",
                                    "  for i 8 parallel\n    for j.0 3 parallel\n      for j.1 4 vector\n        E"};
  for (std::size_t row = 0; row < std::size(loops); ++row)
    EXPECT_TRUE(contains(program_of(in, row), loops[row])) << program_of(in, row);
}

TEST(MetaScheduleReplay, WhatIsNotReplayedKeepsItsDecisions) {
  const std::string begin = R"(["GetBlock", [], ["C", "main"], ["b0"]], ["GetLoops", ["b0"], [], ["l0", "l1", "l2"]])";
  const std::pair<std::string, const char*> traces[] = {
      {R"(["Bind", ["l0"], ["blockIdx.x"], []])", "Bind: a GPU's schedule"},
      {R"(["Tensorize", ["l0"], ["dot_16x4_vnni", 1], []])", "Tensorize: is not read"},
      {R"(["Split", ["l0", 3, 2], [1], ["l3", "l4"]])", "Split: factors that do not divide the loop"},
      {R"(["Split", ["l0", 3, null], [1], ["l3", "l4"]])", "Split: factors that do not divide the loop"},
      {R"(["Split", ["l0", null, null], [1], ["l3", "l4"]])", "Split: factors that do not divide the loop"},
      {R"(["Split", ["l0", 99999999999, 99999999999], [1], ["l3", "l4"]])", "Split: a factor out of range"},
      {R"(["Split", ["l0", 2, 2], [1], ["l3", "l4"]])", "Split: factors that do not divide the loop"},
      {R"(["Split", ["l0", -2, -4], [1], ["l3", "l4"]])", "Split: a factor out of range"},
      {R"(["Fuse", ["l0", "l1"], [1], ["l3"]], ["Split", ["l3", 12, 8], [1], ["l4", "l5"]])",
       "Split: a split across fused loops"},
      {R"(["Fuse", ["l0", "l2"], [1], ["l3"]])", "Fuse: loops that are not directly in each other"},
      {R"(["Reorder", ["l1", "l1"], [], []])", "Reorder: a loop twice"},
      {R"(["Reorder", ["b0", "l1"], [], []])", "Reorder: not a loop"},
      {R"(["Parallel", ["l9"], [], []])", "Parallel: a block or loop is missing"},
      {R"(["GetBlock", [], ["D", "main"], ["b1"]])", "GetBlock: no block of that name"},
      {R"(["GetLoops", ["b0"], [], ["l3"]])", "GetLoops: # results instead of #"},
      {R"(["SamplePerfectTile", ["l0"], [2, 64], ["v0", "v1"]])", "SamplePerfectTile: a decision is missing"},
      {R"(["ComputeInline", ["b0"], [], []])", "ComputeInline: a reduction inlined"},
      {R"(["ComputeAt", ["b0", "l0"], [1, -1], []])", "ComputeAt: a block that is there already"},
      {R"(["CacheRead", ["b0", []], [7, "global"], ["b1"]])", "CacheRead: no such buffer"},
      {R"(["RFactor", ["l0"], [0], ["b1"]])", "RFactor: a loop that is not reduced"},
      {R"(["RFactor", ["l2"], [9], ["b1"]])", "RFactor: no such dimension"},
      {R"(["DecomposeReduction", ["b0", "l2"], [], ["b1"]], ["DecomposeReduction", ["b0", "l2"], [], ["b2"]])",
       "DecomposeReduction: not a reduction inside of that loop"},
      {R"(["Annotate", ["l0", 1], ["software_pipeline_stage"], []])", "Annotate: a key that is not known"},
      {R"(["Annotate", ["b0", 1], ["meta_schedule.parallel"], []])", "a trace without its postprocessing"},
      {R"(["Parallel", ["l0"], [], []])", "a reduction whose start has no place"},
      {R"(["DecomposeReduction", ["b0", "l2"], [], ["b1"]], ["Vectorize", ["l0"], [], []])",
       "a program that is beyond the language"},
  };
  std::vector<std::pair<std::string, std::string>> all;
  std::map<std::string, std::int64_t> expected;
  for (const auto& [trace, reason] : traces) {
    all.emplace_back(begin + ", " + trace, "[0, [3, 4]]");
    ++expected[reason];
  }
  const Imported in = replay(matmul(Release::with_types, 8, 12, 4), all);
  EXPECT_EQ(in.counts.rows, std::int64_t(std::size(traces)));
  for (const auto& [reason, count] : expected) {
    const auto found = in.counts.without_program.find(reason);
    ASSERT_NE(found, in.counts.without_program.end()) << reason << "\n" << reasons_of(in);
    EXPECT_EQ(found->second, count) << reason;
  }
  EXPECT_EQ(in.counts.without_program.size(), expected.size()) << reasons_of(in);
  EXPECT_EQ(in.dataset.workloads[0].text(), "table(name=C_17)");
  EXPECT_EQ(in.dataset.rows[0].arguments, (std::vector<std::int64_t>{3, 4}));

  const std::string cuda = R"({"kind": "cuda"})";
  EXPECT_EQ(reasons_of(replay(matmul(Release::with_types, 8, 12, 4), {{cached, sizes}}, cuda)),
            "not a CPU's schedule (1)\n");
  EXPECT_EQ(program_of(replay(matmul(Release::with_types, 8, 12, 4), {{cached, sizes}}, R"("llvm -num-cores 4")")),
            program_of(replay(matmul(Release::with_types, 8, 12, 4), {{cached, sizes}})));
}

std::string reason_for(const std::string& module) {
  return reasons_of(replay(module, {{cached, sizes}}));
}

TEST(MetaScheduleReplay, ModulesThatAreNotRead) {
  const auto elementwise = [](auto value) {
    TirText tir(Release::with_types);
    const int a = tir.buffer("A", {8}), b = tir.buffer("B", {8});
    Axes axes{{"i", 8}};
    tir.axes(axes);
    return tir.packed(tir.module({a, b}, tir.nest("B", axes, b, value(tir, a, axes[0].variable))));
  };
  EXPECT_EQ(reason_for("!"), "a module that is not base64 (1)\n");
  EXPECT_EQ(reason_for(""), "no module (1)\n");
  EXPECT_EQ(reason_for(TirText::base64("12345678{}")), "a module that is not a graph of nodes (1)\n");
  EXPECT_EQ(reason_for(TirText::base64("12345678"
                                       R"({"root_index": 7, "nodes": []})")),
            "a node that is missing (1)\n");
  EXPECT_EQ(reason_for(TirText::base64("12345678"
                                       R"({"root_index": 0, "nodes": [{"type": "ir.IRModule"}]})")),
            "IRModule without 'functions' (1)\n");
  EXPECT_EQ(reason_for(elementwise([](TirText& tir, int a, int i) { return tir.load(a, {tir.binary("Mul", i, i)}); })),
            "an index that is not affine (1)\n");
  EXPECT_EQ(reason_for(elementwise(
                [](TirText& tir, int a, int i) { return tir.load(a, {tir.binary("Add", i, tir.integer(1))}); })),
            "a function beyond index expressions (1)\n");
  EXPECT_EQ(reason_for(elementwise([](TirText& tir, int a, int i) {
              const int inside = tir.binary("LT", i, tir.integer(4));
              return tir.call("if_then_else", {inside, tir.load(a, {i}), tir.real(0)});
            })),
            "a condition that is not a padding (1)\n");
  EXPECT_EQ(reason_for(elementwise([](TirText& tir, int a, int i) { return tir.call("atan", {tir.load(a, {i})}); })),
            "a call of atan (1)\n");
  EXPECT_EQ(reason_for(elementwise(
                [](TirText& tir, int a, int i) { return tir.binary("Shuffle", tir.load(a, {i}), tir.real(0)); })),
            "an expression with Shuffle (1)\n");
}

// Graphs whose trees have no end, or would take forever to visit.
TEST(MetaScheduleReplay, HostileGraphsCostNothing) {
  const auto start = std::chrono::steady_clock::now();
  for (const bool is_endless : {false, true}) {
    for (const bool is_index : {false, true}) {
      TirText tir(Release::with_types);
      const int a = tir.buffer("A", {8}), b = tir.buffer("B", {8});
      Axes axes{{"i", 8}};
      tir.axes(axes);
      int value = is_index ? axes[0].variable : tir.load(a, {axes[0].variable});
      for (int level = 0; level < 60; ++level) value = tir.binary("Add", value, value);
      if (is_endless) value = tir.binary("Add", tir.size(), tir.size());
      if (is_index) value = tir.load(a, {value});
      const std::string reason = reason_for(tir.packed(tir.module({a, b}, tir.nest("B", axes, b, value))));
      EXPECT_TRUE(contains(reason, "too long") || contains(reason, "too deep")) << reason;
    }
  }
  const std::int64_t large = std::int64_t(1) << 40;
  EXPECT_EQ(reason_for(matmul(Release::with_types, large, large, large)), "an extent out of range (1)\n");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

}  // namespace
}  // namespace graft::datasets::formats
