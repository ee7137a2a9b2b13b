#include "codegen/program/intrinsic.h"

#include <gtest/gtest.h>

#include "codegen/program/forms.h"
#include "tests/support/intrinsics.h"
#include "tests/support/programs.h"
#include "tests/support/refusal.h"

namespace graft::codegen {
namespace {

using namespace test;

const std::string pair_text = R"(intrinsic pair
needs +sse2
computes input A[2]; input B[2]; output C[i] = A[i] * B[i] + 1 where i=2
body
  something
end
)";

TEST(Intrinsic, ReadsWhatIsShipped) {
  const auto outer = shipped("outer_4x4");
  ASSERT_EQ(outer.size(), 1u);
  EXPECT_EQ(outer[0]->name, "outer_4x4");
  EXPECT_EQ(outer[0]->needs, "");
  EXPECT_EQ(outer[0]->output().shape, (std::vector<std::int64_t>{4, 4}));
  const auto dot = shipped("dot_u8i8");
  ASSERT_EQ(dot.size(), 1u);
  EXPECT_EQ(dot[0]->needs, "+avx512vnni");
  EXPECT_EQ(dot[0]->output().dtype, DType::i32);
  EXPECT_EQ(intrinsic_named(dot, "dot_u8i8"), dot[0]);
  EXPECT_EQ(intrinsic_named(dot, "dot"), nullptr);
}

TEST(Intrinsic, TextComesBack) {
  for (const std::string name : {"outer_4x4", "dot_u8i8"}) {
    const Intrinsic read = *shipped(name)[0];
    const auto again = parse_intrinsics(to_text(read), "again");
    ASSERT_EQ(again.size(), 1u);
    EXPECT_EQ(*again[0], read);
    EXPECT_EQ(hash(*again[0]), hash(read));
  }
  std::string other = pair_text;
  other.replace(other.find("something"), 9, "different");
  EXPECT_NE(hash(*parse_intrinsics(other, "b")[0]), hash(*parse_intrinsics(pair_text, "a")[0]));
}

TEST(Intrinsic, RefusesWhatIsNotOne) {
  const std::pair<std::pair<std::string, std::string>, std::string> refusals[] = {
      {{"intrinsic pair", "intrinsics pair"}, "t:1: expected 'intrinsic NAME'"},
      {{"intrinsic pair", "intrinsic pair()"}, "t:1: 'pair()' cannot name an intrinsic"},
      {{"needs", "wants"}, "t:2: expected 'needs', 'computes' or 'body', got 'wants +sse2'"},
      {{"where i=2", "where i=1"}, "has no axis of an extent above 1"},
      {{"A[i] * B[i]", "A[i] * A[i]"}, "A is read 2 times; an intrinsic reads each input once"},
      {{"input A[2]", "input A[3]"}, "A: an intrinsic reads a tensor from its first to its last element"},
      {{"A[i] *", "pad(A[i]) *"}, "A: an intrinsic cannot pad"},
      {{"output C[i]", "T[i] = A[i]; output C[i]"}, "computes 2 tensors; an intrinsic computes one"},
      {{"A[i] *", "D[i] *"}, "t:3:1:"},
      {{"  something\n", ""}, "intrinsic pair: no body"},
      {{"\nend", ""}, "expected 'end', got the end of the text"},
      {{"\nbody", ""}, "expected 'end', got the end of the text"},
  };
  for (const auto& [change, words] : refusals) {
    const std::string text = replaced(pair_text, change.first, change.second);
    const std::string message = refusal([&] { return parse_intrinsics(text, "t"); });
    EXPECT_TRUE(contains(message, words)) << message << " for " << words;
  }
  EXPECT_EQ(refusal([&] { return parse_intrinsics(pair_text + pair_text, "t"); }),
            "t:7: a second intrinsic named 'pair'");
  EXPECT_EQ(parse_intrinsics("# nothing\n\n", "t").size(), 0u);
}

// What outer_4x4 computes, inside of a loop over l.
const std::string outer_program = R"(buffer A f32 [8,4] input
buffer B f32 [8,12] input
buffer C f32 [4,4] output
run
  for l 8
    for i 4 unrolled intrinsic outer_4x4
      for j 4 unrolled
        C[i,j] += A[l,i] * B[l,j + 5]
)";

std::string with_outer(const std::string& program) {
  return to_text(*shipped("outer_4x4")[0]) + program;
}

TEST(Match, FindsLoopsAndOperands) {
  for (const std::string value : {"A[l,i] * B[l,j + 5]", "B[l,j + 5] * A[l,i]"}) {
    const LoopProgram program =
        parse_program(with_outer(replaced(outer_program, "A[l,i] * B[l,j + 5]", value)), "test");
    const auto found = match(program, program.run, 1, *program.intrinsics[0]);
    ASSERT_TRUE(found.ok()) << found.reason().text;
    EXPECT_EQ(found->store, 0);
    EXPECT_EQ(found->loops, (std::vector<int>{1, 2}));
    const bool swapped = value[0] == 'B';
    EXPECT_EQ(found->loads, (std::vector<int>{swapped ? 1 : 0, swapped ? 0 : 1, -1}));
  }
}

TEST(Match, SaysWhatDiffers) {
  const std::pair<std::pair<std::string, std::string>, std::string> refusals[] = {
      {{"for j 4", "for j 3"}, "j runs 3 times, j of outer_4x4 wants 4"},
      {{"for i 4", "for i 2"}, "i runs 2 times, i of outer_4x4 wants 4"},
      {{"A[l,i]", "A[i,l - l]"}, "A moves by 4 along i, A of outer_4x4 wants 1"},
      {{"B[l,j + 5]", "B[l,2*j]"}, "B moves by 2 along j, B of outer_4x4 wants 1"},
      {{"C[i,j] +=", "C[j,i] +="}, "C moves by 1 along i, C of outer_4x4 wants 4"},
      {{"buffer A f32", "buffer A f64"}, "A is f64, A of outer_4x4 wants f32"},
      {{"buffer C f32", "buffer C i32"}, "C is i32, C of outer_4x4 wants f32"},
      {{"+=", "max="}, "'max=', outer_4x4 wants '+='"},
      {{"A[l,i] * B", "A[l,i] + B"}, "another value than outer_4x4 computes"},
      {{"+ 5]", "+ 5] * 2"}, "another value than outer_4x4 computes"},
      {{"      for j 4 unrolled\n        C[i,j] += A[l,i] * B[l,j + 5]", "      C[i,0] += A[l,i] * B[l,5]"},
       "1 loops, outer_4x4 wants 2"},
      {{"        C[i,j] +=", "        C[i,j] = 1\n        C[i,j] +="}, "j holds more than one loop or store"},
      {{"for j 4 unrolled", "for j 4"}, "loop 'j' of an intrinsic's nest is serial, not unrolled"},
      {{"for l 8", "for l 8 unrolled intrinsic outer_4x4"}, "l runs 8 times"},
      {{"outer_4x4\n", "outer_4x5\n"}, "unknown intrinsic 'outer_4x5'; did you mean 'outer_4x4'"},
      {{"B[l,j + 5]", "C[0,j]"}, "reads what it writes, C"},
  };
  for (const auto& [change, words] : refusals) {
    const std::string text = with_outer(replaced(outer_program, change.first, change.second));
    const std::string message = refusal([&] { return parse_program(text, "p"); });
    EXPECT_TRUE(contains(message, words)) << message << " for " << words;
  }
}

TEST(Match, FormsKeepIntrinsicsAndIdentityCountsThem) {
  const LoopProgram program = parse_program(with_outer(outer_program), "test");
  ASSERT_EQ(program.intrinsics.size(), 1u);
  EXPECT_EQ(program.loops[1].intrinsic, 0);
  EXPECT_EQ(program.loops[2].intrinsic, -1);
  EXPECT_EQ(to_text(program), with_outer(outer_program));
  EXPECT_EQ(parse_program(to_text(program), "again"), program);
  EXPECT_EQ(program_from(base::parse_json(to_document(program).to_json(), "json")), program);

  const LoopProgram plain = parse_program(replaced(outer_program, " intrinsic outer_4x4", ""), "test");
  EXPECT_FALSE(program == plain);
  EXPECT_NE(hash(program), hash(plain));
  // An intrinsic that no loop names is not a part of what is computed.
  EXPECT_EQ(parse_program(with_outer(to_text(plain)), "test"), plain);
  EXPECT_EQ(hash(parse_program(with_outer(to_text(plain)), "test")), hash(plain));
  const base::Document with_intrinsic = to_document(program), without = to_document(plain);
  EXPECT_NE(with_intrinsic.find("intrinsics"), nullptr);
  EXPECT_EQ(without.find("intrinsics"), nullptr);
}

}  // namespace
}  // namespace graft::codegen
