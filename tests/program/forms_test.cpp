#include "codegen/program/forms.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "random_program.h"

namespace graft::codegen {
namespace {

const std::string head = R"(buffer A f32 [4,8] input
buffer W f32 [8] constant
buffer C f32 [4] output
buffer acc f32 [2] temporary registers
run
)";

template <class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "not refused";
}
std::string text_refusal(const std::string& text) {
  return refusal([&] { (void)parse_program(text, "p"); });
}

void expect_refused(const std::string& body, const std::string& place, const std::string& words) {
  const std::string message = text_refusal(head + body);
  EXPECT_EQ(message.rfind(place, 0), 0u) << message;
  EXPECT_NE(message.find(words), std::string::npos) << message;
}

TEST(Forms, TextIsAsDocumented) {
  const std::string text = R"(buffer A f32 [512,512] input
buffer B f32 [512,512] constant
buffer C f32 [512,512] output
buffer packed f32 [512,512] temporary
buffer acc f32 [8,32] temporary registers
prepare
  for k 512
    for j 512
      packed[k,j] = B[k,j]
run
  for i.0 64 parallel
    for i.1 8 unrolled
      for j.v 32 vector
        acc[i.1,j.v] = 0
    for k 512 prefetch A[8*i.0,k + 16], packed[k + 2,0]
      for i.1 8 unrolled prefetch packed[k + 1,16*i.1]
        for j.v 32 vector
          acc[i.1,j.v] += A[8*i.0 + i.1,k] * packed[k,j.v]
    for i.1 8 unrolled
      for j.v 32 vector
        C[8*i.0 + i.1,j.v] max= max(acc[i.1,j.v], 0.5) - (1 - acc[i.1,j.v]) / -2
)";
  const LoopProgram program = parse_program(text, "p");
  EXPECT_EQ(to_text(program), text);
  EXPECT_EQ(program.buffers.size(), 5u);
  EXPECT_EQ(program.loops.size(), 10u);
  EXPECT_EQ(program.stores.size(), 4u);
  EXPECT_EQ(program.prepare.size(), 3u);
  EXPECT_EQ(program.run.size(), 11u);
  EXPECT_EQ(program.buffers[4].scope, Scope::registers);
  EXPECT_EQ(program.loops[2].kind, LoopKind::parallel);
  EXPECT_EQ(program.stores[3].combine, Combine::max);
  EXPECT_EQ(program.loops[5].prefetches.size(), 2u);
  EXPECT_EQ(program.loops[6].prefetches.size(), 1u);
}

TEST(Forms, LiteralsKeepTheirValues) {
  const std::string text = R"(buffer C f32 [3] output
buffer B f32 [2,3] temporary {1, 0, -0.25, 0.1, -1e-300, 5}
buffer n i32 [] temporary {-3}
run
  for i 2
    for j 3
      C[j] += B[i,j] * n[]
)";
  const LoopProgram program = parse_program(text, "p");
  EXPECT_EQ(program.buffers[1].values, (std::vector<double>{1, 0, -0.25, 0.1, -1e-300, 5}));
  EXPECT_EQ(to_text(program), text);
  EXPECT_TRUE(program_from(to_document(program)) == program);
  LoopProgram other = program;
  other.buffers[1].values[1] = 0.5;
  EXPECT_FALSE(other == program);
  EXPECT_NE(hash(other), hash(program));
}

TEST(Forms, LayoutsOfParametersAreKept) {
  const std::string begin = "buffer A f32 [2,3,4] input";
  const std::string rest = "\nbuffer C f32 [2] output\nbuffer T f32 [2] temporary";
  const std::string run = "\nrun\n  for i 2\n    C[i] = A[i,0,0]\n  T[0] = 1\n";
  const std::string text = begin + " stored {1/4 0 1%4}" + rest + run;
  const LoopProgram program = parse_program(text, "p");
  EXPECT_EQ(to_text(program), text);
  EXPECT_TRUE(program_from(base::parse_json(to_document(program).to_json(), "p")) == program);
  const LoopProgram plain = parse_program(begin + rest + run, "p");
  EXPECT_FALSE(plain == program);
  EXPECT_NE(hash(plain), hash(program));
  const auto refused = [&](const std::string& all, const std::string& words) {
    EXPECT_NE(text_refusal(all + run).find(words), std::string::npos) << text_refusal(all + run);
  };
  refused(begin + " stored {1/4 0}" + rest, "p:1: the layout of 'A' has 2 dimensions instead of 3");
  refused(begin + " stored {1/2 0 1%2}" + rest, "p:1: the layout of 'A'");
  refused(begin + " stored {1/4 0 1%}" + rest, "'1%' is not a stored dimension");
  refused(begin + " stored {1/4 0 1%4" + rest, "p:1:");
  refused(begin + rest + " stored {0}", "temporary buffer 'T' has a layout");
}

TEST(Forms, LiteralsThatAreNoneAreRefused) {
  const auto refused = [](const std::string& buffer, const std::string& store) {
    return text_refusal("buffer C f32 [2] output\n" + buffer + "\nrun\n  " + store + "\n");
  };
  const auto has = [](const std::string& message, const std::string& words) {
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  has(refused("buffer B f32 [2] temporary {1, 2, 3}", "C[0] = B[0]"), "3 values for the 2 elements of 'B'");
  has(refused("buffer B f32 [2] temporary {1, 2}", "B[0] = C[0]"), "literal 'B' is written");
  has(refused("buffer B f32 [2] input {1, 2}", "C[0] = B[0]"), "must be a temporary in memory");
  has(refused("buffer B f32 [2] temporary {1, 2} registers", "C[0] = B[0]"), "must be a temporary in memory");
  has(refused("buffer B i32 [2] temporary {1, 0.5}", "C[0] = B[0]"), "0.5 in literal 'B' is not a number of type i32");
  has(refused("buffer B f32 [2] temporary {1, x}", "C[0] = B[0]"), "expected a number");
  has(refused("buffer B f32 [2] temporary {1, 2", "C[0] = B[0]"), "expected '}'");
}

TEST(Forms, BlankLinesAndSpacesAreFree) {
  const LoopProgram program = parse_program(head + "  for i 4\n    C[i] = A[i,0]\n", "p");
  const LoopProgram spaced =
      parse_program(head + "\n  for i   4 serial  \r\n\n    C[ i ]=A[ 1 * i + 0 , 2 - 2 ]\n   \n", "p");
  EXPECT_TRUE(program == spaced);
}

TEST(Forms, BracketsKeepTheOrderOfOperations) {
  for (const char* value :
       {"A[0,0] - (A[0,1] - A[0,2])", "A[0,0] - A[0,1] - A[0,2]", "(A[0,0] + 1) * 2", "A[0,0] / (A[0,1] * 2)",
        "A[0,0] + (1 + 2)", "neg(A[0,0]) * exp(sqrt(2))", "inf", "-inf", "1e-300", "0.1", "min(-1, max(1, 2))",
        "select(A[0,0] <= 2 - A[0,0], pow(A[0,0], 2), rsqrt(2))"}) {
    const std::string text = head + "  C[0] = " + value + "\n";
    EXPECT_EQ(to_text(parse_program(text, "p")), text);
  }
}

TEST(Forms, RandomProgramsComeBackFromTextAndJson) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const LoopProgram program = random_program(seed);
    const std::string text = to_text(program);
    const LoopProgram from_text = parse_program(text, "p");
    EXPECT_TRUE(from_text == program) << "seed " << seed << "\n" << text;
    EXPECT_EQ(hash(from_text), hash(program)) << "seed " << seed;
    EXPECT_EQ(to_text(from_text), text) << "seed " << seed;
    const std::string json = to_document(program).to_json();
    const LoopProgram from_json = program_from(base::parse_json(json, "p"));
    EXPECT_TRUE(from_json == program) << "seed " << seed << "\n" << json;
    EXPECT_EQ(to_document(from_json).to_json(), json) << "seed " << seed;
    EXPECT_EQ(to_text(from_json), text) << "seed " << seed;
  }
}

TEST(Forms, IllFormedProgramsAreRefusedWithTheLine) {
  // The head has five lines.
  expect_refused("  for i 5\n    C[i] = 0\n", "p:7: ", "index 0 of buffer 'C' reaches 4, outside of 0 .. 3");
  expect_refused("  for i 4\n    C[i - 1] = 0\n", "p:7: ", "index 0 of buffer 'C' reaches -1, outside of 0 .. 3");
  expect_refused("  for i 4\n    for k 8\n      C[i] += A[i,2*k]\n", "p:8: ", "index 1 of buffer 'A' reaches 14");
  expect_refused("  for i 4\n    C[i] = A[i,k]\n", "p:7:", "no loop 'k' around this store");
  expect_refused("  for i 4\n    C[i] = 0\n  C[i] = 1\n", "p:8:", "no loop 'i' around this store");
  expect_refused("  for i 4 vector\n    for k 8\n      C[i] += A[i,k]\n",
                 "p:7: ", "loop 'k' stands inside vector loop 'i'");
  expect_refused("  for i 0\n    C[i] = 0\n", "p:6: ", "extent 0 of loop 'i' must be at least 1");
  expect_refused("  for i -3\n    C[0] = 0\n", "p:6: ", "extent -3 of loop 'i' must be at least 1");
  expect_refused("  for i 2\n    acc[i] = 0\n", "p:7: ", "register buffer 'acc' is indexed by serial loop 'i'");
  expect_refused("  for i 2 parallel\n    C[0] = acc[i]\n", "p:7: ", "indexed by parallel loop 'i'");
  expect_refused("  for i 4\n    for i 2\n      C[i] = 0\n", "p:7: ", "stands inside a loop of that name");
  expect_refused("  for i 4\n  C[0] = 0\n", "p:6: ", "loop 'i' has no body");
  const std::string sum = "\n    C[i] += A[i,0]\n";
  expect_refused("  for i 4 vector prefetch A[i,0]" + sum, "p:6: ", "vector loop 'i' prefetches");
  expect_refused("  for i 4 prefetch W[i]" + sum, "p:6: ", "a prefetch of 'W', which loop 'i' does not touch");
  expect_refused("  for i 4 prefetch A[i + 4,0]" + sum, "p:6: ", "index 0 of buffer 'A' reaches 7, outside of -3 .. 6");
  expect_refused("  for i 4 prefetch A[i - 4,0]" + sum,
                 "p:6: ", "index 0 of buffer 'A' reaches -4, outside of -3 .. 6");
  expect_refused("  for i 4 unrolled prefetch acc[0]\n    acc[0] = A[i,0]\n",
                 "p:6: ", "a prefetch of 'acc', which is not in memory");
  expect_refused("  A[0,0] = 1\n", "p:6: ", "input buffer 'A' is written");
  expect_refused("", "p: ", "'run' is empty");
  expect_refused("prepare\n  acc[0] = A[0,0]\nrun\n  C[0] = 1\n", "p:7: ", "'prepare' reads input buffer 'A'");
  expect_refused("  C[0] = A[0]\n", "p:6: ", "1 indices for buffer 'A' of 2 dimensions");
  expect_refused("  for i 1125899906842624\n    for k 2\n      C[0] = 1\n", "p:7: ", "run more than 2^50 times");
  expect_refused("  for i 1000000000000\n    C[1000000000000*i] = 1\n", "p:7: ", "reaches beyond 2^62");
}

TEST(Forms, TextThatDoesNotParseIsRefusedWithLineAndColumn) {
  expect_refused("  for i 4 vectr\n    C[i] = 0\n", "p:6:", "unknown kind of loop 'vectr'; did you mean 'vector'?");
  expect_refused("  for i\n    C[i] = 0\n", "p:6:", "expected an integer, got the end of the text");
  expect_refused("  for i 4 prefetch\n    C[i] = 0\n", "p:6:", "expected a name, got the end");
  expect_refused("  for i 4 prefetch D[i]\n    C[i] = 0\n", "p:6:", "unknown buffer 'D'");
  expect_refused("  for i 4 prefetch C[j]\n    C[i] = 0\n", "p:6:", "no loop 'j'");
  expect_refused("  for i 4 prefetch C[i] C[i]\n    C[i] = 0\n", "p:6:", "expected ',' or the end of the prefetches");
  expect_refused("  for i 4 serial perfetch C[i]\n    C[i] = 0\n", "p:6:", "expected 'intrinsic', 'prefetch' or");
  expect_refused("  C[0] = D[0]\n", "p:6:", "unknown buffer 'D'");
  expect_refused("  C[0] = sqr(2)\n",
                 "p:6:", "unknown function 'sqr'; did you mean 'sqrt'? known: position, max, min, neg, exp, sqrt");
  expect_refused("  C[0] = max(2)\n", "p:6:15: ", "expected ','");
  expect_refused("  C[0] = 1 2\n", "p:6:12: ", "expected an operation or the end of the store");
  expect_refused("  C[0] =\n", "p:6:", "expected a name, got the end of the text");
  expect_refused("  C[0] -= 1\n", "p:6:8: ", "expected '=', '+=', '*=', 'max=' or 'min='");
  expect_refused("  C[0] = -A[0,0]\n", "p:6:", "write neg(...)");
  expect_refused("  C[0.5] = 1\n", "p:6:", "expected ']'");
  expect_refused("      C[0] = 1\n", "p:6:7: ", "6 spaces; two for each level, at most 2 here");
  expect_refused("   C[0] = 1\n", "p:6:4: ", "3 spaces");
  expect_refused("  C[0] = 1\nrun\n  C[0] = 1\n", "p:7:", "a second 'run'");
  expect_refused("  C[0] = 1\nbuffer D f32 [1] output\n", "p:7:", "buffers are declared before");
  expect_refused("  C[99999999999999] = 1\n", "p:6:", "too large for an index");
  expect_refused("  C[0] = " + std::string(1000, '(') + "1\n", "p:6:", "nested deeper");
  EXPECT_EQ(text_refusal("buffer A f31 [4] input\n"), "p:1:13: unknown type 'f31'; did you mean 'f32'?");
  EXPECT_NE(text_refusal("buffer A f32 [4] inptu\n").find("unknown role 'inptu'; did you mean 'input'?"),
            std::string::npos);
  EXPECT_EQ(text_refusal("bufer A f32 [4] input\n"), "p:1:6: unknown word 'bufer'; did you mean 'buffer'?");
  EXPECT_NE(text_refusal("buffer A f32 [4,0] input\nrun\n  A[0] = 1\n").find("p:1: extent 0 of buffer 'A'"),
            std::string::npos);
  EXPECT_NE(
      text_refusal("buffer A f32 [4] input registers\nrun\n  A[0] = 1\n").find("p:1: input buffer 'A' cannot be in"),
      std::string::npos);
  EXPECT_NE(text_refusal("buffer T f32 [4] temporary\nbuffer A f32 [4] input\nrun\n  T[0] = 1\n")
                .find("p:2: input buffer 'A' "
                      "comes after"),
            std::string::npos);
  EXPECT_NE(text_refusal("  C[0] = 1\n").find("p:1:3: an indented line outside of"), std::string::npos);
  EXPECT_NE(text_refusal(std::string(1 << 20, ' ')).find("more than 256 KiB"), std::string::npos);
  std::string deep = head;
  for (int level = 1; level <= 65; ++level)
    deep += std::string(2 * level, ' ') + "for l" + std::to_string(level) + " 1\n";
  deep += std::string(132, ' ') + "C[0] = 1\n";
  EXPECT_NE(text_refusal(deep).find("p:70: more than 64 loops in each other"), std::string::npos) << text_refusal(deep);
}

TEST(Forms, DocumentsAreRefusedWithThePlace) {
  const auto refused = [](const std::string& json, const std::string& words) {
    const std::string message = refusal([&] { (void)program_from(base::parse_json(json, "p.json")); });
    EXPECT_NE(message.find(words), std::string::npos) << message;
    EXPECT_EQ(message.rfind("p.json:", 0), 0u) << message;
  };
  const std::string buffers = R"({"buffers":[{"name":"C","dtype":"f32","shape":[4],"role":"output"}],)";
  const std::string good = buffers + R"("run":[{"for":"i","extent":4,"body":[{"store":"C[i] = 1"}]}]})";
  EXPECT_EQ(to_text(program_from(base::parse_json(good, "p.json"))),
            "buffer C f32 [4] output\nrun\n  for i 4\n    C[i] = 1\n");
  refused(buffers + R"("run":[{"for":"i","extent":5,"body":[{"store":"C[i] = 1"}]}]})", "reaches 4");
  refused(buffers + R"("run":[{"for":"i","extent":4,"kind":"simd","body":[]}]})", "unknown kind of loop 'simd'");
  refused(buffers + R"("run":[{"for":"i","extent":0,"body":[{"store":"C[0] = 1"}]}]})", "extent 0 of loop 'i'");
  refused(buffers + R"("run":[{"for":"i","extent":2,"prefetch":["C[j]"],"body":[{"store":"C[i] = 1"}]}]})",
          "no loop 'j'");
  refused(buffers + R"("run":[{"for":"i","extent":2,"prefetch":"C[i]","body":[{"store":"C[i] = 1"}]}]})",
          "expected a list");
  refused(buffers + R"("run":[{"for":"i","extent":2,"body":[]}]})", "loop 'i' has no body");
  refused(buffers + R"("run":[{"store":"C[j] = 1"}]})", "no loop 'j' around this store");
  refused(buffers + R"("run":[{"store":"C[0] = 1","extent":2}]})", "unknown key 'extent'");
  refused(buffers + R"("run":[]})", "'run' is empty");
  refused(buffers + R"("walk":[]})", "unknown key 'walk'");
  refused(R"({"run":[]})", "missing key 'buffers'");
}

}  // namespace
}  // namespace graft::codegen
