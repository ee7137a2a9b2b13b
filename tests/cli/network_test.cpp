// Networks, as `graft inspect` describes them.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/document.h"
#include "base/files.h"
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

}  // namespace
}  // namespace graft::cli
