#include "features/tree.h"

#include <gtest/gtest.h>

#include "tests/features/encoded.h"
#include "tests/support/programs.h"

namespace graft::features {
namespace {

using test::count;
using test::value;
using test::Values;

std::vector<std::int32_t> parents(const std::string& text) {
  const codegen::LoopProgram program = codegen::parse_program(text, "p");
  return encoding_named("tree").encode({.program = &program}).parents;
}

// i 4, j 2, k 8 around C[i,j] += A[i,k] * B[k,j]. b0 is A [4,8] (128 bytes), b1 is B [8,2] (64), b2 is C [4,2] (32).
//   touched: A i 32, j 8, k 8 (a row); B i 16, j 16, k 8 (a column); C i 8, j 2, k 1; each store 1.
//   lines of 64 bytes: A i 128 / 64 = 2, a row 1; B 1, its column spans 7 * 2 + 1 = 15 elements: 1; C 1.
TEST(Tree, MatmulByHand) {
  EXPECT_EQ(parents(codegen::test::matmul), (std::vector<std::int32_t>{-1, 0, 1, 2, 3}));
  const std::vector<Values> nodes = test::rows_of("tree", codegen::test::matmul);
  ASSERT_EQ(nodes.size(), 5u);
  const Values &root = nodes[0], &i = nodes[1], &j = nodes[2], &k = nodes[3], &store = nodes[4];

  EXPECT_EQ(value(root, "is_program"), 1);
  EXPECT_EQ(value(root, "is_loop"), 0);
  EXPECT_EQ(count(root, "executions"), 64);
  EXPECT_EQ(count(root, "b0.touched"), 32);
  EXPECT_EQ(count(root, "b0.reuse"), 64 / 32);
  EXPECT_EQ(count(root, "b2.loads"), 64);  // += loads, too
  EXPECT_EQ(count(root, "b2.stores"), 64);
  EXPECT_EQ(count(root, "b3.touched"), 0);

  EXPECT_EQ(value(i, "is_loop"), 1);
  EXPECT_EQ(value(i, "kind.serial"), 1);
  EXPECT_EQ(value(i, "depth"), 1);
  EXPECT_EQ(count(i, "extent"), 4);
  EXPECT_EQ(count(i, "top_down"), 4);
  EXPECT_EQ(count(i, "bottom_up"), 64);
  EXPECT_EQ(count(i, "exits"), 1);
  EXPECT_EQ(count(j, "exits"), 4);
  EXPECT_EQ(count(k, "exits"), 8);
  EXPECT_EQ(count(k, "unforeseen_exits"), 0);  // 8 iterations are foreseen
  EXPECT_EQ(count(k, "top_down"), 64);
  EXPECT_EQ(count(k, "bottom_up"), 8);
  EXPECT_EQ(value(k, "depth"), 3);

  EXPECT_EQ(count(i, "b0.touched"), 32);
  EXPECT_EQ(count(i, "b0.reuse"), 2);
  EXPECT_EQ(count(i, "b0.lines"), 2);
  EXPECT_EQ(count(i, "b0.stride"), 8);
  EXPECT_EQ(count(j, "b0.touched"), 8);
  EXPECT_EQ(count(j, "b0.stride"), 0);
  EXPECT_EQ(count(j, "b0.lines"), 1);
  EXPECT_EQ(count(k, "b1.touched"), 8);
  EXPECT_EQ(count(k, "b1.lines"), 1);
  EXPECT_EQ(count(k, "b1.stride"), 2);
  EXPECT_EQ(count(k, "b2.touched"), 1);
  EXPECT_EQ(count(k, "b2.reuse"), 8);

  EXPECT_EQ(value(store, "is_store"), 1);
  EXPECT_EQ(value(store, "depth"), 3);
  EXPECT_EQ(count(store, "top_down"), 64);
  EXPECT_EQ(count(store, "float.mad"), 1);
  EXPECT_EQ(count(store, "float.mul"), 0);
  EXPECT_EQ(count(store, "int.mad"), 0);
  EXPECT_EQ(value(store, "combines_sum"), 1);
  EXPECT_EQ(value(store, "writes_register"), 0);
  EXPECT_EQ(value(store, "element_bytes"), 4);
  EXPECT_EQ(count(store, "b0.touched"), 1);
  EXPECT_EQ(count(store, "extent"), 0);
}

// run: i.0 parallel { j.0 { (i.1 { j.v { acc = 0 } }) (k { i.1 { j.v { acc += A * B } } }) (i.1 { j.v { C = ... } }) }
// }
TEST(Tree, TiledByHand) {
  const std::vector<std::int32_t> expected{-1, 0, 1, 2, 3, 4, 2, 6, 7, 8, 2, 10, 11};
  EXPECT_EQ(parents(codegen::test::tiled), expected);
  const std::vector<Values> nodes = test::rows_of("tree", codegen::test::tiled);
  EXPECT_EQ(value(nodes[1], "kind.parallel"), 1);
  EXPECT_EQ(count(nodes[1], "exits"), 1);
  EXPECT_EQ(count(nodes[1], "executions"), 8 * 32 * 16 + 2 * 8 * 32);
  EXPECT_EQ(value(nodes[7], "kind.unrolled"), 1);
  EXPECT_EQ(count(nodes[7], "exits"), 0);
  EXPECT_EQ(value(nodes[8], "kind.vector"), 1);
  EXPECT_EQ(count(nodes[8], "b0.touched"), 16);  // B: a vector of 16 elements of 4 bytes
  EXPECT_EQ(count(nodes[8], "b0.lines"), 1);
  EXPECT_EQ(count(nodes[8], "b0.stride"), 1);
  EXPECT_EQ(count(nodes[6], "register_elements"), 64);
  EXPECT_EQ(count(nodes[6], "b0.touched"), 16 * 16);
  EXPECT_EQ(count(nodes[6], "b0.lines"), 16);  // a line of each of 16 rows
  const Values& leaf = nodes[9];
  EXPECT_EQ(value(leaf, "writes_register"), 1);
  EXPECT_EQ(count(leaf, "register_loads"), 1);  // of the accumulator
  EXPECT_EQ(count(leaf, "float.mad"), 1);
  EXPECT_EQ(count(nodes[12], "float.compare"), 1);
  EXPECT_EQ(count(nodes[12], "b1.stores"), 256);
  EXPECT_EQ(count(nodes[12], "b1.loads"), 0);
}

// O [10] in a tile of 8 and what is left.
TEST(Tree, TailsAreCopiesOfAStatement) {
  const std::vector<Values> nodes = test::rows_of("tree", R"(buffer I i8 [10] input
buffer O i32 [10] output
run
  for i 8
    O[i] = I[i] * 3 + 1
  for i 2
    O[i + 8] = I[i + 8] * 3 + 1
  for i 2
    O[i] = 7
)");
  EXPECT_FLOAT_EQ(value(nodes[0], "tail_share"), 2.0f / 12);
  EXPECT_EQ(value(nodes[1], "tail_share"), 0);
  EXPECT_EQ(value(nodes[3], "tail_share"), 1);
  EXPECT_EQ(value(nodes[5], "tail_share"), 0);
  EXPECT_EQ(count(nodes[2], "int.mad"), 1);
  EXPECT_EQ(count(nodes[2], "float.mad"), 0);
}

}  // namespace
}  // namespace graft::features
