// Tables of programs that we know, as these write them (with invented values): what becomes a row, in which unit, and
// what does not.
#include <fmt/format.h>

#include "tests/datasets/formats_support.h"

namespace graft::datasets::formats {
namespace {

using Options = std::map<std::string, std::string, std::less<>>;

class Notes : public base::Monitor {
 public:
  void note(std::string_view line) override { text += std::string(line) + "\n"; }
  std::string text;
};

struct Table {
  std::string rows;  // "NAME VALUE ... SECONDS", or the reason, a line each
  std::string notes;
  std::int64_t ignored = 0, dropped = 0;
};

std::string value_text(const codegen::Sketch& sketch, std::size_t argument, std::int64_t value) {
  for (const codegen::Sketch::Token& token : sketch.columns) {
    if (token.argument == int(argument) && !token.alternatives.empty()) return token.alternatives[std::size_t(value)];
  }
  return std::to_string(value);
}

Table table(const std::string& name, std::string_view text, Options options = {}) {
  const Folder folder;
  write_plainly(folder / name, text);
  Notes notes;
  Import import = imported("table", {{folder / name}, "p", std::move(options), true}, notes);
  Table result;
  result.notes = notes.text;
  for (const auto& [what, ignored] : import.ignored()) result.ignored += ignored.count;
  for (const auto& [why, count] : import.dataset().counts().dropped) result.dropped += count;
  import.dataset().commit(folder / "t.h5");
  const Dataset dataset = read_dataset(folder / "t.h5");
  for (const Dataset::Row& row : dataset.rows) {
    const codegen::Sketch& sketch = *dataset.sketches.at(std::size_t(row.sketch));
    for (std::size_t i = 0; i < row.arguments.size(); ++i)
      result.rows += fmt::format("{} {} ", sketch.arguments[i].name, value_text(sketch, i, row.arguments[i]));
    const Measurement& measurement = row.measurement;
    result.rows +=
        measurement.status == Status::ok ? fmt::format("{:g}\n", seconds_of(measurement)) : measurement.reason + "\n";
  }
  return result;
}

std::string refusal(std::string_view text, Options options = {}) {
  return refusal_of("table", text, std::move(options));
}

TEST(TableRules, GoogleBenchmark) {
  // With what --benchmark_out writes in front of the names.
  const std::string csv =
      "2026-01-01T09:00:00+00:00\nRunning ./bench\nRun on (2 X 2000 MHz CPU s)\nLoad Average: 0.24, 0.80, 1.36\n"
      "name,iterations,real_time,cpu_time,time_unit,bytes_per_second,items_per_second,label,error_occurred,error_"
      "message\n"
      "\"gemm/n:64/tile:8\",1000,900.5,2.5,ns,,,,,\n"
      "\"gemm/n:64/tile:16\",100,3.5,3.5,us,,,,,\n"
      "\"gemm/n:128/tile:8/repeats:2/real_time\",10,1.25,1.5,ms,,,,,\n"
      "\"gemm/n:128/tile:8/repeats:2/real_time\",10,1.35,1.5,ms,,,,,\n"
      "\"gemm/n:128/tile:8/repeats:2/real_time_mean\",2,1.3,1.5,ms,,,,,\n"
      "\"gemm/n:128/tile:8/repeats:2/real_time_stddev\",2,0.05,0,ms,,,,,\n"
      "\"gemm/n:128/tile:8/repeats:2/real_time_cv\",2,3.8,0,%,,,,,\n"
      "\"gemm/n:128/tile:16\",,,,,,,,true,\"no memory\"\n"
      "\"gemm_BigO\",,0.5,0.5,N^3,,,,,\n\"gemm_RMS\",,3,3,%,,,,,\n";
  const Table read = table("b.csv", csv);
  EXPECT_EQ(read.rows,
            "n 64 tile 8 9.005e-07\nn 64 tile 16 3.5e-06\nn 128 tile 8 0.00125\nn 128 tile 8 0.00135\n"
            "n 128 tile 16 error_occurred true\n");
  EXPECT_EQ(read.ignored, 4 + 5);
  EXPECT_TRUE(contains(read.notes, "4 lines in front of the names of the columns left out")) << read.notes;
  EXPECT_TRUE(contains(read.notes,
                       "a table of Google Benchmark; parameters: n, tile; times: real_time in units of "
                       "column 'time_unit'"))
      << read.notes;
  EXPECT_EQ(table("b.csv", csv, {{"time", "cpu_time"}}).rows.substr(0, 20), "n 64 tile 8 2.5e-09\n");

  const Table json =
      table("b.json", R"({"context": {"caches": [{"level": 1}, {"level": 2}], "library_build_type": "release"},
    "benchmarks": [
    {"name": "BM_sum/8", "run_name": "BM_sum/8", "run_type": "iteration", "threads": 1, "iterations": 10, "real_time": 1.5e+02, "cpu_time": 1, "time_unit": "ns"},
    {"name": "BM_max/8_mean", "run_name": "BM_max/8", "run_type": "aggregate", "aggregate_name": "mean", "iterations": 3, "real_time": 3.5, "cpu_time": 2, "time_unit": "us"},
    {"name": "BM_max/8_median", "run_name": "BM_max/8", "run_type": "aggregate", "aggregate_name": "median", "iterations": 3, "real_time": 3.25, "cpu_time": 2, "time_unit": "us"},
    {"name": "BM_sum_BigO", "run_name": "BM_sum", "run_type": "aggregate", "aggregate_name": "BigO", "cpu_coefficient": 2.5, "big_o": "N", "time_unit": "ns"}
    ]})");
  EXPECT_EQ(json.rows, "name BM_sum arg_0 8 1.5e-07\nname BM_max arg_0 8 3.25e-06\n");
  EXPECT_EQ(json.ignored, 2);

  // A program's own name may end like a statistic; without the rows that it is of, it is a name.
  const std::string head = "name,iterations,real_time,cpu_time,time_unit\n";
  EXPECT_EQ(table("b.csv", head + "reduce_max,10,1.5,1.5,us\nreduce_min,10,2.5,2.5,us\n").rows,
            "name reduce_max 1.5e-06\nname reduce_min 2.5e-06\n");
  EXPECT_EQ(table("b.csv", head + "f/8_mean,3,1.5,1,us\nf/8_median,3,1.25,1,us\nf/8_stddev,3,0.5,1,us\n").rows,
            "arg_0 8 1.25e-06\n");
}

TEST(TableRules, Hyperfine) {
  const Table csv = table("h.csv",
                          "command,mean,stddev,median,user,system,min,max,parameter_threads,parameter_tile\n"
                          "./p 1 8,0.5,0.01,0.45,0.4,0.01,0.44,0.6,1,8\n./p 2 8,0.3,,0.25,0.4,0.01,0.24,0.4,2,8\n");
  EXPECT_EQ(csv.rows, "threads 1 tile 8 0.45\nthreads 2 tile 8 0.25\n");
  const std::string json = R"({"results": [
    {"command": "./p 1", "mean": 0.5, "stddev": 0.01, "median": 0.45, "user": 0.4, "system": 0.01, "min": 0.4, "max": 0.6, "times": [0.44, 0.6], "exit_codes": [0, 0], "parameters": {"threads": "1"}},
    {"command": "./p 2", "mean": 0.3, "stddev": null, "median": 0.25, "user": 0.4, "system": 0.01, "min": 0.2, "max": 0.4, "times": [0.24, 0.4], "exit_codes": [0, 1], "parameters": {"threads": "2"}}]})";
  EXPECT_EQ(table("h.json", json).rows, "threads 1 0.45\nthreads 2 exit_codes [0, 1]\n");
  // Without parameters the command is one.
  EXPECT_EQ(table("h.csv", "command,mean,stddev,median,user,system,min,max\n./a,0.5,0.1,0.4,0,0,0,1\n").rows,
            "command ./a 0.4\n");
}

TEST(TableRules, Optuna) {
  const std::string text =
      ",number,value,datetime_start,datetime_complete,duration,params_tile,params_unroll,state\n"
      "0,0,0.5,2024-01-01 10:00:00,2024-01-01 10:00:01,0 days 00:00:01,8,1,COMPLETE\n"
      "1,1,,2024-01-01 10:00:00,2024-01-01 10:00:01,0 days 00:00:01,32,2,FAIL\n"
      "2,2,0.75,2024-01-01 10:00:00,2024-01-01 10:00:01,0 days 00:00:01,4,2,PRUNED\n"
      "3,3,,2024-01-01 10:00:00,,,4,4,RUNNING\n";
  const Table read = table("t.csv", text, {{"unit", "ms"}});
  EXPECT_EQ(read.rows, "tile 8 unroll 1 0.0005\ntile 32 unroll 2 state FAIL\ntile 4 unroll 2 state PRUNED\n");
  EXPECT_EQ(read.dropped, 1);
  EXPECT_TRUE(contains(refusal(text), "nothing says the unit of the times in column 'value'; give it: option unit=s"));
  EXPECT_EQ(table("t.csv", text, {{"higher-is-better", "yes"}}).rows.substr(0, 18), "tile 8 unroll 1 2\n");
  EXPECT_TRUE(contains(refusal("number,values_0,values_1,params_a,state\n0,0.5,1.5,8,COMPLETE\n", {{"unit", "s"}}),
                       "which column is the time? option time=COLUMN"));
}

TEST(TableRules, BenchmarkDotNet) {
  const Table csv = table("b.csv",
                          "Method;Job;Platform;N;Mode;Mean;Error;StdDev;Gen 0;Allocated\n"
                          "Sum;DefaultJob;X64;100;fast;1,234.5 ns;0.1 ns;0.1 ns;-;24 B\n"
                          "Sum;DefaultJob;X64;1000;fast;12.5 \xce\xbcs;0.1 us;0.1 us;-;24 B\n"
                          "Sum;DefaultJob;X64;1000;slow;NA;NA;NA;-;24 B\n");
  EXPECT_EQ(csv.rows,
            "N 100 Mode fast 1.2345e-06\nN 1000 Mode fast 1.25e-05\nN 1000 Mode slow NA in place of a time\n");
  const Table json = table("b.json", R"({"Title": "T", "Benchmarks": [
    {"Method": "Sum", "Parameters": "N=100&Mode=fast", "FullName": "x", "Statistics": {"N": 15, "Min": 9.5, "Median": 10.5, "Mean": 11.5}},
    {"Method": "Max", "Parameters": "N=100&Mode=slow", "FullName": "y", "Statistics": {"N": 15, "Min": 9.5, "Median": 20.5, "Mean": 21.5}}]})");
  EXPECT_EQ(json.rows, "Method Sum N 100 Mode fast 1.05e-08\nMethod Max N 100 Mode slow 2.05e-08\n");
}

TEST(TableRules, TunersOfParameters) {
  EXPECT_EQ(table("h.csv", "x1,x2,Value,Valid,Timestamp\n1,2,0.5,True,1\n2,2,-1,False,2\n4,2,0.25,True,3\n",
                  {{"time", "Value"}, {"unit", "s"}})
                .rows,
            "x1 1 x2 2 0.5\nx1 2 x2 2 Valid False\nx1 4 x2 2 0.25\n");
  const Table negated = table(
      "y.csv", "p:P0,p:P1,objective,job_id,m:timestamp_submit\n8,a,-1.5,0,0.1\n16,b,-2.5,1,0.2\n32,b,F_time,2,0.2\n",
      {{"unit", "s"}});
  EXPECT_EQ(negated.rows, "P0 8 P1 a 1.5\nP0 16 P1 b 2.5\nP0 32 P1 b F_time in place of a time\n");
  EXPECT_TRUE(contains(negated.notes, "all negated")) << negated.notes;
  EXPECT_EQ(table("y.csv", "P0,P1,objective,elapsed_sec\n8,a,1.5,10.5\n16,b,2.5,20.5\n", {{"unit", "s"}}).rows,
            "P0 8 P1 a 1.5\nP0 16 P1 b 2.5\n");
  EXPECT_EQ(table("c.json", R"({"kernel_family": "xgemm", "device_core_clock": "1000", "results": [
      {"kernel": "Xgemm", "time": 5.375, "parameters": {"GEMMK": 0, "KWG": 16}},
      {"kernel": "Xgemm", "time": 6.5, "parameters": {"GEMMK": 1, "KWG": 16}}]})")
                .rows,
            "GEMMK 0 KWG 16 0.005375\nGEMMK 1 KWG 16 0.0065\n");
}

// The three forms that its releases have written.
TEST(TableRules, Smac) {
  const std::string configs =
      R"("configs": {"1": {"tile": 8, "u": "a"}, "2": {"tile": 16, "u": "b"}}, "config_origins": {})";
  const std::string data[] = {
      R"({"config_id": 1, "instance": null, "seed": 0, "cost": 0.5, "time": 9, "status": 1, "additional_info": {}},
         {"config_id": 2, "instance": null, "seed": 0, "cost": 2147483647.0, "time": 9, "status": 2, "additional_info": {"t": 1}})",
      R"([1, null, 0, null, 0.5, 9, 1, 1.1, 1.2, {}], [2, null, 0, null, 2147483647.0, 9, 2, 1.1, 1.2, {}])",
      R"([1, null, 0, null, 0.5, 9, 7.5, 1, 1.1, 1.2, {}], [2, null, 0, null, 2147483647.0, 9, 7.5, 2, 1.1, 1.2, {}])",
      R"([[1, null, 0, 0.0], [0.5, 9, {"__enum__": "StatusType.SUCCESS"}, 1, 2, {}]],
         [[2, null, 0, 0.0], [2147483647.0, 9, {"__enum__": "StatusType.CRASHED"}, 1, 2, {}]])"};
  for (const std::string& each : data) {
    const Table read =
        table("s.json", fmt::format(R"({{"stats": {{}}, "data": [{}], {}}})", each, configs), {{"unit", "s"}});
    EXPECT_EQ(read.rows.substr(0, read.rows.find("status")), "tile 8 u a 0.5\ntile 16 u b ") << each;
  }
}

TEST(TableRules, OtherBenchmarks) {
  EXPECT_EQ(table("p.json", R"({"machine_info": {}, "benchmarks": [
      {"name": "test_x[8-16]", "fullname": "t.py::test_x[8-16]", "params": {"n": 8, "m": 16}, "stats": {"min": 0.001, "rounds": 5, "median": 0.5, "mean": 2, "data": [0.5, 0.25]}},
      {"name": "test_x[9-16]", "fullname": "t.py::test_x[9-16]", "params": {"n": 9, "m": 16}, "stats": {"min": 0.001, "rounds": 5, "median": 0.25, "mean": 2, "data": [0.5, 0.25]}}]})")
                .rows,
            "n 8 m 16 0.5\nn 9 m 16 0.25\n");
  EXPECT_EQ(
      table("c.jsonl",
            "{\"reason\":\"benchmark-complete\",\"id\":\"sum/fast/100\",\"unit\":\"ns\",\"typical\":{\"estimate\":9,"
            "\"unit\":\"ns\"},\"median\":{\"estimate\":10.25,\"unit\":\"ns\"}}\n"
            "{\"reason\":\"group-complete\",\"group_name\":\"sum\",\"benchmarks\":[\"sum/fast/100\"]}\n")
          .rows,
      "arg_0 100 1.025e-08\n");
  EXPECT_EQ(table("raw.csv",
                  "group,function,value,throughput_num,throughput_type,sample_measured_value,unit,iteration_count\n"
                  "g,f,8,,,1000.5,ns,10\ng,f,16,,,4000.5,us,20\n")
                .rows,
            "group g function f value 8 1.0005e-07\ngroup g function f value 16 0.000200025\n");
  EXPECT_TRUE(
      contains(refusal(R"({"mean": {"point_estimate": 1.5}, "median": {"point_estimate": 1.5}, "std_dev": null})"),
               "cargo criterion --message-format=json"));
}

TEST(TableRules, JsonOfConfigurations) {
  const std::string lines =
      "{\"trial\": 0, \"config\": {\"tile\": 8, \"shape\": [4, 8], \"on\": true}, \"time_ms\": 1.5, \"energy\": 2.5}\n"
      "{\"trial\": 1, \"config\": {\"tile\": 16, \"shape\": [4, 16], \"on\": false}, \"time_ms\": null}\n"
      "{\"trial\": 2, \"config\": {\"tile\": 32, \"shape\": [2, 16], \"on\": false}, \"time_ms\": 2.5}\n";
  const Table read = table("t.jsonl", lines);
  EXPECT_EQ(read.rows, "tile 8 shape_0 4 shape_1 8 on true 0.0015\ntile 32 shape_0 2 shape_1 16 on false 0.0025\n");
  EXPECT_EQ(read.dropped, 1);
  // The same as one document, and of plain columns.
  EXPECT_EQ(table("t.json", R"([{"tile": 8, "t": "1.5 us"}, {"tile": 16, "t": "2.5 ms"}])", {{"time", "t"}}).rows,
            "tile 8 1.5e-06\ntile 16 0.0025\n");
  EXPECT_EQ(table("t.json", R"({"device": "x", "results": [{"tile": 8, "runtime": 1.5}]})", {{"unit", "ms"}}).rows,
            "tile 8 0.0015\n");
  const std::pair<const char*, const char*> refusals[] = {
      {R"([{"tile": 8, "a": 1.5, "b": 2.5}])", "in:1: which column is the time? option time=COLUMN; numbers with "},
      {R"([{"tile": 8, "time": 1.5}])", "nothing says the unit of the times in column 'time'"},
      {R"({"tile": {"0": 8}, "time": {"0": 1.5}})", "in: is JSON without a list of maps; write a map for each"},
      {R"({"tile": 8, "time": )", "in:1:21: "},
      {R"({"cache": {}, "tune_params_keys": ["a"]})", "import it as the format kernel_tuner"},
      {R"([{"configuration": {"a": 1}, "invalidity": "correct", "times": {}}])",
       "import it as the format kernel_tuner"},
      {R"({"Metadata": {}, "Results": []})", "import it as the format ktt"},
      {R"([{"program": "run", "workload": "w", "seconds": [1]}])", "import it as the format programs"},
      {"{\"a\": 1, \"time_ms\": 1}\n{\"a\": 2,\n{\"a\": 3}\n", "in:2:"},
  };
  for (const auto& [text, message] : refusals) EXPECT_TRUE(contains(refusal(text), message)) << refusal(text);
}

TEST(TableRules, ProgramsAreNoFormats) {
  base::Monitor monitor;
  const auto said = [&](const char* format) {
    return message_of<base::UserError>([&] { imported(format, {{"x"}, "p", {}, false}, monitor); });
  };
  for (const char* name : {"google_benchmark", "hyperfine", "optuna", "smac", "pytest-benchmark", "BenchmarkDotNet"})
    EXPECT_TRUE(contains(said(name), "its files are read by the format table")) << said(name);
  EXPECT_FALSE(contains(said("nothing"), "by the format table"));
}

}  // namespace
}  // namespace graft::datasets::formats
