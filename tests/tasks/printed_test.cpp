// What programs print, and what a person reads in it.
#include "tasks/printed.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"

namespace graft::tasks {
namespace {

struct Example {
  const char* printed;
  const char* flag;
  std::vector<double> values;
  const char* problem = "";  // a part of it
};

void expect(const std::vector<Example>& examples, bool is_time) {
  for (const Example& example : examples) {
    const std::string what = std::string(example.printed) + " with " + example.flag;
    const PrintedMeasure::Found found =
        PrintedMeasure(example.flag, "time", is_time).find(printed_lines(example.printed, *example.flag != '/'));
    ASSERT_EQ(found.values.size(), example.values.size()) << what << ": " << found.problem;
    for (std::size_t i = 0; i < found.values.size(); ++i)
      EXPECT_NEAR(found.values[i], example.values[i], 1e-12 * std::abs(example.values[i])) << what;
    EXPECT_EQ(found.problem.empty(), !example.values.empty()) << what << ": " << found.problem;
    EXPECT_NE(found.problem.find(example.problem), std::string::npos) << what << ": " << found.problem;
  }
}

TEST(Printed, CaseSaysLessThanMoreOfAName) {
  expect({{"setup time: 0.25 s\nTime: 1.5 ms", "time:ms", {1.5e-3}},
          {"Time: 2 ms\ntime: 1.5 ms", "time:ms", {1.5e-3}},
          {"setup time: 0.25 s\nkernel TIME: 1.5 ms", "time:ms", {}, "several places"}},
         true);
}

TEST(Printed, TheUnitWithTheNumberIsItsUnit) {
  expect({{"time: 1.2 ms", "time:ms", {1.2e-3}},
          {"time: 950 us", "time:ms", {950e-6}},
          {"time: 1.1 s", "time:ms", {1.1}},
          {"time: 1.5", "time:ms", {1.5e-3}},
          {"time: 1.5", "time", {1.5}},
          {"time = 950us", "time:ms", {950e-6}},
          {"time: 3 \xc2\xb5s", "time:ms", {3e-6}},
          {"time: 3\xce\xbcs", "time:ms", {3e-6}},
          {"time: 1.5\xc2\xa0ms", "time", {1.5e-3}},
          {"time: 1.5 msec", "time", {1.5e-3}},
          {"time: 1.5 Milliseconds", "time", {1.5e-3}},
          {"time: 12 ns/op", "time", {12e-9}},
          {"time: 1.5 ms/iter", "time", {1.5e-3}},
          {"time: 1.5 ms per loop", "time", {1.5e-3}},
          {"time: 10.0 ms \xc2\xb1   0.5 ms    [User: 4.3 ms]", "time", {10e-3}},
          {"time: 1.5 +/- 0.1 ms", "time", {1.5e-3}},
          {"time: 1.5 (\xc2\xb1"
           "0.1) ms",
           "time",
           {1.5e-3}},
          {"real\t0m1.250s", "real", {1.25}},
          {"time: 1h02m3.5s", "time", {3723.5}},
          {"time: 2 min 5 s", "time", {125}},
          {"time: 1.1ms-1.2ms", "time", {}, "one of several"},
          {"time: 1.1 ms / 1.2 ms / 1.3 ms", "time", {}, "one of several"},
          {"time: 1.5 min", "time", {}, "no unit that is known"},
          {"time: 12 ticks", "time:ms", {}, "not one of time"},
          {"time: 10 iterations, 1.5 ms", "time", {}, "not one of time"},
          {"time: 35.2 GFLOPS", "time", {}, "not one of time"},
          {"time: 1.5x", "time", {}, "no unit that is known"},
          {"time: 1.5 ms/s", "time", {}, "no unit that is known"},
          {"time: 1.5 m", "time", {}, "no unit that is known"},
          {"time 1.5 GFLOPS 32", "time:ms", {1.5e-3}},
          {"time 1.5 checksum 42", "time:ms", {1.5e-3}},
          {"time 123, ok", "time:us", {123e-6}}},
         true);
}

TEST(Printed, NumbersAreReadAsPeoplePrintThem) {
  expect({{"time: 1,234.5 us", "time", {1234.5e-6}},
          {"time: 1,5 ms", "time", {1.5e-3}},
          {"time: 1.234,5 us", "time", {1234.5e-6}},
          {"time: 1'234.5 us", "time", {1234.5e-6}},
          {"time: 1_234 us", "time", {1234e-6}},
          {"time: 1\xc2\xa0"
           "234,5 us",
           "time",
           {1234.5e-6}},
          {"time: 1\xe2\x80\xaf"
           "234 us",
           "time",
           {1234e-6}},
          {"time: 1,234,567 ns", "time", {1234567e-9}},
          {"time: 1.234.567 ns", "time", {1234567e-9}},
          {"time: 0,123", "time", {0.123}},
          {"time: 1234,567", "time", {1234.567}},
          {"time: 1,234 us", "time", {}, "'1,234' is 1234 or 1.234"},
          {"time: 12 345 us", "time", {}, "one number or two"},
          {"time: 0.9000D-03", "time", {0.9e-3}},
          {"time: 0.9000d+01", "time", {9}},
          {"time: 1.5E-03", "time", {1.5e-3}},
          {"time: 5.", "time", {5}},
          {"time: \x2e\x35", "time", {0.5}},  // without its 0
          {"time: +1.5", "time", {1.5}},
          {"time: -1.5", "time", {-1.5}},
          {"time: \xe2\x88\x92"
           "1.5",
           "time",
           {-1.5}},
          {"time: 0x1.8p-3", "time", {0.1875}},
          {"time: 1e999", "time", {}, "beyond what a double holds"},
          {"time: 0.9000-103", "time", {}, "prints no time after 'time': 'time: 0.9000-103'"},
          {"time: 1.5 x 10^-3", "time", {}, "not understood"},
          {"time: 1.5\xc3\x97"
           "10",
           "time",
           {},
           "not understood"},
          {"time: 1.25(3) ms", "time", {}, "not understood"},
          {"time: 4-8 ms", "time", {}, "prints no time"},
          {"time: 4 - 8 ms", "time", {}, "not understood"},
          {"time: 1/2", "time", {}, "prints no time"},
          {"time: 10:32:05", "time", {}, "prints no time"},
          {"time: 2024-01-31", "time", {}, "prints no time"},
          {"time: 1.2.3", "time", {}, "prints no time"},
          {"time: ******", "time", {}, "'time: ******'"},
          {"time: < 1 ms", "time", {}, "prints no time"}},
         true);
  const auto nan = PrintedMeasure("time", "time", true).find(printed_lines("time: nan"));
  ASSERT_EQ(nan.values.size(), 1u);
  EXPECT_TRUE(std::isnan(nan.values.front()));
}

TEST(Printed, TheNameMayHaveTheUnit) {
  expect({{"Time (ms): 1.5", "Time", {1.5e-3}},
          {"Time (ms): 1.5", "time", {1.5e-3}},
          {"Time (ms): 1.5", "time:us", {1.5e-3}},
          {"time [us] = 1.5", "time", {1.5e-6}},
          {"time (ms) 1.5", "time", {1.5e-3}},
          {"time_ms: 1.5", "time", {1.5e-3}},
          {"time_ms: 1.5", "time_ms", {1.5e-3}},
          {"time-ms: 1.5", "time", {1.5e-3}},
          {"time in ms: 1.5", "time", {1.5e-3}},
          {"time, ms: 1.5", "time", {1.5e-3}},
          {"time/ms: 1.5", "time", {1.5e-3}},
          {"time (in milliseconds): 1.5", "time", {1.5e-3}},
          {"Time (mean \xc2\xb1 \xcf\x83):     10.0 ms \xc2\xb1 0.5 ms", "Time", {10e-3}},
          {"Time (ms): 1.5 us", "Time", {}, "different units"},
          {"time_ms: 1.5 us", "time_ms", {}, "different units"},
          {"Time (GFLOPS): 1.5", "Time", {}, "not one of time"}},
         true);
  EXPECT_THROW(PrintedMeasure("time_ms:us", "time", true), base::UserError);
  EXPECT_THROW(PrintedMeasure("GFLOPS", "time", true), base::UserError);
  EXPECT_THROW(PrintedMeasure("throughput", "time", true), base::UserError);
  EXPECT_THROW(PrintedMeasure("time:J", "time", true), base::UserError);
}

TEST(Printed, AnyFormOfALineIsRead) {
  expect({{"time 1.5", "time", {1.5}},
          {"time\t1.5", "time", {1.5}},
          {"time=1.5;", "time", {1.5}},
          {"Loop time of 1.5 on 4 procs for 100 steps", "Loop time", {1.5}},
          {"time is 1.5 ms", "time", {1.5e-3}},
          {"time of kernel: 3", "time", {}, "prints no time after"},
          {" Time in seconds =                     1.50", "Time", {1.5}},
          {" Time in seconds =                     1.50", "Time in seconds", {1.5}},
          {"  1.25 seconds time elapsed", "seconds", {1.25}},
          {"5 loops, best of 5: 25.1 msec per loop", "best of 5", {25.1e-3}},
          {"time ........ 1.5 ms", "time", {1.5e-3}},
          {"time.......1.5 ms", "time", {1.5e-3}},
          {"time -> 1.5 ms", "time", {1.5e-3}},
          {"time - 1.5 ms", "time", {1.5e-3}},
          {"time,1.5", "time", {1.5}},
          {"time,15,3", "time", {15}},
          {"| time | 1.5 ms |", "time", {1.5e-3}},
          {"'time': '1.5 ms'", "time", {1.5e-3}},
          {"time (1.5 ms)", "time", {1.5e-3}},
          {"time:   [1.1 ms 1.2 ms 1.3 ms]", "time", {1.1e-3, 1.2e-3, 1.3e-3}},
          {"time: [1.1, 1.2] ms", "time", {1.1e-3, 1.2e-3}},
          {"time: [1.1, 1.2 ms]", "time", {1.1e-3, 1.2e-3}},
          {"time: [1,2,3]", "time", {1, 2, 3}},
          {"time: [1,2]", "time", {}, "one number or more"},
          {"time: [1,2, 3]", "time", {}, "one number or more"},
          {"time: {1.5; 1.6} us", "time", {1.5e-6, 1.6e-6}},
          {"time: [5,10 ms]", "time", {}, "one number or more"},
          {"time: [1 ms, 2, 3 us]", "time", {1e-3, 2e-6, 3e-6}},
          {"time: [1.1 ms", "time", {}, "has no end"},
          {"time: [min 1.1 ms]", "time", {}, "prints no time"},
          {"\x1b[1;32mtime\x1b[0m: \x1b[33m1.5 ms\x1b[0m", "time", {1.5e-3}},
          {"time: 1.5 ms\r\n", "time", {1.5e-3}},
          {"10% time: 0.5 s\r100% time: 5 s\n", "time", {5}},
          {"mytime: 3\ntime: 2\ntimes: 4", "time", {2}},
          {"time started\ntime: 2", "time", {2}},
          {"runs: 1.5", "time", {}, "its last line: 'runs: 1.5'"},
          {"", "time", {}, "nor anything else"},
          {"checksum 1.0", "time 2", {}, "prints no time"}},
         true);
}

TEST(Printed, OnePlaceIsReadOrNone) {
  expect({{"setup time: 0.1\nkernel time: 1.5", "time", {}, "several places: 'setup time: 0.1' and 'kernel time: 1.5'"},
          {"setup time: 0.1\nkernel time: 1.5", "kernel time", {1.5}},
          {"time: 1.5\ntotal time: 3", "time", {1.5}},
          {"run 1: time 1.5\nrun 2: time 1.6\nrun 3: time 1.4", "time", {1.5, 1.6, 1.4}},
          {"time: 1.5\ntime: 1.6", "time", {1.5, 1.6}},
          {"[12:00:01.20] time: 1.5\n[12:00:07.80] time: 1.6", "time", {1.5, 1.6}},
          {"2024-01-31 12:00:01,123 time: 1.5\n2024-01-31 12:05:01,500 time: 1.6", "time", {1.5, 1.6}},
          {"size 64: time 1.5\nsize 128: time 2.5", "time", {}, "several places"},
          {"size 128: time 2.5", "time", {2.5}},
          {"A: time 1.5, B: time 2.5", "time", {}, "several places"},
          {"setup time: 0.1\ntime: n/a", "time", {}, "prints no time after 'time': 'time: n/a'"},
          {"time (setup): 0.1\ntime (kernel): 1.5", "time", {}, "several places"},
          {"Time per request: 1.2 [ms] (mean)\nTime per request: 0.3 [ms] (mean, of all)",
           "Time per request",
           {},
           "several places"},
          {"time 1.5 (best)\ntime 1.6", "time", {1.5, 1.6}},
          {"Time: 3\ntime: 2", "time", {2}},
          {"time: 2\ntime_ms: 2000", "time", {2}},
          {"run 1: 1.5 ms", "run", {}, "prints no time after"},
          {"time: 1.5\ntime: 1,234 us", "time", {}, "is 1234 or 1.234"},
          {"time 1.5 1.6 1.7", "time", {1.5}},
          {"time 1.5 1.6 1.7 ms", "time", {}, "has no unit"}},
         true);
  const PrintedMeasure time("time", "time", true);
  EXPECT_NE(time.find(printed_lines("time: 1.5\ntotal time: 3")).note.find("not from 'total time: 3'"),
            std::string::npos);
  EXPECT_NE(time.find(printed_lines("time 1.5 1.6 1.7")).note.find("first of several"), std::string::npos);
  EXPECT_EQ(time.find(printed_lines("time 1.5 ok")).note, "");
}

TEST(Printed, JsonIsRead) {
  expect({{R"({"time": 1.5, "n": 3})", "time", {1.5}},
          {R"({"time": [1.5, 1.6]})", "time:ms", {1.5e-3, 1.6e-3}},
          {R"({"time": "1.5 ms"})", "time", {1.5e-3}},
          {R"({"time_ms": 1.5})", "time", {1.5e-3}},
          {R"({"time": 1.5, "time_unit": "ns"})", "time", {1.5e-9}},
          {R"({"time": 1.5, "unit": "us"})", "time", {1.5e-6}},
          {R"({"time": 1.5, "setup": {"time": 0.1}})", "time", {1.5}},
          {R"({"kernel": {"time": 1.5}, "setup": {"time": 0.1}})", "time", {}, "several places"},
          {R"({"kernel": {"time": 1.5}, "setup": {"time": 0.1}})", "kernel.time", {1.5}},
          {R"({"note": "time: 7", "time": 1.5})", "time", {1.5}},
          {"{\n  \"benchmarks\": [\n    {\"name\": \"A\", \"real_time\": 1.5,\n     \"time_unit\": \"ms\"}\n  ]\n}",
           "real_time",
           {1.5e-3}},
          {R"({"benchmarks":[{"name":"A","real_time":1},{"name":"B","real_time":2}]})",
           "real_time",
           {},
           "several places"}},
         true);
}

TEST(Printed, ARegularExpressionTakesWholeNumbers) {
  expect({{"took 1.5 and 2.5", "/([0-9.]+)/:ms", {1.5e-3, 2.5e-3}},
          {"\"runs\": [0.5, 0.25]", "/\"runs\": \\[([0-9.]+)/:us", {0.5e-6}},
          {"took 1.5 us", "/took ([0-9.]+)/:ms", {1.5e-6}},
          {"took 1.5us", "/took ([0-9.]+)us/:us", {1.5e-6}},
          {"took (ms) 1.5", "/took .* ([0-9.]+)/", {1.5e-3}},
          {"took 1,234.5 us", "/took ([0-9.]+)/:us", {}, "a part of a number"},
          {"took 1.5e-3", "/took ([0-9.]+)/", {}, "a part of a number"},
          {"took 12", "/took ([0-9])/", {}, "a part of a number"},
          {"took 12", "/took .*([0-9])/", {}, "a part of a number"},
          {"took long", "/took (.*)/", {}, "prints no time after"}},
         true);
}

TEST(Printed, OtherMeasuresHaveAnyUnit) {
  expect({{"GFLOPS: 35.2", "GFLOPS", {35.2e9}},
          {"speed: 1.2 TFLOP/s", "speed:GFLOP/s", {1.2e12}},
          {"speed: 950", "speed:GFLOP/s", {950e9}},
          {"performance: 35.2 GFLOPS, 1.5 s", "GFLOPS", {35.2e9}},
          {"bandwidth: 12.5 GB/s", "bandwidth", {12.5e9}},
          {"   1,234,567      cycles                    # 3.4 GHz", "cycles", {1234567}},
          {"Triad:      12345.6     0.001     0.002", "Triad", {12345.6}},
          {"  write: IOPS=12, bw=12.5MiB/s (13.1MB/s)", "bw", {13107200}},
          {"1.10 GBytes   943 Mbits/sec", "Mbits/sec", {943e6}},
          {"bandwidth: 1 GiB/s", "bandwidth", {1073741824}},
          {"energy: 350 mJ", "energy:J", {0.35}},
          {"energy: 5 W", "energy:J", {}, "not one of J"},
          {"rate: 12 img/s", "rate", {12}},
          {"rate: 1.5 M", "rate", {}, "no unit that is known"},
          {"score 12 points", "score:points", {12}},
          {"accuracy: 93.5%", "accuracy", {93.5}}},
         false);
}

}  // namespace
}  // namespace graft::tasks
