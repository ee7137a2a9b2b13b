// The page of `graft report` answers a person's questions about a run, with what the run and other commands say.
#include <filesystem>
#include <set>

#include "tests/cli/support.h"

namespace graft::cli {
namespace {

namespace fs = std::filesystem;

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

class Report : public testing::Test {
 protected:
  std::string file(const std::string& name) { return (folder / name).string(); }
  std::string tuned(const std::string& name, const std::string& platform, const std::string& trials = "24",
                    const std::string& seed = "1") {
    const base::Finished finished =
        graft(quick({"tune", small, "--platform", platform, "--model", "scratch", "--trials", trials, "--batch", "8",
                     "--rebuild", "1", "--seed", seed, "--out", file(name)}));
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return file(name);
  }
  std::string page_of(std::vector<std::string> inputs) {
    inputs.insert(inputs.begin(), "report");
    inputs.insert(inputs.end(), {"--out", file("page.html")});
    const base::Finished finished = graft(inputs);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    const std::string html = base::read_file(file("page.html"));
    for (const char* const never : {"<script", "http", "NaN", ">nan", ">inf"})
      EXPECT_EQ(html.find(never), std::string::npos) << never;
    return html;
  }
  std::string refusal(std::vector<std::string> inputs) {
    inputs.insert(inputs.begin(), "report");
    inputs.insert(inputs.end(), {"--out", file("refused.html")});
    const base::Finished finished = graft(inputs);
    EXPECT_EQ(finished.exit_code, 2) << finished.out;
    EXPECT_FALSE(fs::exists(file("refused.html")));
    return finished.err;
  }
  base::Folder folder;
};

void expect_parts(const std::string& html, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_NE(html.find(part), std::string::npos) << part;
}

// Results say what they are; those of before they did are told by their keys.
TEST_F(Report, TellsWhatAResultIsOf) {
  const base::Document tuned = json_of(quick({"tune", small, "--platform", "model:sifive-p450", "--model", "scratch",
                                              "--trials", "8", "--rebuild", "0", "--out", file("run")}));
  EXPECT_EQ(tuned.at("kind").as_string(), "tune");
  const base::Document kept = base::parse_json(base::read_file(file("run") + "/best.json"), "best.json");
  EXPECT_EQ(kept.at("kind").as_string(), "tune");
  base::Document before = base::Document::map();
  for (const auto& [key, value] : tuned.as_map())
    if (key != "kind") before.set(key, value);
  base::replace_file(file("before.json"), before.to_json());
  base::replace_file(file("now.json"), tuned.to_json());
  for (const char* const name : {"before.json", "now.json"})
    EXPECT_NE(page_of({file(name)}).find("matmul(m=24,n=32,k=16"), std::string::npos) << name;
  EXPECT_NE(graft({"inspect", file("now.json")}).out.find("result of graft tune"), std::string::npos);
  // The kind decides, whatever keys there are.
  before.set("kind", "doctor");
  base::replace_file(file("other.json"), before.to_json());
  EXPECT_EQ(graft({"report", file("other.json"), "--out", file("page.html")}).exit_code, 2);
}

TEST_F(Report, ShowsWhatInspectShows) {
  const std::string run = tuned("run", "model:sifive-x280");
  const std::string html = page_of({run});
  const base::Document shown = json_of({"inspect", run, "--program", "--assembly"});
  expect_parts(html, {"<pre>" + escaped(shown.at("program_text").as_string()) + "</pre>", "Loop program before",
                      "Position under the roofline", "GB/s", "as the model expected", "Trials by status",
                      "<td>ok</td><td>24</td>", "Machine code for sifive-x280", "graft inspect " + run,
                      "graft compile " + run, "rank correlation", "prefers-color-scheme:dark"});
  // The excerpt is a piece of the machine code.
  const std::string title = "Machine code for ";
  const std::size_t begin = html.find("<pre>", html.find(title)) + 5;
  const std::string excerpt = html.substr(begin, html.find("</pre>", begin) - begin);
  EXPECT_GT(lines_in(excerpt), 3u);
  EXPECT_NE(escaped(shown.at("assembly").as_string()).find(excerpt), std::string::npos) << excerpt;
}

TEST_F(Report, ComparesWithLibrariesWhereABenchIsInTheFolder) {
  const std::string run = tuned("native", "native:v2");
  EXPECT_NE(page_of({run}).find("graft bench kernels measures them"), std::string::npos);

  const base::Document best = json_of({"inspect", run, "--program"});
  const auto bench = [&](const std::string& program) {
    return R"({"schema":1,"context":{},"rows":[{"name":")" + best.at("workload").as_string() +
           R"(","value":30,"unit":"GFLOP/s","baselines":{"openblas":20,"clang_naive":null},"right":true,"peak":40,)"
           R"("memory_gigabytes_per_second":10,"percent_of_peak":75,"run":"native","trial":3,"trials":24,"program":")" +
           program + R"(","pipeline":"O3","how":{"openblas":"<haswell>"},"timings":{}}],"summary":[],"of_peak":[]})";
  };
  base::replace_file(run + "/bench.json", bench(best.at("program_hash").as_string()));
  const std::string html = page_of({run});
  expect_parts(html, {"Compared with libraries", "1.50x", "&lt;haswell&gt;", "roof: 10 GB/s, 40 GFLOP/s"});
  EXPECT_EQ(html.find("not the best of today"), std::string::npos);
  // Given by itself, and of an earlier best.
  fs::remove(run + "/bench.json");
  base::replace_file(file("bench.json"), bench("0123456789abcdef"));
  expect_parts(page_of({run, file("bench.json")}), {"of trial 3, which is not the best of today", "1.50x"});
}

TEST_F(Report, WritesItsPlotsAsFilesToo) {
  const std::string run = tuned("run", "model:sifive-x280");
  const base::Document made = json_of({"report", run, run, "--out", file("page.html"), "--figures", file("svg/of")});
  std::set<std::string> names;
  for (const base::Document& each : made.at("figures").as_list()) {
    names.insert(each.as_string());
    const std::string svg = base::read_file(file("svg/of/" + each.as_string()));
    EXPECT_EQ(svg.find("<svg"), 0u) << each.as_string();
    EXPECT_NE(svg.find("prefers-color-scheme:dark"), std::string::npos);
  }
  EXPECT_EQ(names, (std::set<std::string>{"roofline-1.svg", "roofline-2.svg", "search-1.svg"}));
}

TEST_F(Report, TakesAFolderOfRuns) {
  const std::string first = tuned("runs/a", "model:sifive-p450");
  tuned("runs/b", "model:sifive-p450", "24", "2");
  const std::string html = page_of({file("runs")});
  expect_parts(html, {"Best schedule of a", "Best schedule of b", "<summary>a</summary>", "<summary>b</summary>"});
  std::size_t open = 0;
  for (std::size_t at = 0; (at = html.find("<details open>", at)) != std::string::npos; ++at) ++open;
  EXPECT_EQ(open, 1u);  // the faster one
  // A run that was only begun is named.
  fs::create_directories(folder / "runs/c");
  fs::copy_file(first + "/run.json", folder / "runs/c/run.json");
  const std::string journal = base::read_file(first + "/journal.jsonl");
  base::replace_file(folder / "runs/c/journal.jsonl", journal.substr(0, journal.find('\n') + 1));
  expect_parts(page_of({file("runs")}), {"c: no trial is recorded yet"});
  EXPECT_NE(refusal({file("runs/c")}).find("no trial is recorded yet"), std::string::npos);
}

TEST_F(Report, RefusesFoldersWithoutRuns) {
  fs::create_directories(folder / "empty");
  EXPECT_NE(refusal({file("empty")}).find("no run of graft"), std::string::npos);
  EXPECT_NE(refusal({(fs::path(GRAFT_SOURCE_DIR) / "experiments/layers").string()}).find("graft experiment render"),
            std::string::npos);
}

// What the model expects is recorded before it is measured, round by round, and also when a run is continued.
TEST_F(Report, RunsKeepWhatTheModelExpected) {
  const std::string run = tuned("run", "model:sifive-p450");
  const auto predictions = [&] {
    const std::string name = run + "/predictions.json";
    return base::parse_json(base::read_file(name), name).at("predictions").as_list();
  };
  std::size_t timed = 0;
  for (const base::Document& each : predictions()) timed += each.find("seconds") != nullptr ? 1 : 0;
  EXPECT_EQ(predictions().size(), 16u);  // the first round of a model from scratch is drawn at random
  EXPECT_GE(timed, 8u);
  tuned("run", "model:sifive-p450", "32");
  EXPECT_EQ(predictions().size(), 24u);
  EXPECT_EQ(graft({"tune", small, "--platform", "model:sifive-p450", "--model", "random", "--trials", "12", "--batch",
                   "6", "--out", file("random")})
                .exit_code,
            0);
  EXPECT_FALSE(fs::exists(file("random/predictions.json")));
}

}  // namespace
}  // namespace graft::cli
