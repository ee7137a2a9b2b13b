#include "base/bytes.h"

#include <gtest/gtest.h>

namespace graft::base {
namespace {

struct Inner {
  std::int32_t a = 0;
  float b = 0;
  bool operator==(const Inner&) const = default;
};
struct Outer {
  std::string name;
  std::vector<Inner> plain;
  std::vector<std::string> texts;
  std::vector<std::vector<double>> nested;
  std::int64_t last = 0;
  bool operator==(const Outer&) const = default;
  template <class Bytes, class Self>
  static void fields(Bytes& bytes, Self& self) {
    bytes(self.name), bytes(self.plain), bytes(self.texts), bytes(self.nested), bytes(self.last);
  }
};

TEST(Bytes, ComeBackAsTheyWere) {
  const std::vector<Outer> sent{{"first", {{1, 2.5f}, {-3, 0.0f}}, {"", std::string("a\0b", 3)}, {{}, {1.0, -2.0}}, -1},
                                {}};
  BytesOut out;
  out(sent);
  out(std::uint8_t(7));
  std::vector<Outer> came(3);  // what was there is gone
  std::uint8_t behind = 0;
  BytesIn in(out.bytes());
  in(came);
  in(behind);
  EXPECT_EQ(came, sent);
  EXPECT_EQ(behind, 7);
  EXPECT_TRUE(in.at_end());
}

TEST(Bytes, RefuseWhatIsCutOff) {
  BytesOut out;
  out(Outer{"name", {{1, 1.0f}}, {"text"}, {{1.0}}, 5});
  for (std::size_t length = 0; length < out.bytes().size(); ++length) {
    Outer came;
    BytesIn in(std::string_view(out.bytes()).substr(0, length));
    EXPECT_THROW(in(came), Failure) << length;
  }
  // A length that no memory could hold, of elements that no bytes follow.
  BytesOut wrong;
  wrong(~std::uint64_t(0));
  std::vector<double> numbers;
  BytesIn in(wrong.bytes());
  EXPECT_THROW(in(numbers), Failure);
}

}  // namespace
}  // namespace graft::base
