#include "base/numpy.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "tests/base/support.h"
#include "tests/support/npz.h"

namespace graft::base {
namespace {

using Values = std::vector<double>;

TEST(Numpy, ReadsEveryKindOfNumber) {
  const auto values = [](std::string_view descr, std::string_view data) {
    return parse_npy(npy(descr, {1}, data), "a").values;
  };
  EXPECT_EQ(values("<f4", std::string("\0\0\x80\x3f", 4)), Values{1});
  EXPECT_EQ(values(">f4", std::string("\x3f\x80\0\0", 4)), Values{1});
  EXPECT_EQ(values("<f8", std::string("\0\0\0\0\0\0\xf0\xbf", 8)), Values{-1});
  EXPECT_EQ(values("<f2", std::string("\x55\x35", 2)), Values{0.333251953125});
  EXPECT_EQ(values("<f2", std::string("\x01\x00", 2)), Values{5.9604644775390625e-08});
  EXPECT_EQ(values("<f2", std::string("\x00\xfc", 2)), Values{-HUGE_VAL});
  EXPECT_EQ(values("|i1", "\xff"), Values{-1});
  EXPECT_EQ(values("|u1", "\xff"), Values{255});
  EXPECT_EQ(values("|b1", "\x01"), Values{1});
  EXPECT_EQ(values(">i2", std::string("\x01\x00", 2)), Values{256});
  EXPECT_EQ(values("<i4", "\xfe\xff\xff\xff"), Values{-2});
  EXPECT_EQ(values("<i8", "\xfe\xff\xff\xff\xff\xff\xff\xff"), Values{-2});
}

TEST(Numpy, IntegersAreExact) {
  const std::string bytes("\x01\0\0\0\0\0\x20\0\xff\xff\xff\xff\xff\xff\xff\x7f", 16);
  const std::vector<std::int64_t> beyond_doubles{(std::int64_t(1) << 53) + 1, INT64_MAX};
  EXPECT_EQ(parse_npy(npy("<i8", {2}, bytes), "a").integers, beyond_doubles);
  EXPECT_EQ(parse_npy(npy("|i1", {2, 2}, "\1\3\2\xff", true), "a").integers, (std::vector<std::int64_t>{1, 2, 3, -1}));
  EXPECT_TRUE(parse_npy(npy("<f4", {1}, std::string(4, '\0')), "a").integers.empty());
}

TEST(Numpy, OrderOfTheFileIsRowMajorAfterwards) {
  const NumpyArray plain = parse_npy(npy("|u1", {2, 3}, "\1\2\3\4\5\6"), "a");
  EXPECT_EQ(plain.shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(plain.values, (Values{1, 2, 3, 4, 5, 6}));
  const NumpyArray columns = parse_npy(npy("|u1", {2, 3}, "\1\4\2\5\3\6", true), "a");
  EXPECT_EQ(columns.values, plain.values);
  EXPECT_EQ(parse_npy(npy("|u1", {}, "\7"), "a").shape, std::vector<std::int64_t>{});
  EXPECT_EQ(parse_npy(npy("|u1", {0, 4}, ""), "a").values, Values{});
}

TEST(Numpy, RefusesWhatItDoesNotKnow) {
  const auto refusal = [](const std::string& bytes) -> std::string {
    try {
      parse_npy(bytes, "a.npz: w");
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  const std::string good = npy("<f4", {2}, "12345678");
  EXPECT_EQ(refusal(good), "");
  EXPECT_EQ(refusal(good.substr(0, good.size() - 1)), "a.npz: w: 7 bytes of data for 2 elements of 4 bytes");
  EXPECT_EQ(refusal("hello, this is text"), "a.npz: w: no .npy file");
  EXPECT_EQ(refusal(npy("<c8", {1}, "12345678")),
            "a.npz: w: elements of type '<c8' are not read; save them as float32");
  EXPECT_NE(refusal(npy("", {1}, "1")).find("elements of type ''"), std::string::npos);
  EXPECT_NE(refusal(npy("<f4", {1 << 30, 1 << 30}, "")).find("more elements"), std::string::npos);
  for (std::size_t length = 0; length < good.size(); ++length) EXPECT_NE(refusal(good.substr(0, length)), "");
  for (std::size_t at = 0; at < good.size() - 8; ++at) {  // any byte of the header
    for (const char c : {'\0', '9', '(', '\'', '\xff'}) {
      std::string damaged = good;
      damaged[at] = c;
      (void)refusal(damaged);  // ends, whatever it says
    }
  }
}

TEST(Numpy, AnArchiveHasItsArraysByName) {
  const Folder folder;
  write_npz(folder / "w.npz", {{"conv/W.npy", npy({2, 2}, {1, 2, 3, 4})}, {"b.npy", npy({1}, {5})}});
  const auto arrays = read_npz(folder / "w.npz");
  ASSERT_EQ(arrays.size(), 2u);
  EXPECT_EQ(arrays.at("conv/W").values, (Values{1, 2, 3, 4}));
  EXPECT_EQ(arrays.at("b").shape, std::vector<std::int64_t>{1});
  EXPECT_THROW(read_npz(folder / "w.npz", 200), UserError);  // each has a header of 128 bytes
  write_npz(folder / "x.npz", {{"readme.txt", "hello"}});
  EXPECT_THROW(read_npz(folder / "x.npz"), UserError);
  replace_file(folder / "y.npz", "no archive");
  EXPECT_THROW(read_npz(folder / "y.npz"), UserError);
  EXPECT_THROW(read_npz(folder / "missing.npz"), UserError);
}

}  // namespace
}  // namespace graft::base
