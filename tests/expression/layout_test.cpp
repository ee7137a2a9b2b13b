#include "codegen/expression/layout.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/text.h"
#include "codegen/expression/elements.h"
#include "tests/support/refusal.h"

namespace graft::codegen {
namespace {

using Shape = std::vector<std::int64_t>;

Layout layout(std::string_view text) {
  const std::vector<std::string_view> words = base::words(text);
  return parse_layout(std::vector<std::string>(words.begin(), words.end()), "mine");
}

TEST(Layout, TextComesBack) {
  for (const char* text : {"0", "1 0", "0 1/16 2 3 1%16", "0/16 1/16 2 3 1%16 0%16", "0/64 0%64/16 1 0%16"})
    EXPECT_EQ(to_text(layout(text)), text);
  EXPECT_TRUE(layout("").is_plain());
}

TEST(Layout, ShapesAreThoseOfTheParts) {
  const auto shape = [](const char* text, Shape logical) {
    const auto stored = stored_shape(layout(text), logical);
    EXPECT_TRUE(stored.ok()) << stored.reason().text;
    EXPECT_EQ(logical_shape(layout(text), *stored), logical) << text;
    return *stored;
  };
  EXPECT_EQ(shape("1 0", {2, 3}), (Shape{3, 2}));
  EXPECT_EQ(shape("0 1/16 2 3 1%16", {1, 64, 7, 8}), (Shape{1, 4, 7, 8, 16}));
  EXPECT_EQ(shape("0/64 0%64/16 1 0%16", {128, 3}), (Shape{2, 4, 3, 16}));
}

TEST(Layout, WhatIsNoDivisionIsRefused) {
  const std::pair<const char*, const char*> reasons[] = {
      {"0", "dimension 1 is missing"},
      {"0 1 2", "there is no dimension 2"},
      {"0 1/5 1%5", "5 does not divide 6"},
      {"0 1/3", "the parts of dimension 1 leave out or repeat elements"},
      {"0 1/3 1%2", "the parts of dimension 1 leave out or repeat elements"},
      {"0 1 1", "the parts of dimension 1 leave out or repeat elements"},
  };
  for (const auto& [text, words] : reasons) {
    const auto stored = stored_shape(layout(text), Shape{4, 6});
    ASSERT_FALSE(stored.ok()) << text;
    EXPECT_EQ(stored.reason().text, words) << text;
  }
  for (const char* text : {"x", "1/", "1%0", "1/4%2", "-1", "99", "1/99999999999999999999", "1/4x"}) {
    const std::string message = refusal([&] { layout(text); });
    EXPECT_TRUE(contains(message, "is not a stored dimension")) << text << ": " << message;
    EXPECT_TRUE(contains(message, "mine")) << message;
  }
}

TEST(Layout, IntegersOf64BitsStayExactWhereverTheyAreStored) {
  const std::int64_t all[] = {9007199254740993, -9007199254740993, 9223372036854775807, 1, 2, 3};
  const std::string bytes(reinterpret_cast<const char*>(all), sizeof all);
  const std::string moved = packed(layout("1 0"), Shape{3, 2}, Elements(DType::i64, bytes)).bytes(DType::i64);
  ASSERT_EQ(moved.size(), bytes.size());
  const int places[] = {0, 3, 1, 4, 2, 5};
  for (std::size_t e = 0; e < 6; ++e)
    EXPECT_EQ(moved.substr(8 * e, 8), bytes.substr(8 * std::size_t(places[e]), 8)) << e;
}

// Against the definition: stored index = (x % within) / step.
TEST(Layout, ElementsAreWhereTheirPartsSay) {
  const Layout blocked = layout("1/2 0 1%2");
  std::vector<double> logical(3 * 4);
  std::iota(logical.begin(), logical.end(), 0);
  const std::vector<double> stored = packed(blocked, Shape{2, 3, 2}, logical);
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 4; ++j) EXPECT_EQ(stored[(j / 2 * 3 + i) * 2 + j % 2], logical[i * 4 + j]);
  EXPECT_EQ(unpacked(blocked, Shape{2, 3, 2}, stored), logical);
  EXPECT_EQ(packed(Layout{}, Shape{3, 4}, logical), logical);
  EXPECT_EQ(unpacked(Layout{}, Shape{3, 4}, logical), logical);
}

}  // namespace
}  // namespace graft::codegen
