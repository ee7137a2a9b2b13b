// Networks, by the program: described, tuned, run and compiled.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "base/document.h"
#include "base/files.h"
#include "base/numpy.h"
#include "base/process.h"
#include "tests/base/support.h"
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

}  // namespace
}  // namespace graft::cli
