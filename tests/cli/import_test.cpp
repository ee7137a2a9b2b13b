// Measurements of others, from a file to a table of methods, by the program as it is typed.
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "base/random.h"
#include "tests/cli/support.h"

namespace graft::cli {
namespace {

using base::Document;
using base::Folder;

std::string spearman_of(const Document& evaluation, const std::string& method, std::int64_t shots, double& mean) {
  for (const Document& row : evaluation.at("rows").as_list()) {
    if (row.at("method").as_string() != method || row.at("shots").as_integer() != shots) continue;
    mean = row.at("spearman").at("mean").as_number();
    return row.at("target").as_string();
  }
  return "";
}

// Three platforms whose times follow from which operators there are, with weights that are alike.
std::string table_of_operators() {
  base::Stream stream(7, "table");
  std::string text = "op0,op1,op2,op3,size,a,b,c\n";
  const double weights[] = {1, 5, 2, 9, 3};
  for (int i = 0; i < 150; ++i) {
    std::string line;
    double seconds[3] = {1, 1, 1};
    for (int column = 0; column < 4; ++column) {
      const std::int64_t op = stream.below(5);
      line += fmt::format("{},", op);
      for (int p = 0; p < 3; ++p) seconds[p] += weights[op] * (1 + 0.1 * p * column) + 0.2 * p * double(op == 2);
    }
    const std::int64_t size = 16 + stream.below(100);
    line += fmt::format("{}", size);
    for (const double each : seconds) line += fmt::format(",{:.5f}", each * double(size));
    text += line + "\n";
  }
  return text;
}

TEST(Import, TablesAreLearnedFrom) {
  const Folder folder;
  base::replace_file(folder / "net.csv", table_of_operators());
  const std::string out = (folder / "net").string();
  const Document imported = json_of(
      {"import", "table", (folder / "net.csv").string(), "--platform", "*", "--options", "unit=ms", "--out", out});
  ASSERT_EQ(imported.at("datasets").as_list().size(), 3u);
  EXPECT_EQ(imported.at("datasets").as_list()[0].at("platform").as_string(), "import:a");
  EXPECT_EQ(imported.at("datasets").as_list()[0].at("rows").as_integer(), 150);
  const std::vector<std::string> files{out + "/a.h5", out + "/b.h5", out + "/c.h5"};
  // The encoding follows from the data.
  const Document evaluation = json_of({"evaluate", files[0], files[1], files[2], "--target", "import:c", "--methods",
                                       "ridge,nearest", "--shots", "0,10", "--draws", "3"});
  double ridge = 0;
  EXPECT_EQ(spearman_of(evaluation, "ridge", 10, ridge), "import:c");
  EXPECT_GT(ridge, 0.9);
  EXPECT_EQ(evaluation.at("request").at("encoding").as_string(), "columns");
  const std::string model = (folder / "model.h5").string();
  const Document trained = json_of({"train", files[0], files[1], "--out", model, "--steps", "20"});
  EXPECT_EQ(trained.at("provenance").at("rows").as_integer(), 300);
  // An encoding of programs has nothing to look at, and says so.
  const base::Finished refused = graft({"train", files[0], "--out", model, "--encoding", "context_relation"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("no row has a program"), std::string::npos) << refused.err;
  for (const char* what : {"inspect", "clean"}) {
    std::vector<std::string> arguments{what, files[0]};
    if (std::string(what) == "clean") arguments.insert(arguments.end(), {"--out", (folder / "clean.h5").string()});
    const base::Finished finished = graft(arguments);
    EXPECT_EQ(finished.exit_code, 0) << what << ": " << finished.err;
  }
  const base::Finished compared = graft({"compare", files[0], files[1], files[2]});
  EXPECT_EQ(compared.exit_code, 0) << compared.err;
  const base::Finished exported = graft({"export", "table", files[0], "--out", (folder / "back.csv").string()});
  EXPECT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_EQ(lines_in(base::read_file(folder / "back.csv")), 151u);
}

// The nests of a stranger, ranked by what was learned from schedules of ours.
TEST(Import, ProgramsAreRankedByAModelOfOurSchedules) {
  const Folder folder;
  const std::string ours = (folder / "ours.h5").string(), theirs = (folder / "theirs.h5").string();
  json_of({"collect", small, "--platform", "model:sifive-p450", "--samples", "24", "--out", ours});
  const std::string head =
      R"("buffer A f32 [24,16] input\nbuffer B f32 [16,32] input\nbuffer C f32 [24,32] output\nrun\n)"
      R"(  for i 24\n    for j 32\n      C[i,j] = 0\n)";
  std::string lines;
  int number = 0;
  for (const int tile : {2, 4, 8, 16}) {
    for (const char* order : {"il", "li"}) {
      const std::string outer = order[0] == 'i' ? "i 24" : "l 16", inner = order[0] == 'i' ? "l 16" : "i 24";
      lines += fmt::format(
          R"({{"workload": "{}", "seconds": [{}], "program": {}  for j.0 {}\n    for {}\n      for {}\n        for j.1 {}\n)"
          R"(          C[i,{}*j.0 + j.1] += A[i,l] * B[l,{}*j.0 + j.1]\n"}})"
          "\n",
          small, 1e-5 * ++number, head, 32 / tile, outer, inner, tile, tile, tile);
    }
  }
  base::replace_file(folder / "nests.jsonl", lines);
  const Document imported =
      json_of({"import", "programs", (folder / "nests.jsonl").string(), "--platform", "nests", "--out", theirs});
  EXPECT_EQ(imported.at("datasets").as_list()[0].at("rows").as_integer(), 8);
  const Document evaluation = json_of({"evaluate", ours, theirs, "--target", "import:nests", "--methods", "zero-shot",
                                       "--shots", "0", "--draws", "1", "--steps", "20"});
  double mean = 0;
  EXPECT_EQ(spearman_of(evaluation, "zero-shot", 0, mean), "import:nests");
  EXPECT_TRUE(mean >= -1 && mean <= 1) << mean;
  const base::Finished exported = graft({"export", "programs", ours, "--out", (folder / "ours.jsonl").string()});
  EXPECT_EQ(exported.exit_code, 0) << exported.err;
  const Document back = json_of(
      {"import", "programs", (folder / "ours.jsonl").string(), "--platform", "*", "--out", (folder / "back").string()});
  EXPECT_EQ(back.at("datasets").as_list()[0].at("platform").as_string(), "import:model-sifive-p450");
}

TEST(Import, RefusesWhatIsMeantOtherwise) {
  const Folder folder;
  base::replace_file(folder / "net.csv", "x,a,b\n1,2,3.5\n");
  const std::string file = (folder / "net.csv").string();
  const std::pair<std::vector<std::string>, const char*> refusals[] = {
      {{"import", "tabel", file, "--platform", "a", "--out", (folder / "o.h5").string()}, "did you mean 'table'"},
      {{"import", "table", file, "--platform", "c", "--out", (folder / "o.h5").string()}, "no column of times 'c'"},
      {{"import", "table", file, "--platform", "*", "--out", file}, "is no folder"},
      {{"import", "table", file + "x", "--platform", "a", "--out", (folder / "o.h5").string()}, "cannot be read"},
      {{"import", "table", file, "--platform", "a", "--out", (folder / "o.h5").string(), "--options", "unit"},
       "expected NAME=VALUE"},
      {{"export", "tables", file, "--out", (folder / "o.h5").string()}, ""},
  };
  for (const auto& [arguments, words] : refusals) {
    const base::Finished finished = graft(arguments);
    EXPECT_EQ(finished.exit_code, 2) << words;
    EXPECT_NE(finished.err.find(words), std::string::npos) << finished.err;
    EXPECT_NE(finished.err.find("error: "), std::string::npos) << finished.err;
  }
}

}  // namespace
}  // namespace graft::cli
