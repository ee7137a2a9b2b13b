#include "base/text.h"

#include <gtest/gtest.h>

#include "tests/base/support.h"

namespace graft::base {
namespace {

TEST(Cursor, walks_over_names_numbers_and_signs) {
  Cursor cursor("  C[i.o, j] += 2.5e-1 * _x9(-7)\n", "text");
  EXPECT_TRUE(cursor.at_identifier());
  EXPECT_FALSE(cursor.at_number());
  EXPECT_EQ(cursor.identifier(), "C");
  cursor.expect("[");
  EXPECT_EQ(cursor.identifier(), "i.o");
  EXPECT_EQ(cursor.peek(), ',');
  EXPECT_FALSE(cursor.accept("]"));
  EXPECT_TRUE(cursor.accept(","));
  EXPECT_EQ(cursor.identifier(), "j");
  cursor.expect("]");
  EXPECT_TRUE(cursor.accept("+="));
  EXPECT_TRUE(cursor.at_number());
  EXPECT_EQ(cursor.number(), 0.25);
  cursor.expect("*");
  EXPECT_EQ(cursor.identifier(), "_x9");
  cursor.expect("(");
  EXPECT_TRUE(cursor.at_number());
  EXPECT_EQ(cursor.integer(), -7);
  EXPECT_EQ(cursor.rest(), ")\n");
  cursor.expect(")");
  EXPECT_TRUE(cursor.at_end());
  EXPECT_EQ(cursor.peek(), '\0');
  EXPECT_EQ(cursor.position(), 32u);
}

TEST(Cursor, says_line_and_column_of_what_it_found) {
  const std::string text = "split i\n  by seven";
  Cursor cursor(text, "gemm.sketch");
  cursor.expect("split");
  EXPECT_EQ(cursor.identifier(), "i");
  cursor.expect("by");
  EXPECT_EQ(refusal([&] { cursor.integer(); }), "gemm.sketch:2:6: expected an integer, got 'seven'");
  EXPECT_EQ(refusal([&] { cursor.number(); }), "gemm.sketch:2:6: expected a number, got 'seven'");
  EXPECT_EQ(refusal([&] { cursor.expect(")"); }), "gemm.sketch:2:6: expected ')', got 'seven'");
  EXPECT_EQ(refusal([&] { cursor.fail("no"); }), "gemm.sketch:2:6: no");
  cursor.accept("seven");
  EXPECT_EQ(refusal([&] { cursor.expect(")"); }), "gemm.sketch:2:11: expected ')', got the end of the text");
  const std::string long_words = "a " + std::string(256, 'n') + " " + std::string(4000, 'm');
  Cursor long_name(long_words, "text");
  long_name.identifier();
  EXPECT_EQ(long_name.identifier().size(), 256u);
  EXPECT_EQ(refusal([&] { long_name.identifier(); }), "text:1:260: a name of 4000 characters; at most 256");
  EXPECT_EQ(refusal([&] { cursor.identifier(); }), "gemm.sketch:2:11: expected a name, got the end of the text");
}

TEST(Cursor, reads_line_by_line_without_losing_the_place) {
  Cursor cursor("one two # three\n\n  four", "text");
  Cursor first = cursor.line('#');
  EXPECT_EQ(first.identifier(), "one");
  EXPECT_EQ(first.identifier(), "two");
  EXPECT_TRUE(first.at_end());
  EXPECT_EQ(refusal([&] { first.fail("no"); }), "text:1:9: no");
  EXPECT_TRUE(cursor.line().at_end());
  Cursor last = cursor.line();
  EXPECT_EQ(refusal([&] { last.integer(); }), "text:3:3: expected an integer, got 'four'");
  EXPECT_TRUE(cursor.at_end());
  EXPECT_TRUE(cursor.line().at_end());
}

TEST(Cursor, shows_one_whole_character_of_what_is_no_word) {
  Cursor cursor("\xe2\x82\xac 5", "text");
  EXPECT_EQ(refusal([&] { cursor.identifier(); }), "text:1:1: expected a name, got '\xe2\x82\xac'");
}

TEST(Cursor, reads_integers_to_the_limits_and_refuses_beyond) {
  EXPECT_EQ(Cursor("9223372036854775807", "t").integer(), INT64_MAX);
  EXPECT_EQ(Cursor("-9223372036854775808", "t").integer(), INT64_MIN);
  EXPECT_EQ(refusal([] { Cursor("9223372036854775808", "t").integer(); }),
            "t:1:1: '9223372036854775808' does not fit 64 bits");
  EXPECT_EQ(refusal([] { Cursor("1e999", "t").number(); }), "t:1:1: '1e999' is out of the range of a double");
}

TEST(Cursor, knows_where_numbers_begin) {
  for (const char* text : {"1", "-1", ".5", "-.5", " 2"}) EXPECT_TRUE(Cursor(text, "t").at_number()) << text;
  for (const char* text : {"", "-", ".", "-x", "x1", "+1", "inf", "nan"}) {
    EXPECT_FALSE(Cursor(text, "t").at_number()) << text;
  }
  EXPECT_EQ(Cursor("-.5", "t").number(), -0.5);
}

TEST(Text, split_keeps_empty_parts) {
  using Parts = std::vector<std::string_view>;
  EXPECT_EQ(split("", ','), Parts{""});
  EXPECT_EQ(split("a", ','), Parts{"a"});
  EXPECT_EQ(split(",a,,b,", ','), (Parts{"", "a", "", "b", ""}));
}

TEST(Text, words_drops_all_white_space) {
  using Parts = std::vector<std::string_view>;
  EXPECT_EQ(words(""), Parts{});
  EXPECT_EQ(words(" \t\n "), Parts{});
  EXPECT_EQ(words("  two\r\n words"), (Parts{"two", "words"}));
}

TEST(Text, join_and_trim) {
  EXPECT_EQ(join({}, ", "), "");
  EXPECT_EQ(join({"a"}, ", "), "a");
  EXPECT_EQ(join({"a", "", "b"}, ", "), "a, , b");
  EXPECT_EQ(trim(" \t a b \n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
}

TEST(Text, counted_takes_the_plural) {
  EXPECT_EQ(counted(std::int64_t(0), "run"), "0 runs");
  EXPECT_EQ(counted(std::size_t(1), "run"), "1 run");
  EXPECT_EQ(counted(std::int64_t(2), "run"), "2 runs");
  EXPECT_EQ(counted(std::size_t(1), "sketch"), "1 sketch");
  EXPECT_EQ(counted(std::size_t(2), "sketch"), "2 sketches");
  EXPECT_EQ(counted(std::size_t(2), "entry"), "2 entries");
}

TEST(Text, without_numbers_keeps_the_words) {
  EXPECT_EQ(without_numbers(""), "");
  EXPECT_EQ(without_numbers("C: element 4 is -0.244 instead of -5.5e-07 (allowed error 1.97e+05)"),
            "C: element # is # instead of # (allowed error #)");
  EXPECT_EQ(without_numbers("element 0 is -nan"), "element # is -nan");
  EXPECT_EQ(without_numbers("x86-64 has 16. (-3) e9 7e 8e- v3"), "x#-# has #. (#) e# #e #e- v#");
}

TEST(Text, join_undoes_split) {
  for (const std::string text : {"", ";", "a;b", ";;x;"}) {
    std::vector<std::string> parts;
    for (const std::string_view part : split(text, ';')) parts.emplace_back(part);
    EXPECT_EQ(join(parts, ";"), text);
  }
}

}  // namespace
}  // namespace graft::base
