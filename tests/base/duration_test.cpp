#include "base/duration.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"

namespace graft::base {
namespace {

TEST(Duration, IsReadAndWritten) {
  EXPECT_EQ(seconds_from("90"), 90);
  EXPECT_EQ(seconds_from("90s"), 90);
  EXPECT_EQ(seconds_from("10m"), 600);
  EXPECT_EQ(seconds_from("1.5h"), 5400);
  for (const char* const text : {"", "m", "0", "-1s", "1d", "10 m", "inf", "nan", "1e400"})
    EXPECT_THROW(seconds_from(text), UserError) << text;
  EXPECT_EQ(seconds_text(1.2345e-7), "123.5 ns");
  EXPECT_EQ(seconds_text(9.11e-4), "911 us");
  EXPECT_EQ(seconds_text(0.0123), "12.3 ms");
  EXPECT_EQ(seconds_text(12), "12 s");
  EXPECT_EQ(seconds_text(600), "10 min");
  EXPECT_EQ(seconds_text(9000), "2.5 h");
  EXPECT_EQ(seconds_text(std::numeric_limits<double>::infinity()), "-");
}

}  // namespace
}  // namespace graft::base
