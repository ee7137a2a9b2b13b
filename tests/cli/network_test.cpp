// Networks, by the program: described, tuned, run, compiled and reported.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/document.h"
#include "base/files.h"
#include "base/numpy.h"
#include "base/process.h"
#include "base/text.h"
#include "tests/base/support.h"
#include "tests/cli/json_tables.h"
#include "tests/cli/support.h"
#include "tests/graph/support/onnx_file.h"

namespace graft::cli {
namespace {

using graph::file::attribute;
using graph::file::GraphFile;

// Two equal convolutions and another one, each with ReLU; the batch is open.
std::string network() {
  const std::vector<float> weights(2 * 2 * 3 * 3, 0.5F), narrow(2 * 2, 0.5F);
  const std::vector<std::string> padded = {attribute("pads", std::vector<std::int64_t>{1, 1, 1, 1})};
  return GraphFile()
      .open_input("x", {"batch", "2", "8", "8"})
      .weight("w", {2, 2, 3, 3}, weights)
      .weight("v", {2, 2, 1, 1}, narrow)
      .node("Conv", {"x", "w"}, {"a"}, padded, "first")
      .node("Relu", {"a"}, {"b"})
      .node("Conv", {"b", "w"}, {"c"}, padded, "second")
      .node("Relu", {"c"}, {"d"})
      .node("Conv", {"d", "v"}, {"y"}, {}, "third")
      .output("y")
      .model();
}

TEST(Inspect, ANetworkByItsDifferentComputations) {
  const base::Folder folder;
  const std::string file = (folder / "net.onnx").string();
  base::replace_file(file, network());
  const base::Finished finished = graft({"inspect", file, "--shape", "batch=1", "--json"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  const base::Document found = base::parse_json(finished.out, "json");
  EXPECT_EQ(found.at("kind").as_string(), "network");
  EXPECT_EQ(found.at("nodes").as_integer(), 5);
  EXPECT_EQ(found.at("different").as_integer(), 3);
  const base::Document& conv = found.at("operators").as_list().front();
  EXPECT_EQ(conv.at("operator").as_string(), "Conv");
  EXPECT_EQ(conv.at("nodes").as_integer(), 3);
  EXPECT_EQ(conv.at("different").as_integer(), 2);
  EXPECT_EQ(conv.at("operations").as_integer(), 2 * (2 * 2 * 64 * 2 * 9) + 2 * 2 * 64 * 2);
  EXPECT_EQ(found.at("inputs").as_list().front().at("shape").to_json(), "[1,2,8,8]");
  EXPECT_EQ(found.at("constant_bytes").as_integer(), 4 * (36 + 4));
}

// The affine map goes into the convolution's weights, and what nothing takes goes.
TEST(Inspect, ANetworkByTheStepsOfFolding) {
  const base::Folder folder;
  const std::string file = (folder / "net.onnx").string();
  const std::vector<float> four = {1, 2, 3, 4}, two = {1, 2};
  base::replace_file(file, graph::file::GraphFile()
                               .input("x", {1, 2, 3, 3})
                               .weight("w", {2, 2, 1, 1}, four)
                               .weight("s", {2, 1, 1}, two)
                               .node("Conv", {"x", "w"}, {"a"})
                               .node("Mul", {"a", "s"}, {"y"})
                               .node("Neg", {"x"}, {"unused"})
                               .output("y")
                               .model());
  const base::Finished finished = graft({"inspect", file, "--passes"});
  EXPECT_NE(finished.out.find("scales in weights"), std::string::npos) << finished.out << finished.err;
  EXPECT_NE(finished.out.find("-1 Mul"), std::string::npos) << finished.out;
  EXPECT_EQ(graft({"inspect", file}).out.find("scales in weights"), std::string::npos);
  const base::Document found = base::parse_json(graft({"inspect", file, "--json"}).out, "json");
  const base::Document::List& passes = found.at("passes").as_list();
  const auto scales = std::find_if(passes.begin(), passes.end(), [](const base::Document& pass) {
    return pass.at("step").as_string() == "scales in weights";
  });
  ASSERT_NE(scales, passes.end());
  EXPECT_EQ(scales->at("change").to_json(), R"({"Mul":-1})");
  EXPECT_EQ(passes.back().at("nodes").as_integer(), 1);
}

// What is fused, moved and stored, by hand: Conv and Relu are one call, and both of them one kernel.
TEST(Inspect, ANetworkByItsKernels) {
  const base::Folder folder;
  const std::string file = (folder / "net.onnx").string();
  base::replace_file(file, network());
  const std::vector<std::string> command = {"inspect", file, "--shape", "batch=1", "--platform", "model:sifive-p450"};
  const base::Document found = json_of(command);
  JsonTables::of_the_project().check("`inspect` (network)", found);
  EXPECT_EQ(found.at("file_nodes").as_integer(), 5);
  EXPECT_EQ(found.at("views").as_integer(), 0);
  EXPECT_EQ(found.at("calls").as_integer(), 3);
  const std::int64_t image = 4 * 2 * 64;
  EXPECT_EQ(found.at("peak_bytes").as_integer(), 2 * image);  // what the second call reads and writes
  EXPECT_EQ(found.at("arena_bytes").as_integer(), 2 * image);
  const base::Document::List& kernels = found.at("kernels").as_list();
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].at("calls").as_integer(), 2);
  EXPECT_EQ(kernels[0].at("bytes").as_integer(), 2 * image + 4 * 36);
  EXPECT_EQ(kernels[1].at("bytes").as_integer(), 2 * image + 4 * 4);
  const double first = kernels[0].at("operations").as_number(), other = kernels[1].at("operations").as_number();
  EXPECT_EQ(other, 2 * 64 * 2 * 2);
  EXPECT_DOUBLE_EQ(kernels[0].at("share").as_number(), 2 * first / (2 * first + other));
  EXPECT_DOUBLE_EQ(found.at("least_seconds").as_number(),
                   2 * kernels[0].at("least_seconds").as_number() + kernels[1].at("least_seconds").as_number());
  const std::string text = graft(command).out;
  for (const char* const part : {"5 nodes in the file, 5 after folding; 3 calls of 2 kernels", "FLOP/byte", "at least",
                                 "under the roofline of model:sifive-p450", "first (Conv, Relu)"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  // The limits of this machine are not known, and files of other kinds have no platform.
  const base::Document here = json_of({"inspect", file, "--shape", "batch=1"});
  EXPECT_EQ(here.find("least_seconds"), nullptr);
  base::replace_file(folder / "some.json", "{}");
  EXPECT_EQ(graft({"inspect", (folder / "some.json").string(), "--platform", "native"}).exit_code, 2);
}

class TunedNetwork : public testing::Test {
 protected:
  void SetUp() override {
    base::replace_file(file("net.onnx"), network());
    JsonTables::of_the_project().check("`tune` (network)", tuned("model:sifive-p450", "net"));
  }
  base::Document tuned(const std::string& platform, const std::string& name) {
    return json_of(quick({"tune", file("net.onnx"), "--shape", "batch=1", "--platform", platform, "--model", "scratch",
                          "--trials", "8", "--rebuild", "0", "--out", file(name)}));
  }
  std::string file(const std::string& name) { return (folder / name).string(); }
  std::string page() {
    const base::Finished finished = graft({"report", file("net"), "--out", file("page.html")});
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    const std::string html = base::read_file(file("page.html"));
    for (const char* const never : {"<script", "http", "NaN", ">nan", ">inf"})
      EXPECT_EQ(html.find(never), std::string::npos) << never;
    return html;
  }
  static void expect_parts(const std::string& html, const std::vector<std::string>& parts) {
    for (const std::string& part : parts) EXPECT_NE(html.find(part), std::string::npos) << part;
  }
  static std::size_t count(const std::string& html, const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = html.find(part, at)) != std::string::npos; ++at) ++found;
    return found;
  }
  base::Folder folder;
};

// On a terminal of 80 columns: what is drawn again has to fit a line each.
TEST_F(TunedNetwork, ItsSearchesAreShownOnATerminal) {
  const std::string command = fmt::format(
      "{} tune {} --shape batch=1 --platform model:sifive-p450 --model scratch --trials 8 --rebuild 0 --out {} > "
      "/dev/null",
      GRAFT_PROGRAM, file("net.onnx"), file("shown"));
  const base::Finished finished =
      base::run_process({"script", "--quiet", "--return", "--command", command, "/dev/null"}, std::chrono::minutes(2));
  ASSERT_EQ(finished.exit_code, 0) << finished.out << finished.err;
  EXPECT_NE(finished.out.find("time of one"), std::string::npos) << finished.out;
  EXPECT_NE(finished.out.find("first (Conv, Relu)"), std::string::npos) << finished.out;
  std::string plain = std::regex_replace(finished.out, std::regex("\x1b\\[[0-9]*[A-Z]"), "");
  std::replace(plain.begin(), plain.end(), '\r', '\n');
  for (const std::string_view line : base::split(plain, '\n')) EXPECT_LT(line.size(), 80u) << line;
}

TEST_F(TunedNetwork, IsInspectedByItsFolder) {
  const base::Document found = json_of({"inspect", file("net")});
  JsonTables::of_the_project().check("`inspect` (tuned network)", found);
  EXPECT_EQ(found.at("kernels").as_list().size(), 2u);
  const std::string text = graft({"inspect", file("net")}).out;
  for (const char* const part : {"first (Conv, Relu)", "of the bound", ": modelled times, not measurements of a device",
                                 "modelled time of one", " (modelled)\n"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  // The program of the kernel that takes most of the time, or of the one that is asked for.
  const base::Document::List& kernels = found.at("kernels").as_list();
  const base::Document largest = json_of({"inspect", file("net"), "--program"});
  JsonTables::of_the_project().check("`inspect` (network's program)", largest);
  EXPECT_EQ(largest.at("workload").as_string(), kernels[0].at("workload").as_string());
  const std::string other = kernels[1].at("workload").as_string();
  EXPECT_EQ(json_of({"inspect", file("net"), "--program", "--workload", other}).at("workload").as_string(), other);
  EXPECT_EQ(graft({"inspect", file("net"), "--program", "--workload", small}).exit_code, 2);
}

// The least time of a kernel by the platform's own numbers: its bandwidth, and the peak that its runs are compared
// with.
TEST_F(TunedNetwork, ItsBoundsAreThoseOfThePlatform) {
  const std::string yaml = json_of({"platform", "show", "model:sifive-p450"}).at("yaml").as_string();
  const std::string key = "memory_gigabytes_per_second:";
  ASSERT_NE(yaml.find(key), std::string::npos) << yaml;
  const double bandwidth = std::stod(yaml.substr(yaml.find(key) + key.size()));
  const base::Document network = json_of({"inspect", file("net")});
  const std::string run = file("net/" + network.at("kernels").as_list().front().at("run").as_string());
  const base::Document of_run = json_of({"inspect", run});
  const double peak = of_run.at("best").as_list().front().at("peak_gflops").as_number();
  const base::Document found =
      json_of({"inspect", file("net.onnx"), "--shape", "batch=1", "--platform", "model:sifive-p450"});
  for (const base::Document& kernel : found.at("kernels").as_list())
    EXPECT_DOUBLE_EQ(
        kernel.at("least_seconds").as_number(),
        std::max(kernel.at("operations").as_number() / peak, kernel.at("bytes").as_number() / bandwidth) * 1e-9);
}

// A modelled time is called so, and the share of the bound is that of the tuned network's table.
TEST_F(TunedNetwork, IsPredictedInTheSameWords) {
  const std::vector<std::string> command = {"predict",    file("net.onnx"),    "--shape", "batch=1",
                                            "--platform", "model:sifive-p450", "--from",  file("net")};
  const base::Document found = json_of(command);
  EXPECT_EQ(found.at("source").as_string(), "modelled");
  const std::string text = graft(command).out, inspected = graft({"inspect", file("net")}).out;
  EXPECT_EQ(text.find("measured"), std::string::npos) << text;
  for (const char* const part : {": modelled times, not measurements of a device", "modelled time of one",
                                 "modelled: 2 of 2 kernels", "each of 2 modelled kernels"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  const base::Document limits =
      json_of({"inspect", file("net.onnx"), "--shape", "batch=1", "--platform", "model:sifive-p450"});
  for (std::size_t k = 0; k < 2; ++k) {
    const base::Document& kernel = found.at("kernels").as_list()[k];
    const double bound = kernel.at("bound_seconds").as_number(), one = kernel.at("one").at("seconds").as_number();
    EXPECT_DOUBLE_EQ(bound, limits.at("kernels").as_list()[k].at("least_seconds").as_number());
    const std::string share = fmt::format("{:.1f} %", 100 * bound / one);
    for (const std::string& shown : {text, inspected}) EXPECT_NE(shown.find(share), std::string::npos) << shown;
  }
}

// The same command leaves the record as it is, and says so; what continues is said in one line.
TEST_F(TunedNetwork, IsNotTunedAgainByTheSameCommand) {
  const std::string record = base::read_file(file("net/network.json"));
  const auto again = [&](const std::string& trials) {
    return graft(quick({"tune", file("net.onnx"), "--shape", "batch=1", "--platform", "model:sifive-p450", "--model",
                        "scratch", "--trials", trials, "--rebuild", "0", "--out", file("net")}));
  };
  const std::string inspected = graft({"inspect", file("net")}).out;
  for (const char* const trials : {"8", "2"}) {
    const base::Finished finished = again(trials);
    EXPECT_EQ(finished.out, inspected);
    EXPECT_NE(finished.err.find("has what is asked for"), std::string::npos) << finished.err;
    EXPECT_EQ(base::read_file(file("net/network.json")), record);
  }
  const base::Finished more = again("16");
  EXPECT_NE(base::read_file(file("net/network.json")), record);
  EXPECT_NE(more.err.find("2 runs of 2 continued, 8 trials are recorded"), std::string::npos) << more.err;
  EXPECT_EQ(count(more.err, "continue"), 1u) << more.err;
}

// As exporters write them: paths, and long lists of what is fused.
TEST(Inspect, LayersHaveShortNames) {
  const base::Folder folder;
  const std::string file = (folder / "net.onnx").string();
  base::replace_file(file,
                     GraphFile()
                         .input("x", {4})
                         .node("Relu", {"x"}, {"a"}, {}, "/model/encoder/layers.11/attention/self/query/activation")
                         .node("Exp", {"a"}, {"b"})
                         .node("Tanh", {"b"}, {"c"})
                         .node("Sqrt", {"c"}, {"d"})
                         .node("Sigmoid", {"d"}, {"y"})
                         .output("y")
                         .model());
  const base::Finished finished = graft({"inspect", file});
  EXPECT_NE(finished.out.find("  .../attention/self/query/activation (Relu, Exp, Tanh, Sqrt, ...)\n"),
            std::string::npos)
      << finished.out;
}

// The history of a network's search is all that its folder holds.
TEST_F(TunedNetwork, IsHistoryByItsFolder) {
  const base::Finished finished =
      graft(quick({"tune", file("net.onnx"), "--shape", "batch=1", "--platform", "model:sifive-p670", "--model",
                   "scratch", "--trials", "4", "--rebuild", "0", "--history", file("net"), "--out", file("next")}));
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  const base::Finished refused = graft(
      quick({"tune", small, "--model", "scratch", "--trials", "4", "--history", folder.path().string() + "/none"}));
  EXPECT_EQ(refused.exit_code, 2);
}

TEST_F(TunedNetwork, IsCompiledAndRunAsTheReferenceSays) {
  tuned("native:v2", "native");
  JsonTables::of_the_project().check("`compile` (network)", json_of({"compile", file("native"), "--out", file("lib")}));
  const base::Document run = json_of(
      {"run", file("native"), "--check", "--repetitions", "2", "--minimum-ms", "0.1", "--out", file("outputs")});
  JsonTables::of_the_project().check("`run`", run);
  // The page takes it as it is.
  base::replace_file(file("native/check.json"), run.to_json());
  EXPECT_EQ(graft({"report", file("native"), "--out", file("page.html")}).exit_code, 0);
  EXPECT_NE(base::read_file(file("page.html")).find("<h3>Accuracy</h3>"), std::string::npos);
}

TEST_F(TunedNetwork, HasAPage) {
  const std::string html = page();
  expect_parts(html,
               {"<h2>net.onnx</h2>", "modelled times", "3 calls of 2 kernels", "Where the time goes",
                "call 0, kernel 0, first (Conv, Relu)", "call 2, kernel 1, third (Conv)", "of the bound",
                "roof: ", "<summary>3 calls</summary>", "<td class=\"text\">first (Conv), ", "live at once at most",
                "<h3>Schedule</h3>", "graft inspect " + file("net") + "/kernels/", "graft compile " + file("net")});
  EXPECT_EQ(count(html, "class=\"part\""), 2u * 3);  // wide and narrow
  EXPECT_EQ(html.find("Accuracy"), std::string::npos);
  const base::Document said = json_of({"report", file("net"), "--out", file("page.html")});
  JsonTables::of_the_project().check("`report`", said);
  EXPECT_EQ(said.at("networks").as_integer(), 1);
  EXPECT_EQ(said.at("runs").as_integer(), 0);
}

TEST_F(TunedNetwork, ShowsWhatRunAndBenchFound) {
  base::replace_file(
      file("net/check.json"),
      R"({"schema":1,"kind":"run","where":"qemu","seconds":0.25,"results":{"right":true,"of_bound":0.125,)"
      R"("worst_call":"a<b","elements":384,"unbounded":0,"outputs":[{"name":"y","largest":3,)"
      R"("largest_error":1e-6}]}})");
  expect_parts(page(),
               {"250 ms (qemu)", "<h3>Accuracy</h3>", "384 elements", "a&lt;b, has 0.12 of", "<td>y</td><td>3</td>"});
}

// Stopped before every kernel had a program: no sum, and no time where there is none.
TEST_F(TunedNetwork, HasAPageBeforeItIsComplete) {
  const std::string name = file("net/network.json");
  const base::Document kept = base::parse_json(base::read_file(name), name);
  base::Document kernels = base::Document::list();
  for (const base::Document& kernel : kept.at("kernels").as_list()) {
    base::Document each = base::Document::map();
    const bool first = kernels.as_list().empty();
    for (const auto& [key, value] : kernel.as_map())
      if (!first || (key != "answer" && key != "seconds")) each.set(key, value);
    kernels.push(std::move(each));
  }
  base::Document cut = base::Document::map();
  for (const auto& [key, value] : kept.as_map())
    if (key != "seconds" && key != "kernels") cut.set(key, value);
  base::replace_file(name, cut.set("kernels", std::move(kernels)).to_json());
  const std::string html = page();
  expect_parts(html, {"first (Conv, Relu) has no program yet", "What is computed together",
                      "<summary>3 calls</summary>", "0: first (Conv, Relu): no program"});
  EXPECT_EQ(html.find("Where the time goes"), std::string::npos);
  EXPECT_EQ(html.find("sum of all calls"), std::string::npos);
}

// The plan is enough; without it the page has the kernels alone, and says why.
TEST_F(TunedNetwork, HasAPageWithoutItsModelAndWithoutItsPlan) {
  const auto undated = [](std::string html) {
    const std::size_t made = html.find("Made by graft");
    return html.erase(made, html.find("</p>", made) - made);
  };
  const std::string with_model = undated(page());
  std::filesystem::remove(file("net.onnx"));
  EXPECT_EQ(undated(page()), with_model);
  std::filesystem::remove(file("net") + "/constants.bin");
  const std::string html = page();
  expect_parts(html, {"constants.bin", "kernel 0, first (Conv, Relu)", "<h3>Schedule</h3>"});
  EXPECT_EQ(count(html, "class=\"part\""), 2u * 2);  // kernels in place of calls
  EXPECT_EQ(html.find("What is computed together"), std::string::npos);
}

TEST(Inspect, ANetworkIsRefusedInOneLine) {
  const base::Folder folder;
  const std::string file = (folder / "net.onnx").string();
  base::replace_file(file, network());
  const auto refusal = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"inspect", file};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const base::Finished finished = graft(arguments);
    EXPECT_EQ(finished.exit_code, 2);
    return finished.err;
  };
  EXPECT_NE(refusal({}).find("batch"), std::string::npos);
  EXPECT_NE(refusal({"--shape", "batch"}).find("--shape: 'batch': expected NAME=EXTENT"), std::string::npos);
  EXPECT_NE(refusal({"--shape", "batch=1x"}).find("'1x' is not an extent"), std::string::npos);
  EXPECT_NE(refusal({"--shape", "batch=1;batch=2"}).find("given twice"), std::string::npos);
  EXPECT_NE(refusal({"--shape", "batch=1", "--shape", "batch=2"}).find("given twice"), std::string::npos);
  base::replace_file(file, GraphFile().input("x", {4}).node("Strange", {"x"}, {"y"}).output("y").model());
  EXPECT_NE(refusal({}).find("Strange"), std::string::npos);
}

// tune, run, compile, and a second tune that a library answers.
TEST(Network, FromAFileToALibrary) {
  const base::Folder folder;
  const std::string file = (folder / "net.onnx").string(), runs = (folder / "run").string();
  base::replace_file(file, network());
  const auto tuned = [&](const std::string& out) {
    return json_of(quick({"tune", file, "--shape", "batch=1", "--effort", "quick", "--trials", "6", "--model", "random",
                          "--library", (folder / "library").string(), "--out", out}));
  };
  const base::Document made = tuned(runs);
  EXPECT_EQ(made.at("kind").as_string(), "network");
  EXPECT_TRUE(made.at("complete").as_bool());
  const base::Document::List kernels = made.at("kernels").as_list();
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].at("calls").as_integer(), 2);
  EXPECT_EQ(kernels[0].at("label").as_string(), "first (Conv, Relu)");
  EXPECT_GT(made.at("seconds").as_number(), 0);

  const base::Document run = json_of(
      {"run", runs, "--repetitions", "2", "--minimum-ms", "0.1", "--check", "--out", (folder / "outputs").string()});
  EXPECT_TRUE(run.at("results").at("right").as_bool());
  EXPECT_EQ(run.at("repetitions").as_list().size(), 2u);
  const base::NumpyArray y = base::parse_npy(base::read_file(folder / "outputs" / "y.npy"), "y.npy");
  EXPECT_EQ(y.shape, (std::vector<std::int64_t>{1, 2, 8, 8}));
  // The same outputs for what was written as an input.
  base::replace_file(folder / "x.npy", base::npy_of({1, 2, 8, 8}, "<f4", std::string(512, '\0')));
  json_of({"run", runs, "--input", "x=" + (folder / "x.npy").string(), "--out", (folder / "outputs").string()});
  for (const double number : base::parse_npy(base::read_file(folder / "outputs" / "y.npy"), "y.npy").values)
    EXPECT_EQ(number, 0);

  const base::Document compiled =
      json_of({"compile", runs, "--out", (folder / "lib").string(), "--name", "net", "--weights", "file"});
  EXPECT_TRUE(compiled.at("results").at("right").as_bool());
  for (const char* const name : {"libnet.a", "net.h", "net.json", "net.weights"})
    EXPECT_TRUE(std::filesystem::exists(folder / "lib" / name)) << name;
  json_of({"compile", runs, "--out", (folder / "bin").string(), "--name", "net", "--format", "bench"});
  const base::Finished checked = base::run_process({(folder / "bin" / "net").string()}, std::chrono::seconds(60));
  EXPECT_EQ(checked.exit_code, 0);
  EXPECT_NE(checked.out.find("results right"), std::string::npos) << checked.out;

  for (const base::Document& kernel : tuned((folder / "again").string()).at("kernels").as_list())
    EXPECT_EQ(kernel.at("trials").as_integer(), 0);
}

// Several batches: one folder, one library, and every command takes them.
TEST(Network, FromAFileToALibraryForSeveralShapes) {
  const base::Folder folder;
  const std::string file = (folder / "net.onnx").string(), runs = (folder / "run").string();
  base::replace_file(file, network());
  const JsonTables tables = JsonTables::of_the_project();
  const base::Document made = json_of(quick({"tune", file, "--shape", "batch=1|3", "--use", "batch=3:2", "--effort",
                                             "quick", "--trials", "8", "--model", "random", "--out", runs}));
  tables.check("`tune` (network for several shapes)", made);
  ASSERT_EQ(made.at("networks").as_list().size(), 2u);
  EXPECT_EQ(made.at("networks").as_list()[1].at("shapes").to_json(), R"({"batch":[3]})");
  const base::Document shown = json_of({"inspect", runs});
  tables.check("`inspect` (network for several shapes)", shown);
  EXPECT_NE(graft({"inspect", runs}).out.find("batch-3"), std::string::npos);
  EXPECT_NE(graft({"inspect", runs, "--program"}).err.find("give one of the folders"), std::string::npos);
  const base::Document compiled = json_of({"compile", runs, "--out", (folder / "lib").string(), "--name", "net"});
  tables.check("`compile` (network)", compiled);
  EXPECT_EQ(compiled.at("shapes").as_list().size(), 2u);
  EXPECT_NE(base::read_file(folder / "lib" / "net.h").find("int net_run(int64_t batch, const float* x"),
            std::string::npos);
  const base::Document predicted = json_of({"predict", file, "--shape", "batch=1,3,5", "--from", runs});
  tables.check("`predict` (several shapes)", predicted);
  EXPECT_EQ(predicted.at("shapes").as_list()[2].at("shape").as_string(), "batch=5");
  EXPECT_EQ(graft({"report", runs, "--out", (folder / "page").string()}).exit_code, 0);
  base::replace_file(folder / "x.npy", base::npy_of({3, 2, 8, 8}, "<f4", std::string(1536, '\0')));
  const base::Document run = json_of({"run", runs, "--input", "x=" + (folder / "x.npy").string()});
  EXPECT_EQ(run.at("outputs").as_list()[0].at("shape").to_json(), "[3,2,8,8]");
  EXPECT_NE(graft({"tune", small, "--use", "batch=1:2"}).err.find("goes with an ONNX file"), std::string::npos);
}

TEST(Network, RefusesWhatDoesNotGoTogether) {
  const base::Folder folder;
  const std::string file = (folder / "net.onnx").string(), runs = (folder / "run").string();
  base::replace_file(file, network());
  const auto refused = [](const std::vector<std::string>& command) {
    const base::Finished finished = graft(command);
    EXPECT_EQ(finished.exit_code, 2) << finished.out;
    return finished.err;
  };
  EXPECT_NE(refused({"tune", file, "--shape", "batch=1", "--start", file}).find("--start"), std::string::npos);
  EXPECT_NE(refused({"tune", file, "--shape", "batch=1", "--constant", "z=1"}).find("'z' is not an input"),
            std::string::npos);
  EXPECT_NE(refused({"tune", small, "--shape", "batch=1"}).find("goes with an ONNX file"), std::string::npos);
  EXPECT_NE(refused({"tune", small, "--constant", "a=1"}).find("goes with an ONNX file"), std::string::npos);
  EXPECT_NE(refused({"run", folder.path().string()}).find("is not the folder of a network"), std::string::npos);
  EXPECT_NE(refused({"run", runs}).find("no such file"), std::string::npos);
  EXPECT_NE(refused({"compile", runs, "--out", runs, "--weights", "file"}).find("no such file"), std::string::npos);
}

TEST(Predict, ANetworkFromKernelsOfALibrary) {
  const base::Folder folder;
  const std::string file = (folder / "net.onnx").string(), library = (folder / "library").string();
  base::replace_file(file, network());
  const std::vector<std::string> ask = {"predict",    file,     "--shape",   "batch=1",
                                        "--platform", "native", "--library", library};
  const base::Finished refused = graft(ask);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("--library: "), std::string::npos) << refused.err;
  ASSERT_EQ(graft(quick({"tune", file, "--shape", "batch=1", "--platform", "native", "--model", "random", "--trials",
                         "4", "--library", library, "--out", (folder / "tuned").string()}))
                .exit_code,
            0);
  const base::Finished text = graft(ask);
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("measured: 2 of 2 kernels"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("90 % interval"), std::string::npos);
  // With another extent nothing is known, and all is estimated.
  std::vector<std::string> other = ask;
  other[3] = "batch=2";
  other.push_back("--json");
  const base::Finished json = graft(other);
  ASSERT_EQ(json.exit_code, 0) << json.err;
  const base::Document found = base::parse_json(json.out, "json");
  EXPECT_EQ(found.at("records").as_integer(), 2);
  for (const base::Document& kernel : found.at("kernels").as_list()) EXPECT_FALSE(kernel.at("known").as_bool());
  EXPECT_LT(found.at("total").at("low").as_number(), found.at("total").at("seconds").as_number());
  EXPECT_LT(found.at("total").at("seconds").as_number(), found.at("total").at("high").as_number());
  EXPECT_EQ(graft({"predict", "matmul(m=8,n=8,k=8)"}).exit_code, 2);
}

}  // namespace
}  // namespace graft::cli
