// Files as other programs write them and people share them, comments, cut-off ends and odd records included; made by
// hand (tests/datasets/cases), with invented values.
#include <gtest/gtest.h>

#include <string>

#include "base/files.h"
#include "datasets/formats/columns.h"
#include "tests/datasets/formats_support.h"

namespace graft::datasets::formats {
namespace {

using Options = std::map<std::string, std::string, std::less<>>;

const std::filesystem::path cases = std::filesystem::path(GRAFT_SOURCE_DIR) / "tests/datasets/cases";

Imported imported_case(const std::string& format, const std::string& file, Options options = {}, bool strict = false) {
  const Folder folder;
  return imported_platforms(format, folder, {cases / file}, "p", std::move(options), strict).at("p");
}

std::string refusal_of_case(const std::string& format, const std::string& file, Options options = {},
                            bool strict = false) {
  return message_of<base::UserError>([&] { imported_case(format, file, std::move(options), strict); });
}

std::vector<double> seconds_of_rows(const Dataset& dataset) {
  std::vector<double> seconds;
  for (const Dataset::Row& row : dataset.rows) {
    seconds.push_back(row.measurement.seconds.empty() ? 0 : row.measurement.seconds.front());
  }
  return seconds;
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-12 + 1e-9 * expected[i]) << i;
}

std::string counted(const SkippedByReason& all) {
  std::string text;
  for (const auto& [reason, skipped] : all) {
    const std::string& first = skipped.first;
    const std::size_t name = first.rfind('/', first.find(": "));
    text += reason + " x" + std::to_string(skipped.count) + " " + first.substr(name + 1, first.find(": ") - name - 1) +
            "\n";
  }
  return text;
}

TEST(Cases, AutoTvmBeforeTemplatesHadTargets) {
  const Imported in = imported_case("autotvm", "lines/autotvm_0.1_comments_cut.log");
  EXPECT_EQ(in.dataset.rows.size(), 3u);
  expect_near(seconds_of_rows(in.dataset), {0.00025, 0.00035, 0.0012});
  EXPECT_EQ(in.counts.records, 3);
  EXPECT_EQ(in.counts.templates.at("conv2d_NCHWc.x86").with_program, 2);
  EXPECT_EQ(in.counts.templates.at("conv2d_nchw_spatial_pack.arm_cpu").rows, 1);
  EXPECT_EQ(in.dataset.workloads.at(0).text(), "conv2d(n=1,c=32,h=20,w=20,k=48,r=3,s=3,stride=1,pad=1,dtype=f32)");
  EXPECT_EQ(in.dataset.rows[0].arguments, (std::vector<std::int64_t>{8, 16, 4, 1}));
  EXPECT_EQ(in.dataset.workloads.at(1).text(), "conv2d(n=1,c=16,h=24,w=24,k=32,r=3,s=3,stride=1,pad=1,dtype=f32)");
  EXPECT_EQ(counted(in.ignored),
            "comment x1 autotvm_0.1_comments_cut.log:1\nempty line x1 autotvm_0.1_comments_cut.log:2\n");
  ASSERT_EQ(in.skipped.size(), 1u);
  const Skipped& cut = in.skipped.at("cut off at the end of the file");
  EXPECT_EQ(cut.count, 1);
  EXPECT_TRUE(contains(cut.first, "autotvm_0.1_comments_cut.log:6:")) << cut.first;
  EXPECT_TRUE(contains(refusal_of_case("autotvm", "lines/autotvm_0.1_comments_cut.log", {}, true), "cut.log:6:"));
}

TEST(Cases, OneOddRecordCostsNoFile) {
  const Imported in = imported_case("autotvm", "lines/autotvm_one_odd_record.log");
  EXPECT_EQ(in.dataset.rows.size(), 3u);
  EXPECT_EQ(in.dataset.workloads.size(), 2u);
  EXPECT_TRUE(in.skipped.empty());

  // Odder still: a tensor that is none, between two that are.
  const Folder folder;
  std::string log = base::read_file(cases / "lines/autotvm_one_odd_record.log");
  const std::size_t second = log.find("[1, 64, 1, 96]");
  log.replace(second, 14, "[1, -4, 1, 96]");
  write_plainly(folder / "odd.log", log);
  const Imported odd = imported_platforms("autotvm", folder, {folder / "odd.log"}, "p").at("p");
  expect_near(seconds_of_rows(odd.dataset), {0.00015, 0.000175});
  EXPECT_EQ(odd.counts.records, 2);
  ASSERT_EQ(odd.skipped.size(), 1u);
  EXPECT_TRUE(contains(odd.skipped.begin()->second.first, "odd.log:2")) << odd.skipped.begin()->second.first;
  EXPECT_TRUE(contains(odd.skipped.begin()->second.first, "a size of -4"));
  EXPECT_TRUE(contains(refusal_of("autotvm", log), "in:2"));  // a strict import
}

TEST(Cases, LogsOfAutoSchedulerMayHaveComments) {
  const Imported in = imported_case("auto_scheduler", "lines/auto_scheduler_comments.json", {}, true);
  expect_near(seconds_of_rows(in.dataset), {0.0002});
  EXPECT_EQ(counted(in.ignored),
            "comment x1 auto_scheduler_comments.json:1\nempty line x1 "
            "auto_scheduler_comments.json:2\n");
}

TEST(Cases, LogsOfAnotherFormatAreNamed) {
  EXPECT_TRUE(contains(refusal_of_case("autotvm", "lines/auto_scheduler_comments.json"),
                       "a record of auto_scheduler; import it as the format auto_scheduler"));
}

TEST(Cases, CachesOfRunsThatGoOn) {
  for (const char* file : {"documents/kernel_tuner_open.json", "documents/kernel_tuner_open_comma.json"}) {
    const Imported in = imported_case("kernel_tuner", file, {}, true);
    expect_near(seconds_of_rows(in.dataset), {3.5e-3, 2.25e-3});
    EXPECT_EQ(in.dataset.rows[0].measurement.seconds.size(), 3u);
    EXPECT_TRUE(in.skipped.empty());
  }
  const Imported cut = imported_case("kernel_tuner", "documents/kernel_tuner_cut_in_entry.json");
  expect_near(seconds_of_rows(cut.dataset), {3.5e-3, 2.25e-3});
  EXPECT_EQ(counted(cut.skipped), "cut off at the end of the file x1 kernel_tuner_cut_in_entry.json:27\n");
  EXPECT_TRUE(contains(refusal_of_case("kernel_tuner", "documents/kernel_tuner_cut_in_entry.json", {}, true),
                       "json:27: the file ends in the middle of this entry"));
}

// At whatever character a cache ends, the entries before it are rows.
TEST(Cases, CachesMayEndAnywhere) {
  const Folder folder;
  const std::string whole = base::read_file(cases / "documents/kernel_tuner_open.json") + "}\n}\n";
  const std::size_t first = whole.find('}', whole.find("\"16,1\"")) + 1, second = whole.find('}', first) + 1;
  for (std::size_t length = first; length <= whole.size(); ++length) {
    write_plainly(folder / "cache.json", whole.substr(0, length));
    const Imported in = imported_platforms("kernel_tuner", folder, {folder / "cache.json"}, "p").at("p");
    EXPECT_EQ(in.dataset.rows.size(), length < second ? 1u : 2u) << length;
    const bool is_in_entry = length > whole.find('"', first) && length < second;
    EXPECT_EQ(in.skipped.size(), is_in_entry ? 1u : 0u) << length;
  }
}

TEST(Cases, PackedCachesMayEndInTheMiddle) {
  const Folder folder;
  std::string cache = R"({"tune_params_keys": ["a"], "cache": {)";
  for (int i = 0; i < 60'000; ++i) {
    const std::string a = std::to_string(std::int64_t(i) * i);
    cache += (i == 0 ? "\n\"" : ",\n\"") + a + R"(": {"a": )" + a + R"(, "time": 0.)" + std::to_string(i + 1) + "}";
  }
  const std::string packed = gzipped(cache, folder);
  write_plainly(folder / "torn.json.gz", packed.substr(0, packed.size() / 2));
  const Imported in = imported_platforms("kernel_tuner", folder, {folder / "torn.json.gz"}, "p").at("p");
  EXPECT_GT(in.dataset.rows.size(), 20'000u);
  EXPECT_LT(in.dataset.rows.size(), 40'000u);
  EXPECT_TRUE(contains(message_of<base::UserError>([&] {
                         imported_platforms("kernel_tuner", folder, {folder / "torn.json.gz"}, "p", {}, true);
                       }),
                       "torn.json.gz: is not valid gzip: it ends in the middle"));
}

TEST(Cases, EntriesOfDocumentsAreSkippedOneByOne) {
  const Imported in = imported_text("kernel_tuner", "gpu.json", R"({"tune_params_keys": ["a", "b"], "cache": {
"1,1": {"a": 1, "b": 1, "time": 2.0},
"1,2": {"a": 1, "b": 2, "time": NaN},
"2,1": {"a": 2, "time": 3.0},
"2,2": {"a": 2, "b": 2, "time": -1},
"2,2": {"a": 2, "b": 2, "time": 1},
"3,1": {"a": 3, "b": inf, "time": 1},
"3,2": {"a": 3, "b": 2, "time": "4.5"}}})");
  expect_near(seconds_of_rows(in.dataset), {2e-3, 0, 4.5e-3});
  EXPECT_EQ(in.dataset.rows.at(1).measurement.reason, "NaN in place of a time");
  std::int64_t skipped = 0;
  for (const auto& [reason, of_reason] : in.skipped) skipped += of_reason.count;
  EXPECT_EQ(skipped, 4);
  EXPECT_TRUE(contains(in.skipped.at("a time of #").first, "gpu.json:5:")) << counted(in.skipped);
}

TEST(Cases, UnitsOfT4StandInManyPlaces) {
  const Imported in = imported_case("kernel_tuner", "documents/t4_microseconds.json", {}, true);
  expect_near(seconds_of_rows(in.dataset), {80.5e-6, 62.5e-6, 64.25e-6});
  EXPECT_EQ(codegen::to_text(*in.dataset.sketches.at(0)),
            "sketch t4_microseconds\ncolumns $multiply_block_size{32|64|128}\n");
  EXPECT_EQ(in.dataset.provenance.at("device").as_string(), "Some GPU");

  const auto seconds = [](const std::string& outside, const std::string& inside, Options options = {}) {
    const Imported one = imported_text("kernel_tuner", "gpu.json",
                                       "{" + outside + R"("results": [{"configuration": {"a": "1"}, )" + inside + "}]}",
                                       std::move(options));
    return one.dataset.rows.at(0).measurement.seconds.at(0);
  };
  const std::string time = R"("measurements": [{"name": "time", "value": "2.5"}])",
                    runs = R"("times": {"runtimes": ["2.5"]})";
  for (const std::string& times : {time, runs}) {
    EXPECT_NEAR(seconds("", times), 2.5e-3, 1e-12) << times;  // the format's own unit
    EXPECT_NEAR(seconds("", times, {{"unit", "us"}}), 2.5e-6, 1e-15) << times;
    EXPECT_NEAR(seconds(R"("metadata": {"timeunit": "Nanoseconds"}, )", times), 2.5e-9, 1e-18) << times;
    EXPECT_NEAR(seconds(R"("metadata": {"time_unit": "miliseconds"}, )", times), 2.5e-3, 1e-12) << times;
    EXPECT_NEAR(seconds(R"("timeunit": "s", )", times), 2.5, 1e-9) << times;
    EXPECT_NEAR(seconds("", times + R"(, "timeunit": "us")"), 2.5e-6, 1e-15) << times;
  }
  EXPECT_NEAR(seconds("", R"("times": {"runtimes": [2.5], "unit": "microseconds"})"), 2.5e-6, 1e-15);
  EXPECT_NEAR(
      seconds("", R"("times": {"runtimes": [2.5]}, "measurements": [{"name": "time", "value": 2.5, "unit": "us"}])"),
      2.5e-6, 1e-15);
  EXPECT_NEAR(seconds(R"("metadata": {"timeunit": "microseconds"}, )",
                      R"("measurements": [{"name": "time", "value": 2.5, "unit": "ms"}])"),
              2.5e-3, 1e-12);  // the nearest counts
  EXPECT_TRUE(contains(message_of<base::UserError>([&] { seconds(R"("metadata": {"timeunit": "ticks"}, )", time); }),
                       "unknown unit 'ticks'; known: s, ms, us, ns"));
  EXPECT_TRUE(contains(message_of<base::UserError>([&] { seconds("", time + R"(, "timeunit": "ticks")"); }),
                       "unknown unit 'ticks'"));
  EXPECT_TRUE(contains(message_of<base::UserError>([&] {
                         seconds(R"("metadata": {"timeunit": "us"}, )", time, {{"unit", "ms"}});
                       }),
                       "option unit: 'ms', but"));
}

TEST(Cases, ResultsOfKtt) {
  const Imported in = imported_case("ktt", "documents/ktt_results.json", {}, true);
  ASSERT_EQ(in.dataset.rows.size(), 3u);
  expect_near(seconds_of_rows(in.dataset), {96.25e-6, 71.5e-6, 0});
  EXPECT_EQ(in.dataset.rows[2].measurement.status, Status::wrong_result);
  EXPECT_EQ(in.dataset.rows[2].measurement.reason, "ValidationFailed");
  EXPECT_EQ(in.dataset.workloads, std::vector<codegen::Workload>{codegen::Workload("table(name=sum)")});
  EXPECT_EQ(codegen::to_text(*in.dataset.sketches.at(0)), "sketch sum\ncolumns $BLOCK{32|64|128} $UNROLL{1|2|4}\n");

  std::string text = base::read_file(cases / "documents/ktt_results.json");
  const std::size_t unit = text.find("\"Microseconds\"");
  std::string ticks = text, none = text, other = text;
  EXPECT_TRUE(contains(refusal_of("ktt", ticks.replace(unit, 14, "\"Ticks\"")), "in:8:22: unknown unit 'Ticks'"));
  none.replace(text.find("TimeUnit"), 8, "Unit");
  EXPECT_TRUE(
      contains(refusal_of("ktt", none), "'Metadata' has no 'TimeUnit'; give the unit of times by option unit=us"));
  expect_near(seconds_of_rows(imported_text("ktt", "k.json", none, {{"unit", "ns"}}).dataset), {96.25e-9, 71.5e-9, 0});
  std::string failed = text;
  failed.replace(failed.find("\"TotalDuration\":"), 16, "\"TotalDuration\": Infinity, \"before\":");
  const Imported marked = imported_text("ktt", "k.json", failed);
  EXPECT_EQ(marked.dataset.rows.at(0).measurement.status, Status::crashed);
  EXPECT_EQ(marked.dataset.rows.at(0).measurement.reason, "infinity in place of a time");
  // Kernels of other parameters in one file; the last entry is cut off.
  const std::size_t third = text.rfind("\"KernelName\": \"sum\"");
  other.replace(third, 19, "\"KernelName\": \"mul\"");
  const Imported two = imported_text("ktt", "k.json", other);
  EXPECT_EQ(two.dataset.workloads.size(), 2u);
  EXPECT_EQ(two.dataset.sketches.size(), 2u);
  const Imported cut = imported_text("ktt", "k.json", text.substr(0, third));
  EXPECT_EQ(cut.dataset.rows.size(), 2u);
  EXPECT_EQ(cut.skipped.at("cut off at the end of the file").count, 1);
  EXPECT_TRUE(contains(refusal_of("ktt", "{}"), "in: no results of KTT"));
  EXPECT_TRUE(contains(refusal_of("kernel_tuner", text), "import them as the format ktt"));
}

std::string columns_of(const Dataset& dataset) {
  const std::string text = codegen::to_text(*dataset.sketches.at(0));
  return text.substr(text.find('\n') + 1);
}

TEST(Cases, CountersBehindTheTime) {
  const Imported in = imported_case("table", "table/table_counters_behind_the_time.csv", {{"time", "duration (us)"}});
  expect_near(seconds_of_rows(in.dataset), {77.5e-6, 62.25e-6, 63.5e-6});
  EXPECT_EQ(columns_of(in.dataset), "columns $kernel{sum} $block{32|64|128}\n");
  const Imported named = imported_case("table", "table/table_counters_behind_the_time.csv",
                                       {{"time", "duration (us)"}, {"parameters", "block"}, {"workload", "kernel"}});
  EXPECT_EQ(columns_of(named.dataset), "columns $block{32|64|128}\n");
  EXPECT_EQ(named.dataset.workloads.at(0).text(), "table(name=table_counters_behind_the_time.sum)");
  const auto refusal = [](Options options) {
    return refusal_of_case("table", "table/table_counters_behind_the_time.csv", std::move(options));
  };
  const Imported found = imported_case("table", "table/table_counters_behind_the_time.csv", {});
  EXPECT_EQ(seconds_of_rows(found.dataset), seconds_of_rows(in.dataset));
  EXPECT_EQ(columns_of(found.dataset), columns_of(in.dataset));
  const std::string ignored = refusal({{"ignore", "\"duration (us)\""}});
  EXPECT_TRUE(contains(ignored, "no column of times 'p'; ")) << ignored;
  EXPECT_TRUE(contains(ignored,
                       "option time=COLUMN; numbers with fractions, so perhaps times: duration (us), "
                       "dram_pct; whole numbers or words, so perhaps parameters: kernel, block, sectors"))
      << ignored;
  EXPECT_TRUE(contains(refusal({{"time", "duration"}}), "no column 'duration' (time)"));
  EXPECT_TRUE(contains(refusal({{"time", "duration (us)"}, {"unit", "ms"}}), "names another unit"));
  EXPECT_TRUE(contains(refusal({{"time", "dram_pct"}}), "option higher-is-better=yes"));
  EXPECT_TRUE(contains(refusal({{"time", "duration (us)"}, {"ignore", "blok"}}), "no column 'blok' (ignore); did you"));
  EXPECT_TRUE(contains(refusal({{"time", "duration (us)"}, {"ignore", "duration (us)"}}), "named by another option"));
}

TEST(Cases, UnitsInHeadsAreUnderstoodOrAskedFor) {
  const auto seconds = [](const std::string& head, Options options = {}) {
    options.emplace("time", head);
    const Imported in = imported_text("table", "t.csv", "a," + head + "\n1,2.5\n2,3.5\n", std::move(options));
    return in.dataset.rows.at(0).measurement.seconds.at(0);
  };
  EXPECT_NEAR(seconds("time(s)"), 2.5, 1e-12);
  EXPECT_NEAR(seconds("time [ms]"), 2.5e-3, 1e-12);
  EXPECT_NEAR(seconds("time (Microseconds)"), 2.5e-6, 1e-15);
  EXPECT_NEAR(seconds("kernel_time_ns"), 2.5e-9, 1e-18);
  EXPECT_NEAR(seconds("timeMs"), 2.5e-3, 1e-12);
  EXPECT_NEAR(seconds("mean_us"), 2.5e-6, 1e-15);
  EXPECT_NEAR(seconds("latency_ms (mean)"), 2.5e-3, 1e-12);
  EXPECT_NEAR(seconds("seconds"), 2.5, 1e-12);
  EXPECT_NEAR(seconds("ns"), 2.5e-9, 1e-18);
  EXPECT_NEAR(seconds("time (mean)", {{"unit", "us"}}), 2.5e-6, 1e-15);
  // Not a word of time: the name of a platform.
  for (const char* name : {"pixel_us", "time", "s", "p"}) {
    EXPECT_TRUE(contains(message_of<base::UserError>([&] { seconds(name); }),
                         std::string("t.csv:1: nothing says the unit of the times in column '") + name +
                             "'; give it: option unit=s (or ms, us, ns)"))
        << name;
  }
  const std::string asked = message_of<base::UserError>([&] { seconds("time (cycles)"); });
  EXPECT_TRUE(contains(asked,
                       "'cycles' of column 'time (cycles)' is not a known unit of time; say the unit: "
                       "option unit=s"))
      << asked;
}

TEST(Cases, WhatIsPredictedIsNoPlatform) {
  for (const char* platform : {"p", "objective"}) {
    const Folder folder;
    Options options;
    options["unit"] = "s";
    if (std::string(platform) == "p") options["time"] = "objective";
    const auto all =
        imported_platforms("table", folder, {cases / "table/table_objective_and_more.csv"}, platform, options);
    ASSERT_EQ(all.size(), 1u);
    const Dataset& dataset = all.at(platform).dataset;
    expect_near(seconds_of_rows(dataset), {15.92, 12.5, 9.25});
    EXPECT_EQ(dataset.sketches.at(0)->arguments.size(), 3u);
    EXPECT_EQ(dataset.rows[1].arguments, (std::vector<std::int64_t>{0, 1, 0}));  // an empty word is a value
  }
}

TEST(Cases, MoreIsBetter) {
  const Options options = {{"time", "peak_percent"}, {"higher-is-better", "yes"}};
  const Imported in = imported_case("table", "table/table_higher_is_better.csv", options, true);
  expect_near(seconds_of_rows(in.dataset), {1 / 11.5, 1 / 63.25, 1 / 81.5});
  EXPECT_EQ(columns_of(in.dataset), "columns $f{1|2} $x{1|4|6} $y{1}\n");
  EXPECT_EQ(counted(in.ignored), "comment x1 table_higher_is_better.csv:1\n");
  EXPECT_TRUE(contains(refusal_of_case("table", "table/table_higher_is_better.csv", {{"time", "peak_percent"}}),
                       "table_higher_is_better.csv:2: column 'peak_percent' seems to hold values of which more is "
                       "better; say so: option higher-is-better=yes"));
  EXPECT_TRUE(contains(refusal_of_table("a,p\n1,2.5\n2,0\n", {{"higher-is-better", "yes"}}),
                       "in:3: column 'p': expected a value > 0, got '0'"));
  EXPECT_TRUE(contains(refusal_of_table("a,p\n1,2.5\n", {{"higher-is-better", "maybe"}}), "expected yes or no"));
}

TEST(Cases, WorkloadsInColumns) {
  const Imported in = imported_case("table", "table/table_workloads_in_columns.csv",
                                    {{"time", "time(s)"}, {"workload", "shape,threads"}}, true);
  expect_near(seconds_of_rows(in.dataset), {0.0105, 0.0095, 0.0415, 0.0365});
  ASSERT_EQ(in.dataset.workloads.size(), 2u);
  EXPECT_EQ(in.dataset.workloads[0].text(),
            "table(name=table_workloads_in_columns,shape_0=64,shape_1=64,shape_2=64,threads=1)");
  EXPECT_EQ(columns_of(in.dataset), "columns $tile_0{4|8} $tile_1{8} $tile_2{16}\n");
  // Words of one spelling are not those of another.
  const Imported words = imported_table("t.csv", "kind,a,p\na b,1,0.5\na_b,1,0.25\n,1,0.125\n", {{"workload", "kind"}});
  EXPECT_EQ(words.dataset.workloads.size(), 3u);
  // A column that holds other things, too, stays a column of words.
  const Imported mixed = imported_table("t.csv", "a,p\n\"(1, 2)\",0.5\nnone,0.25\n");
  EXPECT_EQ(columns_of(mixed.dataset), "columns $a{(1, 2)|none}\n");
}

TEST(Cases, OddLinesOfTablesAreCounted) {
  const Imported in = imported_table("t.csv",
                                     "# made by a script\na,b,p\n1,2,0.5\n\n# a remark\n1,0.5\n3,nan,1\n4,4,failed\n"
                                     "#5,4,0.25\n\"6,4,1\n7,4,0.125");
  expect_near(seconds_of_rows(in.dataset), {0.5, 0.25, 0.125});
  EXPECT_EQ(counted(in.ignored), "comment x2 t.csv:1\nempty line x1 t.csv:4\n");
  EXPECT_EQ(counted(in.skipped),
            "# cells; the head has # x1 t.csv:6\n"
            "a quote that is never closed on this line x1 t.csv:10\n"
            "column '...': expected a time > #, got '...'; leave the cell empty if it was not measured x1 t.csv:8\n"
            "column '...': nan is not a number of a table x1 t.csv:7\n");
}

// What a file holds breaks no line of a table that lists it, and moves no cursor.
TEST(Cases, PlacesOfSkippedRecordsAreOneLine) {
  const Imported in = imported_table("t.csv", "a,p\n1,0.5\n2,\x1b[2Jfai\rled\x07\n");
  ASSERT_EQ(in.skipped.size(), 1u);
  const std::string& first = in.skipped.begin()->second.first;
  EXPECT_TRUE(contains(first, "t.csv:3: column 'p': expected a time > 0, got ' fai led")) << first;
  EXPECT_TRUE(std::all_of(first.begin(), first.end(), [](char c) { return (unsigned char)c >= ' '; })) << first;
}

TEST(Cases, PackedFilesMayEndInTheMiddle) {
  const Folder folder;
  std::string text = "a,p\n";
  for (int i = 0; i < 60'000; ++i) text += std::to_string(std::int64_t(i) * i) + "," + std::to_string(i % 97) + ".5\n";
  const std::string packed = gzipped(text, folder);
  write_plainly(folder / "torn.csv.gz", packed.substr(0, packed.size() / 2));
  const Imported in = imported_platforms("table", folder, {folder / "torn.csv.gz"}, "p", {{"unit", "s"}}).at("p");
  EXPECT_GT(in.dataset.rows.size(), 20'000u);
  EXPECT_LT(in.dataset.rows.size(), 60'000u);
  std::int64_t skipped = 0;
  for (const auto& [reason, of_reason] : in.skipped) skipped += of_reason.count;
  EXPECT_LE(skipped, 2);
  EXPECT_GE(skipped, 1);
}

// Broken lines of many kinds cost neither memory nor the file; what one dataset cannot hold is refused as a whole.
TEST(Cases, ReasonsAreFew) {
  std::string log = "good,p\n1,0.5\n";
  for (int i = 0; i < 300; ++i)
    log += std::string(std::size_t(i % 100), 'x') + ",1\",2,\n\"" + std::string(std::size_t(i), 'y') + "\n";
  const Imported in = imported_table("t.csv", log);
  EXPECT_EQ(in.dataset.rows.size(), 1u);
  EXPECT_LE(in.skipped.size(), 33u);
  EXPECT_TRUE(contains(refusal_of("programs", "#\n{\"workload\": 1}\n"), "in:2"));
  const Folder folder;
  write_plainly(folder / "long.log", std::string(3 << 20, 'x') + "\n# comment\n" + std::string(2 << 20, 'y'));
  const std::string message =
      message_of<base::UserError>([&] { imported_platforms("auto_scheduler", folder, {folder / "long.log"}, "p"); });
  EXPECT_TRUE(contains(message, "long.log:1: the line is longer than")) << message;
}

}  // namespace
}  // namespace graft::datasets::formats
