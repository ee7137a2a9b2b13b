#include "base/shortened.h"

#include <gtest/gtest.h>

namespace graft::base {
namespace {

TEST(Shortened, ShortTextsStayAsTheyAre) {
  EXPECT_EQ(shortened(""), "");
  EXPECT_EQ(shortened("matmul(m=8,n=8,k=8)"), "matmul(m=8,n=8,k=8)");
  const std::string most(120, 'a');
  EXPECT_EQ(shortened(most), most);
}

TEST(Shortened, LongOnesLoseTheirMiddle) {
  const std::string text = "C[i] = " + std::string(4000, 'a') + " where i=4", cut = shortened(text);
  EXPECT_LT(cut.size(), 130u);
  EXPECT_TRUE(cut.starts_with("C[i] = aaaa")) << cut;
  EXPECT_TRUE(cut.ends_with("aaaa where i=4")) << cut;
  EXPECT_NE(cut.find(" ... (3927 more characters) ... "), std::string::npos) << cut;
}

// "€" is three bytes: no cut at any of them leaves a part of one.
TEST(Shortened, Utf8StaysUtf8) {
  for (std::size_t shift = 0; shift < 3; ++shift) {
    std::string text(shift, 'a');
    for (int i = 0; i < 200; ++i) text += "\xe2\x82\xac";
    const std::string cut = shortened(text);
    for (std::size_t i = shift; i < cut.size();) {
      if (cut[i] != '\xe2') {
        EXPECT_EQ(cut[i] & 0x80, 0) << cut;
        ++i;
        continue;
      }
      ASSERT_EQ(cut.substr(i, 3), "\xe2\x82\xac") << cut;
      i += 3;
    }
  }
}

}  // namespace
}  // namespace graft::base
