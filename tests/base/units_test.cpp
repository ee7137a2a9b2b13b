#include "base/units.h"

#include <gtest/gtest.h>

#include <tuple>

namespace graft::base {
namespace {

TEST(Units, AreReadByTheirNames) {
  for (const auto& [name, quantity, scale] : {
           std::tuple("ms", "s", 1e-3),
           {"us", "s", 1e-6},
           {"\xc2\xb5s", "s", 1e-6},
           {"\xce\xbcs", "s", 1e-6},
           {"Milliseconds", "s", 1e-3},
           {"usec", "s", 1e-6},
           {"minutes", "s", 60},
           {"ns/op", "s", 1e-9},
           {"us / call", "s", 1e-6},
           {"GFLOPS", "FLOP/s", 1e9},
           {"gflops", "FLOP/s", 1e9},
           {"mflop/s", "FLOP/s", 1e6},
           {"TFLOP/s", "FLOP/s", 1e12},
           {"FLOP/s", "FLOP/s", 1},
           {"GFLOP", "FLOP", 1e9},
           {"TOPS", "op/s", 1e12},
           {"ops", "op/s", 1},
           {"MLUPs", "LUP/s", 1e6},
           {"GB/s", "B/s", 1e9},
           {"GBps", "B/s", 1e9},
           {"GiB/s", "B/s", 1073741824},
           {"Gb/s", "bit/s", 1e9},
           {"kbps", "bit/s", 1e3},
           {"bytes/second", "B/s", 1},
           {"img/s", "img/s", 1},
           {"images/sec", "image/s", 1},
           {"fps", "frame/s", 1},
           {"mJ", "J", 1e-3},
           {"Joules", "J", 1},
           {"kWh", "J", 3.6e6},
           {"W", "W", 1},
           {"MHz", "Hz", 1e6},
           {"MiB", "B", 1048576},
           {"%", "%", 1},
           {"cycles", "cycle", 1},
           {"iterations", "iteration", 1},
       }) {
    const std::optional<Unit> unit = unit_named(name);
    ASSERT_TRUE(unit) << name;
    EXPECT_EQ(unit->quantity, quantity) << name;
    EXPECT_DOUBLE_EQ(unit->scale, scale) << name;
  }
}

TEST(Units, NamesSayThem) {
  struct Case {
    const char *name, *quantity;
    bool is_sure;
    std::optional<std::string> unit;
  };
  for (const auto& [name, quantity, is_sure, unit] :
       std::initializer_list<Case>{{"duration (us)", "s", false, "us"},
                                   {"time[ms]", "s", false, "ms"},
                                   {"exec_time_ms", "s", true, "ms"},
                                   {"time_ms_mean", "s", true, "ms"},
                                   {"timeMs", "s", true, "ms"},
                                   {"milliseconds", "s", false, "milliseconds"},
                                   {"total milliseconds per call", "s", false, "milliseconds"},
                                   {"ms", "s", false, "ms"},
                                   {"ms", "s", true, "ms"},
                                   {"s", "s", true, {}},
                                   {"time_s", "s", true, "s"},
                                   {"board_ms", "s", false, {}},  // may be the name of a board
                                   {"board_ms", "s", true, "ms"},
                                   {"second_pass_time", "s", true, {}},
                                   {"second_pass_time_ms", "s", true, "ms"},
                                   {"pass (second)", "s", true, "second"},
                                   {"time (lower is better)", "s", true, {}},
                                   {"time (cycles)", "s", true, {}},
                                   {"time (cycles)", "", true, "cycles"},
                                   {"GFLOPS", "", true, "GFLOPS"},
                                   {"bandwidth [GB/s]", "", true, "GB/s"},
                                   {"energy_mJ", "", true, "mJ"},
                                   {"energy_J", "", true, "J"},
                                   {"tile_b", "", true, {}},
                                   {"ms_peak_GB", "", true, "GB"},
                                   {"", "", true, {}}})
    EXPECT_EQ(unit_in_name(name, quantity, is_sure), unit) << name;
}

TEST(Units, OtherWordsAreNone) {
  for (const char* name :
       {"", "min", "m", "MS", "Ms", "x", "ok", "ms/s", "/s", "s/s", "GB/ms", "loops5", "hop", "mB", "time", "total"})
    EXPECT_FALSE(unit_named(name)) << name;
}

}  // namespace
}  // namespace graft::base
