#include "base/error.h"

#include <gtest/gtest.h>

#include "base/hash.h"
#include "tests/base/support.h"

namespace graft::base {
namespace {

TEST(Result, holds_a_value_or_a_reason) {
  const Result<std::vector<int>> good = std::vector{1, 2};
  EXPECT_TRUE(good.ok());
  EXPECT_TRUE(bool(good));
  EXPECT_EQ(good->size(), 2u);
  const Result<std::vector<int>> bad = Reason{"split: 7 does not divide j.o (3)"};
  EXPECT_FALSE(bad.ok());
  EXPECT_EQ(bad.reason().text, "split: 7 does not divide j.o (3)");
}

TEST(Result, gives_its_value_away) {
  Result<std::string> text = std::string("a value");
  *text += "!";
  EXPECT_EQ(std::move(text).value(), "a value!");
}

TEST(UserError, puts_the_place_first) {
  EXPECT_STREQ(UserError("board.yaml:7:3", "unknown key 'x'").what(), "board.yaml:7:3: unknown key 'x'");
}

std::string asked(std::string_view word, std::vector<std::string> known) {
  return did_you_mean(word, known);
}

TEST(DidYouMean, names_the_nearest_word) {
  EXPECT_EQ(asked("vectr_bits", {"cores", "vector_bits", "vector_registers"}), "; did you mean 'vector_bits'?");
  EXPECT_EQ(asked("matmul", {"batch_matmul", "matmul"}), "; did you mean 'matmul'?");
  EXPECT_EQ(asked("tirals", {"trials", "train"}), "; did you mean 'trials'?");  // a swap is two edits
}

TEST(DidYouMean, allows_a_third_of_the_word_and_at_least_two_edits) {
  EXPECT_EQ(asked("abcdefghi", {"abcdefxyz"}), "; did you mean 'abcdefxyz'?");  // 3 of 9
  EXPECT_EQ(asked("abcdefghi", {"abcdewxyz"}), "; known: abcdewxyz");           // 4 of 9
  EXPECT_EQ(asked("seed", {"need"}), "; did you mean 'need'?");
  EXPECT_EQ(asked("seed", {"send", "mend"}), "; did you mean 'send'?");
  EXPECT_EQ(asked("d", {"dtype", "pad"}), "; known: dtype, pad");  // a letter in common is not a spelling
  EXPECT_EQ(asked("seed", {"abcd"}), "; known: abcd");
}

TEST(DidYouMean, does_not_propose_words_without_a_common_letter) {
  EXPECT_EQ(asked("ab", {"xy"}), "; known: xy");
}

TEST(DidYouMean, lists_up_to_forty_words_when_none_is_near) {
  EXPECT_EQ(asked("zebra", {"maml", "reptile"}), "; known: maml, reptile");
  EXPECT_EQ(asked("zebra", {}), "");
  std::vector<std::string> many(40, "something_else");
  EXPECT_NE(asked("zebra", many), "");
  many.push_back("something_else");
  EXPECT_EQ(asked("zebra", many), "");
}

// Oracle: splitmix64 from state 0 gives 0xe220a8397b1dcdaf first, as published with the generator.
TEST(Hash, mixes_as_splitmix64) {
  EXPECT_EQ(hash_mix(0x9e3779b97f4a7c15u), 0xe220a8397b1dcdafu);
  EXPECT_EQ(hash_mix(0), 0u);
}

// These numbers are in files: they may never change.
TEST(Hash, is_the_same_for_ever) {
  EXPECT_EQ(to_hex(hash_bytes("")), "f52a15e9a9b5e89b");
  EXPECT_EQ(to_hex(hash_bytes("matmul(m=512,n=512,k=512,dtype=f32)")), "041c27b0a972c98b");
  EXPECT_EQ(to_hex(hash_bytes(std::string_view("\xff\0", 2))), "061c3e3f101d43dd");
  EXPECT_EQ(to_hex(hash_combine(1, 2)), "081a5c1377856b73");
  EXPECT_EQ(to_hex(hash_combine(2, 1)), "f2826f98653e9e57");
}

TEST(Hash, combination_depends_on_order_and_leaves_zero) {
  EXPECT_NE(hash_combine(1, 2), hash_combine(2, 1));
  EXPECT_NE(hash_combine(0, 0), 0u);
  EXPECT_NE(hash_combine(hash_combine(1, 2), 3), hash_combine(1, hash_combine(2, 3)));
}

TEST(Hash, reads_back_its_hex_text) {
  for (const std::uint64_t hash : {std::uint64_t(0), std::uint64_t(0xabc), ~std::uint64_t(0), hash_bytes("x")}) {
    EXPECT_EQ(to_hex(hash).size(), 16u);
    EXPECT_EQ(from_hex(to_hex(hash)), hash);
  }
  for (const char* text :
       {"", "abc", "000000000000000g", "-000000000000001", "00000000000000000", "0x00000000000001"}) {
    const std::string words = refusal([&] { from_hex(text); });
    EXPECT_EQ(words, std::string("'") + text + "' is not a hash: expected 16 hex digits");
  }
}

}  // namespace
}  // namespace graft::base
