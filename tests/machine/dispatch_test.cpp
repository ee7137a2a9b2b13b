#include "codegen/machine/dispatch.h"

#include <gtest/gtest.h>

#include "codegen/program/forms.h"

namespace graft::codegen {
namespace {

Dispatch dispatched(const std::string& text, std::int64_t threads) {
  return dispatch(parse_program(text, "test"), threads);
}
std::vector<std::pair<int, std::int64_t>> groups(const Dispatch& dispatch) {
  std::vector<std::pair<int, std::int64_t>> result;
  for (const Group& group : dispatch.groups) result.emplace_back(group.end - group.begin, group.tasks);
  return result;
}
using Groups = std::vector<std::pair<int, std::int64_t>>;

const std::string buffers =
    "buffer A f32 [8,8] input\nbuffer C f32 [8,8] output\nbuffer t f32 [8] temporary\nbuffer u f32 [8] "
    "temporary\nrun\n";

TEST(Dispatch, OneThreadHasOneSection) {
  const Dispatch one = dispatched(buffers + "  for i 8 parallel\n    t[i] = 1\n  for i 8\n    u[0] = t[i]\n", 1);
  ASSERT_EQ(one.sections.size(), 1u);
  EXPECT_EQ(one.sections[0].end, 4);
  EXPECT_TRUE(one.sections[0].band.empty());
  EXPECT_EQ(one.groups[0].slots, 1);
  EXPECT_FALSE(one.refused);
}

TEST(Dispatch, ABandIsAChainOfOnlyChildren) {
  const Dispatch both =
      dispatched(buffers + "  for i 4 parallel\n    for j 3 parallel\n      for k 2\n        C[i,j+3*k] = 1\n", 2);
  EXPECT_EQ(both.sections[0].band.size(), 2u);
  EXPECT_EQ(both.sections[0].tasks, 12);
  EXPECT_EQ(both.groups[0].slots, 2);
  const Dispatch first =
      dispatched(buffers + "  for i 4 parallel\n    C[i,7] = 0\n    for j 3 parallel\n      C[i,j] = 1\n", 2);
  EXPECT_EQ(first.sections[0].band.size(), 1u);
}

TEST(Dispatch, NestsThatTouchOtherElementsAreOneGroup) {
  const std::string main = "  for i 6 parallel\n    for j 8\n      C[i,j] = A[i,j]\n";
  EXPECT_EQ(groups(dispatched(buffers + main + "  for i2 2\n    for j 8\n      C[6+i2,j] = 1\n", 2)), (Groups{{2, 7}}));
  EXPECT_EQ(groups(dispatched(buffers + main + "  for i2 2\n    for j 8\n      C[5+i2,j] = 1\n", 2)),
            (Groups{{1, 6}, {1, 1}}))
      << "both write row 5";
  EXPECT_EQ(groups(dispatched(buffers + main + "  for j 8\n    t[j] = C[5,j]\n", 2)), (Groups{{1, 6}, {1, 1}}))
      << "row 5 is read";
  EXPECT_EQ(groups(dispatched(buffers + main + "  for j 8\n    t[j] = C[6,j]\n", 2)), (Groups{{2, 7}}));
}

TEST(Dispatch, NestsWithoutABandAreCalledDirectly) {
  const Dispatch serial = dispatched(buffers + "  for i 8\n    t[i] = 1\n  for i 8\n    u[i] = 1\n", 4);
  ASSERT_EQ(groups(serial), (Groups{{2, 2}}));
  EXPECT_EQ(serial.groups[0].slots, 1);
}

TEST(Dispatch, NestsOfOneTaskEachRunSideBySide) {
  const Dispatch halves = dispatched(buffers +
                                         "  for i 1 parallel\n    for j 8\n      C[0,j] = 1\n"
                                         "  for i 1 parallel\n    for j 8\n      C[1,j] = 1\n",
                                     4);
  ASSERT_EQ(groups(halves), (Groups{{2, 2}}));
  EXPECT_EQ(halves.groups[0].slots, 2);
}

TEST(Dispatch, NestsThatShareRegistersAreOneSection) {
  const Dispatch sum = dispatched(
      "buffer A f32 [8] input\nbuffer C f32 [1] output\nbuffer r f32 [1] temporary registers\nrun\n"
      "  r[0] = 0\n  for i 8\n    r[0] += A[i]\n  C[0] = r[0]\n",
      2);
  EXPECT_EQ(sum.sections.size(), 1u);
  const Dispatch later = dispatched(
      "buffer A f32 [8] input\nbuffer C f32 [2] output\nbuffer r f32 [1] temporary registers\n"
      "buffer s f32 [1] temporary registers\nrun\n"
      "  C[1] = 3\n  r[0] = 0\n  for i 8\n    r[0] += A[i]\n  s[0] = 1\n  s[0] += r[0]\n  C[0] = s[0]\n",
      2);
  ASSERT_EQ(later.sections.size(), 2u) << "r is read after a nest that has another register alone";
  EXPECT_EQ(later.sections[1].begin, 1);
  EXPECT_EQ(later.sections[1].end, 7);
}

TEST(Dispatch, TemporariesThatTasksWouldFightOverExistOncePerSlot) {
  const std::string body = "    for j 8\n      t[j] = A[i,j]\n    for j 8\n      C[i,j] = t[7-j]\n";
  EXPECT_EQ(dispatched(buffers + "  for i 8 parallel\n" + body, 3).copies, (std::vector<std::int64_t>{0, 0, 3, 0}));
  EXPECT_EQ(dispatched(buffers + "  for i 8 parallel\n" + body, 30).copies, (std::vector<std::int64_t>{0, 0, 8, 0}));
  const Dispatch seen = dispatched(buffers + "  for i 8 parallel\n" + body + "  u[0] = t[0]\n", 3);
  ASSERT_TRUE(seen.refused) << "another nest reads it";
  EXPECT_EQ(seen.refused->text, "parallel: iterations of 'i' may meet in the same elements of 't'");
}

// Whether `store` in a band of i (4) and j (2) around k (3) is accepted.
bool divides(const std::string& store) {
  return !dispatched(
              "buffer C f32 [64,64] output\nrun\n  for i 4 parallel\n    for j 2 parallel\n      for k 3\n        " +
                  store + "\n",
              2)
              .refused;
}

TEST(Dispatch, IterationsOfABandMustNotMeet) {
  EXPECT_TRUE(divides("C[i,3*j+k] = 1"));
  EXPECT_FALSE(divides("C[i,j+2*k] = 1")) << "interleaved tiles do not meet, but no schedule makes them";
  EXPECT_TRUE(divides("C[6*i+3*j+k,0] = 1"));
  EXPECT_TRUE(divides("C[3*i+k,3*j] = 1"));
  EXPECT_FALSE(divides("C[i,k] = 1")) << "j is nowhere";
  EXPECT_FALSE(divides("C[i+j,k] = 1")) << "a diagonal";
  EXPECT_FALSE(divides("C[5*i+3*j+k,0] = 1")) << "tiles overlap";
  EXPECT_FALSE(divides("C[2*i+k,3*j] = 1")) << "rows overlap";
  EXPECT_TRUE(divides("C[i,j] += C[i,j]"));
  EXPECT_FALSE(divides("C[i,j] = C[i+1,j]")) << "reads what another task writes";
  EXPECT_FALSE(divides("C[i,j] = C[j,i]"));
}

}  // namespace
}  // namespace graft::codegen
