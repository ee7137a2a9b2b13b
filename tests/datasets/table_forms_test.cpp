// Tables as programs and spreadsheets write them: other separators, decimal commas, no head, and columns that were
// measured next to the time.
#include <fmt/format.h>

#include "base/files.h"
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
  Dataset dataset;
  std::string notes;
  SkippedByReason skipped;
};

Table table(std::string_view text, Options options = {}, const std::string& platform = "p") {
  const Folder folder;
  write_plainly(folder / "t.csv", text);
  Notes notes;
  Import import = imported("table", {{folder / "t.csv"}, platform, std::move(options), false}, notes);
  import.dataset().commit(folder / "t.h5");
  return {read_dataset(folder / "t.h5"), notes.text, import.skipped()};
}

std::string refusal(std::string_view text, Options options = {}) {
  return refusal_of("table", text, std::move(options));
}

std::string columns_of(const Table& of) {
  const std::string text = codegen::to_text(*of.dataset.sketches.at(0));
  return text.substr(text.find('\n') + 1);
}

std::vector<double> seconds_of_rows(const Table& of) {
  std::vector<double> seconds;
  for (const Dataset::Row& row : of.dataset.rows) seconds.push_back(seconds_of(row.measurement));
  return seconds;
}

// The same table however it is written.
TEST(TableForms, SeparatorsAndDecimalCommasAreFound) {
  const std::string comma = "tile,layout,time_ms\n8,row,0.5\n16,column,2.25\n";
  const Table plain = table(comma, {{"time", "time_ms"}});
  EXPECT_FALSE(contains(plain.notes, "separated")) << plain.notes;
  const std::pair<std::string, std::string> same[] = {
      {"tile;layout;time_ms\n8;row;0.5\n16;column;2.25\n", "separated by semicolons"},
      {"tile\tlayout\ttime_ms\n8\trow\t0.5\n16\tcolumn\t2.25\n", "separated by tabs"},
      {"tile|layout|time_ms\n8|row|0.5\n16|column|2.25\n", "separated by bars"},
      {"tile;layout;time_ms\r\n8;row;0,5\r\n16;column;2,25\r\n", "a comma in front of their fraction"},
      {"tile\tlayout\ttime_ms\n8\trow\t0,5\n16\tcolumn\t2,25\n", "a comma in front of their fraction"},
      {"tile;layout;time_ms\n8;row;5,0e-1\n16;column;2,25\n", "a comma in front of their fraction"},
      {"\"tile\" ; \"layout\"; \"time_ms\"\n8; \"row\" ; 0,5\n16;\"column\";2,25\n", "separated by semicolons"},
  };
  for (const auto& [text, note] : same) {
    const Table found = table(text, {{"time", "time_ms"}});
    EXPECT_EQ(columns_of(found), columns_of(plain)) << text;
    EXPECT_EQ(seconds_of_rows(found), (std::vector<double>{0.5e-3, 2.25 * 1e-3})) << text;
    EXPECT_TRUE(contains(found.notes, note)) << text << found.notes;
    EXPECT_TRUE(found.skipped.empty()) << text;
  }
}

TEST(TableForms, OptionsSayWhatCannotBeFound) {
  const Table words = table("a;b,time_ms\nx;y,0.5\nx;z,0.25\n", {{"time", "time_ms"}});
  EXPECT_EQ(columns_of(words), "columns $a_b{x;y|x;z}\n");  // commas fit as many lines
  for (const char* name : {"semicolon", ";"}) {
    const Table said = table("a;time_ms\n(1,2);3\n(4,5);6\n", {{"time", "time_ms"}, {"separator", name}});
    EXPECT_EQ(seconds_of_rows(said), (std::vector<double>{3e-3, 6e-3}));
    EXPECT_FALSE(contains(said.notes, "separated")) << said.notes;
  }
  EXPECT_TRUE(contains(refusal("a,time_ms\n1,2\n", {{"separator", "comm"}}),
                       "option separator: unknown separator 'comm'; did you mean"));
  // In quotes, a comma between digits may be anything, and no sign of a decimal comma.
  const Table listed = table("tiles,time_ms\n\"4,8\",2\n\"4,16\",3\n", {{"time", "time_ms"}});
  EXPECT_EQ(columns_of(listed), "columns $tiles{4,16|4,8}\n");
  const Table quoted = table("a,time_ms\n\"1\",\"2,5\"\n\"2\",\"3,5\"\n", {{"time", "time_ms"}, {"decimal", "comma"}});
  EXPECT_EQ(seconds_of_rows(quoted), (std::vector<double>{2.5e-3, 3.5e-3}));
  // 12,345 is two numbers.
  const std::string groups = "a;time_us\n1;12,345\n2;98,760\n";
  EXPECT_TRUE(contains(refusal(groups, {{"time", "time_us"}}),
                       "in: '12,345' may be a fraction or thousands; say which: option decimal=comma"));
  EXPECT_EQ(seconds_of_rows(table(groups, {{"time", "time_us"}, {"decimal", "comma"}})),
            (std::vector<double>{12.345 * 1e-6, 98.76 * 1e-6}));
  EXPECT_EQ(seconds_of_rows(table("a;time_us\n1;0,345\n2;98,760\n", {{"time", "time_us"}})).size(), 2u);
  EXPECT_TRUE(contains(refusal(groups, {{"decimal", "both"}}), "option decimal: expected point or comma, got 'both'"));
}

TEST(TableForms, EmptyCellsAtTheEndsOfLinesAreCells) {
  const Table found = table("name\tsize\ttime_ms\tnote\n\t4\t0.5\t\nx\t8\t0.25\t\n", {{"time", "time_ms"}});
  EXPECT_TRUE(found.skipped.empty());
  EXPECT_EQ(columns_of(found), "columns $name{|x} $size{4|8}\n");
}

// A first row of numbers is a row.
TEST(TableForms, TablesMayHaveNoHead) {
  const std::string text = "conv_1,12,0.5\nconv_2,13,0.25\nconv_1,14,0.125\n";
  const Table found = table(text, {{"time", "column_3"}, {"unit", "ms"}});
  EXPECT_EQ(seconds_of_rows(found), (std::vector<double>{0.5e-3, 0.25e-3, 0.125e-3}));
  EXPECT_EQ(columns_of(found), "columns $column_1{conv_1|conv_2} $column_2{12|13|14}\n");
  EXPECT_TRUE(
      contains(found.notes, "the first line holds numbers and names nothing, so columns are column_1, column_2"))
      << found.notes;
  // The column of another table would be lost together with the row.
  EXPECT_TRUE(contains(refusal(text, {{"time", "0.5"}, {"unit", "ms"}}), "in:1: no column '0.5' (time)"));
  EXPECT_EQ(seconds_of_rows(table("4,0.5\n", {{"time", "column_2"}, {"unit", "s"}})), std::vector<double>{0.5});
  // A comment may be the head, and an option says what cannot be seen.
  EXPECT_EQ(seconds_of_rows(table("# name,size,time_ms\n" + text, {{"time", "time_ms"}})).size(), 3u);
  const Table words =
      table("a,b\nc,4\n", {{"time", "column_2"}, {"unit", "s"}, {"head", "no"}, {"parameters", "column_1"}});
  EXPECT_EQ(words.skipped.size(), 1u);  // b is not a time
  EXPECT_EQ(seconds_of_rows(words), std::vector<double>{4});
}

TEST(TableForms, NumbersMayBeNamesOfColumns) {
  // Columns of 1, 2 and 4 threads.
  const Table found = table("config,1,2,4\na,0.5,0.25,0.125\nb,1.5,0.75,0.5\n", {{"unit", "s"}}, "2");
  EXPECT_EQ(seconds_of_rows(found), (std::vector<double>{0.25, 0.75}));
  const Table said = table("1,time_ms\n4,1\n5,2\n", {{"time", "time_ms"}});  // nothing like it below
  EXPECT_EQ(columns_of(said), "columns $1{4|5}\n");
  const Table yes = table("1,2\n4,1\n5,2\n", {{"time", "2"}, {"unit", "s"}, {"head", "yes"}});
  EXPECT_EQ(yes.dataset.rows.size(), 2u);
  EXPECT_TRUE(contains(refusal("a,b\n1,2\n", {{"head", "maybe"}}), "option head: expected no or yes, got 'maybe'"));
}

TEST(TableForms, CellsMayHoldLineBreaks) {
  const Table found = table(
      "\"the\ntile\",\"time,\nmean (ms)\",note\n8,0.5,\"first\nsecond, \"\"third\"\"\n\n\"\n16,0.25,\"\"\n32,0.125,x\n",
      {{"time", "time, mean (ms)"}});
  EXPECT_TRUE(found.skipped.empty());
  EXPECT_EQ(seconds_of_rows(found), (std::vector<double>{0.5e-3, 0.25e-3, 0.125e-3}));
  EXPECT_EQ(columns_of(found), "columns $the_tile{8|16|32}\n");
  EXPECT_TRUE(contains(found.notes, "left out: note")) << found.notes;
}

// A quote that nothing closes costs its line, and not those after it.
TEST(TableForms, AStrayQuoteCostsOneLine) {
  std::string text = "a,b,time_ms\n1,x,0.5\n2,\"x,0.25\n";
  for (int i = 3; i < 500; ++i) text += std::to_string(i) + ",x,0.125\n";
  const Table found = table(text, {{"time", "time_ms"}});
  EXPECT_EQ(found.dataset.rows.size(), 498u);
  ASSERT_EQ(found.skipped.size(), 1u);
  EXPECT_EQ(found.skipped.at("a quote that is never closed on this line").count, 1);
  EXPECT_TRUE(contains(found.skipped.begin()->second.first, "t.csv:3: "));
  // Closed by the next one, it would make a record of other columns.
  const Table closed = table("a,b,time_ms\n1,\"x,0.25\n2,\"y\",0.5\n3,z,1\n", {{"time", "time_ms"}});
  EXPECT_EQ(seconds_of_rows(closed), (std::vector<double>{0.5e-3, 1e-3}));
  EXPECT_TRUE(contains(closed.skipped.begin()->second.first, "t.csv:2: "));
}

TEST(TableForms, OtherMeasurementsAreNotParameters) {
  const Table spread = table(
      "tile,latency_std_ms,compile_time,energy,latency_ms,latency_max\n"
      "8,0.01,1.5,7.5,0.5,0.75\n8,0.02,1.5,7.25,0.5,0.75\n16,0.03,2.5,7.125,0.25,0.5\n",
      {{"time", "latency_ms"}});
  EXPECT_EQ(columns_of(spread), "columns $tile{8|16}\n");
  EXPECT_TRUE(contains(spread.notes,
                       "t.csv: parameters: tile; times: latency_ms in ms; other measurements, left out: "
                       "latency_std_ms, compile_time, energy, latency_max"))
      << spread.notes;
  // Whole numbers of words that may be a parameter's are parameters, and an option has the last word.
  EXPECT_EQ(columns_of(table("power,loss,time_ms\n1,x,0.5\n2,y,0.25\n", {{"time", "time_ms"}})),
            "columns $power{1|2} $loss{x|y}\n");
  EXPECT_EQ(columns_of(table("ns,time_steps,noise,time_ms\n1,3,low,0.5\n2,4,high,0.25\n", {{"time", "time_ms"}})),
            "columns $ns{1|2} $time_steps{3|4} $noise{high|low}\n");
  EXPECT_EQ(columns_of(table("tile,compile_time_ms,time_ms\n1,31,5\n2,40,6\n", {{"time", "time_ms"}})),
            "columns $tile{1|2}\n");
  EXPECT_EQ(columns_of(table("tile,noise,time_ms\n1,0.5,0.5\n2,0.25,0.25\n",
                             {{"time", "time_ms"}, {"parameters", "tile,noise"}})),
            "columns $tile{1|2} $noise{0.25|0.5}\n");
  // Columns of times by platform: neither a spread nor the time of a moment is a platform.
  const Folder folder;
  write_plainly(folder / "t.csv",
                "op,timestamp,std_a,a,std_b,b\n1,10.5,0.01,0.5,0.01,0.75\n2,11.5,0.02,1.5,0.02,1.75\n");
  const auto all = imported_platforms("table", folder, {folder / "t.csv"}, "*", {{"unit", "s"}});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all.at("b").dataset.rows.at(1).measurement.seconds, std::vector<double>{1.75});
  EXPECT_EQ(all.at("a").dataset.sketches.at(0)->arguments.size(), 1u);
}

// The unit may differ from row to row.
TEST(TableForms, AColumnMayHaveTheUnits) {
  const std::string text = "tile,real_time,time_unit\n8,900.5,ns\n16,3.5,us\n32,1.25,ms\n64,2.5,N\n";
  const Table read = table(text.substr(0, text.find("64")), {{"time", "real_time"}});
  EXPECT_EQ(seconds_of_rows(read), (std::vector<double>{900.5 * 1e-9, 3.5 * 1e-6, 1.25 * 1e-3}));
  EXPECT_EQ(columns_of(read), "columns $tile{8|16|32}\n");
  EXPECT_TRUE(contains(refusal(text.substr(0, text.find("64")), {{"time", "real_time"}, {"unit", "ms"}}),
                       "option unit: column 'time_unit' has the unit of each row; leave the option out"));
  // A parameter may be called unit.
  EXPECT_EQ(seconds_of_rows(table("unit,time_ms\nalu,1.5\nfpu,2.5\n", {{"time", "time_ms"}})).size(), 2u);
}

// An index without a name distinguishes all rows, and is nothing that was chosen.
TEST(TableForms, NumbersOfRowsAreNotParameters) {
  for (const char* name : {"", "Unnamed: 0"}) {
    const Table found = table(std::string(name) + ",tile,time_ms\n0,8,0.5\n1,8,0.25\n", {{"time", "time_ms"}});
    EXPECT_EQ(columns_of(found), "columns $tile{8}\n");
    EXPECT_TRUE(contains(found.notes, "left out: ")) << found.notes;
  }
  EXPECT_EQ(columns_of(table(",time_ms\nsmall,0.5\nlarge,0.25\n", {{"time", "time_ms"}})), "columns $_{large|small}\n");
}

// What follows from the parameters, and differs in nearly all rows, was measured, whatever it is called.
TEST(TableForms, WhatDistinguishesNoRowsIsNotAParameter) {
  std::string text = "tile,alpha,heat,time_ms\n";
  for (int i = 0; i < 32; ++i) {
    text += fmt::format("{},{},{}.{:03},{}.5\n", i, i % 2 == 0 ? "0.5" : "1.5", 40 + i % 7, i * 31, i + 1);
  }
  const Table found = table(text, {{"time", "time_ms"}});
  EXPECT_EQ(columns_of(found), "columns $tile $alpha{0.5|1.5}\n");
  EXPECT_TRUE(contains(found.notes, "left out: heat")) << found.notes;
}

TEST(TableForms, TimesMayBeMarksOfFailures) {
  const Table found = table("a,time_ms\n1,0.5\n2,inf\n3,nan\n4,1e20\n5,NaN\n6,Infinity\n7,\n", {{"time", "time_ms"}});
  ASSERT_EQ(found.dataset.rows.size(), 6u);
  EXPECT_TRUE(found.skipped.empty());
  const char* const reasons[] = {"",
                                 "infinity in place of a time",
                                 "NaN in place of a time",
                                 "1e+20 in place of a time",
                                 "NaN in place of a time",
                                 "infinity in place of a time"};
  for (std::size_t i = 0; i < std::size(reasons); ++i) {
    EXPECT_EQ(found.dataset.rows[i].measurement.reason, reasons[i]) << i;
    EXPECT_EQ(found.dataset.rows[i].measurement.status, *reasons[i] == 0 ? Status::ok : Status::crashed) << i;
  }
  // A NaN among the other measurements costs nothing, and large values of which more is better are values.
  const Table side = table("a,time_ms,power\n1,0.5,nan\n2,0.25,7.5\n", {{"time", "time_ms"}});
  EXPECT_EQ(seconds_of_rows(side).size(), 2u);
  const Table more = table("a,flops\n1,1e12\n2,nan\n", {{"time", "flops"}, {"higher-is-better", "yes"}});
  EXPECT_DOUBLE_EQ(more.dataset.rows.at(0).measurement.seconds.at(0), 1e-12);
  EXPECT_EQ(more.dataset.rows.at(1).measurement.reason, "NaN in place of a time");
}

TEST(TableForms, AnOptionNamesTheWorkload) {
  const std::string text = "shape,a,time_ms\n4,1,0.5\n8,1,0.25\n";
  const auto workloads = [&](const std::string& said) {
    std::vector<std::string> texts;
    for (const codegen::Workload& each : table(text, {{"time", "time_ms"}, {"workload", said}}).dataset.workloads) {
      texts.push_back(each.text());
    }
    return texts;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(workloads("gemm"), Texts{"table(name=gemm)"});
  EXPECT_EQ(workloads("shape"), (Texts{"table(name=t,shape=4)", "table(name=t,shape=8)"}));
  EXPECT_EQ(workloads("gemm,shape"), (Texts{"table(name=gemm,shape=4)", "table(name=gemm,shape=8)"}));
  EXPECT_EQ(workloads("matmul(m=8,n=8,k=8)"), Texts{"matmul(m=8,n=8,k=8,dtype=f32)"});
  EXPECT_EQ(workloads("\"matmul(m=8,n=8,k=8)\""), Texts{"matmul(m=8,n=8,k=8,dtype=f32)"});
  const Table named = table(text, {{"time", "time_ms"}, {"workload", "gemm"}});
  EXPECT_EQ(codegen::to_text(*named.dataset.sketches.at(0)), "sketch gemm\ncolumns $shape{4|8} $a{1}\n");
  EXPECT_TRUE(contains(named.notes, "the workload's name: gemm")) << named.notes;
  const auto refused = [&](const std::string& said) {
    return refusal(text, {{"time", "time_ms"}, {"workload", said}});
  };
  EXPECT_TRUE(contains(refused("shap"), "in:1: no column 'shap' (workload); did you mean 'shape'?"));
  EXPECT_TRUE(contains(refused("gemm,conv"), "neither 'gemm' nor 'conv' is a column"));
  EXPECT_TRUE(contains(refused("shape,shape"), "column 'shape' is named twice"));
  EXPECT_TRUE(contains(refused("\"matmul(m=8,n=8,k=8)\",shape"), "is a whole workload; leave the columns out"));
}

// So is the number of a trial, by its name or as it counts the rows; but not what alone distinguishes them.
TEST(TableForms, NumbersOfTrialsAreNotParameters) {
  const Options ms = {{"time", "time_ms"}};
  EXPECT_EQ(columns_of(table("trial,tile,time_ms\n3,8,0.5\n1,16,0.25\n2,8,0.5\n", ms)), "columns $tile{8|16}\n");
  EXPECT_EQ(columns_of(table("trial,tile,time_ms\n3,8,0.5\n1,8,0.25\n", ms)), "columns $trial{1|3} $tile{8}\n");
  EXPECT_EQ(columns_of(
                table("trial,tile,time_ms\n3,8,0.5\n1,16,0.25\n", {{"time", "time_ms"}, {"parameters", "trial,tile"}})),
            "columns $trial{1|3} $tile{8|16}\n");
  std::string counted = "n,tile,time_ms\n", sweep = "n,mode,time_ms\n";
  for (int i = 0; i < 10; ++i) {
    counted += fmt::format("{},{},{}.5\n", i, 8 + i * i % 11 + 20 * i, i);
    sweep += fmt::format("{},fast,{}.5\n", i, i);
  }
  EXPECT_EQ(table(counted, ms).dataset.sketches.at(0)->arguments.size(), 1u);
  EXPECT_EQ(table(sweep, ms).dataset.sketches.at(0)->arguments.size(), 2u);
}

TEST(TableForms, CellsMayHaveUnits) {
  const Table read = table("tile;t\n8;1,234.5 us\n16;2.5 ms\n32;3 \xc2\xb5s\n", {{"time", "t"}});
  EXPECT_EQ(seconds_of_rows(read), (std::vector<double>{1234.5 * 1e-6, 2.5 * 1e-3, 3 * 1e-6}));
  EXPECT_TRUE(contains(read.notes, "times: t in the units of their cells")) << read.notes;
  for (const char* cell : {"1,234 us", "1.5 m", "12 ticks", "1.5 GB/s", "0 us", "-1 us", "1.5 us 2", "fast"}) {
    const std::string text = fmt::format("tile;t\n8;1.5 us\n16;{}\n", cell);
    EXPECT_TRUE(contains(refusal(text, {{"time", "t"}}), "in:3: column 't': expected a time > 0")) << cell;
  }
}

// Tuners that only maximise write negated times; a mark of failures is none.
TEST(TableForms, TimesMayBeNegated) {
  const Table read = table("tile,cost\n8,-0.5\n16,-0.25\n", {{"time", "cost"}, {"unit", "s"}});
  EXPECT_EQ(seconds_of_rows(read), (std::vector<double>{0.5, 0.25}));
  EXPECT_TRUE(contains(read.notes, "times: cost in s, all negated")) << read.notes;
  for (const char* text : {"tile,cost\n8,-1\n16,-1\n", "tile,cost\n8,-1\n16,0.5\n"})
    EXPECT_TRUE(contains(refusal(text, {{"time", "cost"}, {"unit", "s"}}), "in:2: column 'cost': expected a time > 0"));
}

TEST(TableForms, OtherFilesAreNamed) {
  EXPECT_TRUE(contains(refusal("{\"input\": [1], \"config\": {}, \"result\": [[0.5], 0]}\n", {{"unit", "s"}}),
                       "in: is a file of AutoTVM, not a table; import it as the format autotvm"));
}

}  // namespace
}  // namespace graft::datasets::formats
