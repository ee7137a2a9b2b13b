// Measurements of others, from a file to a table of methods, by the program as it is typed.
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "base/random.h"
#include "datasets/hdf5.h"
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

// A log of conv2d_NCHWc.x86: every configuration of two layers, a vector of `lanes` and a tile of four pixels being
// best.
std::string log_of_convolutions(double lanes) {
  std::string text;
  for (const int channels : {16, 32}) {
    for (const int ic : {1, 2, 4, 8, 16}) {
      for (const int oc : {1, 2, 4, 8, 16}) {
        for (const int ow : {1, 2, 4, 7, 14}) {
          for (const bool unroll : {false, true}) {
            const double seconds = 1e-4 * channels * (1 + std::abs(std::log2(oc / lanes))) *
                                   (1 + 0.3 * std::abs(std::log2(ow / 4.0))) * (1 + 0.02 * ic) * (unroll ? 0.95 : 1);
            text += fmt::format(
                R"({{"input": ["llvm", "conv2d_NCHWc.x86", [["TENSOR", [1, {0}, 14, 14], "float32"], )"
                R"(["TENSOR", [{0}, {0}, 3, 3], "float32"], [1, 1], [1, 1, 1, 1], [1, 1], "NCHW", "NCHW", "float32"], )"
                R"({{}}], "config": {{"index": 0, "code_hash": null, "entity": [["tile_ic", "sp", [-1, {1}]], )"
                R"(["tile_oc", "sp", [-1, {2}]], ["tile_ow", "sp", [-1, {3}]], ["unroll_kw", "ot", {4}]]}}, )"
                R"("result": [[{5:.9f}], 0, 0.0, 0], "version": 0.2, "tvm_version": "0.10.0"}})"
                "\n",
                channels, ic, oc, ow, unroll, seconds);
          }
        }
      }
    }
  }
  return text;
}

TEST(Import, LogsOfAutoTvmAreLearnedFromAsPrograms) {
  const Folder folder;
  std::vector<std::string> files;
  for (const double lanes : {4, 8}) {
    const std::string name = lanes == 4 ? "sse" : "avx";
    base::replace_file(folder / (name + ".log"), log_of_convolutions(lanes));
    files.push_back((folder / (name + ".h5")).string());
    const Document imported =
        json_of({"import", "autotvm", (folder / (name + ".log")).string(), "--platform", name, "--out", files.back()});
    const Document& counts = imported.at("datasets").as_list().front();
    EXPECT_EQ(counts.at("rows").as_integer(), 500);
    EXPECT_EQ(counts.at("templates").as_list().front().at("with_program").as_integer(), 500);
  }
  const std::string model = (folder / "model.h5").string();
  const Document trained = json_of({"train", files[0], "--out", model, "--steps", "20"});
  EXPECT_EQ(trained.at("provenance").at("rows").as_integer(), 500);
  EXPECT_EQ(trained.at("provenance").at("encoding").as_string(), "context_relation+on_target");
  const Document evaluation = json_of({"evaluate", files[0], files[1], "--target", "import:avx", "--methods", "nearest",
                                       "--shots", "10", "--draws", "2"});
  double nearest = 0;
  EXPECT_EQ(spearman_of(evaluation, "nearest", 10, nearest), "import:avx");
  EXPECT_GT(nearest, 0.3);

  const std::string log = (folder / "again.log").string(), again = (folder / "again.h5").string();
  EXPECT_EQ(json_of({"export", "autotvm", files[0], "--out", log}).at("exported").at("rows").as_integer(), 500);
  const Document back = json_of({"import", "autotvm", log, "--platform", "sse", "--out", again});
  EXPECT_EQ(back.at("datasets").as_list().front().at("rows").as_integer(), 500);

  base::replace_file(folder / "broken.log", "{\"input\": [1,\n");
  const base::Finished broken =
      graft({"import", "autotvm", (folder / "broken.log").string(), "--platform", "x", "--out", again});
  EXPECT_EQ(broken.exit_code, 2);
  EXPECT_NE(broken.err.find("broken.log:1:14: expected a value, got the end"), std::string::npos) << broken.err;
  const base::Finished unknown = graft({"import", "autotvn", log, "--platform", "x", "--out", again});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_NE(unknown.err.find("did you mean 'autotvm'"), std::string::npos) << unknown.err;
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
  const base::Finished again = graft(  // into the folder that is there
      {"import", "table", (folder / "net.csv").string(), "--platform", "*", "--options", "unit=ms", "--out", out});
  EXPECT_EQ(again.exit_code, 0) << again.err;
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
  EXPECT_EQ(trained.at("provenance").at("model").as_string(), "mlp");              // what it says it is ..
  EXPECT_FALSE(datasets::read_arrays(model).attributes.contains("source_trees"));  // .. and what it is
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
  EXPECT_EQ(back.at("datasets").as_list()[0].at("platform").as_string(), "import:model:sifive-p450");
  EXPECT_TRUE(std::filesystem::exists(folder / "back" / "model-sifive-p450.h5"));
}

// Rows of a table are numbers: none is a program, and a file without any would say nothing.
TEST(Import, AnExportWithoutRowsIsRefused) {
  const Folder folder;
  const std::string table = (folder / "table.csv").string(), data = (folder / "data.h5").string(),
                    out = (folder / "out.jsonl").string();
  base::replace_file(table, "x,a\n1,2\n2,4\n3,8\n");
  json_of({"import", "table", table, "--platform", "a", "--options", "unit=s", "--out", data});
  const base::Finished finished = graft({"export", "programs", data, "--out", out});
  EXPECT_EQ(finished.exit_code, 2) << finished.out;
  EXPECT_NE(finished.err.find("none of its 3 rows can be written as programs (3 a row of a table has no program)"),
            std::string::npos)
      << finished.err;
  EXPECT_FALSE(std::filesystem::exists(out));
}

// Whatever is exported, under whatever name, is imported again by the same name.
TEST(Import, ExportsComeBack) {
  const Folder folder;
  const std::string ours = (folder / "ours.h5").string(), text = (folder / "exported").string();
  json_of({"collect", small, other, "--platform", "model:sifive-p450", "--samples", "8", "--out", ours});
  const Document before = json_of({"inspect", ours}).at("workloads");
  for (const char* format : {"table", "programs", "autotvm"}) {
    const std::string back = (folder / (std::string(format) + ".h5")).string();
    EXPECT_EQ(json_of({"export", format, ours, "--out", text}).at("exported").at("rows").as_integer(), 16);
    json_of({"import", format, text, "--platform", "model:sifive-p450", "--out", back});
    const Document inspected = json_of({"inspect", back});
    EXPECT_EQ(inspected.at("platform").as_string(), "import:model:sifive-p450") << format;
    EXPECT_EQ(inspected.at("workloads"), before) << format;
  }
}

TEST(Import, FlagsSayWhatColumnsAre) {
  const Folder folder;
  base::replace_file(folder / "sum.csv",
                     "# tuned\nkernel,\"duration, mean (us)\",block,dram_pct\nsum,77.5,32,52.1\nsum,failed,64,0.5\n"
                     "mul,62.25,64,61.9\n");
  const std::string file = (folder / "sum.csv").string(), out = (folder / "sum.h5").string();
  const std::vector<std::string> call = {"import", "table", file,     "--platform",         "gpu",
                                         "--out",  out,     "--time", "duration, mean (us)"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), call.begin(), call.end());
    return more;
  };
  for (const std::vector<std::string>& more : {std::vector<std::string>{"--workload", "kernel", "--ignore", "dram_pct"},
                                               {"--options", "workload=kernel,ignore=dram_pct,block"}}) {
    const bool is_left_out = more.size() == 2;  // then no parameter is left
    if (is_left_out) {
      const base::Finished finished = graft(with(more));
      EXPECT_EQ(finished.exit_code, 2);
      EXPECT_NE(finished.err.find("no column is left that says what was measured"), std::string::npos) << finished.err;
      continue;
    }
    const Document imported = json_of(with(more));
    const Document& dataset = imported.at("datasets").as_list().at(0);
    EXPECT_EQ(dataset.at("platform").as_string(), "import:gpu");
    EXPECT_EQ(dataset.at("rows").as_integer(), 2);
    ASSERT_EQ(imported.at("skipped").as_list().size(), 1u);
    EXPECT_EQ(imported.at("skipped").as_list()[0].at("count").as_integer(), 1);
    EXPECT_NE(imported.at("skipped").as_list()[0].at("first").as_string().find("sum.csv:4: column"), std::string::npos);
    EXPECT_EQ(imported.at("ignored").as_list()[0].at("reason").as_string(), "comment");
  }
  const base::Finished printed = graft(call);
  EXPECT_EQ(printed.exit_code, 0) << printed.err;
  EXPECT_NE(printed.out.find("skipped records"), std::string::npos) << printed.out;
  EXPECT_NE(printed.err.find("skipped: 1 (a strict import refuses them)"), std::string::npos) << printed.err;
  EXPECT_EQ(graft(with({"--strict"})).exit_code, 2);
  EXPECT_EQ(graft(with({"--options", "time=block"})).exit_code, 2);
  EXPECT_EQ(graft({"import", "ktt", file, "--platform", "gpu", "--out", out, "--time", "block"}).exit_code, 2);
}

TEST(Import, RefusesWhatIsMeantOtherwise) {
  const Folder folder;
  base::replace_file(folder / "net.csv", "x,a,b\n1,2,3.5\n");
  const std::string file = (folder / "net.csv").string();
  const std::pair<std::vector<std::string>, const char*> refusals[] = {
      {{"import", "tabel", file, "--platform", "a", "--out", (folder / "o.h5").string()}, "did you mean 'table'"},
      {{"import", "table", file, "--platform", "c", "--out", (folder / "o.h5").string()}, "no column of times 'c'"},
      {{"import", "table", file, "--platform", "*", "--options", "unit=s", "--out", file}, "is not a folder"},
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
