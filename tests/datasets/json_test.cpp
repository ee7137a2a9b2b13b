#include "datasets/formats/json.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <string>

#include "base/document.h"
#include "base/random.h"
#include "base/text.h"
#include "tests/datasets/support.h"

namespace graft::datasets::formats {
namespace {

using base::UserError;

// The oracle is the strict tree of base/document.h.
base::Document read(JsonReader& reader) {
  switch (reader.kind()) {
    case JsonReader::Kind::null:
      reader.null();
      return {};
    case JsonReader::Kind::boolean:
      return reader.boolean();
    case JsonReader::Kind::number:
      return reader.number();
    case JsonReader::Kind::string:
      return std::string(reader.string());
    case JsonReader::Kind::list: {
      base::Document list = base::Document::list();
      for (reader.begin_list(); reader.next_item();) list.push(read(reader));
      return list;
    }
    case JsonReader::Kind::map:
      break;
  }
  base::Document map = base::Document::map();
  reader.begin_map();
  for (std::string_view key; reader.next_key(key);) {
    const std::string own(key);
    map.set(own, read(reader));
  }
  return map;
}

base::Document random_value(base::Stream& stream, int depth) {
  const std::int64_t kind = stream.below(depth > 4 ? 4 : 6);
  if (kind == 0) return {};
  if (kind == 1) return stream.below(2) == 0;
  if (kind == 2) return (stream.uniform() - 0.5) * double(stream.below(1'000'000));
  if (kind == 3) {
    static const std::string pieces[] = {"a", "\"", "\\", "\n", "\t", "é", "\x01", "𝄞", "/", " "};
    std::string text;
    for (std::int64_t i = stream.below(6); i > 0; --i) text += pieces[stream.below(10)];
    return text;
  }
  base::Document value = kind == 4 ? base::Document::list() : base::Document::map();
  for (std::int64_t i = stream.below(kind == 4 ? 5 : 40); i > 0; --i) {
    base::Document child = random_value(stream, depth + 1);
    if (kind == 4) value.push(std::move(child));
    if (kind == 5) value.set("k" + std::to_string(i), std::move(child));
  }
  return value;
}

TEST(JsonReader, ReadsWhatTheTreeReads) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    base::Stream stream(seed, "json");
    const base::Document value = random_value(stream, 0);
    for (const std::string& text : {value.to_json(), value.to_pretty_json()}) {
      JsonReader reader(text, "test");
      EXPECT_TRUE(read(reader) == base::parse_json(text, "test")) << "seed " << seed;
      EXPECT_NO_THROW(reader.end());
      JsonReader skipping(text, "test");
      EXPECT_EQ(skipping.raw(), base::trim(text)) << "seed " << seed;
      EXPECT_NO_THROW(skipping.end());
    }
  }
}

// A text that is cut anywhere is refused wherever a tree of it would be.
TEST(JsonReader, RefusesWhatIsCut) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    base::Stream stream(seed, "cut");
    const std::string whole = base::Document(base::Document::List{random_value(stream, 3)}).to_json();
    if (whole.size() > 500) continue;  // each length is read
    for (std::size_t length = 0; length < whole.size(); ++length) {
      JsonReader reader(std::string_view(whole).substr(0, length), "test");
      EXPECT_THROW(read(reader), UserError) << "seed " << seed << ", " << length;
    }
  }
}

std::string complaint(std::string_view text) {
  return message_of<UserError>([&] {
    JsonReader reader(text, "log", 7);
    read(reader);
    reader.end();
  });
}

TEST(JsonReader, NamesPlaceAndTrouble) {
  EXPECT_EQ(complaint("[1,\n  nul]"), "log:8:3: expected null");
  EXPECT_EQ(complaint("[NaN]"), "log:7:5: expected a finite number, got NaN");
  EXPECT_EQ(complaint("[-Infinity, 1]"), "log:7:11: expected a finite number, got -Infinity");
  EXPECT_EQ(complaint("[NaNs]"), "log:7:2: expected a number, got 'NaNs'");
  EXPECT_EQ(complaint("[+inf]"), "log:7:2: expected a number, got '+inf'");
  EXPECT_EQ(complaint("[1e999]"), "log:7:7: 1e999 is beyond what a double holds");
  EXPECT_EQ(complaint("{\"a\":1,\"b\":2,\"a\":3}"), "log:7:14: key 'a' is there twice");
  EXPECT_EQ(complaint("[1 2]"), "log:7:4: expected ',' or ']', got '2]'");
  EXPECT_EQ(complaint("[1] 2"), "log:7:5: unexpected text after the value");
  EXPECT_EQ(complaint("\"a"), "log:7:3: a string is never closed");
  EXPECT_EQ(complaint("\"\\x\""), "log:7:4: an unknown escape in a string");
  EXPECT_EQ(complaint("\"\\ud800\""), "log:7:8: half of a surrogate pair");
  EXPECT_EQ(complaint("01"), "log:7:1: expected a number, got '01'");
  EXPECT_EQ(complaint(""), "log:7:1: expected a value, got the end");
}

// Words that programs write for numbers which JSON does not have.
TEST(JsonReader, NumbersMayBeInfiniteWhereTheyAreAskedFor) {
  const auto any = [](std::string_view text) {
    JsonReader reader(text, "test");
    EXPECT_TRUE(reader.at(JsonReader::Kind::number)) << text;
    const double value = reader.any_number();
    EXPECT_NO_THROW(reader.end()) << text;
    return value;
  };
  const double infinity = std::numeric_limits<double>::infinity();
  for (const char* text : {"Infinity", "infinity", "inf", "Inf", "INF", "1e999"})
    EXPECT_EQ(any(text), infinity) << text;
  for (const char* text : {"NaN", "nan", "NAN", "-nan"}) EXPECT_TRUE(std::isnan(any(text))) << text;
  EXPECT_EQ(any("-Infinity"), -infinity);
  EXPECT_EQ(any("1e-999"), 0);
  EXPECT_EQ(any("-2.5"), -2.5);
  // What is skipped may hold them.
  JsonReader reader(R"({"a": [nan, {"b": -Infinity}], "c": null})", "test");
  EXPECT_NO_THROW(reader.skip());
  EXPECT_NO_THROW(reader.end());
  JsonReader integer("NaN", "test");
  EXPECT_TRUE(contains(message_of<UserError>([&] { integer.integer(); }), "expected an integer, got NaN"));
}

TEST(JsonReader, KeysAreThereOnceAlsoWhenTheyAreMany) {
  std::string text = "{";
  for (int i = 0; i < 1000; ++i) text += "\"k" + std::to_string(i) + "\":0.5,";
  EXPECT_TRUE(contains(complaint(text + "\"k500\":0.5}"), "key 'k500' is there twice"));
  const std::string good = text + "\"last\":0.5}";
  JsonReader reader(good, "test");
  EXPECT_TRUE(read(reader) == base::parse_json(good, "test"));
}

TEST(JsonReader, SmallMapsBehindALargeOneAreRead) {
  std::string text = "[{";
  for (int i = 0; i < 200'000; ++i) text += fmt::format("\"{}\":0,", i);
  text += "\"last\":0}";
  for (int i = 0; i < 100'000; ++i) text += ",{}";
  text += ']';
  const auto start = std::chrono::steady_clock::now();
  JsonReader reader(text, "test");
  std::int64_t maps = 0, keys = 0;
  for (reader.begin_list(); reader.next_item(); ++maps) {
    reader.begin_map();
    for (std::string_view key; reader.next_key(key); ++keys) reader.skip();
  }
  EXPECT_EQ(maps, 100'001);
  EXPECT_EQ(keys, 200'001);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(JsonReader, DepthIsLimitedWhereverItStands) {
  const std::string deep = std::string(100'000, '[');
  EXPECT_TRUE(contains(complaint(deep), "is nested deeper than 200 levels"));
  EXPECT_TRUE(contains(message_of<UserError>([&] { JsonReader(deep, "log").skip(); }), "deeper than 200 levels"));
}

TEST(JsonReader, IntegersAreWhole) {
  EXPECT_EQ(JsonReader("-9223372036854775808", "test").integer(), std::numeric_limits<std::int64_t>::min());
  EXPECT_TRUE(contains(message_of<UserError>([] { JsonReader("1.5", "test").integer(); }), "expected an integer"));
  EXPECT_TRUE(contains(message_of<UserError>([] { JsonReader("9223372036854775808", "test").integer(); }), "64 bits"));
}

}  // namespace
}  // namespace graft::datasets::formats
