#include "datasets/formats/kernel_tuner.h"

#include "tests/datasets/formats_support.h"

namespace graft::datasets::formats {
namespace {

constexpr const char* cache = R"({
"device_name": "GPU 1", "kernel_name": "convolution_kernel", "problem_size": [4096, 2048],
"tune_params_keys": ["block", "layout", "pad"],
"tune_params": {"block": [64, 16, 32], "layout": ["row", "column"], "pad": [0, 1]},
"objective": "time",
"cache": {
"16,row,0": {"block": 16, "layout": "row", "pad": 0, "time": 3.5, "times": [3.75, 3.25, 3.5], "GFLOP/s": 1948.1, "timestamp": "2023"},
"64,row,1": {"block": 64, "layout": "row", "pad": 1, "time": "RuntimeFailedConfig", "compile_time": 5.1},
"32,row,1": {"block": 32, "layout": "row", "pad": 1, "time": "RuntimeFailedConfig", "times": [1.5]},
"64,column,0": {"block": 64, "layout": "column", "pad": 0, "time": "CompilationFailedConfig"},
"64,column,1": {"block": 64, "layout": "column", "pad": 1, "time": "InvalidConfig"},
"32,column,0": {"block": 32, "layout": "column", "pad": 0, "time": "SomethingElse"},
"32,column,1": {"block": 32, "layout": "column", "pad": 1, "time": 2.5}
}})";

TEST(KernelTunerFormat, CachesBecomeRows) {
  const Imported in = imported_text("kernel_tuner", "gpu.json", cache);
  const Dataset& data = in.dataset;
  EXPECT_EQ(data.workloads,
            std::vector<codegen::Workload>{codegen::Workload("table(name=convolution_kernel,size0=4096,size1=2048)")});
  ASSERT_EQ(data.sketches.size(), 1u);
  EXPECT_EQ(codegen::to_text(*data.sketches[0]),
            "sketch convolution_kernel\ncolumns $block{16|32|64} $layout{column|row} $pad{0|1}\n");
  ASSERT_EQ(data.rows.size(), 7u);
  EXPECT_EQ(data.rows[0].arguments, (std::vector<std::int64_t>{0, 1, 0}));
  ASSERT_EQ(data.rows[0].measurement.seconds.size(), 3u);
  EXPECT_DOUBLE_EQ(data.rows[0].measurement.seconds[1], 3.25e-3);
  EXPECT_DOUBLE_EQ(seconds_of(data.rows[6].measurement), 2.5e-3);    // the one time if there are no repetitions
  EXPECT_DOUBLE_EQ(data.rows[2].measurement.seconds.at(0), 1.5e-3);  // kept with the failure
  const std::pair<Status, const char*> expected[] = {{Status::ok, ""},
                                                     {Status::crashed, "RuntimeFailedConfig"},
                                                     {Status::crashed, "RuntimeFailedConfig"},
                                                     {Status::does_not_compile, "CompilationFailedConfig"},
                                                     {Status::unsupported, "InvalidConfig"},
                                                     {Status::crashed, "SomethingElse"},
                                                     {Status::ok, ""}};
  for (std::size_t i = 0; i < std::size(expected); ++i) {
    EXPECT_EQ(data.rows[i].measurement.status, expected[i].first) << i;
    EXPECT_EQ(data.rows[i].measurement.reason, expected[i].second) << i;
  }
  EXPECT_EQ(in.counts.records, 7);
  EXPECT_EQ(in.counts.statuses.at("crashed"), 3);
  EXPECT_EQ(data.provenance.at("device").as_string(), "GPU 1");
}

TEST(KernelTunerFormat, ResultsOfT4) {
  const Imported in =
      imported_text("kernel_tuner", "gpu.json", R"({"schema_version": "1.0.0", "metadata": {}, "results": [
    {"timestamp": "x", "configuration": {"bx": 16, "unroll": true}, "times": {"compilation_time": 5, "runtimes": [2.0, 3.0]},
     "invalidity": "correct", "correctness": 1, "measurements": [{"name": "time", "value": 2.5, "unit": "ms"}], "objectives": ["time"]},
    {"configuration": {"bx": 32, "unroll": false}, "invalidity": "correct",
     "measurements": [{"name": "energy", "value": 7}, {"name": "runtime", "value": 0.5, "unit": "s"}]},
    {"configuration": {"bx": 32, "unroll": true}, "invalidity": "compile", "measurements": [{"name": "time", "value": null}]},
    {"configuration": {"bx": 64, "unroll": true}, "invalidity": "timeout"},
    {"configuration": {"bx": 64, "unroll": false}, "invalidity": "constraints"},
    {"configuration": {"bx": 16, "unroll": false}, "invalidity": "correctness"},
    {"configuration": {"bx": 128, "unroll": false}, "invalidity": "runtime"},
    {"configuration": {"bx": 128, "unroll": true}, "measurements": [{"unit": "microseconds", "value": 5, "name": "time"}]}]})");
  const Dataset& data = in.dataset;
  EXPECT_EQ(codegen::to_text(*data.sketches[0]), "sketch gpu\ncolumns $bx{16|32|64|128} $unroll{false|true}\n");
  ASSERT_EQ(data.rows.size(), 8u);
  EXPECT_EQ(data.rows[0].measurement.seconds, (std::vector<double>{1e-3 * 2.0, 1e-3 * 3.0}));
  EXPECT_DOUBLE_EQ(data.rows[7].measurement.seconds.at(0), 5e-6);
  EXPECT_DOUBLE_EQ(data.rows[1].measurement.seconds.at(0), 0.5);
  const Status expected[] = {Status::ok,          Status::ok,           Status::does_not_compile, Status::timed_out,
                             Status::unsupported, Status::wrong_result, Status::crashed,          Status::ok};
  for (std::size_t i = 0; i < std::size(expected); ++i) EXPECT_EQ(data.rows[i].measurement.status, expected[i]) << i;
}

TEST(KernelTunerFormat, RestrictionsOfTheSpaceAreNoted) {
  const Folder folder;
  write_plainly(folder / "gpu.json", cache);
  write_plainly(folder / "space.json",
                R"({"General": {"BenchmarkName": "x"}, "ConfigurationSpace": {"TuningParameters": [],
    "Conditions": [{"Expression": "block <= 64", "Parameters": ["block"]}, {"Expression": "pad == 0"}]}})");
  const auto all = imported_platforms("kernel_tuner", folder, {folder / "space.json", folder / "gpu.json"}, "p");
  EXPECT_EQ(all.at("p").dataset.provenance.at("restrictions").to_json(), R"(["block <= 64","pad == 0"])");
  EXPECT_EQ(all.at("p").dataset.rows.size(), 7u);
}

// Files of several devices that name no kernel are of one by its name.
TEST(KernelTunerFormat, AKernelWithoutAName) {
  constexpr const char* text = R"({"tune_params_keys": ["a"], "cache": {"1": {"a": 1, "time": 2.0}}})";
  EXPECT_EQ(imported_text("kernel_tuner", "A100.json", text).dataset.workloads.at(0).text(), "table(name=A100)");
  EXPECT_EQ(imported_text("kernel_tuner", "A100.json", text, {{"name", "gemm"}}).dataset.workloads.at(0).text(),
            "table(name=gemm)");
}

// `cache` with one text put in the place of another.
std::string changed(std::string_view from, std::string_view to) {
  std::string text = cache;
  text.replace(text.find(from), from.size(), to);
  return text;
}

std::string with_repetitions(int count) {
  std::string times = "1";
  for (int i = 1; i < count; ++i) times += ",1";
  return changed("3.75, 3.25, 3.5", times);
}

TEST(KernelTunerFormat, TimesAreTimesWhateverWasTunedFor) {
  const Imported in = imported_text("kernel_tuner", "gpu.json", R"({"tune_params_keys": ["a"], "objective": "GFLOP/s",
    "cache": {"1": {"a": 1, "time": 2.0, "GFLOP/s": 1948.1}, "2": {"a": 2, "GFLOP/s": "InvalidConfig"},
    "3": {"a": 3, "GFLOP/s": 5, "time": "RuntimeFailedConfig"}}})");
  EXPECT_EQ(in.dataset.rows.at(0).measurement.seconds, std::vector<double>{2e-3});
  EXPECT_EQ(in.dataset.rows.at(1).measurement.status, Status::unsupported);
  EXPECT_EQ(in.dataset.rows.at(2).measurement.status, Status::crashed);
  EXPECT_TRUE(contains(refusal_of("kernel_tuner", R"({"tune_params_keys": ["a"], "objective": "GFLOP/s",
    "cache": {"1": {"a": 1, "GFLOP/s": 1948.1}}})"),
                       "in:2:47: a configuration without 'time'"));
}

// Numbers that are not times mark failures; in other places they are nothing of ours.
TEST(KernelTunerFormat, WhatIsNotATimeIsAFailure) {
  const Imported in = imported_text("kernel_tuner", "gpu.json", R"({"tune_params_keys": ["a"], "cache": {
"1": {"a": 1, "time": 1e20},
"2": {"a": 2, "time": 1e+20, "times": [2.0, 3.0], "GFLOP/s": 1e20},
"3": {"a": 3, "time": NaN},
"4": {"a": 4, "time": Infinity, "power": 1},
"5": {"a": 5, "time": "1e20"},
"6": {"a": 6, "times": [1e20, NaN]},
"7": {"a": 7, "time": 2.5, "power": NaN, "clock": [Infinity, {"mean": -Infinity}]},
"8": {"a": 8, "times": [NaN, 2.0, Infinity, 3.0]},
"9": {"a": 9, "time": 100000000000.0},
"10": {"a": 10, "time": null}}})");
  EXPECT_TRUE(in.skipped.empty());
  ASSERT_EQ(in.dataset.rows.size(), 10u);
  const char* const reasons[] = {"1e+20 in place of a time",
                                 "1e+20 in place of a time",
                                 "NaN in place of a time",
                                 "infinity in place of a time",
                                 "1e+20 in place of a time",
                                 "1e+20 in place of a time",
                                 "",
                                 "",
                                 "",
                                 "null in place of a time"};
  for (std::size_t i = 0; i < std::size(reasons); ++i) {
    const Measurement& measurement = in.dataset.rows[i].measurement;
    EXPECT_EQ(measurement.reason, reasons[i]) << i;
    EXPECT_EQ(measurement.status, *reasons[i] == 0 ? Status::ok : Status::crashed) << i;
  }
  EXPECT_EQ(in.dataset.rows[1].measurement.seconds, (std::vector<double>{2e-3, 3e-3}));  // kept with the failure
  EXPECT_TRUE(in.dataset.rows[5].measurement.seconds.empty());
  EXPECT_EQ(in.dataset.rows[6].measurement.seconds, std::vector<double>{2.5e-3});
  EXPECT_EQ(in.dataset.rows[7].measurement.seconds, (std::vector<double>{2e-3, 3e-3}));
  EXPECT_DOUBLE_EQ(in.dataset.rows[8].measurement.seconds.at(0), 1e8);  // three years are a time

  const Imported t4 = imported_text("kernel_tuner", "gpu.json", R"({"results": [
    {"configuration": {"a": 1}, "invalidity": "correct", "measurements": [{"name": "time", "value": 1e20, "unit": "us"}]},
    {"configuration": {"a": 2}, "measurements": [{"name": "energy", "value": NaN}, {"name": "time", "value": 5, "unit": "us"}]},
    {"configuration": {"a": 3}, "measurements": [{"name": "time", "value": NaN}]},
    {"configuration": {"a": 4}, "times": {"runtimes": [Infinity], "framework": NaN}},
    {"configuration": {"a": 5}, "invalidity": "timeout", "measurements": [{"name": "time", "value": NaN}]}]})");
  EXPECT_TRUE(t4.skipped.empty());
  const std::pair<Status, const char*> expected[] = {{Status::crashed, "1e+20 in place of a time"},
                                                     {Status::ok, ""},
                                                     {Status::crashed, "NaN in place of a time"},
                                                     {Status::crashed, "infinity in place of a time"},
                                                     {Status::timed_out, "timeout"}};
  ASSERT_EQ(t4.dataset.rows.size(), std::size(expected));
  for (std::size_t i = 0; i < std::size(expected); ++i) {
    EXPECT_EQ(t4.dataset.rows[i].measurement.status, expected[i].first) << i;
    EXPECT_EQ(t4.dataset.rows[i].measurement.reason, expected[i].second) << i;
  }
  EXPECT_DOUBLE_EQ(t4.dataset.rows[1].measurement.seconds.at(0), 5e-6);
}

TEST(KernelTunerFormat, ParametersMayBeNamedByTheirValuesAlone) {
  const Imported in = imported_text("kernel_tuner", "gpu.json", R"({"kernel_name": "k",
    "cache": {"1": {"a": 1, "b": 2, "time": 2.0}, "2": {"a": 2, "b": 2, "time": 3.0}},
    "tune_params": {"a": [1, 2], "b": [2]}})");
  EXPECT_EQ(codegen::to_text(*in.dataset.sketches.at(0)), "sketch k\ncolumns $a{1|2} $b{2}\n");
  EXPECT_EQ(in.dataset.rows.at(1).arguments, (std::vector<std::int64_t>{1, 0}));
}

TEST(KernelTunerFormat, BrokenFilesAreRefusedWithTheLine) {
  const std::pair<std::string, const char*> refusals[] = {
      {"[]", "in:1:1: expected a map"},
      {"{}", "in: neither a cache of Kernel Tuner"},
      {std::string(cache).substr(0, 700), "in:11: the file ends in the middle of this entry"},
      {changed("3.25", "-3.25"), "in:7:"},
      {changed("3.25", "0"), "a time of 0"},
      {changed("3.25", "NaNs"), "expected a number"},
      {changed("\"time\": 2.5", "\"energy\": 2.5"), "in:13:"},
      {changed("\"time\": 2.5", "\"time\": 4e-324"), "in:13:75: a time of 0 seconds"},
      {changed("\"block\": 16", "\"block\": \"nan\""), "in:7:1"},
      {changed("64, 16, 32", "64, 16, \"inf\""), "in: column 'block': inf is not a number"},
      {with_repetitions(1001), "in:7:2120: a record of 1001 times; at most 1000 are read"},
      {R"({"kernel_name": "k", "cache": {"1": {"a": 1, "time": 2}}})", "in: no parameters: 'tune_params_keys' or"},
      {R"({"results": [
{"configuration": {"a": 1}, "measurements": [{"name": "time", "value": 5, "unit": "fortnights"}]}]})",
       "in:2:95: unknown unit 'fortnights'; known: s, ms, us, ns, seconds"},
      {changed("\"pad\": 0, \"time\": 3.5", "\"time\": 3.5"), "a configuration without 'pad'"},
      {changed("\"pad\": 0, \"time\": 3.5", "\"pad\": 0, \"pad\": 1, \"time\": 3.5"), "key 'pad' is there twice"},
      {changed("\"64,row,1\"", "\"16,row,0\""), "key '16,row,0' is there twice"},
      {changed("[\"block\", \"layout\", \"pad\"]", "[\"block\", \"block\", \"pad\"]"), "column 'block' is there twice"},
      {changed("\"block\": 16", "\"block\": [16]"), "expected a number, a word, true or false"},
      {std::string(1000, '[') + cache, "in:1:1: expected a map"},
      {changed("\"GPU 1\"", std::string(1000, '[')), "in:2:"},
      {changed("\"GFLOP/s\": 1948.1", "\"GFLOP/s\": " + std::string(1000, '[')), "nested deeper than 200 levels"},
  };
  for (const auto& [text, words] : refusals) {
    const std::string message = refusal_of("kernel_tuner", text);
    EXPECT_TRUE(contains(message, words)) << text.substr(0, 60) << ": " << message;
  }
}

}  // namespace
}  // namespace graft::datasets::formats
