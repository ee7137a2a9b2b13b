#include "study/flows/predict_network.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "study/flows/explained.h"
#include "study/flows/kernel_speed.h"
#include "study/flows/network.h"
#include "tasks/probe.h"
#include "tests/base/support.h"
#include "tests/graph/support/onnx_file.h"
#include "tests/study/network_file.h"

namespace graft::study {
namespace {

using graph::file::attribute;
using graph::file::GraphFile;

constexpr const char* platform = "model:sifive-p450";

// Two layers of products, with rows that are normalised between them.
std::string network(std::int64_t rows, std::int64_t width) {
  const std::vector<float> weights(std::size_t(width * width), 0.25F);
  return GraphFile()
      .input("x", {rows, width})
      .weight("v", {width, width}, weights)
      .weight("w", {width, width}, weights)
      .node("MatMul", {"x", "v"}, {"a"})
      .node("Relu", {"a"}, {"b"})
      .node("Softmax", {"b"}, {"c"}, {attribute("axis", -1)})
      .node("MatMul", {"c", "w"}, {"d"})
      .node("Add", {"d", "x"}, {"y"})
      .output("y")
      .model();
}

class PredictNetwork : public testing::Test {
 protected:
  std::filesystem::path model(std::int64_t rows, std::int64_t width) {
    const std::filesystem::path file = folder / (std::to_string(rows) + "x" + std::to_string(width) + ".onnx");
    base::replace_file(file, network(rows, width));
    return file;
  }
  TunedNetwork tuned(const std::filesystem::path& file, std::int64_t trials_by_kernel = 4,
                     const std::string& on = platform) {
    NetworkRequest request;
    request.model = file;
    request.trials_by_kernel = trials_by_kernel;
    request.each.platform = tasks::platform_named(on);
    request.each.model = "random";
    request.each.explorer = "random";
    request.each.rebuild = 0;
    request.each.library = folder / "library";
    request.each.out = folder / ("tuned-" + file.stem().string());
    request.each.command_line = "a test";
    return tune_network(request, monitor);
  }
  PredictNetworkRequest request_of(const std::filesystem::path& file) {
    PredictNetworkRequest request;
    request.model = file;
    request.platform = tasks::platform_named(platform);
    return request;
  }
  base::Folder folder;
  base::Monitor monitor;
};

TEST(KernelWork, IsOfTheDefinition) {
  const KernelWork product = kernel_work_of(codegen::parse_workload("matmul(m=8,n=16,k=32)"));
  EXPECT_EQ(product.operations, 2 * 8 * 16 * 32);
  EXPECT_EQ(product.operand_bytes, (std::vector<double>{4 * 8 * 32, 4 * 32 * 16}));
  EXPECT_EQ(product.bytes, 4 * (8 * 32 + 32 * 16 + 8 * 16));
  // A table counts no more than is looked up.
  const KernelWork rows = kernel_work_of(codegen::parse_workload(
      "input ids[3]: i64; constant table[1000, 8]; output y[i, j] = table[ids[i], j] where i=3, j=8"));
  EXPECT_EQ(rows.operand_bytes.back(), 4 * 3 * 8);
}

TEST(Roofline, OfKernelsAndOfProfiles) {
  const codegen::Workload product = codegen::parse_workload("matmul(m=64,n=64,k=64)");
  const tasks::Platform native = tasks::platform_named("native"), modelled = tasks::platform_named(platform);
  EXPECT_FALSE(roofline_of(native, {}).has_value());
  const std::optional<Roofline> known = roofline_of(native, {{product, 1e-9, 0}, {product, 1e-6, 0}});
  ASSERT_TRUE(known.has_value());
  EXPECT_DOUBLE_EQ(known->operations_per_second, 2 * 64 * 64 * 64 / 1e-9);
  EXPECT_DOUBLE_EQ(known->least_seconds(kernel_work_of(product)), 1e-9);
  const std::optional<Roofline> profile = roofline_of(modelled, {});
  ASSERT_TRUE(profile.has_value());
  const double memory = modelled.device->limits()->memory_gigabytes_per_second * 1e9;
  EXPECT_DOUBLE_EQ(profile->far_bytes_per_second, memory);
  EXPECT_GT(profile->bytes_per_second, 0);
}

TEST_F(PredictNetwork, WhatWasMeasuredIsKnown) {
  const std::filesystem::path file = model(16, 32);
  const TunedNetwork truth = tuned(file);
  PredictNetworkRequest request = request_of(file);
  request.from = {truth.folder};
  const PredictedNetwork known = predict_network(request);
  ASSERT_EQ(known.kernels.size(), truth.kernels.size());
  for (std::size_t k = 0; k < known.kernels.size(); ++k) {
    EXPECT_TRUE(known.kernels[k].known);
    EXPECT_EQ(known.kernels[k].calls, truth.kernels[k].calls);
    EXPECT_EQ(known.kernels[k].label, truth.kernels[k].label);
    // The same bound as in the table of the tuned network.
    const std::optional<Roof> roof = roof_of(truth.platform, truth.kernels[k].workload);
    ASSERT_TRUE(roof && known.kernels[k].bound_seconds);
    EXPECT_DOUBLE_EQ(*known.kernels[k].bound_seconds, work_of(truth.kernels[k].workload).seconds_below(*roof));
    EXPECT_FALSE(known.kernels[k].does_less);
  }
  EXPECT_EQ(known.source, "modelled");
  EXPECT_DOUBLE_EQ(known.total.seconds, truth.seconds);  // modelled times add up
  EXPECT_DOUBLE_EQ(known.total.low, known.total.high);
  // The same of a library, and of the folder of the kernels' runs.
  for (const std::filesystem::path& folder_of_runs : {std::filesystem::path(), truth.folder / "kernels"}) {
    PredictNetworkRequest other = request_of(file);
    if (folder_of_runs.empty()) {
      other.library = folder / "library";
    } else {
      other.from = {folder_of_runs};
    }
    EXPECT_DOUBLE_EQ(predict_network(other).total.seconds, truth.seconds);
  }
}

TEST_F(PredictNetwork, IsInTheLayoutsThatItIsTunedIn) {
  const std::vector<float> weights(std::size_t(32 * 32 * 9), 0.25F);
  const std::vector<std::string> padded = {attribute("pads", std::vector<std::int64_t>{1, 1, 1, 1})};
  const std::string convolutions = GraphFile()
                                       .input("x", {1, 32, 12, 12})
                                       .weight("v", {32, 32, 3, 3}, weights)
                                       .node("Conv", {"x", "v"}, {"a"}, padded)
                                       .node("Relu", {"a"}, {"b"})
                                       .node("Conv", {"b", "v"}, {"c"}, padded)
                                       .node("Relu", {"c"}, {"d"})
                                       .node("Conv", {"d", "v"}, {"y"}, padded)
                                       .output("y")
                                       .model();
  const std::filesystem::path file = folder / "convolutions.onnx";
  base::replace_file(file, convolutions);
  // All in blocks, whatever these few trials say.
  const TunedNetwork chosen = all_in_blocks(tuned(file, 4, "model:cortex-a76"));
  write_tuned_network(chosen);
  const TunedNetwork truth = tuned(file, 6, "model:cortex-a76");
  ASSERT_EQ(kernels_of(truth), kernels_of(chosen));

  PredictNetworkRequest request = request_of(file);
  request.platform = truth.platform;
  request.from = {truth.folder};
  const PredictedNetwork known = predict_network(request);
  ASSERT_EQ(known.kernels.size(), truth.kernels.size());
  for (std::size_t k = 0; k < known.kernels.size(); ++k) {
    EXPECT_TRUE(known.kernels[k].known) << known.kernels[k].workload;
    EXPECT_EQ(known.kernels[k].workload, truth.kernels[k].workload.text());
  }
  EXPECT_NEAR(known.total.seconds, truth.seconds, 1e-9 * truth.seconds);
}

TEST_F(PredictNetwork, OthersAreEstimatedFromThem) {
  PredictNetworkRequest request = request_of(model(24, 48));
  const PredictedNetwork blind = predict_network(request);
  EXPECT_EQ(blind.records, 0);
  for (const std::int64_t width : {16, 32, 64}) request.from.push_back(tuned(model(16, width)).folder);
  const PredictedNetwork informed = predict_network(request);
  EXPECT_EQ(informed.records, 3 * std::int64_t(informed.kernels.size()));
  EXPECT_FALSE(informed.kernels.front().known);
  const auto ratio = [](const PredictedNetwork& each) { return each.total.high / each.total.low; };
  EXPECT_LT(ratio(informed), ratio(blind));
  const double truth = tuned(request.model).seconds;
  for (const PredictedNetwork& each : {blind, informed}) {
    EXPECT_LT(each.total.low, truth);
    EXPECT_GT(each.total.high, truth);
    EXPECT_LT(each.total.low, each.total.seconds);
    EXPECT_GT(each.total.high, each.total.seconds);
  }
  EXPECT_EQ(to_document(predict_network(request)), to_document(informed));
}

TEST_F(PredictNetwork, NothingIsGuessedOfAnUnknownMachine) {
  const std::filesystem::path file = model(8, 8);
  PredictNetworkRequest request = request_of(file);
  request.library = folder / "missing";
  EXPECT_THROW(predict_network(request), base::UserError);
  request.library.clear();
  request.from = {folder.path()};  // no run
  EXPECT_THROW(predict_network(request), base::UserError);
  request.from = {tuned(file).folder};
  request.platform = tasks::platform_named("model:sifive-u54");
  EXPECT_THROW(predict_network(request), base::UserError);
  request.from.clear();
  request.platform = tasks::platform_named("native");
  EXPECT_THROW(predict_network(request), base::UserError);
  request.library = folder / "library";  // holds nothing of this machine
  EXPECT_THROW(predict_network(request), base::UserError);
}

// Nothing is known of a board that is not there, but its core is modelled.
TEST_F(PredictNetwork, NamesTheModelledPlatformOfTheCore) {
  PredictNetworkRequest request = request_of(model(32, 32));
  request.platform = tasks::parse_platform(
      "name: board\ntarget:\n  triple: riscv64-unknown-linux-gnu\n  cpu: spacemit-x60\n  features: \"\"\n"
      "  vector_bits: 256\n  vector_registers: 32\nremote:\n  ssh: board\n",
      "board.yaml");
  const auto said = [&]() -> std::string {
    try {
      predict_network(request);
      return "no error";
    } catch (const base::UserError& error) {
      return error.what();
    }
  };
  EXPECT_NE(said().find("its core is also modelled: the platform model:spacemit-x60 needs none"), std::string::npos)
      << said();
  request.platform.target.cpu = "generic-rv64";
  EXPECT_EQ(said().find("modelled"), std::string::npos) << said();
  EXPECT_EQ(tasks::modelled_platform_of("spacemit,x60"), "model:spacemit-x60");
  EXPECT_EQ(tasks::modelled_platform_of("no,such"), "");
}

}  // namespace
}  // namespace graft::study
