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
          {"time: 12 ticks", "time:ms", {}, "none of time"},
          {"time: 10 iterations, 1.5 ms", "time", {}, "none of time"},
          {"time: 35.2 GFLOPS", "time", {}, "none of time"},
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
          {"Time (GFLOPS): 1.5", "Time", {}, "none of time"}},
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
          {"energy: 5 W", "energy:J", {}, "none of J"},
          {"rate: 12 img/s", "rate", {12}},
          {"rate: 1.5 M", "rate", {}, "no unit that is known"},
          {"score 12 points", "score:points", {12}},
          {"accuracy: 93.5%", "accuracy", {93.5}}},
         false);
}

// An output that is made of a number, and what a person would read in it.
class Made {
 public:
  explicit Made(base::Stream& stream) : stream_(stream) {}

  struct Output {
    std::string text, flag;
    std::vector<double> seconds;  // may be read
    bool must_be_read = true;     // otherwise it may be refused
    bool must_be_refused = false;
  };

  Output output() {
    Output out;
    has_unit_in_name_ = pick(4) == 0, flag_unit_ = pick(5), name_unit_ = pick(5), form_ = pick(3),
    list_place_ = pick(6);
    out.flag = flag_unit_ == 4 ? "time" : std::string("time:") + units[flag_unit_].name;
    const std::string before =
        std::vector<std::string>{"", "[INFO] ", "12:03:11 ", "kernel ", "run 3: ", "- "}[pick(6)];
    const std::size_t times = 1 + pick(3);
    noise(out);
    if (pick(8) == 0) {
      out.text += "setup time: 0.25 s\n";
      out.must_be_refused = before == "kernel " || before == "run 3: " || before == "[INFO] ";
    }
    const bool is_list = pick(6) == 0;
    if (is_list) {
      out.text += before + name() + ": [";
      for (std::size_t i = 0; i < times; ++i)
        out.text += (i == 0 ? "" : std::vector<std::string>{" ", ", "}[pick(2)]) + value(out, true);
      out.text += "]" + after() + line_end();
    }
    for (std::size_t i = 0; !is_list && i < times; ++i) {
      const std::string number = value(out, false);
      const std::string separator = std::vector<std::string>{": ", " = ", "=", " ", "\t", " ... ", " -> "}[pick(7)];
      out.text += before + colour(name()) + separator + colour(number) + after() + line_end();
      if (pick(3) == 0) noise(out);
    }
    return out;
  }

 private:
  struct Unit {
    const char* name;
    double seconds;
  };
  static constexpr Unit units[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {"", 1}};

  std::size_t pick(int count) { return std::size_t(stream_.below(count)); }
  std::string name() {
    if (!has_unit_in_name_ || name_unit_ == 4) return "time";
    return fmt::format(fmt::runtime(std::vector<std::string>{"time ({})", "time_{}", "time [{}]"}[form_]),
                       units[name_unit_].name);
  }
  std::string colour(const std::string& text) {
    return pick(6) == 0 ? fmt::format("\x1b[1;3{}m{}\x1b[0m", pick(8), text) : text;
  }
  std::string after() {
    return std::vector<std::string>{"", "", ", ok", " (best)", " checksum 42", "; gflops 3.1", "  ", " done."}[pick(8)];
  }
  std::string line_end() { return std::vector<std::string>{"\n", "\n", "\r\n"}[pick(3)]; }
  void noise(Output& out) {
    out.text += std::vector<std::string>{
        "",   "n: 5\n",    "GFLOPS: 12.5\n", "done\n", "timeout 7\n", "time zone UTC\n", "sometime: 4 ms\n",
        "\n", "10%\r50%\r"}[pick(9)];
  }

  // Digits in groups of three.
  static std::string grouped(std::string digits, const std::string& mark) {
    for (std::size_t at = digits.size(); at > 3;) at -= 3, digits.insert(at, mark);
    return digits;
  }

  std::string value(Output& out, bool in_list) {
    const std::int64_t whole = stream_.below(std::vector<std::int64_t>{10, 1000, 100000, 10000000}[pick(4)]);
    const std::size_t places = pick(5);
    std::string fraction;
    for (std::size_t i = 0; i < places; ++i) fraction += char('0' + pick(10));
    const std::string digits = std::to_string(whole);
    double number = std::stod(digits + "." + fraction + "0");
    std::string text;
    std::size_t style = pick(9);
    // "63.339" has a point everywhere.
    if (style == 2 && fraction.empty() && digits.size() > 3 && digits.size() <= 6) style = 8;
    const auto with = [&](const std::string& mark, const std::string& point) {
      return grouped(digits, mark) + (fraction.empty() ? "" : point + fraction);
    };
    bool is_certain = true;
    switch (style) {
      case 0:
        text = with(",", "."), is_certain = digits.size() <= 3 || (!fraction.empty() && !in_list);
        break;
      case 1:
        text = with("", ","), is_certain = (fraction.size() != 3 || whole == 0 || digits.size() > 3) && !in_list;
        break;
      case 2:
        text = with(".", ","), is_certain = !in_list && (fraction.size() != 3 || digits.size() > 3) &&
                                            (digits.size() <= 3 || digits.size() > 6 || !fraction.empty());
        break;
      case 3:
        text = with("'", ".");
        break;
      case 4:
        text = with("\xc2\xa0", ","),
        is_certain = !in_list && (fraction.size() != 3 || digits.size() > 3 || whole == 0);
        break;
      case 5:
        text = fmt::format("{:.4e}", number), number = std::stod(text);
        break;
      case 6: {
        text = fmt::format("{:.4e}", number), number = std::stod(text);
        text.replace(text.find('e'), 1, "D");
        break;
      }
      case 7:
        text = fmt::format("{:a}", number);
        break;
      default:
        text = with("", ".");
    }
    if (number == 0 && !in_list) is_certain = true;
    const std::size_t place = in_list ? list_place_ : pick(6);
    std::size_t unit = has_unit_in_name_ && name_unit_ != 4 ? name_unit_ : flag_unit_ == 4 ? 0 : flag_unit_;
    if (place < 4 && !(has_unit_in_name_ && name_unit_ != 4)) {
      unit = pick(4);
      text += std::vector<std::string>{" ", "", "\xc2\xa0", " "}[place] + units[unit].name;
    }
    out.must_be_read = out.must_be_read && is_certain;
    out.seconds.push_back(number * units[unit].seconds);
    return text;
  }

  base::Stream& stream_;
  bool has_unit_in_name_ = false;
  std::size_t flag_unit_ = 0, name_unit_ = 0, form_ = 0, list_place_ = 0;
};

TEST(Printed, OfManyOutputsNothingIsReadThatAPersonWouldNotRead) {
  constexpr int outputs = 20000;
  base::Stream stream(7, "printed");
  int refused = 0, read = 0;
  for (int i = 0; i < outputs; ++i) {
    const Made::Output made = Made(stream).output();
    const PrintedMeasure time(made.flag, "time", true);
    const PrintedMeasure::Found found = time.find(printed_lines(made.text));
    const std::string what = fmt::format("output {} with {}: {} ({})", i, made.flag, made.text, found.problem);
    ASSERT_EQ(found.values.empty(), !found.problem.empty()) << what;
    if (found.values.empty()) {
      ++refused;
      ASSERT_TRUE(made.must_be_refused || !made.must_be_read) << what;
      continue;
    }
    ++read;
    ASSERT_FALSE(made.must_be_refused) << what;
    ASSERT_EQ(found.values.size(), made.seconds.size()) << what;
    for (std::size_t v = 0; v < found.values.size(); ++v)
      ASSERT_NEAR(found.values[v], made.seconds[v], 1e-9 * made.seconds[v]) << what;
    // What is left of it where it is cut is read so, or not at all.
    const std::string cut = made.text.substr(0, std::size_t(stream.below(std::int64_t(made.text.size()) + 1)));
    const std::vector<PrintedLine> lines = printed_lines(cut);
    const PrintedMeasure::Found rest = time.find(lines);
    for (std::size_t v = 0; v < rest.values.size() && made.text.find("setup") == std::string::npos; ++v) {
      const bool is_whole =
          v < made.seconds.size() && std::abs(rest.values[v] - made.seconds[v]) <= 1e-9 * made.seconds[v];
      const PrintedPart& last = rest.parts.back();
      const auto is_of_word = [](char c) { return std::isalnum((unsigned char)c) != 0; };
      const std::string after = lines[last.line].text.substr(last.end);
      const bool is_cut = last.line + 1 == lines.size() && std::none_of(after.begin(), after.end(), is_of_word);
      ASSERT_TRUE(is_whole || (v + 1 == rest.values.size() && is_cut)) << what << " cut: " << cut;
    }
  }
  EXPECT_GT(read, outputs / 2);
  EXPECT_GT(refused, outputs / 100);
}

}  // namespace
}  // namespace graft::tasks
