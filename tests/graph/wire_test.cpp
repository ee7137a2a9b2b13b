#include "graph/wire.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/graph/support/onnx_file.h"

namespace {

using namespace graft::graph;

TEST(Wire, FieldsComeInOrder) {
  const std::string message = file::integer(3, -2) + file::bytes(1, "abc") + file::number(2, 1.5f);
  Fields fields(message);
  Field field;
  ASSERT_TRUE(fields.next(field));
  EXPECT_EQ(field.number, 3);
  EXPECT_EQ(field.as_integer(), -2);
  ASSERT_TRUE(fields.next(field));
  EXPECT_EQ(field.as_bytes(), "abc");
  ASSERT_TRUE(fields.next(field));
  EXPECT_EQ(field.as_float(), 1.5f);
  EXPECT_FALSE(fields.next(field));
}

TEST(Wire, ListsArePackedOrNot) {
  std::vector<std::int64_t> integers;
  std::vector<float> numbers;
  Field field;
  const std::string message = file::integer(7, 300) + file::bytes(7, file::varint(1) + file::varint(500)) +
                              file::bytes(8, file::raw(std::vector<float>{2, 3}));
  for (Fields fields(message); fields.next(field);) {
    if (field.number == 7) field.append_to(integers);
    if (field.number == 8) field.append_to(numbers);
  }
  EXPECT_EQ(integers, (std::vector<std::int64_t>{300, 1, 500}));
  EXPECT_EQ(numbers, (std::vector<float>{2, 3}));
}

TEST(Wire, WhatIsBrokenIsRefused) {
  const std::string endless(11, char(0xff));
  for (const std::string& message : {
           std::string("\x08"),                      // a number that is not there
           std::string("\x0a\x05") + "abc",          // bytes that are cut off
           std::string("\x0a\xff\xff\xff\xff\x07"),  // a claim of 2 GB
           std::string("\x0b"),
           std::string("\x0c"),          // groups
           std::string("\x02\x01x"),     // field 0
           std::string("\x0d\x01\x02"),  // 4 bytes, of which 2 are there
           "\x08" + endless,
       }) {
    Field field;
    Fields fields(message);
    EXPECT_THROW((void)fields.next(field), Broken) << testing::PrintToString(message);
  }
  Field text{.number = 1, .type = 2, .bytes = "abcde"};
  std::vector<float> numbers;
  EXPECT_THROW((void)text.as_integer(), Broken);
  EXPECT_THROW((void)text.as_float(), Broken);
  EXPECT_THROW(text.append_to(numbers), Broken);
}

}  // namespace
