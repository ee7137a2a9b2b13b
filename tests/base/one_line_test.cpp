#include "base/one_line.h"

#include <gtest/gtest.h>

namespace graft::base {
namespace {

TEST(OneLine, HoldsWhatOthersSay) {
  EXPECT_EQ(one_line("ssh: no route\r\n\r\n  it is away  \n"), "ssh: no route; it is away");
  EXPECT_EQ(one_line("\x1b[31mred\x1b[0m\tand\x07 \x1b]0;title\a loud\x7f"), "red and loud");
  EXPECT_EQ(one_line("\x1b]0;no end\nnext"), "next");
  EXPECT_EQ(one_line("caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"), "caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80");
  EXPECT_EQ(one_line("a\xFF\xC0\x80z \xED\xA0\x80 \xE2\x82"), "a???z ??? ??");  // no byte, overlong, surrogate, cut off
  EXPECT_EQ(one_line("clear\xC2\x9B"
                     "2Jscreen"),
            "clear 2Jscreen");  // CSI as one character
  EXPECT_EQ(one_line(std::string_view("nul\0l", 5)), "nul l");
  EXPECT_EQ(one_line(""), "");
  EXPECT_EQ(one_line("\n \n"), "");
  EXPECT_EQ(one_line("12345678", 8), "12345678");
  EXPECT_EQ(one_line("123456789", 8), "12345...");
  EXPECT_EQ(one_line("1234\xE2\x82\xAC"
                     "56789",
                     8),
            "1234...");
  EXPECT_EQ(one_line(std::string(100000, 'x')).size(), 300u);
}

}  // namespace
}  // namespace graft::base
