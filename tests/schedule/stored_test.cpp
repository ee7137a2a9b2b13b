#include "codegen/schedule/stored.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/text.h"
#include "codegen/expression/parse.h"
#include "codegen/expression/workload.h"

namespace {

using namespace graft::codegen;

Layout layout(const std::string& text) {
  std::vector<std::string> words;
  for (const std::string_view word : graft::base::split(text, ' ')) words.emplace_back(word);
  return parse_layout(words, "a test");
}

graft::base::Result<Stored> stored(const std::string& text, const std::map<std::string, std::string>& layouts) {
  std::map<std::string, Layout> parsed;
  for (const auto& [tensor, words] : layouts) parsed[tensor] = layout(words);
  return stored_as(parse_workload(text).computation(), parsed);
}

TEST(Stored, WeightsFollowTheChannelsThatTheyAreReadAlong) {
  const auto blocked = stored(
      "input x0[1,32,6,6]; constant x1[48,32,3,3]; constant x2[48]; t0[b,o,y,x] += pad(x0[b,i,y + u - 1,x + v - 1]) * "
      "x1[o,i,u,v]; output y[b,o,p,q] = max(t0[b,o,p,q] + x2[o],0) where b=1, o=48, y=6, x=6, i=32, u=3, v=3, p=6, q=6",
      {{"x0", "0 1/16 2 3 1%16"}, {"y", "0 1/16 2 3 1%16"}});
  ASSERT_TRUE(blocked) << blocked.reason().text;
  EXPECT_EQ(blocked->layouts.size(), 3u);
  // Sums outside, results innermost; a bias is as it was.
  EXPECT_EQ(to_text(blocked->layouts.at("x1")), "0/16 1/16 2 3 1%16 0%16");
  EXPECT_EQ(to_text(blocked->computation),
            "input x0[1,2,6,6,16]; constant x1[3,2,3,3,16,16]; constant x2[48]; t0[b,o,y,x,o_1 | i,i_1,u,v] += "
            "pad(x0[b,i,y + u - 1,x + v - 1,i_1]) * x1[o,i,u,v,i_1,o_1]; output y[b,o,p,q,o_1] = max(t0[b,o,p,q,o_1] + "
            "x2[16*o + o_1],0) where b=1, o=3, y=6, x=6, o_1=16, i=2, i_1=16, u=3, v=3, p=6, q=6");
}

TEST(Stored, ASumOfChannelsInBlocksGoesThroughThemInTheOrderOfItsResult) {
  const auto blocked = stored(
      "input x0[1,32,4,4]; t0[b,c,p,q] += x0[b,c,u,v]; output y[b,c,p,q] = t0[b,c,p,q] / 16 where b=1, c=32, "
      "p=1, q=1, u=4, v=4",
      {{"x0", "0 1/8 2 3 1%8"}});
  ASSERT_TRUE(blocked) << blocked.reason().text;
  EXPECT_EQ(to_text(blocked->computation),
            "input x0[1,4,4,4,8]; t0[b,c,c_1,p,q] += x0[b,c,u,v,c_1]; output y[b,8*c + c_1,p,q] = t0[b,c,c_1,p,q] / 16 "
            "where b=1, c=4, c_1=8, p=1, q=1, u=4, v=4");
}

TEST(Stored, RefusesBlocksThatNoWholeAxisIndexes) {
  // A window slides over the dimension.
  const auto windows =
      stored("input x0[1,16]; output y[b,i] += x0[b,2*i + u] where b=1, i=8, u=2", {{"x0", "0 1/4 1%4"}});
  ASSERT_FALSE(windows);
  EXPECT_EQ(windows.reason().text.rfind("x0: ", 0), 0u) << windows.reason().text;
  // 8 does not divide 12.
  EXPECT_FALSE(stored("input x0[1,12]; output y[b,i] = x0[b,i] where b=1, i=12", {{"x0", "0 1/8 1%8"}}));
  EXPECT_FALSE(stored("input x0[8]; output y[i] = x0[i] where i=8", {{"z", "0/4 0%4"}}));
}

}  // namespace
