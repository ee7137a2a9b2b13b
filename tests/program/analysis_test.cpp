#include "codegen/program/analysis.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "codegen/program/forms.h"
#include "random_program.h"
#include "tests/support/programs.h"

namespace graft::codegen {
namespace {

using Numbers = std::vector<std::int64_t>;

template <class T>
std::vector<T> listed(std::span<const T> values) {
  return {values.begin(), values.end()};
}

Numbers strides(const AccessSite& site) {
  Numbers result;
  for (const Touch& touch : site.touches) result.push_back(touch.stride);
  return result;
}
Numbers touched(const AccessSite& site) {
  Numbers result;
  for (const Touch& touch : site.touches) result.push_back(touch.touched);
  return result;
}
Numbers reuse(const AccessSite& site) {
  Numbers result;
  for (const Touch& touch : site.touches) result.push_back(touch.reuse);
  return result;
}

TEST(Analysis, Matmul) {
  const LoopProgram program = parse_program(test::replaced(test::matmul, "B f32", "B f64"), "p");
  const Analysis analysis = analyse(program);
  ASSERT_EQ(analysis.stores.size(), 1u);
  const StoreContext& store = analysis.stores[0];
  EXPECT_EQ(listed(store.loops), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(listed(store.top_down), (Numbers{4, 4 * 2, 4 * 2 * 8}));
  EXPECT_EQ(listed(store.bottom_up), (Numbers{4 * 2 * 8, 2 * 8, 8}));
  EXPECT_EQ(store.executions, 64);

  ASSERT_EQ(analysis.sites.size(), 3u);
  const AccessSite &c = analysis.sites[0], &a = analysis.sites[1], &b = analysis.sites[2];
  EXPECT_EQ(c.buffer, 2);
  EXPECT_TRUE(c.writes);
  EXPECT_EQ(c.load, -1);
  EXPECT_EQ(strides(c), (Numbers{2, 1, 0}));
  EXPECT_EQ(touched(c), (Numbers{8, 2, 1}));  // i: all of C; j: a row; k: one element
  EXPECT_EQ(reuse(c), (Numbers{64 / 8, 16 / 2, 8}));
  EXPECT_EQ(a.buffer, 0);
  EXPECT_FALSE(a.writes);
  EXPECT_EQ(a.load, 0);
  EXPECT_EQ(strides(a), (Numbers{8, 0, 1}));
  EXPECT_EQ(touched(a), (Numbers{32, 8, 8}));  // i: all of A; j and k: a row
  EXPECT_EQ(reuse(a), (Numbers{64 / 32, 16 / 8, 1}));
  EXPECT_EQ(b.load, 1);
  EXPECT_EQ(strides(b), (Numbers{0, 1, 2}));
  EXPECT_EQ(touched(b), (Numbers{16, 16, 8}));  // i and j: all of B; k: a column
  EXPECT_EQ(reuse(b), (Numbers{64 / 16, 1, 1}));
  EXPECT_EQ(b.touches[2].bytes, 8 * 8);  // f64
  EXPECT_EQ(flops(program), 64 * 2);     // a multiplication and the combine
}

Numbers lines(const AccessSite& site) {
  Numbers result;
  for (const Touch& touch : site.touches) result.push_back(touch.lines);
  return result;
}

TEST(Analysis, LinesOfMemory) {
  const LoopProgram program = parse_program(R"(buffer A f32 [64,64] input
buffer O f32 [64] output
run
  for i 32
    for j 4
      for k 16
        O[i] += A[2*i,16*j + k]
  for i 32
    for j 64
      O[i] += A[i,j]
  for i 8
    O[i] += A[i,8*i]
)",
                                            "p");
  const Analysis analysis = analyse(program, Lines::counted);
  // 16 floats are a line. k: one; j: a row of four; i: 32 rows of four, whole rows, but every second one only.
  EXPECT_EQ(lines(analysis.sites[1]), (Numbers{128, 4, 1}));
  EXPECT_EQ(lines(analysis.sites[0]), (Numbers{2, 1, 1}));
  // Consecutive whole rows are one piece: 32 * 64 / 16.
  EXPECT_EQ(lines(analysis.sites[3]), (Numbers{128, 4}));
  // A diagonal: no more lines than elements.
  EXPECT_EQ(lines(analysis.sites[5]), (Numbers{8}));
  EXPECT_EQ(lines(analyse(program).sites[1]), (Numbers{0, 0, 0}));  // not asked for
}

TEST(Analysis, ConvolutionWindowsOverlap) {
  const LoopProgram program = parse_program(test::convolution, "p");
  const Analysis analysis = analyse(program);
  EXPECT_EQ(listed(analysis.stores[0].top_down), (Numbers{3, 21, 42, 126}));
  EXPECT_EQ(listed(analysis.stores[0].bottom_up), (Numbers{126, 42, 6, 3}));
  const AccessSite &o = analysis.sites[0], &i = analysis.sites[1], &w = analysis.sites[2];
  // I seen from x: 2 channels of 7 + 3 - 1 = 9 positions, although the loops run 7 * 2 * 3 = 42 times: 42 / 18 = 2.33.
  EXPECT_EQ(strides(i), (Numbers{0, 1, 9, 1}));
  EXPECT_EQ(touched(i), (Numbers{18, 18, 6, 3}));
  EXPECT_EQ(reuse(i), (Numbers{126 / 18, 2, 1, 1}));
  EXPECT_EQ(strides(w), (Numbers{6, 0, 3, 1}));
  EXPECT_EQ(touched(w), (Numbers{18, 6, 6, 3}));
  EXPECT_EQ(reuse(w), (Numbers{7, 7, 1, 1}));
  EXPECT_EQ(strides(o), (Numbers{7, 1, 0, 0}));
  EXPECT_EQ(touched(o), (Numbers{21, 7, 1, 1}));
  EXPECT_EQ(reuse(o), (Numbers{6, 6, 6, 3}));
}

TEST(Analysis, TouchedIsBoundedByTripsOfTheLoopsInTheIndex) {
  const LoopProgram program = parse_program(R"(buffer I f32 [9] input
buffer D f32 [5,5] input
buffer O f32 [4] output
buffer P f32 [] output
run
  for r 3
    for x 4
      O[x] += I[2*x + r]
  for i 5
    P[] max= D[i,4 - i]
)",
                                            "p");
  const Analysis analysis = analyse(program);
  ASSERT_EQ(analysis.sites.size(), 4u);
  // From x the window is 7 wide with 4 elements in it; from r on it is 9 wide, and 12 trips fill it.
  EXPECT_EQ(touched(analysis.sites[1]), (Numbers{9, 4}));
  EXPECT_EQ(reuse(analysis.sites[1]), (Numbers{1, 1}));
  // A diagonal: the box is 25, the loop runs 5 times.
  EXPECT_EQ(touched(analysis.sites[3]), (Numbers{5}));
  EXPECT_EQ(strides(analysis.sites[3]), (Numbers{5 - 1}));
  EXPECT_EQ(flops(program), 12 + 5);
}

TEST(Analysis, PrepareAndCopiesCountNothing) {
  const LoopProgram program = parse_program(R"(buffer W f32 [4] constant
buffer O f32 [4] output
buffer T f32 [4] temporary
prepare
  for i 4
    T[i] = W[i] * 2
run
  for i 4
    O[i] = T[3 - i]
  O[0] = 1
)",
                                            "p");
  EXPECT_EQ(flops(program), 0);
  const Analysis analysis = analyse(program);
  ASSERT_EQ(analysis.stores.size(), 2u);
  EXPECT_EQ(analysis.stores[0].store, 1);
  EXPECT_TRUE(analysis.stores[1].loops.empty());
  EXPECT_EQ(analysis.stores[1].executions, 1);
  ASSERT_EQ(analysis.sites.size(), 3u);
  EXPECT_EQ(strides(analysis.sites[1]), (Numbers{-1}));
  EXPECT_TRUE(analysis.sites[2].touches.empty());
}

// Offsets that an access takes when the loops from `level` inwards run and those outside stand at their first
// iteration.
std::multiset<std::int64_t> offsets(const LoopProgram& program, const Access& access, std::span<const int> loops,
                                    std::size_t level) {
  const Affine form = offset(program, access);
  std::multiset<std::int64_t> result;
  std::vector<std::int64_t> at(program.loops.size(), 0);
  for (;;) {
    result.insert(evaluate(form, at));
    std::size_t inner = loops.size();
    while (inner > level && ++at[std::size_t(loops[inner - 1])] == program.loops[std::size_t(loops[inner - 1])].extent)
      at[std::size_t(loops[--inner])] = 0;
    if (inner == level) return result;
  }
}

TEST(Analysis, AgreesWithRunningTheLoops) {
  int exact = 0, all = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const LoopProgram program = random_program(seed);
    const Analysis analysis = analyse(program);
    std::size_t s = 0;
    for (const StoreContext& context : analysis.stores) {
      for (; s < analysis.sites.size() && analysis.sites[s].store == context.store; ++s) {
        const AccessSite& site = analysis.sites[s];
        const Store& store = program.stores[std::size_t(site.store)];
        const Access& access = site.load < 0 ? store.target : store.value.loads[std::size_t(site.load)];
        EXPECT_EQ(site.buffer, access.tensor);
        ASSERT_EQ(site.touches.size(), context.loops.size());
        for (std::size_t level = 0; level < context.loops.size(); ++level) {
          const Touch& touch = site.touches[level];
          const auto run = offsets(program, access, context.loops, level);
          const std::int64_t distinct = std::int64_t(std::set(run.begin(), run.end()).size());
          const std::int64_t executions = std::int64_t(run.size());
          EXPECT_EQ(executions, context.bottom_up[level]) << "seed " << seed;
          EXPECT_GE(touch.touched, distinct) << "seed " << seed;
          EXPECT_LE(touch.touched, executions) << "seed " << seed;
          EXPECT_EQ(touch.reuse, executions / touch.touched) << "seed " << seed;
          EXPECT_EQ(touch.stride, offset(program, access).coefficient(context.loops[level])) << "seed " << seed;
          EXPECT_EQ(touch.bytes, touch.touched * bytes_of(program.buffers[std::size_t(site.buffer)].dtype));
          exact += touch.touched == distinct;
          ++all;
        }
      }
    }
    EXPECT_EQ(s, analysis.sites.size()) << "seed " << seed;
  }
  // A bound, but one that is mostly tight.
  EXPECT_GT(all, 1000);
  EXPECT_GT(exact, all * 8 / 10) << exact << " of " << all;
}

TEST(Analysis, AWalkShowsTheSameStoreByStore) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const LoopProgram program = random_program(seed);
    const Analysis analysis = analyse(program, Lines::counted);
    StoreWalk walk(program, Lines::counted);
    std::size_t position = 0, s = 0;
    for (; walk.next(); ++position) {
      ASSERT_LT(position, analysis.stores.size());
      const StoreContext& expected = analysis.stores[position];
      EXPECT_EQ(walk.context().store, expected.store);
      EXPECT_EQ(listed(walk.context().loops), listed(expected.loops));
      EXPECT_EQ(listed(walk.context().top_down), listed(expected.top_down));
      EXPECT_EQ(listed(walk.context().bottom_up), listed(expected.bottom_up));
      EXPECT_EQ(walk.context().executions, expected.executions);
      EXPECT_EQ(walk.entered(), position == 0 || listed(analysis.stores[position - 1].loops) != listed(expected.loops));
      for (; s < analysis.sites.size() && analysis.sites[s].store == expected.store; ++s) {
        const Access& access = access_of(program, analysis.sites[s]);
        for (std::size_t level = 0; level < expected.loops.size(); ++level) {
          EXPECT_EQ(walk.stride(access, level), analysis.sites[s].touches[level].stride) << "seed " << seed;
          const Touch touch = walk.touches(access)[level], kept = analysis.sites[s].touches[level];
          EXPECT_EQ(touch.touched, kept.touched) << "seed " << seed;
          EXPECT_EQ(touch.lines, kept.lines) << "seed " << seed;
        }
      }
    }
    EXPECT_EQ(position, analysis.stores.size());
    EXPECT_FALSE(walk.next());
  }
}

}  // namespace
}  // namespace graft::codegen
