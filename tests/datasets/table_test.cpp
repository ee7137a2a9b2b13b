#include "datasets/formats/table.h"

#include "base/hash.h"
#include "base/text.h"
#include "tests/datasets/formats_support.h"

namespace graft::datasets::formats {
namespace {

constexpr const char* small =
    "op,size,name,pixel,xeon\n"
    "7,1000,\"a,b\",17.5,30\n"
    "0,17,c,,28\n"
    "3,5,c,16.25,31\n";

TEST(TableFormat, RowsHaveColumnsAndTimes) {
  const Folder folder;
  write_plainly(folder / "net.csv", small);
  const auto all = imported_platforms("table", folder, {folder / "net.csv"}, "*", {{"unit", "ms"}});
  ASSERT_EQ(all.size(), 2u);
  const Dataset& pixel = all.at("pixel").dataset;
  EXPECT_EQ(pixel.platform, "import:pixel");
  EXPECT_EQ(pixel.source, "imported");
  EXPECT_EQ(pixel.workloads, std::vector<codegen::Workload>{codegen::Workload("table(name=net)")});
  ASSERT_EQ(pixel.sketches.size(), 1u);
  EXPECT_EQ(codegen::to_text(*pixel.sketches[0]), "sketch net\ncolumns $op{0|3|7} $size{5|17|1000} $name{a,b|c}\n");
  ASSERT_EQ(pixel.rows.size(), 2u);
  EXPECT_EQ(pixel.rows[0].arguments, (std::vector<std::int64_t>{2, 2, 0}));
  EXPECT_DOUBLE_EQ(pixel.rows[0].measurement.seconds.at(0), 17.5e-3);
  EXPECT_EQ(pixel.rows[0].program_hash, 0u);
  EXPECT_EQ(pixel.rows[1].arguments, (std::vector<std::int64_t>{1, 0, 1}));
  EXPECT_EQ(all.at("pixel").counts.records, 3);
  EXPECT_EQ(all.at("pixel").counts.dropped.at("not measured on this platform"), 1);
  const Dataset& xeon = all.at("xeon").dataset;
  EXPECT_EQ(*xeon.sketches[0], *pixel.sketches[0]);  // the same configurations are the same rows everywhere
  ASSERT_EQ(xeon.rows.size(), 3u);
  EXPECT_DOUBLE_EQ(xeon.rows[1].measurement.seconds.at(0), 28e-3);
}

TEST(TableFormat, TimesAreWhereFractionsBeginOrWhereTheyAreSaidToBe) {
  // "p" is before the first fraction: it and all columns after it are times.
  const Imported early = imported_table("t.csv", "a,p,q\n1,20,3.5\n2,30,4.5\n");
  EXPECT_EQ(early.dataset.sketches[0]->arguments.size(), 1u);
  EXPECT_EQ(early.dataset.rows[1].measurement.seconds, std::vector<double>{30});
  // A configuration with fractions.
  const Imported said = imported_table("t.csv", "a,b,q,p\n0.5,1,7,8\n2,1,8,9\n", {{"times-from", "q"}});
  EXPECT_EQ(codegen::to_text(*said.dataset.sketches[0]), "sketch t\ncolumns $a{0.5|2} $b{1}\n");
  EXPECT_EQ(said.dataset.rows[1].arguments, (std::vector<std::int64_t>{1, 0}));
}

TEST(TableFormat, TheOnlyColumnNamedAsATimeIsTheTime) {
  // Also of whole numbers, in front of parameters, and before counters.
  for (const char* const text : {"a,b,time (ms)\n1,x,3\n1,y,4\n2,x,5\n", "exec_time_ms,a,b\n3,1,x\n4,1,y\n5,2,x\n",
                                 "a,b,latency [ms],gflops,energy\n1,x,3,9.5,1.5\n1,y,4,8,2.5\n2,x,5,7,0.5\n",
                                 "a,b,time (ms),time std (ms)\n1,x,3,0.5\n1,y,4,0.25\n2,x,5,0.5\n"}) {
    const Imported in = imported_text("table", "t.csv", text);
    EXPECT_EQ(codegen::to_text(*in.dataset.sketches[0]), "sketch t\ncolumns $a{1|2} $b{x|y}\n") << text;
    EXPECT_EQ(in.dataset.platform, "import:p");
    ASSERT_EQ(in.dataset.rows.size(), 3u);
    EXPECT_EQ(in.dataset.rows[1].measurement.seconds, std::vector<double>{4e-3}) << text;
  }
  // Not a name without a unit, one of two, one with columns after it that may be platforms, or words.
  for (const char* const text : {"a,time_steps,q\n1,3,0.5\n", "a,load time (ms),time (ms)\n1,0.5,3\n",
                                 "a,compile_time_ms,q\n1,3,0.5\n", "a,time (ms),q\n1,fast,0.5\n"})
    EXPECT_TRUE(contains(refusal_of_table(text), "in:1: no column of times 'p'")) << text << refusal_of_table(text);
  // A column of the platform's name is its times, as in a table with a column for each.
  const Imported own = imported_table("t.csv", "a,time (ms),p\n1,3,0.5\n2,4,0.25\n", {{"unit", "s"}});
  EXPECT_EQ(own.dataset.rows[1].measurement.seconds, std::vector<double>{0.25});
}

TEST(TableFormat, ManyNumbersStayNumbers) {
  std::string text = "n,p\n";
  for (int i = 0; i < 40; ++i) text += std::to_string(3 * i - 7) + ",0.25\n";
  const Imported many = imported_table("t.csv", text);
  EXPECT_EQ(codegen::to_text(*many.dataset.sketches[0]), "sketch t\ncolumns $n\n");
  EXPECT_EQ(many.dataset.rows[5].arguments, std::vector<std::int64_t>{8});
  EXPECT_EQ(many.dataset.rows[0].arguments, std::vector<std::int64_t>{-7});
}

TEST(TableFormat, PackedFilesAreThePlainOnes) {
  const Folder folder;
  write_plainly(folder / "net.csv.gz", gzipped(small, folder));
  const auto all = imported_platforms("table", folder, {folder / "net.csv.gz"}, "xeon", {{"unit", "ms"}});
  EXPECT_EQ(all.at("xeon").dataset.rows.size(), 3u);
  EXPECT_EQ(all.at("xeon").dataset.workloads[0].text(), "table(name=net)");
  const auto same = imported_platforms("table", folder, {folder / "net.csv.gz"}, "import:xeon", {{"unit", "ms"}});
  EXPECT_EQ(same.at("xeon").dataset.platform, "import:xeon");
}

TEST(TableFormat, BrokenFilesAreRefusedWithTheLine) {
  const std::pair<const char*, const char*> refusals[] = {
      {"", "in:1: an empty file"},
      {"a,p\n", "in: holds no record of this format"},
      {"a,a,p\n1,2,0.5\n", "in:1: column 'a' is there twice"},
      {"a,p\n1,0.5\n1,2,3\n", "in:3: 3 cells; the head has 2"},
      {"a,p\n1,0.5\n2,-1\n", "in:3: column 'p': expected a time > 0, got '-1'"},
      {"a,p\n1,0.5\n2,0\n", "in:3: column 'p': expected a time > 0, got '0'"},
      {"a,p\n1,0.5\n2,-inf\n", "in:3: column 'p': expected a time > 0, got '-inf'"},
      {"a,p\n1,0.5\n2,1e999\n", "in:3: column 'p': expected a time > 0, got '1e999'"},
      {"a,p\n1,0.5\ninf,1\n", "in:3: column 'a': inf is not a number"},
      {"a,p\n1,0.5\n2,failed\n", "in:3: column 'p': expected a time > 0, got 'failed'; leave the cell empty"},
      {"a,p\n1,0.5\n2,1e-330\n", "in:3: column 'p': expected a time > 0, got '1e-330'"},
      {"a,p\n\"1,0.5\n", "in:2: a quote that is never closed"},
      {"a,p\n\"1\"x,0.5\n", "in:2: text after a closing quote"},
      {"a,b,q\n1,2,0.5\n", "in:1: no column of times 'p'"},
      {"p,b\n0.5,2\n", "in:1: column 'p' is taken for a time, and nothing stands before it"},
      {"a,b\n1,2\n", "in:1: no column with fractions"},
      {"graft_workload,p\nx,0.5\n", "in:1: column 'p' is taken for a time, and nothing stands before it"},
      {"graft_workload,a,q\nx,1,0.5\n", "in:1: no column of times 'p'"},
  };
  for (const auto& [text, words] : refusals) {
    const std::string message = refusal_of_table(text);
    EXPECT_TRUE(contains(message, words)) << text << ": " << message;
  }
  EXPECT_TRUE(contains(refusal_of_table(small, {{"unit", "mss"}}), "option unit: unknown unit 'mss'; did you mean"));
  EXPECT_TRUE(contains(refusal_of_table(small, {{"times-from", "xeom"}}), "did you mean 'xeon'"));
  EXPECT_TRUE(contains(refusal_of_table(small, {{"units", "s"}}), "unknown option 'units'; did you mean 'unit'"));
  const std::string wide = "a,p\n" + std::string(300, 'x') + ",0.5\n";
  EXPECT_TRUE(contains(refusal_of_table(wide), "in:2: column 'a': a value of more than 256 characters"));
  std::string head = "c0";
  for (int c = 1; c < 1100; ++c) head += ",c" + std::to_string(c);
  EXPECT_TRUE(contains(refusal_of_table(head + "\n"), "in:1: 1100 columns; at most 1024"));
  std::string fractions = "a,q,p\n";
  for (int i = 0; i < 16400; ++i) fractions += std::to_string(i) + ".5,1,1\n";
  EXPECT_TRUE(contains(refusal_of_table(fractions, {{"times-from", "q"}}), "column 'a' has more than 16384"));
  const Folder folder;
  const std::string packed = gzipped(fractions, folder);
  EXPECT_TRUE(
      contains(refusal_of_table(packed.substr(0, packed.size() / 2), {{"times-from", "q"}}), "is not valid gzip"));
}

TEST(TableFormat, TablesComeBackAsTheyWent) {
  const char* const original = "op,real,word,p\n1,0.5,\"x, \"\"y\"\"\",0.25\n2,-3,z,1.5\n";
  const Imported in = imported_table("net.csv", original, {{"times-from", "p"}});
  EXPECT_EQ(in.dataset.rows[1].arguments, (std::vector<std::int64_t>{1, 0, 1}));
  const std::string exported = exported_text("table", in.dataset);
  EXPECT_EQ(exported,
            "graft_workload,op,real,word,p\ntable(name=net),1,0.5,\"x, \"\"y\"\"\",0.25\ntable(name=net),2,-3,z,1.5\n");
  // Whatever the file is called then, and although a parameter has fractions.
  const Imported again = imported_table("other.csv", exported);
  EXPECT_EQ(again.dataset.workloads, in.dataset.workloads);
  ASSERT_EQ(again.dataset.rows.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(again.dataset.rows[i].arguments, in.dataset.rows[i].arguments);
    EXPECT_TRUE(same(again.dataset.rows[i].measurement, in.dataset.rows[i].measurement));
  }
}

TEST(TableFormat, AnyDatasetIsATable) {
  const Dataset dataset = random_dataset(40, 3);
  const std::string text = exported_text("table", dataset);
  const std::vector<std::string_view> lines = base::split(text, '\n');
  EXPECT_EQ(lines[0], "graft_workload,sketch,i1,i2,outer,packing,native:v3");
  std::int64_t ok = 0;
  const Dataset::Row* first = nullptr;
  for (const Dataset::Row& row : dataset.rows) {
    if (row.measurement.status != Status::ok) continue;
    if (ok++ == 0) first = &row;
  }
  EXPECT_EQ(std::int64_t(lines.size()), ok + 2);
  const std::vector<std::string> cells = csv_cells(lines[1], "test");
  ASSERT_EQ(cells.size(), 7u);
  EXPECT_EQ(cells[0], dataset.workloads[std::size_t(first->workload)].text());
  const codegen::Sketch& sketch = *dataset.sketches[std::size_t(first->sketch)];
  EXPECT_EQ(cells[1], sketch.name + "." + base::to_hex(sketch.hash));
  EXPECT_EQ(cells[2], std::to_string(first->arguments[0]));
  EXPECT_EQ(cells[4], first->arguments[2] == 0 ? "i.0 j.0" : "j.0 i.0");
  EXPECT_EQ(std::stod(cells[6]), seconds_of(first->measurement));
}

}  // namespace
}  // namespace graft::datasets::formats
