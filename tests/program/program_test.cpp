#include "codegen/program/program.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "base/error.h"
#include "codegen/program/forms.h"
#include "random_program.h"
#include "tests/support/programs.h"

namespace graft::codegen {
namespace {

using test::matmul;
using test::replaced;

TEST(Program, BufferIsRowMajor) {
  const Buffer buffer{.name = "T", .dtype = DType::f64, .shape = {2, 3, 5}};
  EXPECT_EQ(buffer.elements(), 30);
  EXPECT_EQ(buffer.bytes(), 240);
  EXPECT_EQ(buffer.strides(), (std::vector<std::int64_t>{15, 5, 1}));
  const Buffer scalar{.name = "s", .dtype = DType::f32, .shape = {}};
  EXPECT_EQ(scalar.elements(), 1);
  EXPECT_TRUE(scalar.strides().empty());
}

TEST(Program, OffsetIsFlattened) {
  const LoopProgram program = parse_program(R"(buffer T f32 [2,10,5] input
buffer O f32 [] output
run
  for a 2
    for b 3
      O[] = T[a,3*b + a + 2,-b + 4]
)",
                                            "p");
  // 50a + 5(3b + a + 2) + (4 - b) = 55a + 14b + 14
  const Affine expected = Affine::variable(0, 55) + Affine::variable(1, 14) + Affine(14);
  EXPECT_EQ(offset(program, program.stores[0].value.loads[0]), expected);
  EXPECT_EQ(offset(program, program.stores[0].target), Affine(0));
}

TEST(Program, NamesAreNoPartOfIdentity) {
  const LoopProgram program = parse_program(matmul, "p");
  LoopProgram renamed = program;
  for (Buffer& buffer : renamed.buffers) buffer.name += "_";
  for (Loop& loop : renamed.loops) loop.name += "_";
  EXPECT_TRUE(program == renamed);
  EXPECT_EQ(hash(program), hash(renamed));
}

TEST(Program, OrderOfStorageIsNoPartOfIdentity) {
  const LoopProgram program = parse_program(matmul, "p");
  LoopProgram moved = program;  // loops stored as k, j, i
  std::swap(moved.loops[0], moved.loops[2]);
  const auto renumber = [](int loop) { return 2 - loop; };
  for (Node& node : moved.run)
    if (node.kind == Node::Kind::loop) node.item = renumber(node.item);
  const auto renumbered = [&](const Affine& form) {
    Affine result(form.constant);
    for (const Term& term : form.terms) result += Affine::variable(renumber(term.variable), term.coefficient);
    return result;
  };
  const auto access = [&](Access one) {
    for (Affine& form : one.index) form = renumbered(form);
    return one;
  };
  for (Store& store : moved.stores) {
    store.target = access(store.target);
    store.value = map_accesses(store.value, access, renumbered);
  }
  check(moved, "moved");
  EXPECT_TRUE(program == moved);
  EXPECT_EQ(hash(program), hash(moved));
}

TEST(Program, EverythingElseIsPartOfIdentity) {
  const LoopProgram program = parse_program(matmul, "p");
  const std::pair<const char*, const char*> changes[] = {
      {"A f32 [4,8] input", "A f64 [4,8] input"},
      {"A f32 [4,8] input", "A f32 [5,8] input"},
      {"A f32 [4,8] input", "A f32 [4,8] constant"},
      {"for j 2", "for j 1"},
      {"for j 2", "for j 2 parallel"},
      {"for j 2", "for j 2 prefetch C[i,j]"},
      {"+=", "max="},
      {"A[i,k] * B[k,j]", "A[i,k] + B[k,j]"},
      {"A[i,k] * B[k,j]", "B[k,j] * A[i,k]"},
      {"A[i,k] * B[k,j]", "2"},
      {"A[i,k] * B[k,j]", "A[3 - i,k] * B[k,j]"},
      {"A[i,k] * B[k,j]", "A[i,i + j] * B[k,j]"},
      {"        C[i,j] +=", "        C[i,j] = 0\n        C[i,j] +="},
  };
  for (const auto& [from, to] : changes) {
    const LoopProgram other = parse_program(replaced(matmul, from, to), "p");
    EXPECT_FALSE(program == other) << to;
    EXPECT_NE(hash(program), hash(other)) << to;
  }
  const auto prefetching = [](const char* what) {
    return parse_program(replaced(matmul, "for j 2", std::string("for j 2 prefetch ") + what), "p");
  };
  EXPECT_TRUE(prefetching("A[i,j + 1], C[i,j]") == prefetching("A[i,1 + j], C[i,j]"));
  for (const char* other : {"A[i,j + 2], C[i,j]", "A[i,j + 1]", "C[i,j], A[i,j + 1]", "A[i,j + 1], C[i,j + 1]"}) {
    EXPECT_FALSE(prefetching("A[i,j + 1], C[i,j]") == prefetching(other)) << other;
    EXPECT_NE(hash(prefetching("A[i,j + 1], C[i,j]")), hash(prefetching(other))) << other;
  }
  // The same nodes, but the second store once after the loop and once inside it.
  const char* head = "buffer C f32 [4] output\nrun\n  for i 4\n    C[0] = 1\n";
  const LoopProgram inside = parse_program(std::string(head) + "    C[1] = 2\n", "p");
  const LoopProgram behind = parse_program(std::string(head) + "  C[1] = 2\n", "p");
  EXPECT_FALSE(inside == behind);
  EXPECT_NE(hash(inside), hash(behind));
}

TEST(Program, RandomProgramsAreWellFormedAndDiffer) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const LoopProgram program = random_program(seed);
    EXPECT_NO_THROW(check(program, "p")) << "seed " << seed << "\n" << to_text(program);
    EXPECT_TRUE(program == random_program(seed)) << "seed " << seed;
    EXPECT_FALSE(program == random_program(seed + 1)) << "seed " << seed;
    EXPECT_NE(hash(program), hash(random_program(seed + 1))) << "seed " << seed;
  }
}

// What no text can say, but a program made by hand can.
TEST(Program, MalformedStructureIsRefused) {
  const LoopProgram good = parse_program(matmul, "p");
  const auto refused = [&](auto change, const char* words) {
    LoopProgram bad = good;
    change(bad);
    try {
      check(bad, "here");
      ADD_FAILURE() << "not refused: " << words;
    } catch (const base::UserError& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).rfind("here: ", 0), 0u) << error.what();
    }
  };
  refused([](LoopProgram& p) { p.run[1].end = 9; }, "node 1 of 'run' is malformed");
  refused([](LoopProgram& p) { p.run[3].item = 7; }, "node 3 of 'run' is malformed");
  refused([](LoopProgram& p) { p.run[2].item = 1; }, "loop 1 stands in two places");
  refused([](LoopProgram& p) { p.loops.push_back({"x", 2}); }, "a loop outside of any body");
  refused([](LoopProgram& p) { p.stores.push_back(p.stores[0]); }, "a store outside of any body");
  refused([](LoopProgram& p) { p.stores[0].value.nodes[2].b = 2; }, "operation 2 of the value is malformed");
  refused([](LoopProgram& p) { p.stores[0].value.nodes[0].load = 2; }, "operation 0 of the value is malformed");
  refused([](LoopProgram& p) { p.stores[0].value.nodes.clear(); }, "a value of 0 operations");
  refused([](LoopProgram& p) { p.stores[0].value.loads[0].tensor = 3; }, "there is no buffer 3");
  refused([](LoopProgram& p) { p.stores[0].value.loads[0].padded = true; }, "a padded load of 'A'");
  refused([](LoopProgram& p) { p.stores[0].target.index[0].terms[0].variable = 5; }, "uses loop 5");
  refused([](LoopProgram& p) { p.stores[0].target.index[0].terms[0].coefficient = 0; }, "is malformed");
  refused([](LoopProgram& p) { p.stores[0].target.index.pop_back(); }, "1 indices for buffer 'C' of 2 dimensions");
  refused([](LoopProgram& p) { p.buffers[1].name = "A"; }, "a second buffer named 'A'");
  refused([](LoopProgram& p) { p.loops[0].prefetches = {{7, {}}}; }, "there is no buffer 7");
  refused([](LoopProgram& p) { p.loops[0].prefetches = {{0, {}}}; }, "0 indices for buffer 'A' of 2 dimensions");
  refused([](LoopProgram& p) { p.loops[0].prefetches.assign(5000, p.stores[0].target); }, "has 5000 prefetches");
  refused([](LoopProgram& p) { p.loops[0].name = "i j"; }, "'i j' cannot name a loop");
}

}  // namespace
}  // namespace graft::codegen
