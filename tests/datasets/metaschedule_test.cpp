#include "datasets/formats/metaschedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "tests/datasets/formats_support.h"

namespace graft::datasets::formats {
namespace {

constexpr const char* workloads = "[\"123\", \"U/cAAAA\"]\n[\"456\", \"U/cAAAA\"]\n";

std::string record(int workload, std::string_view decisions, std::string_view seconds, std::string_view more = "") {
  return fmt::format(
      R"([{}, [[[["GetBlock", [], ["conv", "main"], ["b0"]], ["GetBlock", [], ["root", "main"], ["b1"]],
      ["GetLoops", ["b0"], [], ["l2", "l3"]], ["SamplePerfectTile", ["l2"], [3, 64], ["v4", "v5", "v6"]],
      ["SampleCategorical", [], [[0, 16], [0.5, 0.5]], ["v7"]]{}, ["EnterPostproc", [], [], []],
      ["Split", ["l9", "None", 56], [1], ["l10"]]], {}], {}, {{"kind": "cuda"}}, [["TENSOR", "float32", [1]]]]])",
      workload, more, decisions, seconds);
}

std::string lines_of(std::initializer_list<std::string> records) {
  std::string text;
  for (std::string each : records) {
    std::replace(each.begin(), each.end(), '\n', ' ');
    text += each + "\n";
  }
  return text;
}

std::map<std::string, Imported> both(const std::string& first, const std::string& second, bool strict = true) {
  const Folder folder;
  write_plainly(folder / "a", first);
  write_plainly(folder / "b", second);
  return imported_platforms("metaschedule", folder, {folder / "a", folder / "b"}, "p", {}, strict);
}

TEST(MetaScheduleFormat, DecisionsAreColumns) {
  const std::string records =
      lines_of({record(1, "[[3, [2, 4, 8]], [4, 1]]", "[0.5, 0.25]"), record(0, "[[3, [1, 1, 64]], [4, 0]]", "[1]"),
                record(0, "[[3, [1, 1, 64]], [4, 0]]", "[1e10]"), record(0, "[[3, [1, 1, 64]], [4, 0]]", "null"),
                record(0, "[[3, [1, 1, 64]], [4, 0]]", "[2]", R"(, ["Fuse", ["l2"], [1], ["l8"]])")});
  for (const auto& all : {both(workloads, records), both(records, workloads)}) {
    const Dataset& data = all.at("p").dataset;
    ASSERT_EQ(data.rows.size(), 5u);
    EXPECT_EQ(data.workloads, (std::vector<codegen::Workload>{codegen::Workload("table(name=conv_456)"),
                                                              codegen::Workload("table(name=conv_123)")}));
    EXPECT_EQ(data.rows[0].arguments, (std::vector<std::int64_t>{2, 4, 8, 1}));
    EXPECT_EQ(data.rows[0].measurement.seconds, (std::vector<double>{0.5, 0.25}));
    EXPECT_EQ(data.rows[2].measurement.status, Status::crashed);
    EXPECT_EQ(data.rows[2].measurement.reason, "1e+10 in place of a time");
    EXPECT_EQ(data.rows[3].measurement.status, Status::crashed);
    ASSERT_EQ(data.sketches.size(), 2u);  // another trace is another table
    EXPECT_EQ(data.sketches[0]->arguments[0].name, "SamplePerfectTile3_0");
    EXPECT_EQ(data.sketches[0]->arguments[3].name, "SampleCategorical4_3");
    EXPECT_EQ(all.at("p").counts.without_program.at("not a CPU's schedule"), 5);
  }
}

// A workload that cannot be read keeps its number; its records are skipped with it.
TEST(MetaScheduleFormat, OddLinesAreSkipped) {
  const std::string records = "# tuned\n" + lines_of({record(1, "[]", "[0.5]"), record(2, "[]", "[1]")}) + "[7";
  const std::string good(workloads), first = good.substr(0, good.find('\n') + 1);
  const std::string broken = first + "\n[\"\", 1]\n" + good.substr(first.size());
  const Imported in = both(broken, records, false).at("p");
  ASSERT_EQ(in.dataset.rows.size(), 1u);
  EXPECT_EQ(in.dataset.rows[0].measurement.seconds, std::vector<double>{1});
  EXPECT_TRUE(contains(in.skipped.at("no hash of a workload").first, "/a:3: ")) << in.skipped.size();
  EXPECT_TRUE(contains(in.skipped.at("workload #, which could not be read").first, "/b:2: "));
  EXPECT_TRUE(contains(in.skipped.at("cut off at the end of the file").first, "/b:4:"));
  EXPECT_EQ(in.ignored.at("comment").count, 1);
  EXPECT_EQ(in.ignored.at("empty line").count, 1);
}

TEST(MetaScheduleFormat, BrokenFilesAreRefused) {
  const std::string good = lines_of({record(0, "[]", "[1]")});
  const std::pair<std::string, const char*> refusals[] = {
      {good, "in:1: workload 0, but there are 0; give the database's file of workloads, too"},
      {"{}", "in:1:1: expected a list"},
      {std::string(workloads) + "[\"\", \"x\"]\n", "in:3: no hash of a workload"},
      {std::string(workloads) + "[\"7\"]]\n", "in:3:6: "},
      {std::string(workloads) + "[3]\n", "in:3: a tuning record among workloads"},
      {"[]\n", "in:1"},
  };
  for (const auto& [text, words] : refusals) {
    const std::string message = refusal_of("metaschedule", text);
    EXPECT_TRUE(contains(message, words)) << text << ": " << message;
  }
  const auto second = [](const std::string& records) {
    return message_of<base::UserError>([&] { both(workloads, records); });
  };
  EXPECT_TRUE(contains(second(good + lines_of({record(2, "[]", "[1]")})), "b:2: workload 2, but there are 2"));
  EXPECT_TRUE(contains(second(lines_of({record(0, "[]", "[-1]")})), "a time of -1 seconds"));
  EXPECT_TRUE(contains(second(lines_of({record(0, "[[3, [0.5]]]", "[1]")})), "expected an integer"));
  EXPECT_TRUE(contains(second(lines_of({record(0, "[[-1, 0]]", "[1]")})), "instruction -1"));
  EXPECT_TRUE(contains(second(good + "[\"7\", \"x\"]\n"), "b:2: a workload among tuning records"));
  EXPECT_TRUE(contains(
      second(good + lines_of({record(0, "[]", "[1]", R"(, [")" + std::string(81, 'x') + R"(", [], [], []])")})),
      "the name of an instruction has more than 80 characters"));
  std::string times = "[1";
  for (int i = 0; i < 1000; ++i) times += ",1";
  EXPECT_TRUE(contains(second(good + lines_of({record(0, "[]", times + "]")})),
                       "b:2: a record of 1001 times; at most 1000 are read"));
  EXPECT_TRUE(contains(second(good.substr(0, good.size() / 2)), "b:1:"));
  // Instructions and workloads may have fewer parts, or more.
  const std::string few = lines_of({record(0, "[]", "[1]", R"(, ["Fuse"], ["Fuse", [], [], [], 7, "x"])")});
  EXPECT_EQ(both("[\"123\"]\n", few).at("p").dataset.rows.size(), 1u);
  EXPECT_EQ(both("[\"123\", 7, [\"x\"], \"U/cAAAA\", \"y\"]\n", few).at("p").dataset.rows.size(), 1u);
  EXPECT_TRUE(contains(second("[0, [[[[\"X\", " + std::string(1000, '[')), "nested deeper than 200 levels"));
}

}  // namespace
}  // namespace graft::datasets::formats
