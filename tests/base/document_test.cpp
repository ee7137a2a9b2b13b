#include "base/document.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <ostream>

#include "base/random.h"
#include "tests/base/support.h"

namespace graft::base {

void PrintTo(const Document& document, std::ostream* out) {
  *out << document.to_json();
}

namespace {

TEST(Document, knows_its_type) {
  EXPECT_TRUE(Document().is_null());
  EXPECT_TRUE(Document(true).is_bool());
  EXPECT_TRUE(Document(3).is_integer());
  EXPECT_TRUE(Document(3).is_number());
  EXPECT_TRUE(Document(3.0).is_number());
  EXPECT_FALSE(Document(3.0).is_integer());
  EXPECT_TRUE(Document("text").is_string());  // not a bool
  EXPECT_TRUE(Document::list().is_list());
  EXPECT_TRUE(Document::map().is_map());
}

TEST(Document, builds_maps_and_lists) {
  Document document;
  document.set("b", 1).set("a", Document().push(1).push("x").push({})).set("b", 2);
  EXPECT_EQ(document.to_json(), R"({"b":2,"a":[1,"x",null]})");
  EXPECT_EQ(Document::map().to_json(), "{}");
  EXPECT_EQ(Document::list().to_json(), "[]");
}

TEST(Document, references_into_a_map_outlive_what_is_added) {
  Document document = Document::map();
  document.set("text", "longer than what a string holds in itself").set("short", "s");
  const std::string &text = document.at("text").as_string(), &word = document.at("short").as_string();
  for (int i = 0; i < 100; ++i) document.set("k" + std::to_string(i), i);
  EXPECT_EQ(text, "longer than what a string holds in itself");
  EXPECT_EQ(&word, &document.at("short").as_string());
}

TEST(Document, gives_what_it_holds_when_it_is_a_temporary) {
  const auto made = [] { return parse_json(R"({"m": {"a": [1, "a text longer than fifteen characters"]}})", "f"); };
  std::vector<Document> seen;
  for (const Document& item : made().at("m").at("a").as_list()) seen.push_back(item);
  EXPECT_EQ(seen, (std::vector<Document>{1, "a text longer than fifteen characters"}));
  for (const auto& [key, value] : made().at("m").as_map()) EXPECT_EQ(key, "a");
  const Document& node = made().at("m");
  EXPECT_EQ(node.at("a").as_list()[1].as_string(), seen[1].as_string());
  const Document& built = Document::map().set("a", 1).set("b", Document().push(2));
  EXPECT_EQ(built.to_json(), R"({"a":1,"b":[2]})");
  EXPECT_EQ(refusal([&] { made().at("m").at("b"); }), "f: m: missing key 'b'");
}

TEST(Document, compares_content_not_places) {
  Document one(3), other(3);
  other.set_place("elsewhere");
  EXPECT_EQ(one, other);
  EXPECT_FALSE(Document(3) == Document(4));
  EXPECT_FALSE(Document(3) == Document(3.0));
  EXPECT_FALSE(Document() == Document::map());
}

TEST(Document, reads_values_strictly) {
  const Document d =
      parse_json(R"({"b": true, "i": -3, "n": 2.5, "e": 1e3, "s": "x", "l": [1], "m": {}, "z": null})", "f");
  EXPECT_EQ(d.at("b").as_bool(), true);
  EXPECT_EQ(d.at("i").as_integer(), -3);
  EXPECT_EQ(d.at("i").as_number(), -3.0);
  EXPECT_EQ(d.at("n").as_number(), 2.5);
  EXPECT_EQ(d.at("e").as_integer(), 1000);
  EXPECT_EQ(d.at("s").as_string(), "x");
  EXPECT_EQ(d.at("l").as_list().size(), 1u);
  EXPECT_TRUE(d.at("m").as_map().empty());
  EXPECT_TRUE(d.at("z").is_null());
  EXPECT_EQ(d.find("no"), nullptr);
  ASSERT_NE(d.find("i"), nullptr);

  EXPECT_EQ(refusal([&] { d.at("i").as_bool(); }), "f: i: expected true or false, got '-3'");
  EXPECT_EQ(refusal([&] { d.at("n").as_integer(); }), "f: n: expected an integer, got '2.5'");
  EXPECT_EQ(refusal([&] { d.at("s").as_number(); }), "f: s: expected a number, got 'x'");
  EXPECT_EQ(refusal([&] { d.at("l").as_string(); }), "f: l: expected a string, got a list");
  EXPECT_EQ(refusal([&] { d.at("m").as_list(); }), "f: m: expected a list, got a map");
  EXPECT_EQ(refusal([&] { d.at("z").as_map(); }), "f: z: expected a map, got nothing");
  EXPECT_EQ(refusal([&] { d.at("s").at("k"); }), "f: s: expected a map, got 'x'");
  EXPECT_EQ(refusal([&] { d.at("l").as_list()[0].as_string(); }), "f: l[0]: expected a string, got '1'");
  EXPECT_EQ(refusal([&] { d.at("m").at("k"); }), "f: m: missing key 'k'");
  EXPECT_EQ(refusal([&] { d.at("k"); }), "f: missing key 'k'");
  EXPECT_EQ(refusal([] { Document(3).as_string(); }), "expected a string, got '3'");
}

TEST(Document, shows_long_values_cut_and_on_one_line) {
  const std::string words = refusal([] { Document("a\nb" + std::string(100, '.')).as_bool(); });
  EXPECT_EQ(words, "expected true or false, got 'a b" + std::string(57, '.') + "...'");
}

TEST(Document, reads_64_bits_without_sign) {
  EXPECT_EQ(Document(7).as_u64(), 7u);
  EXPECT_EQ(Document("18446744073709551615").as_u64(), ~std::uint64_t(0));
  EXPECT_EQ(Document("0xffffffffffffffff").as_u64(), ~std::uint64_t(0));
  EXPECT_EQ(parse_yaml("0xfedcba9876543210", "f").as_u64(), 0xfedcba9876543210u);
  for (const std::uint64_t hash :
       {std::uint64_t(0), std::uint64_t(INT64_MAX), std::uint64_t(1) << 63, ~std::uint64_t(0)}) {
    EXPECT_EQ(parse_json(Document(std::size_t(hash)).to_json(), "f").as_u64(), hash);
  }
  for (const Document& bad : {Document(-1), Document(1.5), Document("0x"), Document(""), Document("-1"), Document("1x"),
                              Document("0x10000000000000000"), Document()}) {
    EXPECT_THROW(bad.as_u64(), UserError) << bad.to_json();
  }
}

TEST(Document, names_unknown_keys) {
  const Document yaml = parse_yaml("name: x\ncaches:\n  - level: 1\n    vectr_bits: 128\n", "board.yaml");
  EXPECT_NO_THROW(yaml.only_keys({"name", "caches", "cores"}));
  EXPECT_EQ(refusal([&] {
              yaml.at("caches").as_list()[0].only_keys({"level", "vector_bits"});
            }),
            "board.yaml:4:5: unknown key 'vectr_bits'; did you mean 'vector_bits'?");
  EXPECT_EQ(refusal([&] {
              yaml.only_keys({"caches", "seed"});
            }),
            "board.yaml:1:1: unknown key 'name'; known: caches, seed");
  EXPECT_EQ(refusal([] { parse_json(R"({"a": {"tirals": 1}})", "run.json").at("a").only_keys({"trials"}); }),
            "run.json: a.tirals: unknown key 'tirals'; did you mean 'trials'?");
  EXPECT_EQ(refusal([] { Document(3).only_keys({}); }), "expected a map, got '3'");
}

TEST(Json, says_where_things_stand) {
  const Document d = parse_json(R"({"best": {"seconds": [1, {"x": 2}]}})", "run.json");
  EXPECT_EQ(d.place(), "run.json");
  EXPECT_EQ(d.at("best").place(), "run.json: best");
  EXPECT_EQ(d.at("best").at("seconds").as_list()[1].at("x").place(), "run.json: best.seconds[1].x");
  EXPECT_EQ(parse_json("[[1]]", "f").as_list()[0].as_list()[0].place(), "f: [0][0]");
}

TEST(Json, keeps_the_order_of_the_file) {
  const std::string text = R"({"z":1,"a":{"y":2,"b":3},"m":[]})";
  EXPECT_EQ(parse_json(text, "f").to_json(), text);
}

TEST(Json, refuses_text_with_line_and_column) {
  const auto refused = [](std::string_view text, std::string_view name = "f") {
    return refusal([&] { parse_json(text, name); });
  };
  EXPECT_TRUE(refused("{\"a\": 1,\n \"b\" 2}").starts_with("f:2:6: not valid JSON: syntax error"))
      << refused("{\"a\": 1,\n \"b\" 2}");
  EXPECT_TRUE(refused("").starts_with("f:1:1: not valid JSON: ")) << refused("");
  EXPECT_TRUE(refused("{\"a\": 1").starts_with("f:1:8: ")) << refused("{\"a\": 1");
  EXPECT_TRUE(refused("1 2").starts_with("f:1:3: ")) << refused("1 2");
  EXPECT_TRUE(refused("[1e999]").find("number overflow") != std::string::npos) << refused("[1e999]");
  for (const char* text :
       {"{a: 1}", "[1,]", "{'a': 1}", "nul", "01", "[NaN]", "\"\\x\"", "\"\xff\"", "// c\n1", "[1]]"}) {
    EXPECT_TRUE(refused(text).starts_with("f:")) << text << ": " << refused(text);
    EXPECT_EQ(refused(text).find('\n'), std::string::npos) << text;
  }
  // One line of a journal: the line of the name counts.
  EXPECT_TRUE(refused("{\"a\": }", "trials.jsonl:17").starts_with("trials.jsonl:17:7: "))
      << refused("{\"a\": }", "trials.jsonl:17");
}

TEST(Json, refuses_duplicate_keys) {
  EXPECT_EQ(refusal([] { parse_json(R"({"a": {"b": 1, "c": 2, "b": 3}})", "f"); }), "f: a.b: key 'b' is given twice");
}

TEST(Json, refuses_deep_trees) {
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_NO_THROW(parse_json(nested(200), "f"));
  EXPECT_NE(refusal([&] { parse_json(nested(201), "f"); }).find("nested deeper than 200 levels"), std::string::npos);
  EXPECT_THROW(parse_json(std::string(1'000'000, '['), "f"), UserError);
}

TEST(Json, integers_keep_their_64_bits) {
  EXPECT_EQ(parse_json("9223372036854775807", "f").as_integer(), INT64_MAX);
  EXPECT_EQ(parse_json("-9223372036854775808", "f").as_integer(), INT64_MIN);
  EXPECT_EQ(Document(INT64_MIN).to_json(), "-9223372036854775808");
  const Document beyond = parse_json("9223372036854775808", "f");
  EXPECT_EQ(beyond.as_number(), 0x1p63);
  EXPECT_THROW(beyond.as_integer(), UserError);
}

TEST(Json, doubles_are_short_and_read_back_equal) {
  EXPECT_EQ(Document(0.1).to_json(), "0.1");
  EXPECT_EQ(Document(3.0).to_json(), "3.0");
  EXPECT_EQ(Document(-0.0).to_json(), "-0.0");
  EXPECT_EQ(Document(1e300).to_json(), "1e+300");
  EXPECT_EQ(Document(std::nan("")).to_json(), "null");
  EXPECT_EQ(Document(-INFINITY).to_json(), "null");
  for (const double edge : {5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 1.0 / 3, 123456789012345680.0}) {
    EXPECT_EQ(parse_json(Document(edge).to_json(), "f"), Document(edge));
  }
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const double value = std::bit_cast<double>(Stream(seed, "double").bits());
    if (!std::isfinite(value)) continue;
    const Document back = parse_json(Document(value).to_json(), "f");
    ASSERT_FALSE(back.is_integer()) << "seed " << seed;
    ASSERT_EQ(std::bit_cast<std::uint64_t>(back.as_number()), std::bit_cast<std::uint64_t>(value)) << "seed " << seed;
  }
}

TEST(Json, strings_are_escaped_and_stay_utf8) {
  using namespace std::string_literals;
  const std::string text = "\"\\/\n\t\r\b\0\x1f\x7f \xc3\xa9 \xe2\x82\xac \xf0\x9f\x8c\xb1"s;
  EXPECT_EQ(parse_json(Document(text).to_json(), "f").as_string(), text);
  // What is not UTF-8 becomes U+FFFD: stray and cut bytes, overlong forms, surrogates, beyond U+10FFFF.
  for (const char* bad : {"\xff", "\x80", "\xc3", "\xe2\x82", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80",
                          "\xf5\x80\x80\x80", "\xf4\x90\x80\x80", "\xf0\x8f\xbf\xbf"}) {
    const std::string json = Document("<" + std::string(bad) + ">").to_json();
    const std::string back = parse_json(json, "f").as_string();
    EXPECT_TRUE(back.starts_with("<\xef\xbf\xbd")) << json;
    EXPECT_TRUE(back.ends_with(">")) << json;
  }
}

Document random_document(Stream& stream, int depth) {
  switch (stream.below(depth > 0 ? 8 : 6)) {
    case 0:
      return {};
    case 1:
      return stream.below(2) == 1;
    case 2:
      return std::int64_t(stream.bits());
    case 3:
      return stream.normal() * 1e-6;
    case 4:
      return double(stream.below(1000));
    case 5: {
      std::string text;
      for (std::int64_t i = stream.below(8); i > 0; --i) text += char(stream.below(128));
      return text;
    }
    case 6: {
      Document list = Document::list();
      for (std::int64_t i = stream.below(5); i > 0; --i) list.push(random_document(stream, depth - 1));
      return list;
    }
    default: {
      Document map = Document::map();
      for (std::int64_t i = stream.below(5); i > 0; --i) {
        map.set("k" + std::to_string(stream.below(100)), random_document(stream, depth - 1));
      }
      return map;
    }
  }
}

TEST(Json, trees_read_back_equal_in_both_forms) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Stream stream(seed, "document");
    const Document document = random_document(stream, 4);
    const std::string line = document.to_json();
    ASSERT_EQ(line.find('\n'), std::string::npos) << "seed " << seed;
    ASSERT_EQ(parse_json(line, "f"), document) << "seed " << seed;
    ASSERT_EQ(parse_json(document.to_pretty_json(), "f"), document) << "seed " << seed;
    // JSON without control characters is YAML.
    if (line.find("\\u") == std::string::npos) {
      ASSERT_EQ(parse_yaml(line, "f"), document) << "seed " << seed << ": " << line;
    }
  }
}

TEST(Json, is_indented_for_people) {
  const Document d = parse_json(R"({"a":{"b":[1,2],"c":[]},"d":[{"e":1},{}]})", "f");
  EXPECT_EQ(d.to_pretty_json(), R"({
  "a": {
    "b": [1, 2],
    "c": []
  },
  "d": [
    {
      "e": 1
    },
    {}
  ]
})");
}

// Text with one byte changed is read or refused, and nothing else.
TEST(Json, survives_damaged_text) {
  const std::string good = R"({"a": [1, -2.5e3, "x\u00e9\n"], "b": {"c": null, "d": true}})";
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Stream stream(seed, "damage");
    std::string text = good;
    for (std::int64_t i = 1 + stream.below(3); i > 0; --i) {
      text[std::size_t(stream.below(std::int64_t(text.size())))] = char(stream.below(256));
    }
    for (const bool yaml : {false, true}) {
      try {
        yaml ? parse_yaml(text, "f") : parse_json(text, "f");
      } catch (const UserError& error) {
        ASSERT_TRUE(std::string(error.what()).starts_with("f:")) << "seed " << seed << ": " << error.what();
      }
    }
  }
}

TEST(Document, IsUtf8) {
  for (const bool yaml : {true, false}) {
    const auto refusal = [&](const std::string& text) -> std::string {
      try {
        yaml ? parse_yaml(text, "f") : parse_json(text, "f");
      } catch (const UserError& error) {
        return error.what();
      }
      return "";
    };
    EXPECT_EQ(refusal("[\"\xc3\xa9\"]"), "");
    for (const char* const odd : {"\xff", "\xc3", "\xc0\xaf", "\xed\xa0\x80"})
      EXPECT_NE(refusal(std::string("[1,\n\"") + odd + "\"]"), "") << yaml << odd;
  }
  try {
    parse_yaml("a: 1\nb: \xff\n", "f");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "f:2: not UTF-8");
  }
}

TEST(Yaml, reads_scalars_by_the_core_schema) {
  const auto one = [](const std::string& text) { return parse_yaml(text, "f"); };
  EXPECT_EQ(one("true"), Document(true));
  EXPECT_EQ(one("FALSE"), Document(false));
  EXPECT_EQ(one("yes"), Document("yes"));
  EXPECT_EQ(one("~"), Document());
  EXPECT_EQ(one("null"), Document());
  EXPECT_EQ(one("12"), Document(12));
  EXPECT_EQ(one("+12"), Document(12));
  EXPECT_EQ(one("-12"), Document(-12));
  EXPECT_EQ(one("0x1F"), Document(31));
  EXPECT_EQ(one("0o17"), Document(15));
  EXPECT_EQ(one("1.5"), Document(1.5));
  EXPECT_EQ(one("-.5"), Document(-0.5));
  EXPECT_EQ(one("+1e3"), Document(1000.0));
  EXPECT_EQ(one("-.inf"), Document(-INFINITY));
  EXPECT_TRUE(std::isnan(one(".nan").as_number()));
  for (const char* text :
       {"1.2.3", "12nm", "0x", "0xg", "0x-1", "-0x1", "+", ".", "e3", "inf", "nan", "--1", "+-1", "1e999"}) {
    EXPECT_EQ(one(text), Document(text)) << text;
  }
  EXPECT_EQ(one("'12'"), Document("12"));
  EXPECT_EQ(one("\"true\""), Document("true"));
  EXPECT_EQ(one("!!str 12"), Document("12"));
  EXPECT_EQ(one("|\n  two\n  lines\n"), Document("two\nlines\n"));
}

TEST(Yaml, says_where_things_stand) {
  const Document d =
      parse_yaml("# a board\nname: x\ncaches:\n  - size: 1\n    ways: two\n  - {size: 2}\nempty:\n", "b.yaml");
  EXPECT_EQ(d.at("name").place(), "b.yaml:2:1");  // at the key
  EXPECT_EQ(d.at("caches").place(), "b.yaml:3:1");
  EXPECT_EQ(d.at("caches").as_list()[1].place(), "b.yaml:6:5");
  EXPECT_EQ(d.at("caches").as_list()[1].at("size").place(), "b.yaml:6:6");
  EXPECT_EQ(d.at("empty").place(), "b.yaml:7:1");
  EXPECT_EQ(refusal([&] { d.at("caches").as_list()[0].at("ways").as_integer(); }),
            "b.yaml:5:5: expected an integer, got 'two'");
  EXPECT_EQ(refusal([&] { d.at("caches").as_list()[1].at("ways"); }), "b.yaml:6:5: missing key 'ways'");
}

TEST(Yaml, refuses_what_is_not_yaml) {
  const auto refused = [](std::string_view text) { return refusal([&] { parse_yaml(text, "f"); }); };
  EXPECT_TRUE(refused("a: 1\nb: [1, 2\nc: 3\n").starts_with("f:3:")) << refused("a: 1\nb: [1, 2\nc: 3\n");
  EXPECT_TRUE(refused("a: b: c").starts_with("f:1:5: not valid YAML: ")) << refused("a: b: c");
  EXPECT_TRUE(refused("a: *nobody").starts_with("f:1:4: not valid YAML: ")) << refused("a: *nobody");
  EXPECT_EQ(refused("a: 1\nb: 2\na: 3\n"), "f:3:1: key 'a' is given twice");
  EXPECT_EQ(refused("? [a, b]\n: 1\n"), "f:1:3: expected a key, got a list or a map");
  EXPECT_EQ(refused("~: 1"), "f:1:1: expected a key, got nothing");
  EXPECT_EQ(refused("a: !secret x"), "f:1:4: tag '!secret' is not supported; remove it");
  EXPECT_EQ(refused("a: !thing [x]"), "f:1:4: tag '!thing' is not supported; remove it");
  EXPECT_EQ(refused("a: 1\n---\nb: 2\n"), "f:3:1: a second document; expected one in a file");
  EXPECT_EQ(refused("a: &me [*me]"), "f:1:9: an alias stands inside the node that it names");
  EXPECT_NE(refused(std::string(300, '[') + std::string(300, ']')).find("nested deeper than 200 levels"),
            std::string::npos);
  EXPECT_TRUE(refused(std::string(100'000, '[')).starts_with("f:"));
}

TEST(Yaml, an_empty_file_is_null) {
  EXPECT_TRUE(parse_yaml("", "f").is_null());
  EXPECT_TRUE(parse_yaml("# nothing\n", "f").is_null());
  EXPECT_EQ(refusal([] { parse_yaml("", "f").at("k"); }), "f:1:1: expected a map, got nothing");
}

TEST(Yaml, aliases_copy_and_are_bounded) {
  const Document d = parse_yaml("base: &b {x: [1, 2]}\nother: *b\n", "f");
  EXPECT_EQ(d.at("base"), d.at("other"));
  EXPECT_EQ(d.at("other").at("x").place(), "f:1:11");  // where it is written
  std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string name = "a" + std::to_string(i), inner = "*a" + std::to_string(i - 1);
    bomb += name + ": &" + name + " [";
    for (int j = 0; j < 10; ++j) bomb += (j ? "," : "") + inner;
    bomb += "]\n";
  }
  EXPECT_NE(refusal([&] { parse_yaml(bomb, "f"); }).find("aliases stand for more than 1000000 nodes"),
            std::string::npos);
}

}  // namespace
}  // namespace graft::base
