#include "base/named_fields.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/base/support.h"

namespace graft::base {
namespace {

struct Inner {
  bool flag = false;
  bool operator==(const Inner&) const = default;
  template <class Visit, class Self>
  static void named_fields(Visit& visit, Self& self) {
    visit("flag", self.flag);
  }
};

struct Outer {
  int small = 0;
  std::int64_t large = 0;
  std::uint64_t seed = 0;
  double number = 0;
  std::string text;
  std::vector<std::string> list;
  Inner inner;
  bool operator==(const Outer&) const = default;
  template <class Visit, class Self>
  static void named_fields(Visit& visit, Self& self) {
    visit("small", self.small), visit("large", self.large), visit("seed", self.seed), visit("number", self.number);
    visit("text", self.text), visit("list", self.list);
    Inner::named_fields(visit, self.inner);
  }
};

const Outer sample{-3,    std::int64_t(1) << 40, std::numeric_limits<std::uint64_t>::max(), 0.1, "a \"b\"", {"x", ""},
                   {true}};

TEST(NamedFields, ReadBackAsTheyWereWritten) {
  const Document written = parse_json(document_of(sample).to_json(), "settings");
  EXPECT_EQ(value_from<Outer>(written), sample);
  EXPECT_EQ(written.at("flag").as_bool(), true);  // next to the fields of the value that it is part of
}

TEST(NamedFields, RefuseWhatIsMissingUnknownOrOfAnotherKind) {
  EXPECT_NE(refusal([] { return value_from<Inner>(parse_json("{}", "s")); }).find("flag"), std::string::npos);
  EXPECT_NE(refusal([] {
              return value_from<Inner>(parse_json(R"({"flag":true,"flga":1})", "s"));
            }).find("did you mean 'flag'"),
            std::string::npos);
  EXPECT_NE(refusal([] { return value_from<Inner>(parse_json(R"({"flag":1})", "s")); }).find("s: flag"),
            std::string::npos);
}

}  // namespace
}  // namespace graft::base
