// The whole way on tiny workloads: collect, train, adapt, evaluate, tune, inspect, report.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/hash.h"
#include "base/parallel.h"
#include "base/text.h"
#include "datasets/dataset.h"
#include "datasets/journal.h"
#include "tests/cli/support.h"

namespace graft::cli {
namespace {

class Flow : public ::testing::Test {
 protected:
  // Two datasets and a model, made once for all tests.
  static void SetUpTestSuite() {
    folder_ = new base::Folder;
    for (const std::string level : {"v2", "v3"}) {
      const base::Document result = json_of(quick(
          {"collect", small, other, "--platform", "native:" + level, "--samples", "24", "--out", file(level + ".h5")}));
      EXPECT_EQ(result.at("trials").as_integer(), 48);
      EXPECT_TRUE(result.at("complete").as_bool());
    }
    EXPECT_EQ(
        graft({"train", file("v2.h5"), file("v3.h5"), "--out", file("model.h5"), "--steps", "20", "--hidden", "16"})
            .exit_code,
        0);
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  static std::string file(const std::string& name) { return (*folder_ / name).string(); }

 private:
  static base::Folder* folder_;
};
base::Folder* Flow::folder_ = nullptr;

TEST_F(Flow, CollectAgainMeasuresNothingAndWritesTheSameFile) {
  const std::string before = base::read_file(file("v2.h5"));
  const std::string journal = base::read_file(file("v2.h5.run/journal.jsonl"));
  const base::Finished again =
      graft(quick({"collect", small, other, "--platform", "native:v2", "--samples", "24", "--out", file("v2.h5")}));
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_NE(again.err.find("48 trials are recorded"), std::string::npos) << again.err;
  EXPECT_EQ(base::read_file(file("v2.h5")), before);
  EXPECT_EQ(base::read_file(file("v2.h5.run/journal.jsonl")), journal);
}

TEST_F(Flow, CollectShowsARowOfEachWorkload) {
  const std::vector<std::string> command =
      quick({"collect", small, other, "--platform", "native:v2", "--samples", "24", "--out", file("v2.h5")});
  const std::string text = graft(command).out;
  const base::Document::List workloads = json_of(command).at("workloads").as_list();
  ASSERT_EQ(workloads.size(), 2u);
  EXPECT_EQ(workloads[0].at("workload").as_string(), "matmul(m=24,n=32,k=16,dtype=f32)");
  for (const base::Document& workload : workloads)
    EXPECT_NE(text.find("\n" + workload.at("workload").as_string() + " "), std::string::npos) << text;
}

TEST_F(Flow, CollectRefusesAnotherRequestInTheSameRun) {
  const base::Finished finished = graft(quick(
      {"collect", small, other, "--platform", "native:v2", "--samples", "24", "--seed", "2", "--out", file("v2.h5")}));
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_NE(finished.err.find("seed 1, not 2"), std::string::npos) << finished.err;
}

TEST_F(Flow, CollectGoesOnFromADatasetWhoseJournalIsGone) {
  std::filesystem::copy_file(file("v2.h5"), file("shipped.h5"));
  const auto collect = [](const char* samples, const char* seed) {
    return graft(quick({"collect", small, other, "--platform", "native:v2", "--samples", samples, "--seed", seed,
                        "--out", file("shipped.h5")}));
  };
  const base::Finished otherwise = collect("24", "2");
  EXPECT_EQ(otherwise.exit_code, 2);
  EXPECT_NE(otherwise.err.find("was made with seed 1, not 2; choose another name"), std::string::npos) << otherwise.err;
  EXPECT_FALSE(std::filesystem::exists(file("shipped.h5.run")));
  const base::Finished same = collect("24", "1");
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_NE(same.err.find("48 trials are recorded"), std::string::npos) << same.err;
  EXPECT_EQ(base::read_file(file("shipped.h5")), base::read_file(file("v2.h5")));
  const base::Finished more = collect("26", "1");
  EXPECT_EQ(more.exit_code, 0) << more.err;
  const datasets::Dataset before = datasets::read_dataset(file("v2.h5"));
  const datasets::Dataset after = datasets::read_dataset(file("shipped.h5"));
  ASSERT_EQ(after.rows.size(), before.rows.size() + 4);
  EXPECT_TRUE(std::is_sorted(after.rows.begin(), after.rows.end(),
                             [](const auto& a, const auto& b) { return a.workload < b.workload; }));
}

TEST_F(Flow, CollectNeverReplacesAFileThatIsNotItsOwn) {
  base::replace_file(file("precious.h5"), "something");
  const base::Finished finished =
      graft(quick({"collect", small, "--platform", "native:v2", "--samples", "2", "--out", file("precious.h5")}));
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_EQ(base::read_file(file("precious.h5")), "something");
}

TEST_F(Flow, CollectBreedsAShare) {
  const std::vector<std::string> command = {"collect",   small, "--platform", "model:cortex-a53",
                                            "--evolved", "0.5", "--out",      file("bred.h5")};
  std::vector<std::string> few = command, all = command;
  few.insert(few.end(), {"--samples", "64"});
  all.insert(all.end(), {"--samples", "128"});
  const base::Document first = json_of(few), more = json_of(all);
  EXPECT_EQ(more.at("trials").as_integer(), 128);  // the first 64 are among them
  std::vector<std::string> uniform = all;
  uniform.erase(std::find(uniform.begin(), uniform.end(), "--evolved"), uniform.begin() + 6);
  EXPECT_NE(graft(uniform).err.find("evolved"), std::string::npos);
  all.back() = "1";
  all.insert(all.end(), {"--explorer", "evolution"});
  EXPECT_NE(graft(all).err.find("goes with the random explorer"), std::string::npos);
}

TEST_F(Flow, CollectOnSeveralPlatforms) {
  const std::filesystem::path folder = file("several");
  std::filesystem::create_directory(folder);
  const std::vector<std::string> command =
      quick({"collect", small, "--platform", "model:cortex-a53,model:cortex-a72", "--samples", "5", "--out", folder});
  const base::Document result = json_of(command);
  ASSERT_EQ(result.at("datasets").as_list().size(), 2u);
  EXPECT_TRUE(result.at("complete").as_bool());
  const datasets::Dataset a53 = datasets::read_dataset(folder / "model-cortex-a53.h5"),
                          a72 = datasets::read_dataset(folder / "model-cortex-a72.h5");
  EXPECT_EQ(a53.platform, "model:cortex-a53");
  EXPECT_EQ(a72.platform, "model:cortex-a72");
  ASSERT_EQ(a53.rows.size(), 5u);
  ASSERT_EQ(a72.rows.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) {  // equal vectors and registers: equal spaces, hence equal draws
    EXPECT_EQ(a53.rows[i].program_hash, a72.rows[i].program_hash);
    EXPECT_NE(a53.rows[i].measurement.seconds, a72.rows[i].measurement.seconds);
  }
  EXPECT_EQ(json_of(command).at("datasets"), result.at("datasets"));
  const auto& workload = result.at("datasets").as_list().front().at("workloads").as_list().front();
  EXPECT_FALSE(workload.at("missed_gates").as_list().empty());  // five programs are hardly five times apart

  // Programs that are known to be right change no row.
  std::vector<std::string> alone = quick({"collect", small, "--platform", "model:cortex-a72", "--samples", "5",
                                          "--checked", folder / "model-cortex-a53.h5", "--out", folder / "known.h5"});
  json_of(alone);
  const datasets::Dataset known = datasets::read_dataset(folder / "known.h5");
  ASSERT_EQ(known.rows.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(known.rows[i].program_hash, a72.rows[i].program_hash);
    EXPECT_EQ(known.rows[i].measurement.seconds, a72.rows[i].measurement.seconds);
    EXPECT_EQ(known.rows[i].measurement.check, a72.rows[i].measurement.check);
  }
  alone[std::size_t(std::find(alone.begin(), alone.end(), "--checked") - alone.begin()) + 1] = file("nowhere.h5");
  EXPECT_NE(graft(alone).err.find("nowhere.h5"), std::string::npos);
}

// Two platforms measured on one list of programs, and compared on it.
TEST_F(Flow, ProgramsOfADatasetAreMeasuredElsewhere) {
  for (const std::string level : {"v2", "v3"}) {
    const base::Document result =
        json_of(quick({"collect", "--programs", file("v2.h5") + "," + file("v3.h5"), "--platform", "native:" + level,
                       "--out", file("common-" + level + ".h5")}));
    EXPECT_GE(result.at("trials").as_integer(), 48);  // both files draw some programs alike
    EXPECT_LE(result.at("trials").as_integer(), 96);
  }
  // In turn from each file, so that both are in the first ones; and only of the workload that was asked for.
  const base::Document few = json_of(quick({"collect", other, "--programs", file("v3.h5") + "," + file("v2.h5"),
                                            "--samples", "10", "--platform", "native:v3", "--out", file("few.h5")}));
  EXPECT_EQ(few.at("trials").as_integer(), 10);
  const datasets::Dataset all = datasets::read_dataset(file("common-v2.h5")),
                          some = datasets::read_dataset(file("few.h5"));
  ASSERT_EQ(some.workloads.size(), 1u);
  std::set<std::uint64_t> known;
  for (const datasets::Dataset::Row& row : all.rows) known.insert(codegen::hash(all.candidate(row)));
  for (const datasets::Dataset::Row& row : some.rows) EXPECT_TRUE(known.contains(codegen::hash(some.candidate(row))));

  const std::vector<std::string> compare{"compare", file("common-v2.h5"), file("common-v3.h5"), "--out",
                                         file("compare.html")};
  const base::Document result = json_of(compare);
  EXPECT_EQ(result.at("platforms").as_list().size(), 2u);
  const base::Document& overall = result.at("families").as_list()[0];
  EXPECT_EQ(overall.at("family").as_string(), "all");
  EXPECT_EQ(overall.at("workloads").as_list().size(), 2u);
  const double correlation = overall.at("spearman").as_list()[0].as_list()[1].as_number();
  EXPECT_GE(correlation, -1);
  EXPECT_LE(correlation, 1);
  EXPECT_GE(result.at("regret").at("worst").as_list()[0].as_list()[1].as_number(), 1);
  const std::string page = base::read_file(file("compare.html"));
  EXPECT_NE(page.find("Rank correlation: matmul"), std::string::npos);
  EXPECT_NE(page.find("<rect class=\"cell\""), std::string::npos);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("http"), std::string::npos);
  // The same page from the printed result.
  base::replace_file(file("compare.json"), result.to_json());
  EXPECT_EQ(graft({"report", file("compare.json"), "--out", file("report.html")}).exit_code, 0);
  EXPECT_NE(base::read_file(file("report.html")).find("<rect class=\"cell\""), std::string::npos);

  const base::Finished table = graft(compare);
  EXPECT_NE(table.out.find("regret: best of row on column"), std::string::npos) << table.out;
}

TEST_F(Flow, CompareNeedsProgramsInCommon) {
  const base::Finished alone = graft({"compare", file("v2.h5")});
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_NE(alone.err.find("at least two"), std::string::npos) << alone.err;
}

TEST_F(Flow, CleanSaysWhatItDrops) {
  const base::Document result = json_of({"clean", file("v2.h5"), "--out", file("clean.h5")});
  std::int64_t dropped = 0;
  for (const auto& [why, count] : result.at("dropped").as_map()) dropped += count.as_integer();
  EXPECT_EQ(result.at("rows").as_integer(), 48);
  EXPECT_EQ(result.at("kept").as_integer() + dropped, 48);
  EXPECT_EQ(std::int64_t(result.at("dropped_rows").as_list().size()), dropped);
  const datasets::Dataset cleaned = datasets::read_dataset(file("clean.h5"));
  EXPECT_EQ(std::int64_t(cleaned.rows.size()), result.at("kept").as_integer());
  EXPECT_EQ(cleaned.provenance.at("cleaned").at("rows").as_integer(), 48);
  const base::Finished table = graft({"clean", file("v2.h5"), "--out", file("clean.h5")});
  EXPECT_NE(table.out.find("duplicate"), std::string::npos) << table.out;
  const base::Finished onto_itself = graft({"clean", file("v2.h5"), "--out", file("v2.h5")});
  EXPECT_EQ(onto_itself.exit_code, 2);
  EXPECT_NE(onto_itself.err.find("is one of the inputs; choose another name"), std::string::npos) << onto_itself.err;
}

TEST_F(Flow, InspectShowsTheCard) {
  const base::Document card = json_of({"inspect", file("v2.h5")}).at("card");
  EXPECT_EQ(card.at("platform").at("id").as_string(), "native:v2");
  EXPECT_EQ(card.at("workloads").as_list().size(), 2u);
  EXPECT_NE(card.at("made").at("command").as_string().find("collect"), std::string::npos);
  const base::Finished text = graft({"inspect", file("v2.h5")});
  EXPECT_NE(text.out.find("card: gates are"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("workloads."), std::string::npos) << text.out;
}

TEST_F(Flow, ASpaceOfOnesOwn) {
  const std::string example = std::string(GRAFT_SOURCE_DIR) + "/examples/matmul.space";
  const std::vector<std::string> tune = quick(
      {"tune", small, "--platform", "native:v3", "--trials", "8", "--space", file("own.space"), "--out", file("own")});
  base::replace_file(file("own.space"), base::read_file(example) + "\nsketch plain\nunroll C $which{j.0|l.0}\n");
  const base::Document result = json_of(tune);
  EXPECT_EQ(result.at("trials").as_integer(), 8);
  EXPECT_FALSE(result.at("best").is_null());
  const base::Document request = json_of({"inspect", file("own")}).at("request");
  EXPECT_EQ(request.at("space").as_string().size(), 16u);
  // Continued with the same file, refused with another.
  EXPECT_EQ(json_of(tune).at("trials").as_integer(), 8);
  base::replace_file(file("own.space"), "from rules\n");
  const base::Finished other_file = graft(tune);
  EXPECT_EQ(other_file.exit_code, 2);
  EXPECT_NE(other_file.err.find("made with space"), std::string::npos) << other_file.err;

  const base::Document space = json_of({"inspect", small, "--platform", "native:v3", "--space", example});
  ASSERT_EQ(space.at("sketches").as_list().size(), 2u);
  EXPECT_TRUE(space.at("sketches").as_list()[0].as_string().starts_with("sketch blocked\n"));
  EXPECT_NE(space.at("space_hash"), json_of({"inspect", small, "--platform", "native:v3"}).at("space_hash"));

  base::replace_file(file("fixed.space"),
                     "sketch fixed\ntile C j $j\norder C i.0 l.0 j.0 j.1\nvector C j.1\ndomain j = 4 8 16\n");
  const base::Document collected = json_of(quick({"collect", small, other, "--platform", "native:v3", "--samples", "3",
                                                  "--space", file("fixed.space"), "--out", file("fixed.h5")}));
  EXPECT_EQ(collected.at("trials").as_integer(), 6);
}

TEST_F(Flow, Adapt) {
  const base::Document result = json_of(quick({"adapt", file("model.h5"), "--platform", "native:v3", "--workloads",
                                               small + "," + other, "--shots", "10", "--out", file("adapted.h5")}));
  ASSERT_EQ(result.at("rows").as_list().size(), 2u);
  EXPECT_EQ(result.at("measurements").as_integer(), 20);
  for (const base::Document& row : result.at("rows").as_list()) {
    for (const char* key : {"zero_shot", "cross_validated"}) {
      const base::Document& interval = row.at(key);
      EXPECT_LE(interval.at("low").as_number(), interval.at("high").as_number());
      EXPECT_LE(std::abs(interval.at("mean").as_number()), 1.0);
    }
  }
  const base::Document model = json_of({"inspect", file("adapted.h5")});
  EXPECT_EQ(model.at("kind").as_string(), "model");
  EXPECT_NE(model.at("card").as_string().find("native:v3"), std::string::npos);
  // Whether it helped is said first, there and in the card, before what the card of the prior says.
  const std::string verdict = result.at("verdict").as_string();
  const std::string text = graft({"inspect", file("adapted.h5")}).out;
  const std::size_t at = text.find(verdict + ".");
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_LT(at, text.find("* learner"));
  EXPECT_EQ(text.find("## Adapted"), text.find("## "));
}

// A row of a table is no longer than it needs to be, and what is left out of a long name differs.
TEST_F(Flow, ExpressionsAreShortInTables) {
  const auto sum = [](const std::string& more) {
    return "input A[8,4]; input B[8,4]; input C[8,4]; input D[8,4]; output E[i,j] = A[i,j] + B[i,j] + C[i,j] + D[i,j]" +
           more + " where i=8, j=4";
  };
  const base::Finished finished = graft({"adapt", file("model.h5"), "--platform", "model:cortex-a53", "--workloads",
                                         sum(" + 1") + "," + sum(" + 2"), "--shots", "2", "--out", file("sums.h5")});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  std::set<std::string> rows;
  for (const std::string_view line : base::split(finished.out, '\n')) {
    if (line.starts_with("input A")) rows.emplace(line.substr(0, line.find("#") + 5));
    EXPECT_LT(line.size(), 160u) << line;
  }
  EXPECT_EQ(rows.size(), 2u) << finished.out;
}

// The order of one program is not known: no figure says that it is.
TEST_F(Flow, AdaptToOneProgramTeachesNothingAndSaysSo) {
  const std::vector<std::string> command{
      "adapt", file("model.h5"), "--platform",  "model:cortex-a53", "--workloads", small, "--shots",
      "1",     "--out",          file("one.h5")};
  const base::Document row = json_of(command).at("rows").as_list().at(0);
  EXPECT_EQ(row.at("programs").as_integer(), 1);
  EXPECT_TRUE(row.at("zero_shot").is_null());
  EXPECT_TRUE(row.at("cross_validated").is_null());
  const base::Finished text = graft(command);
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_NE(text.err.find("1 of 1 workloads have one measured program, which teaches nothing"), std::string::npos)
      << text.err;
  EXPECT_EQ(text.out.find("["), std::string::npos) << text.out;
}

TEST_F(Flow, SearchesGiveTheirMeasurementsBack) {
  json_of({"train", file("v2.h5"), "--model", "gbt", "--steps", "20", "--out", file("small.h5")});
  for (const std::string board : {"cortex-a53", "haswell"})
    json_of({"tune", small, "--platform", "model:" + board, "--model", "random", "--trials", "8", "--out",
             file("lab/" + board)});
  // A model that grows: by both boards, then by one of them again, which changes nothing that it keeps.
  const auto grown = [&](const std::string& base, const std::string& from, const std::string& out) {
    json_of(
        {"train", "--base", file(base), "--from", file(from), "--rehearsal", "4", "--steps", "20", "--out", file(out)});
    return json_of({"inspect", file(out)});
  };
  const base::Document first = grown("small.h5", "lab", "lab.h5").at("provenance");
  EXPECT_EQ(first.at("rows").as_integer(), 16);
  EXPECT_EQ(first.at("platforms").to_json(), "[\"model:cortex-a53\",\"model:haswell\"]");
  const base::Document second = grown("lab.h5", "lab/haswell", "lab2.h5");
  const base::Document& provenance = second.at("provenance");
  EXPECT_EQ(provenance.at("continues").to_json(), first.at("continues").to_json());
  EXPECT_EQ(provenance.at("earlier").as_list().size(), 1u);
  EXPECT_EQ(second.at("kept_programs").as_integer(), 16);
  EXPECT_NE(second.at("card").as_string().find("continues a model of 3 platforms"), std::string::npos);

  // A model adapted to one of them.
  const base::Document adapted =
      json_of({"adapt", file("small.h5"), "--from", file("lab/haswell"), "--out", file("given.h5")});
  EXPECT_EQ(adapted.at("platform").as_string(), "model:haswell");
  EXPECT_EQ(adapted.at("source").as_string(), "modelled");
  EXPECT_EQ(adapted.at("measurements").as_integer(), 8);
  EXPECT_TRUE(adapted.at("shots").is_null());
  EXPECT_TRUE(adapted.at("run").is_null());
  EXPECT_FALSE(std::filesystem::exists(file("given.h5.run")));

  const auto refused = [&](const std::vector<std::string>& command, const std::string& text) {
    const base::Finished finished = graft(command);
    EXPECT_EQ(finished.exit_code, 2);
    EXPECT_NE(finished.err.find(text), std::string::npos) << finished.err;
  };
  const std::string lab = file("lab"), haswell = file("lab/haswell"), never = file("never.h5");
  refused({"adapt", file("small.h5"), "--from", lab, "--out", never}, "graft train with --base and --from");
  refused({"adapt", file("small.h5"), "--from", haswell, "--workloads", small, "--out", never}, "--workloads, --from");
  refused({"adapt", file("small.h5"), "--from", haswell, "--platform", "native", "--out", never}, "--platform, --from");
  refused({"adapt", file("small.h5"), "--out", never}, "nothing to adapt to");
  refused({"train", "--base", file("small.h5"), "--out", never}, "nothing to learn from");
  refused({"train", "--base", file("given.h5"), "--from", haswell, "--out", never}, "adapted");
}

// Commas of an index expression separate nothing in a list of workloads.
TEST_F(Flow, AdaptTakesIndexExpressionsOfSeveralAxes) {
  const std::string scaled = "input A[8,4]; input B[4]; output C[i,j] = A[i,j] * B[j] where i=8, j=4";
  const base::Document result = json_of({"adapt", file("model.h5"), "--platform", "model:cortex-a53", "--workloads",
                                         scaled + ", " + small, "--shots", "3", "--out", file("expression.h5")});
  ASSERT_EQ(result.at("rows").as_list().size(), 2u);
  EXPECT_EQ(result.at("rows").as_list().at(1).at("workload").as_string(),
            small.substr(0, small.size() - 1) + ",dtype=f32)");
}

TEST_F(Flow, TimesUnderAnEmulatorTeachAndCompareNothing) {
  const std::string board = graft({"platform", "show", "model:sifive-p450"}).out;
  base::replace_file(file("emulated.yaml"),
                     board.substr(0, board.find("modelled:")) + "remote:\n  prefix: [qemu-riscv64, -cpu, rv64]\n");
  const base::Finished adapted = graft({"adapt", file("model.h5"), "--platform", file("emulated.yaml"), "--workloads",
                                        small, "--out", file("never.h5")});
  EXPECT_EQ(adapted.exit_code, 2);
  EXPECT_NE(adapted.err.find("times under an emulator"), std::string::npos) << adapted.err;
  EXPECT_FALSE(std::filesystem::exists(file("never.h5.run")));

  json_of({"tune", small, "--platform", "model:cortex-a53", "--trials", "2", "--out", file("emulated-run")});
  std::string head = base::read_file(file("emulated-run/run.json"));
  const std::string modelled = "\"modelled\"";
  head.replace(head.find(modelled), modelled.size(), "\"emulated\"");
  base::replace_file(file("emulated-run/run.json"), head);
  const base::Finished compared = graft({"compare", file("emulated-run"), file("emulated-run")});
  EXPECT_EQ(compared.exit_code, 2);
  EXPECT_NE(compared.err.find("times under an emulator"), std::string::npos) << compared.err;
  // They are called so.
  const std::string inspected = graft({"inspect", file("emulated-run")}).out;
  EXPECT_NE(inspected.find("best emulated seconds"), std::string::npos) << inspected;
  EXPECT_NE(inspected.find(" (emulated)"), std::string::npos) << inspected;
}

// Above the peak, or not: by the definition's arithmetic, of which the program does less.
TEST_F(Flow, WinogradIsNamedWhereASpeedIsComparedWithThePeak) {
  base::replace_file(file("start.txt"), "winograd Y 2\n");
  const std::vector<std::string> command = {"tune",       "conv2d(n=1,c=16,h=16,w=16,k=16,r=3,s=3,pad=1)",
                                            "--platform", "model:cortex-a72",
                                            "--model",    "random",
                                            "--start",    file("start.txt"),
                                            "--trials",   "1",
                                            "--out",      file("winograd")};
  const base::Finished tuned = graft(command);
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  for (const std::string& text : {tuned.out, graft({"inspect", file("winograd")}).out})
    EXPECT_NE(text.find(" % (Winograd) of "), std::string::npos) << text;
}

// What counts is what a model knows, not of which kind it is.
TEST_F(Flow, AModelThatKnowsSomethingGuidesTheFirstRound) {
  json_of({"train", file("v2.h5"), "--learner", "scratch", "--out", file("nothing.h5")});
  json_of({"train", file("v2.h5"), "--learner", "scratch", "--model", "gbt", "--out", file("no-trees.h5")});
  json_of({"adapt", file("nothing.h5"), "--platform", "model:cortex-a53", "--workloads", small, "--shots", "8", "--out",
           file("something.h5")});
  EXPECT_FALSE(json_of({"inspect", file("nothing.h5")}).at("informed").as_bool());
  EXPECT_TRUE(json_of({"inspect", file("something.h5")}).at("informed").as_bool());
  const auto first_round = [&](const std::string& model) {
    json_of({"tune", small, "--platform", "model:cortex-a53", "--model", file(model + ".h5"), "--trials", "6",
             "--batch", "6", "--out", file("first-" + model)});
    std::vector<std::uint64_t> programs;
    for (const auto& trial : datasets::read_journal(file("first-" + model + "/journal.jsonl")).trials)
      programs.push_back(trial.program_hash);
    return programs;
  };
  const auto random = first_round("nothing");
  EXPECT_EQ(random.size(), 6u);
  EXPECT_EQ(first_round("no-trees"), random);
  EXPECT_NE(first_round("something"), random);
}

TEST_F(Flow, RunsContinueUnderAnEqualModel) {
  for (const std::string name : {"first", "again", "other"}) {
    json_of({"train", file("v2.h5"), "--learner", "ridge", "--steps", "5", "--hidden", "4", "--seed",
             name == "other" ? "2" : "1", "--out", file("equal-" + name + ".h5")});
  }
  const std::string first = base::read_file(file("equal-first.h5"));
  EXPECT_NE(first, base::read_file(file("equal-again.h5")));  // says its own command
  const auto tune = [&](const std::string& model, const char* trials) {
    return graft({"tune", small, "--platform", "model:cortex-a53", "--model", file("equal-" + model + ".h5"),
                  "--trials", trials, "--batch", "2", "--out", file("equal-run")});
  };
  EXPECT_EQ(tune("first", "2").exit_code, 0);
  const base::Finished again = tune("again", "4");
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_NE(again.err.find("continues, 2 trials are recorded"), std::string::npos) << again.err;
  const base::Finished other = tune("other", "4");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("made with model"), std::string::npos) << other.err;

  // Older grafts recorded the hash of the file's bytes.
  const std::string hash = json_of({"inspect", file("equal-first.h5")}).at("hash").as_string();
  for (const std::string part : {"equal-run/run.json", "equal-run/journal.jsonl"}) {
    std::string text = base::read_file(file(part));
    text.replace(text.find(hash), hash.size(), base::to_hex(base::hash_bytes(first)));
    base::replace_file(file(part), text);
  }
  EXPECT_EQ(tune("first", "6").exit_code, 0);
  EXPECT_EQ(tune("again", "6").exit_code, 2);
}

TEST_F(Flow, TrainSaysThatThereIsTooLittle) {
  for (const char* const samples : {"1", "4"}) {
    json_of({"collect", small, "--platform", "model:cortex-a53", "--samples", samples, "--out",
             file(std::string("few-") + samples + ".h5")});
  }
  const auto train = [&](const std::string& data, const std::string& learner) {
    return graft({"train", file(data), "--learner", learner, "--steps", "3", "--out", file("little.h5")});
  };
  const base::Finished one = train("few-1.h5", "ridge");
  EXPECT_EQ(one.exit_code, 2);
  EXPECT_NE(one.err.find("no workload has two programs"), std::string::npos) << one.err;
  const base::Finished few = train("few-4.h5", "ridge");
  EXPECT_EQ(few.exit_code, 0) << few.err;
  EXPECT_NE(few.err.find("model:cortex-a53: 4 programs to train on"), std::string::npos) << few.err;
  EXPECT_EQ(train("few-4.h5", "scratch").err.find("to train on"), std::string::npos);  // learns from none
  EXPECT_EQ(train("v2.h5", "ridge").err.find("to train on"), std::string::npos);
}

TEST_F(Flow, TreeNetworksGoTheSameWay) {
  const std::vector<std::string> sizes{"--model", "treegru", "--embedding", "6", "--units", "5",
                                       "--slots", "2",       "--hidden",    "4", "--steps", "5"};
  const auto with_sizes = [&](std::vector<std::string> command) {
    command.insert(command.end(), sizes.begin(), sizes.end());
    return command;
  };
  const base::Document trained =
      json_of(with_sizes({"train", file("v2.h5"), file("v3.h5"), "--learner", "residual", "--out", file("tree.h5")}));
  EXPECT_EQ(trained.at("provenance").at("model").as_string(), "treegru");
  EXPECT_EQ(trained.at("provenance").at("encoding").as_string(), "tree");
  EXPECT_EQ(trained.at("provenance").at("units").as_integer(), 5);
  const base::Document adapted = json_of(quick({"adapt", file("tree.h5"), "--platform", "native:v3", "--workloads",
                                                small, "--shots", "8", "--out", file("tree-adapted.h5")}));
  EXPECT_EQ(adapted.at("measurements").as_integer(), 8);
  const base::Document tuned = json_of(quick({"tune", small, "--platform", "native:v3", "--model",
                                              file("tree-adapted.h5"), "--trials", "8", "--out", file("tree-run")}));
  EXPECT_EQ(tuned.at("trials").as_integer(), 8);
  const base::Document table =
      json_of(with_sizes({"evaluate", file("v2.h5"), file("v3.h5"), "--target", "native:v3", "--methods",
                          "zero-shot,nearest", "--shots", "0,5", "--draws", "2"}));
  EXPECT_EQ(table.at("rows").as_list().size(), 4u);
  EXPECT_EQ(table.at("request").at("encoding").as_string(), "tree");
}

TEST_F(Flow, EvaluateKeepsItsShape) {
  const std::vector<std::string> command{
      "evaluate", file("v2.h5"), file("v3.h5"), "--methods", "zero-shot,ridge,random",
      "--shots",  "0,5",         "--draws",     "3",         "--steps",
      "10",       "--hidden",    "16",          "--out",     file("evaluation.json")};
  const base::Document result = json_of(command);
  EXPECT_EQ(result.at("schema").as_integer(), 1);
  const auto& rows = result.at("rows").as_list();
  ASSERT_EQ(rows.size(), 2u * 3 * 2);
  for (const base::Document& row : rows) {
    for (const char* key : {"target", "method"}) EXPECT_TRUE(row.at(key).is_string());
    EXPECT_EQ(row.at("draws").as_integer(), 3);
    for (const char* key : {"spearman", "top1", "top5"}) {
      EXPECT_LE(row.at(key).at("low").as_number(), row.at(key).at("mean").as_number() + 1e-9) << key;
      EXPECT_GE(row.at(key).at("high").as_number(), row.at(key).at("mean").as_number() - 1e-9) << key;
    }
    EXPECT_EQ(row.at("measurements").as_integer(),
              row.at("method").as_string() == "ridge" ? 2 * row.at("shots").as_integer() : 0);
  }
  EXPECT_EQ(result.at("winners").as_list().size(), 4u);
  // The mean over the targets, draw by draw, and the differences of the others from the first method on the same draws.
  const auto spearman = [](const base::Document& row, std::size_t draw) {
    return row.at("by_draw").at("spearman").as_list()[draw].as_number();
  };
  const auto& means = result.at("means").as_list();
  ASSERT_EQ(means.size(), 6u);
  EXPECT_EQ(means[3].at("method").as_string(), "ridge");
  EXPECT_EQ(means[3].at("shots").as_integer(), 5);
  for (std::size_t d = 0; d < 3; ++d)
    EXPECT_NEAR(spearman(means[3], d), (spearman(rows[3], d) + spearman(rows[9], d)) / 2, 1e-12);
  const auto& differences = result.at("differences").as_list();
  ASSERT_EQ(differences.size(), 3u * 2 * 2);  // two targets and the mean, two other methods
  EXPECT_EQ(differences[1].at("against").as_string(), "zero-shot");
  EXPECT_NEAR(differences[1].at("spearman").at("mean").as_number(),
              rows[3].at("spearman").at("mean").as_number() - rows[1].at("spearman").at("mean").as_number(), 1e-12);
  const base::Document saved = base::parse_json(base::read_file(file("evaluation.json")), "evaluation.json");
  EXPECT_EQ(saved.at("rows"), result.at("rows"));
  // Run again, it takes the rows over; seeded, it would find the same ones.
  EXPECT_EQ(json_of(command).at("rows"), result.at("rows"));
  std::vector<std::string> against = command;
  against.insert(against.end(), {"--against", "maml"});
  EXPECT_NE(graft(against).err.find("maml is none of --methods"), std::string::npos);
}

// Programs that were measured, searched by the methods that are named and those that are always compared with.
TEST_F(Flow, EvaluateJudgesSearchesAndTheyAreReported) {
  const base::Finished finished =
      graft({"evaluate", file("v2.h5"), file("v3.h5"), "--methods", "ridge", "--shots", "0", "--draws", "3", "--steps",
             "10", "--hidden", "16", "--search", "--search-counts", "1,4,2000", "--out", file("found.json")});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_NE(finished.out.find("searches among what was recorded, rounds of 5, 3 seeds"), std::string::npos)
      << finished.out;
  EXPECT_NE(finished.out.find("less that of scratch, paired by seed"), std::string::npos) << finished.out;
  const base::Document saved = base::parse_json(base::read_file(file("found.json")), "found.json");
  ASSERT_EQ(saved.at("searches").as_list().size(), 2u * 4 * 3);
  ASSERT_EQ(saved.at("search_means").as_list().size(), 4u * 3);
  for (const base::Document& search : saved.at("searches").as_list()) {
    const double found = search.at("found").at("mean").as_number();
    EXPECT_GT(found, 0);
    EXPECT_TRUE(found == 1 || search.at("trials").as_integer() < 2000) << search.to_json();  // more than there are
  }
  ASSERT_EQ(graft({"report", file("found.json"), "--out", file("found.html")}).exit_code, 0);
  EXPECT_NE(base::read_file(file("found.html")).find("Searches among what was recorded"), std::string::npos);
}

TEST_F(Flow, EvaluateOfOneDrawHasNoInterval) {
  const std::vector<std::string> command{"evaluate", file("v2.h5"), file("v3.h5"), "--methods", "ridge,scratch",
                                         "--shots",  "5",           "--draws",     "1",         "--steps",
                                         "5",        "--hidden",    "4",           "--out",     file("one-draw.json")};
  const base::Document result = json_of(command);
  for (const char* const table : {"rows", "means", "differences"}) {
    for (const base::Document& row : result.at(table).as_list()) {
      EXPECT_FALSE(row.at("spearman").at("mean").is_null()) << table;
      EXPECT_TRUE(row.at("spearman").at("low").is_null() && row.at("spearman").at("high").is_null()) << table;
    }
  }
  const std::string text = graft(command).out;
  EXPECT_NE(text.find("1 draw, no intervals (they need 3)"), std::string::npos) << text;
  EXPECT_EQ(text.find("±"), std::string::npos) << text;
  EXPECT_EQ(text.find("["), std::string::npos) << text;
  EXPECT_EQ(graft({"report", file("one-draw.json"), "--out", file("one-draw.html")}).exit_code, 0);
  const std::string page = base::read_file(file("one-draw.html"));
  EXPECT_EQ(page.find("nan"), std::string::npos);
  EXPECT_EQ(page.find("class=\"band\""), std::string::npos);
}

TEST_F(Flow, EvaluatesByFolds) {
  std::vector<std::string> command{"evaluate", file("v2.h5"), file("v3.h5")};
  for (const char* const platform : {"model:cortex-a53", "model:pwr9"}) {
    command.push_back(file(platform));
    ASSERT_EQ(graft({"collect", small, "--platform", platform, "--samples", "20", "--out", command.back()}).exit_code,
              0);
  }
  for (const char* const word :
       {"--methods", "ridge,random", "--shots", "0,5", "--draws", "2", "--steps", "10", "--hidden", "8"})
    command.emplace_back(word);
  std::vector<std::string> alone = command;
  command.insert(command.end(), {"--folds", "2"});
  const base::Document result = json_of(command);
  const auto& rows = result.at("rows").as_list();
  ASSERT_EQ(rows.size(), 4u * 2 * 2);
  // Targets of a fold follow each other, each as if the two platforms of the other fold were all that there is.
  const std::string first = rows[0].at("target").as_string(), second = rows[4].at("target").as_string();
  alone.insert(alone.end(), {"--target", first, "--sources",
                             rows[8].at("target").as_string() + "," + rows[12].at("target").as_string()});
  EXPECT_EQ(json_of(alone).at("rows").as_list()[1], rows[1]);
  EXPECT_NE(first, second);
  command.back() = "5";
  EXPECT_NE(graft(command).err.find("expected 2 to 4"), std::string::npos);
  command.insert(command.end(), {"--target", first});
  EXPECT_NE(graft(command).err.find("cannot be combined with --target"), std::string::npos);
}

TEST_F(Flow, EvaluatesWithinOnePlatform) {
  const std::vector<std::string> command{
      "evaluate", file("v2.h5"), "--regime", "in-domain", "--methods", "gbt-zero-shot,random",
      "--shots",  "20",          "--draws",  "2",         "--loss",    "lambda",
      "--steps",  "20"};
  const base::Document result = json_of(command);
  const auto& rows = result.at("rows").as_list();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].at("shots").as_integer(), 20);
  EXPECT_GT(rows[0].at("measurements").as_integer(), 0);
  const auto refused = [&](std::vector<std::string> more, const char* words) {
    std::vector<std::string> with = command;
    with.insert(with.end(), more.begin(), more.end());
    const base::Finished finished = graft(with);
    EXPECT_EQ(finished.exit_code, 2);
    EXPECT_NE(finished.err.find(words), std::string::npos) << finished.err;
  };
  refused({"--judge-workloads", "matmul(m=7,n=7,k=7)"}, "not measured on native:v2");
  EXPECT_NE(graft({"evaluate", file("v2.h5"), file("v3.h5"), "--train-workloads", "matmul(m=7,n=7,k=7)"})
                .err.find("only with --regime in-domain"),
            std::string::npos);
}

// Without a word it is residual on trees; what only networks have asks for them.
TEST_F(Flow, TrainTakesWhatProvedBest) {
  const auto provenance = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"train", file("v2.h5"), file("v3.h5"), "--out", file("usual.h5"), "--steps", "5"});
    return json_of(more).at("provenance");
  };
  const base::Document usual = provenance({});
  EXPECT_EQ(usual.at("learner").as_string(), "residual");
  EXPECT_EQ(usual.at("model").as_string(), "gbt");
  EXPECT_EQ(provenance({"--hidden", "8"}).at("model").as_string(), "mlp");
  EXPECT_EQ(provenance({"--learner", "fomaml"}).at("model").as_string(), "mlp");
}

// A model of one platform learns of another one; what came before stays in the provenance.
TEST_F(Flow, TrainsOnFromAModelAndWritesLosses) {
  base::replace_file(file("more.md"), "## How well it does\n\nJudged by nobody.\n");
  json_of({"train", file("v2.h5"), "--learner", "ridge", "--out", file("first.h5"), "--steps", "20", "--hidden", "8",
           "--losses", file("losses.csv"), "--card", file("more.md")});
  EXPECT_NE(graft({"inspect", file("first.h5")}).out.find("Judged by nobody."), std::string::npos);
  EXPECT_EQ(graft({"train", file("v2.h5"), "--out", file("never.h5"), "--card", file("nowhere.md")}).exit_code, 2);
  const std::string losses = base::read_file(file("losses.csv"));
  EXPECT_TRUE(losses.starts_with("stage,step,loss\n")) << losses.substr(0, 80);
  EXPECT_NE(losses.find("training for native:v2"), std::string::npos) << losses.substr(0, 200);
  EXPECT_FALSE(std::filesystem::exists(file("first.h5.checkpoints")));
  const base::Document more =
      json_of({"train", file("v3.h5"), "--base", file("first.h5"), "--out", file("second.h5"), "--steps", "20"});
  EXPECT_EQ(more.at("kind").as_string(), "ridge");
  EXPECT_EQ(more.at("provenance").at("platforms").as_list().front().as_string(), "native:v3");
  EXPECT_EQ(more.at("provenance").at("continues").at("platforms").as_list().front().as_string(), "native:v2");
  const base::Finished refused = graft({"train", file("v3.h5"), "--base", file("v2.h5"), "--out", file("never.h5")});
  EXPECT_EQ(refused.exit_code, 2);
  // For a model that cannot, before any data is read.
  json_of({"train", file("v2.h5"), "--learner", "gbt", "--out", file("gbt.h5"), "--steps", "3"});
  const base::Finished cannot =
      graft({"train", file("nowhere.h5"), "--base", file("gbt.h5"), "--out", file("never.h5")});
  EXPECT_EQ(cannot.exit_code, 2);
  EXPECT_NE(cannot.err.find("--base: a model of kind gbt learns nothing more"), std::string::npos) << cannot.err;
}

TEST_F(Flow, JudgesOnHeldOutProgramsOfNamedSources) {
  const base::Document result = json_of({"evaluate", file("v2.h5"), file("v3.h5"), "--target", "native:v2", "--sources",
                                         "native:v3", "--judge-last", "8", "--methods", "bayes-ridge,scratch",
                                         "--shots", "5", "--draws", "2", "--steps", "10", "--support", "kmeans"});
  EXPECT_EQ(result.at("rows").as_list().size(), 2u);
  EXPECT_FALSE(result.at("rows").as_list().front().at("spearman_middle80").is_null());
  EXPECT_EQ(graft({"evaluate", file("v2.h5"), file("v3.h5"), "--sources", "native:v9"}).exit_code, 2);
  EXPECT_EQ(graft({"evaluate", file("v2.h5"), file("v3.h5"), "--support", "kmean"}).exit_code, 2);
  const std::vector<std::string> one = {"evaluate",  file("v2.h5"), file("v3.h5"), "--target", "native:v2",
                                        "--methods", "nearest",     "--shots",     "0",        "--draws",
                                        "1",         "--steps",     "30"};
  std::vector<std::string> misled = one;
  misled.insert(misled.end(), {"--misleading", "native:v3"});
  const auto spearman = [](const base::Document& table) {
    return table.at("rows").as_list().front().at("spearman").at("mean").as_number();
  };
  EXPECT_GT(spearman(json_of(one)), 0.1);
  EXPECT_LT(spearman(json_of(misled)), -0.1);
  misled[4] = "native:v3";  // the judged platform itself
  EXPECT_EQ(graft(misled).exit_code, 2);

  const auto losses_of = [&](const std::vector<std::string>& more) {
    std::vector<std::string> command = {"train", file("v3.h5"),     "--learner", "nearest",          "--model", "mlp",
                                        "--out", file("misled.h5"), "--losses",  file("misled.csv"), "--steps", "30"};
    command.insert(command.end(), more.begin(), more.end());
    const base::Document provenance = json_of(command).at("provenance");
    EXPECT_EQ(provenance.find("misleading") != nullptr, !more.empty());
    return base::read_file(file("misled.csv"));
  };
  EXPECT_NE(losses_of({}), losses_of({"--misleading", "native:v3"}));
  EXPECT_EQ(graft({"train", file("v3.h5"), "--out", file("never.h5"), "--misleading", "native:v9"}).exit_code, 2);
}

TEST_F(Flow, TuneTakesModelsThatNeedNoFile) {
  for (const std::string model : {"black-box", "analytic", "random"}) {
    const base::Document tuned =
        json_of({"tune", "matmul(m=16,n=16,k=16)", "--platform", "model:sifive-p450", "--model", model, "--trials", "8",
                 "--batch", "4", "--out", file("tuned-by-" + model)});
    EXPECT_EQ(tuned.at("trials").as_integer(), 8) << model;
  }
}

// Every explorer has a name here.
TEST_F(Flow, TuneExploresAsItIsTold) {
  for (const std::string explorer : {"grid", "genetic", "swarm", "bayesian", "policy"}) {
    const base::Document tuned = json_of({"tune", "matmul(m=16,n=16,k=16)", "--platform", "model:sifive-p450",
                                          "--explorer", explorer, "--trials", "8", "--out", file("by-" + explorer)});
    EXPECT_EQ(tuned.at("trials").as_integer(), 8) << explorer;
  }
}

// Recorded rows answer: the same for a seed with any threads, and no time that the dataset lacks.
TEST_F(Flow, ReplaySearchesWhatWasRecorded) {
  const auto replayed = [&](const std::string& explorer, const std::string& threads) {
    return json_of({"replay", file("v3.h5"), "--model", "scratch", "--explorer", explorer, "--trials", "12", "--batch",
                    "4", "--threads", threads});
  };
  for (const std::string explorer : {"evolution", "bayesian"}) {
    const base::Document one = replayed(explorer, "1");
    EXPECT_EQ(one.at("rows"), replayed(explorer, "2").at("rows"));
    EXPECT_EQ(one.at("platform").as_string(), "native:v3");
    ASSERT_FALSE(one.at("rows").as_list().empty());
    for (const base::Document& row : one.at("rows").as_list()) {
      EXPECT_LE(row.at("trials").as_integer(), 12);
      const base::Document::List& last = row.at("curve").as_list().back().as_list();
      EXPECT_EQ(last.front().as_integer(), row.at("trials").as_integer());
      EXPECT_GE(last.back().as_number(), row.at("best_recorded").as_number());
    }
  }
  const base::Finished finished = graft({"replay", file("v3.h5"), "--workloads", "matmul(m=3,n=3,k=3)"});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_NE(finished.err.find("no recorded row"), std::string::npos) << finished.err;
}

TEST_F(Flow, TreesTrainAndAreRefusedWhereNetworksAreMeant) {
  const base::Document trained =
      json_of({"train", file("v2.h5"), file("v3.h5"), "--out", file("trees.h5"), "--learner", "pooled", "--model",
               "gbt", "--steps", "20", "--members", "2", "--loss", "rank"});
  EXPECT_EQ(trained.at("kind").as_string(), "ensemble");
  EXPECT_EQ(trained.at("provenance").at("learner").as_string(), "gbt");
  EXPECT_EQ(json_of({"inspect", file("trees.h5")}).at("kind").as_string(), "model");
  const base::Document tuned = json_of({"tune", "matmul(m=16,n=16,k=16)", "--platform", "model:sifive-p450", "--model",
                                        file("trees.h5"), "--trials", "8", "--out", file("tuned-by-trees")});
  EXPECT_EQ(tuned.at("trials").as_integer(), 8);
  const base::Finished finished =
      graft({"train", file("v2.h5"), "--out", file("x.h5"), "--model", "gbt", "--learner", "maml"});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_NE(finished.err.find("maml trains networks"), std::string::npos) << finished.err;
  EXPECT_EQ(graft({"train", file("v2.h5"), "--out", file("x.h5"), "--loss", "lamda"}).exit_code, 2);
}

TEST_F(Flow, EvaluateRefusesMoreShotsThanThereArePrograms) {
  const base::Finished finished =
      graft({"evaluate", file("v2.h5"), file("v3.h5"), "--methods", "ridge", "--shots", "500"});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_NE(finished.err.find("500 shots"), std::string::npos) << finished.err;
}

TEST_F(Flow, EvaluateNeedsASecondPlatform) {
  const base::Finished finished = graft({"evaluate", file("v2.h5"), "--methods", "ridge", "--shots", "5"});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_NE(finished.err.find("at least one other platform"), std::string::npos) << finished.err;
}

TEST_F(Flow, EvaluateNamesUnknownTargets) {
  const base::Finished finished = graft({"evaluate", file("v2.h5"), file("v3.h5"), "--target", "native:v9"});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_NE(finished.err.find("did you mean"), std::string::npos) << finished.err;
}

TEST_F(Flow, TruncatedDatasetIsRefused) {
  const std::string whole = base::read_file(file("v2.h5"));
  base::replace_file(file("half.h5"), whole.substr(0, whole.size() / 2));
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"inspect", file("half.h5")}, {"train", file("half.h5"), "--out", file("never.h5")}}) {
    const base::Finished finished = graft(command);
    EXPECT_EQ(finished.exit_code, 2);
    EXPECT_NE(finished.err.find("half.h5"), std::string::npos) << finished.err;
  }
  EXPECT_FALSE(std::filesystem::exists(file("never.h5")));
}

TEST_F(Flow, CompareHoldsSearchesOfTwoMethodsAgainstEachOther) {
  std::vector<std::string> command{"compare"};
  for (const std::string method : {"guided", "blind"}) {
    for (const std::string seed : {"1", "2"}) {
      command.push_back(file("searches/" + method + "/s" + seed));
      ASSERT_EQ(graft({"tune", "matmul(m=16,n=16,k=16)", "--platform", "model:sifive-p450", "--model",
                       method == "blind" ? "random" : "scratch", "--trials", "6", "--batch", "3", "--seed", seed,
                       "--out", command.back()})
                    .exit_code,
                0);
    }
  }
  command.insert(command.end(), {"--trials", "2,6", "--against", "blind"});
  std::vector<std::string> with_page = command;
  with_page.insert(with_page.end(), {"--out", file("searches.html")});
  const base::Document result = json_of(with_page);
  const base::Document::List& methods = result.at("methods").as_list();
  ASSERT_EQ(methods.size(), 2u);
  EXPECT_EQ(methods[0].at("method").as_string(), "guided");
  EXPECT_EQ(methods[1].at("searches").as_integer(), 2);
  for (const base::Document& method : methods) {
    const auto speed = [&](std::size_t i) { return method.at("speed").as_list()[i].at("mean").as_number(); };
    EXPECT_LE(speed(0), speed(1));
    EXPECT_LE(speed(1), 1);
  }
  // Two searches of a method have no interval, in text, JSON and picture.
  EXPECT_TRUE(methods[0].at("times_fewer").at("low").is_null());
  EXPECT_EQ(graft(command).out.find("]"), std::string::npos);
  const std::string page = base::read_file(file("searches.html"));
  EXPECT_NE(page.find("Searches compared"), std::string::npos);
  EXPECT_EQ(page.find("nan"), std::string::npos);
  EXPECT_EQ(page.find("class=\"band\""), std::string::npos);
  command.resize(5);  // as many trials as there are: no 8th
  EXPECT_EQ(json_of(command).at("trials").as_list().size(), 1u);
  command.insert(command.end(), {"--against", "nobody"});
  EXPECT_EQ(graft(command).exit_code, 2);
  EXPECT_EQ(graft({"compare", file("searches/blind/s1"), file("v2.h5")}).exit_code, 2);
  command.resize(5);
  command.insert(command.end(), {"--again", "2"});
  EXPECT_NE(graft(command).err.find("modelled"), std::string::npos);
}

TEST_F(Flow, CompareTakesTheTimesOfSearchesAgain) {
  std::vector<std::string> command{"compare"};
  for (const std::string seed : {"1", "2"}) {
    for (const std::string method : {"one", "other"}) {
      command.push_back(file("retimed/" + method + "/s" + seed));
      ASSERT_EQ(graft(quick({"tune", small, "--platform", "native:v2", "--model", "random", "--trials", "4", "--batch",
                             "4", "--rebuild", "0", "--seed", seed, "--out", command.back()}))
                    .exit_code,
                0);
    }
  }
  command.insert(command.end(), {"--trials", "4", "--again", "3", "--out", file("retimed.html")});
  const base::Document result = json_of(command);
  EXPECT_EQ(result.at("again").as_integer(), 3);
  EXPECT_NE(base::read_file(file("retimed.html")).find("by the least of 3 times that were taken again"),
            std::string::npos);
  // Equal programs, all of them finalists, have equal times now, independent of the searches' times.
  for (const base::Document& method : result.at("methods").as_list()) {
    const base::Document& slower = method.at("slower").as_list()[0];
    EXPECT_EQ(slower.at("mean").as_number(), 0);
  }
}

TEST_F(Flow, TuneWithAndWithoutAModel) {
  for (const bool with_model : {false, true}) {
    const std::string folder = file(with_model ? "tuned" : "scratch");
    std::vector<std::string> command =
        quick({"tune", small, "--platform", "native:v3", "--trials", "16", "--batch", "8", "--out", folder});
    if (with_model) command.insert(command.end(), {"--model", file("model.h5"), "--rebuild", "0"});
    const base::Document result = json_of(command);
    EXPECT_EQ(result.at("workload").as_string(), "matmul(m=24,n=32,k=16,dtype=f32)");
    EXPECT_EQ(result.at("platform").as_string(), "native:v3");
    EXPECT_EQ(result.at("trials").as_integer(), 16);
    EXPECT_EQ(result.at("seed").as_integer(), 1);
    const double seconds = result.at("best").at("seconds").as_number();
    EXPECT_GT(seconds, 0);
    EXPECT_NEAR(result.at("best").at("gflops").as_number(), 2.0 * 24 * 32 * 16 / seconds * 1e-9, 1e-6);
    EXPECT_FALSE(result.at("best").at("schedule").as_list().empty());
    const auto& curve = result.at("curve").as_list();
    ASSERT_FALSE(curve.empty());
    EXPECT_EQ(curve.back().as_list()[0].as_integer(), 16);
    const auto& builds = result.at("builds").as_list();
    if (with_model) {  // nothing is built again: the best is the best trial
      EXPECT_TRUE(builds.empty());
      EXPECT_EQ(curve.back().as_list()[1].as_number(), seconds);
      EXPECT_EQ(result.at("best").find("pipeline"), nullptr);
    } else {  // the best sixteen again, and four of them by every pipeline
      std::set<std::int64_t> trials;
      double least = INFINITY;
      bool named = false;
      for (const base::Document& build : builds) {
        trials.insert(build.at("trial").as_integer());
        least = std::min(least, build.at("seconds").as_number());
        named |= build.at("pipeline") == result.at("best").at("pipeline");
      }
      EXPECT_GT(trials.size(), 4u);
      EXPECT_LE(trials.size(), 16u);
      EXPECT_EQ(builds.size(), trials.size() - 4 + 4 * 4);
      EXPECT_EQ(seconds, least);
      EXPECT_TRUE(named);
      EXPECT_TRUE(std::filesystem::exists(folder + "/builds.json"));
    }
    EXPECT_EQ(base::parse_json(base::read_file(folder + "/best.json"), "best.json").at("best"), result.at("best"));
    const base::Document& time = result.at("time");
    EXPECT_EQ(time.at("measured").as_integer(), 16);
    EXPECT_NEAR(time.at("trials_per_second").as_number() * time.at("seconds").as_number(), 16, 1e-6);
    EXPECT_GE(time.at("seconds").as_number(), time.at("measuring").as_number());
    const base::Document inspected = json_of({"inspect", folder}).at("best").as_list()[0];
    EXPECT_EQ(inspected.at("seconds").as_number(), seconds);
    EXPECT_EQ(inspected.find("pipeline") == nullptr, with_model);
    if (!with_model) {
      EXPECT_EQ(inspected.at("pipeline"), result.at("best").at("pipeline"));
    }
    // Again: everything is recorded, the builds too.
    const base::Document again = json_of(command);
    EXPECT_EQ(again.at("curve"), result.at("curve"));
    EXPECT_EQ(again.at("builds"), result.at("builds"));
    EXPECT_EQ(again.at("time").at("measured").as_integer(), 0);
    // With more trials: what was built before is no longer the best of all.
    const auto more = std::find(command.begin(), command.end(), "16");
    *more = "24";
    command.insert(command.end(), {"--rebuild", "0"});
    if (!with_model) {
      EXPECT_TRUE(json_of(command).at("builds").as_list().empty());
    }
  }
}

// A board whose vectors are shorter than the platform says: no program can be right there.
TEST_F(Flow, ASearchInWhichNothingIsRightEndsWithTheReasonAndARemedy) {
  if (std::system("qemu-riscv64 --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "qemu-riscv64 is not installed";
  const std::string yaml = graft({"platform", "show", "model:sifive-x280"}).out;
  ASSERT_NE(yaml.find("vector_bits: 512"), std::string::npos);
  base::replace_file(file("short.yaml"), yaml.substr(0, yaml.find("modelled:")) +
                                             "remote:\n  prefix: [sh, -c, 'exec qemu-riscv64 -cpu rv64,v=true,vlen=128 \"$@\"', sh]\n");
  const std::string folder = file("short");
  std::vector<std::string> tune = quick({"tune", small, "--trials", "64", "--batch", "16", "--json", "--quiet"});
  tune.insert(tune.end(), {"--platform", file("short.yaml"), "--out", folder});
  const base::Finished tuned = graft(tune);
  EXPECT_EQ(tuned.exit_code, 1);
  EXPECT_EQ(lines_in(tuned.err), 1u) << tuned.err;
  EXPECT_EQ(tuned.err.find("error: model:sifive-x280: no program was ok, "), 0u) << tuned.err;
  for (const char* part :
       {" of 16 ended as wrong_result: C: element ", "vector_bits", "graft platform probe", "graft inspect "})
    EXPECT_NE(tuned.err.find(part), std::string::npos) << part << " in " << tuned.err;
  const base::Document result = base::parse_json(tuned.out, "standard output");
  EXPECT_TRUE(result.at("best").is_null());
  EXPECT_EQ(result.at("trials").as_integer(), 16);

  std::int64_t failed = 0;
  const base::Document inspected = json_of({"inspect", folder});
  for (const base::Document& kind : inspected.at("failures").as_list()) {
    EXPECT_EQ(kind.at("status").as_string(), "wrong_result");
    failed += kind.at("count").as_integer();
  }
  EXPECT_EQ(failed, 16);
  EXPECT_NE(graft({"inspect", folder}).out.find("wrong_result: C: element "), std::string::npos);

  const base::Finished collected = graft(quick({"collect", small, other, "--samples", "16", "--platform",
                                                file("short.yaml"), "--out", file("short.h5"), "--quiet"}));
  EXPECT_EQ(collected.exit_code, 1);
  EXPECT_EQ(lines_in(collected.err), 1u) << collected.err;
  EXPECT_NE(collected.err.find("no program was ok, "), std::string::npos) << collected.err;
  EXPECT_FALSE(std::filesystem::exists(file("short.h5")));
}

TEST_F(Flow, TuneOnSeveralThreads) {
  const std::string folder = file("threads");
  if (base::hardware_threads() < 2) {
    const base::Finished refused = graft({"tune", small, "--platform", "native,threads=2", "--out", folder});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_NE(refused.err.find("threads must be 1 to 1"), std::string::npos) << refused.err;
    GTEST_SKIP() << "only one core may be used here";
  }
  const base::Document result =
      json_of(quick({"tune", small, "--platform", "native,threads=2", "--trials", "8", "--out", folder}));
  EXPECT_EQ(result.at("platform").as_string(), "native,threads=2");
  EXPECT_GT(result.at("best").at("seconds").as_number(), 0);
  const auto& schedule = result.at("best").at("schedule").as_list();
  EXPECT_TRUE(std::any_of(schedule.begin(), schedule.end(),
                          [](const base::Document& step) { return step.as_string().starts_with("parallel C "); }));
  const std::string journal = base::read_file(folder + "/journal.jsonl");
  EXPECT_NE(journal.find("\"clock\":\"wall\""), std::string::npos);
  EXPECT_EQ(journal.find("\"clock\":\"thread_cpu\""), std::string::npos);
  EXPECT_EQ(json_of({"inspect", folder}).at("best").as_list()[0].at("seconds"), result.at("best").at("seconds"));
}

TEST_F(Flow, TuneCallsModelledTimesModelled) {
  const std::vector<std::string> command{"tune",     small, "--platform", "model:sifive-p450", "--explorer", "random",
                                         "--trials", "4",   "--out",      file("modelled")};
  const base::Document result = json_of(command);
  EXPECT_EQ(result.at("source").as_string(), "modelled");
  EXPECT_GT(result.at("modelled_seconds").as_number(), 0);
  const std::string text = graft(command).out;
  EXPECT_NE(text.find("best modelled seconds"), std::string::npos) << text;
  EXPECT_EQ(text.find("best seconds"), std::string::npos) << text;
}

TEST_F(Flow, InspectKnowsEveryFile) {
  const base::Document dataset = json_of({"inspect", file("v2.h5")});
  EXPECT_EQ(dataset.at("kind").as_string(), "dataset");
  EXPECT_EQ(dataset.at("rows").as_integer(), 48);
  EXPECT_EQ(dataset.at("workloads").as_list().size(), 2u);
  EXPECT_NE(dataset.at("provenance").at("command").as_string().find("graft collect"), std::string::npos);
  EXPECT_EQ(json_of({"inspect", file("model.h5")}).at("kind").as_string(), "model");
  EXPECT_EQ(json_of({"inspect", file("v2.h5.run")}).at("kind").as_string(), "run");
  EXPECT_EQ(json_of({"inspect", file("v2.h5.run/journal.jsonl")}).at("kind").as_string(), "journal");
  for (const char* name : {"v2.h5", "model.h5", "v2.h5.run", "v2.h5.run/journal.jsonl"}) {
    const base::Finished text = graft({"inspect", file(name)});
    EXPECT_EQ(text.exit_code, 0);
    EXPECT_EQ(text.err, "");
    EXPECT_GT(lines_in(text.out), 3u) << name;
  }
}

TEST_F(Flow, InspectShowsPrograms) {
  const base::Document run =
      json_of({"inspect", file("v3.h5.run"), "--workload", other, "--program", "--features", "--assembly"});
  EXPECT_NE(run.at("program_text").as_string().find("buffer C f32"), std::string::npos);
  EXPECT_GT(run.at("features").as_map().size(), 100u);
  EXPECT_NE(run.at("assembly").as_string().find("ret"), std::string::npos);

  const base::Document workload = json_of({"inspect", small, "--platform", "native:v3"});
  EXPECT_EQ(workload.at("flops").as_integer(), 2 * 24 * 32 * 16);
  EXPECT_GT(workload.at("space_size").as_number(), 1000);
  EXPECT_TRUE(json_of({"inspect", small, "--program"}).at("program").is_map());
}

// A run says by itself what it was measured on.
TEST_F(Flow, RunsOutliveTheYamlOfTheirPlatform) {
  std::string yaml = base::read_file(std::string(GRAFT_SOURCE_DIR) + "/platforms/sifive-p450.yaml");
  const std::string known = "name: model:sifive-p450\n";
  ASSERT_NE(yaml.find(known), std::string::npos);
  yaml.replace(yaml.find(known), known.size(), "name: my-board\n");
  base::replace_file(file("board.yaml"), yaml);
  const std::vector<std::string> tune = {"tune",     small, "--platform", file("board.yaml"),
                                         "--trials", "4",   "--out",      file("board")};
  json_of(tune);
  json_of({"collect", small, "--platform", file("board.yaml"), "--samples", "4", "--out", file("board.h5")});
  std::filesystem::remove(file("board.yaml"));

  for (const char* run : {"board", "board.h5.run"}) {
    const base::Document shown = json_of({"inspect", file(run), "--program", "--assembly"});
    EXPECT_NE(shown.at("program_text").as_string().find("buffer C f32"), std::string::npos);
    EXPECT_NE(shown.at("assembly").as_string().find("rv64"), std::string::npos);
    EXPECT_EQ(graft({"report", file(run), "--out", file("board.html")}).exit_code, 0);
    const base::Finished journal = graft({"inspect", file(run) + "/journal.jsonl"});
    EXPECT_NE(journal.out.find("vector_bits"), std::string::npos) << journal.out;
  }

  // A run of before, which keeps the name alone: as it always was.
  base::Document head = base::parse_json(base::read_file(file("board/run.json")), "run.json");
  base::Document old = base::Document::map();
  old.set("request", head.at("request")).set("context", head.at("context"));
  base::replace_file(file("board/run.json"), old.to_json());
  const base::Finished refused = graft({"inspect", file("board"), "--program"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("my-board: unknown platform"), std::string::npos) << refused.err;
  base::replace_file(file("board.yaml"), yaml);
  EXPECT_TRUE(
      json_of({"inspect", file("board"), "--program", "--platform", file("board.yaml")}).at("program").is_map());
  EXPECT_EQ(graft({"inspect", file("board")}).exit_code, 0);
}

TEST_F(Flow, ReportIsOnePageWithoutScripts) {
  const std::string evaluation = file("reported.json");
  EXPECT_EQ(graft({"evaluate", file("v2.h5"), file("v3.h5"), "--target", "native:v3", "--methods", "ridge,random",
                   "--shots", "0,5", "--draws", "2", "--steps", "5", "--hidden", "8", "--out", evaluation})
                .exit_code,
            0);
  EXPECT_EQ(graft({"report", file("v2.h5.run"), evaluation, "--out", file("page.html")}).exit_code, 0);
  const std::string page = base::read_file(file("page.html"));
  for (const char* part : {"<!DOCTYPE html>", "prefers-color-scheme:dark", "<svg", "matmul(m=24,n=32,k=16,dtype=f32)",
                           "Spearman correlation", "support programs per workload (shots)", "trials", "native:v3",
                           "<dt>model</dt><dd>mlp</dd>"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
  for (const char* part : {"<script", "http:", "https:", "nan", "inf"})
    EXPECT_EQ(page.find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace graft::cli
