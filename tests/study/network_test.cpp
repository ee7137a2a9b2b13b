#include "study/flows/network.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "codegen/schedule/rules.h"
#include "graph/layouts.h"
#include "search/run_directory.h"
#include "study/flows/compile_network.h"
#include "study/flows/network_shapes.h"
#include "study/flows/settings.h"
#include "tests/base/support.h"
#include "tests/graph/support/onnx_file.h"
#include "tests/graph/support/random_graph.h"
#include "tests/study/network_file.h"

namespace graft::study {
namespace {

using graph::file::attribute;
using graph::file::GraphFile;

std::vector<float> numbers(std::size_t count) {
  std::vector<float> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(float((i * 37) % 23) / 23 - 0.5F);
  return all;
}

// Convolutions, two of them equal, a residual sum, a concatenation that is computed in place, a product, an input of
// whole numbers.
std::string small_network() {
  GraphFile file;
  const std::vector<std::string> padded = {attribute("pads", std::vector<std::int64_t>{1, 1, 1, 1})};
  file.input("x", {1, 4, 8, 8}).input("ids", {3}, graph::file::i64).integers("flat", {2}, {1, -1});
  file.weight("w", {4, 4, 3, 3}, numbers(144))
      .weight("v", {8, 512}, numbers(4096))
      .weight("table", {5, 8}, numbers(40));
  file.node("Conv", {"x", "w"}, {"a"}, padded)
      .node("Relu", {"a"}, {"b"})
      .node("Conv", {"b", "w"}, {"c"}, padded)
      .node("Relu", {"c"}, {"d"})
      .node("Add", {"d", "x"}, {"e"})
      .node("Concat", {"b", "e"}, {"f"}, {attribute("axis", 1)})
      .node("Reshape", {"f", "flat"}, {"g"})
      .node("Gemm", {"g", "v"}, {"h"}, {attribute("transB", 1)})
      .node("Gather", {"table", "ids"}, {"i"})
      .node("Add", {"h", "i"}, {"y"})
      .output("y")
      .output("e");
  return file.model();
}

NetworkRequest request_of(const std::filesystem::path& model, const std::filesystem::path& out,
                          const std::string& platform) {
  NetworkRequest request;
  request.model = model;
  request.trials_by_kernel = 2;
  request.each.platform = tasks::platform_named(platform);
  request.each.model = "random";
  request.each.explorer = "random";
  request.each.batch = 2;
  request.each.rebuild = 0;
  request.each.timing.repetitions = 1;
  request.each.timing.minimum_ms = 0.001;
  request.each.out = out;
  request.each.command_line = "a test";
  return request;
}

// Nothing is to be computed, and the answer is that.
TEST(Network, MayHaveOutputsWithoutElements) {
  const base::Folder folder;
  base::Monitor monitor;
  GraphFile file;
  file.input("x", {0, 5}).node("Relu", {"x"}, {"y"}).output("y");
  base::replace_file(folder / "net.onnx", file.model());
  tune_network(request_of(folder / "net.onnx", folder / "run", "native"), monitor);
  RunNetworkRequest request;
  request.folder = folder / "run";
  request.check = true;
  const NetworkRun run = run_network(request, monitor);
  EXPECT_EQ(run.outputs, std::vector<std::string>{""});
  EXPECT_EQ(run.tensors.at(0).shape, (std::vector<std::int64_t>{0, 5}));
  EXPECT_TRUE(run.results->right());
}

TEST(Network, IsTunedContinuedAndCompiled) {
  const base::Folder folder;
  base::Monitor monitor;
  base::replace_file(folder / "net.onnx", small_network());
  NetworkRequest request = request_of(folder / "net.onnx", folder / "run", "native");
  const TunedNetwork tuned = tune_network(request, monitor);
  EXPECT_TRUE(tuned.complete);
  std::int64_t trials = 0;
  double seconds = 0;
  for (const NetworkKernel& kernel : tuned.kernels) {
    ASSERT_TRUE(kernel.answer.has_value()) << kernel.failure;
    trials += kernel.trials;
    seconds += double(kernel.calls) * datasets::seconds_of(kernel.answer->measurement);
  }
  EXPECT_DOUBLE_EQ(tuned.seconds, seconds);
  EXPECT_GT(tuned.in_place_seconds.value_or(0), 0);
  EXPECT_LE(trials, 2 * std::int64_t(tuned.kernels.size()));

  // Constants are read as the network reads them: all of it lies between two calls.
  for (const NetworkKernel& kernel : tuned.kernels) {
    const search::RunContent run = search::read_run(folder / "run" / kernel.run);
    const base::Document* const constants = run.request.find("constants_mb");
    ASSERT_NE(constants, nullptr);
    EXPECT_GT(constants->as_number(), 0);
  }

  EXPECT_TRUE(is_network_folder(folder / "run"));
  EXPECT_FALSE(is_network_folder(folder.path()));
  const TunedNetwork read = read_tuned_network(folder / "run");
  EXPECT_EQ(to_document(read), to_document(tuned));

  // More trials go on from there.
  request.trials_by_kernel = 3;
  const TunedNetwork more = tune_network(request, monitor);
  EXPECT_LE(more.seconds, tuned.seconds);

  const CompiledNetwork made = compile_network({.folder = folder / "run", .name = "net"}, monitor);
  EXPECT_EQ(made.check, "host");
  ASSERT_TRUE(made.results.has_value());
  EXPECT_TRUE(made.results->right()) << made.results->call << ": " << made.results->difference;
  EXPECT_EQ(made.results->unbounded, 0);
  ASSERT_EQ(made.results->outputs.size(), 2u);
  EXPECT_LT(made.results->outputs[0].largest_error, 1e-4 * made.results->outputs[0].largest);
  EXPECT_LE(double(made.arena_bytes), 1.15 * double(made.peak_bytes));
  for (const char* const name : {"net.h", "net.json", "libnet.a", "net.pc", "netConfig.cmake"})
    EXPECT_TRUE(made.files.contains(name)) << name;
  const CompiledNetwork apart =
      compile_network({.folder = folder / "run", .name = "net", .weights_in_file = true}, monitor);
  EXPECT_EQ(std::int64_t(apart.files.at("net.weights").size()), apart.weights_bytes);
  EXPECT_LT(apart.files.at("libnet.a").size(), made.files.at("libnet.a").size());

  // What was tuned needs its file no more: the same program comes of a folder without it.
  std::filesystem::remove(folder / "net.onnx");
  EXPECT_EQ(compile_network({.folder = folder / "run", .name = "net"}, monitor).files, made.files);
  RunNetworkRequest run;
  run.folder = folder / "run";
  run.check = true;
  EXPECT_TRUE(run_network(run, monitor).results->right());

  // Constants that are not the plan's.
  std::string constants = base::read_file(folder / "run" / "constants.bin");
  constants.front() = char(constants.front() + 1);
  base::replace_file(folder / "run" / "constants.bin", constants);
  EXPECT_THROW(compile_network({.folder = folder / "run"}, monitor), base::UserError);

  // Another model in the file is not what was tuned.
  GraphFile other;
  other.input("x", {2, 3}).node("Relu", {"x"}, {"y"}).output("y");
  base::replace_file(folder / "net.onnx", other.model());
  EXPECT_THROW(tune_network(request, monitor), base::UserError);
}

// The same command, or one for less, leaves the record as it is; more trials add to what is recorded.
TEST(Network, WhatIsFinishedStaysAndWhatContinuesAdds) {
  const base::Folder folder;
  base::Monitor monitor;
  base::replace_file(folder / "net.onnx", small_network());
  NetworkRequest request = request_of(folder / "net.onnx", folder / "run", "model:sifive-p450");
  request.trials_by_kernel = 4;
  const TunedNetwork tuned = tune_network(request, monitor);
  const std::string record = base::read_file(folder / "run" / "network.json");
  const auto trials_of = [](const TunedNetwork& network) {
    std::int64_t trials = 0;
    for (const NetworkKernel& kernel : network.kernels) trials += kernel.trials;
    return trials;
  };
  EXPECT_EQ(to_document(tune_network(request, monitor)), to_document(tuned));
  for (const std::int64_t fewer : {1, 3}) {
    request.trials_by_kernel = fewer;
    EXPECT_EQ(to_document(tune_network(request, monitor)), to_document(tuned));
  }
  request.trials = 8;
  EXPECT_EQ(to_document(tune_network(request, monitor)), to_document(tuned));
  EXPECT_EQ(base::read_file(folder / "run" / "network.json"), record);

  request.trials = 8 * std::int64_t(tuned.kernels.size());
  const TunedNetwork more = tune_network(request, monitor);
  EXPECT_GT(trials_of(more), trials_of(tuned));
  EXPECT_LE(more.seconds, tuned.seconds);
  ASSERT_EQ(more.kernels.size(), tuned.kernels.size());
  for (std::size_t k = 0; k < more.kernels.size(); ++k) {
    const NetworkKernel& kernel = more.kernels[k];
    EXPECT_EQ(kernel.trials, std::int64_t(search::read_run(folder / "run" / kernel.run).journal.trials.size()));
    EXPECT_GE(kernel.trials, tuned.kernels[k].trials);
  }
  for (const auto& [on, seconds] : tuned.spent) {
    const auto same =
        std::find_if(more.spent.begin(), more.spent.end(), [&](const auto& each) { return each.first == on; });
    ASSERT_NE(same, more.spent.end()) << on;
    EXPECT_GT(same->second, seconds) << on;
  }
  EXPECT_EQ(to_document(read_tuned_network(folder / "run")), to_document(more));

  // Another search in the folder is refused as before, however few trials it has.
  request.each.seed = 2;
  request.trials = 1;
  EXPECT_THROW(tune_network(request, monitor), base::UserError);
}

// Two convolutions of 16 channels between plain inputs and outputs, on a board with vectors of 8 lanes (modelled): the
// value between them can be stored in blocks.
std::string convolutions() {
  GraphFile file;
  const std::vector<std::string> padded = {attribute("pads", std::vector<std::int64_t>{1, 1, 1, 1})};
  file.input("x", {1, 3, 16, 16}).weight("w", {16, 3, 3, 3}, numbers(432)).weight("v", {16, 16, 3, 3}, numbers(2304));
  file.node("Conv", {"x", "w"}, {"a"}, padded)
      .node("Relu", {"a"}, {"b"})
      .node("Conv", {"b", "v"}, {"c"}, padded)
      .node("Relu", {"c"}, {"d"})
      .node("Conv", {"d", "v"}, {"y"}, padded)
      .output("y");
  return file.model();
}

TEST(Network, StoresValuesBetweenKernelsWhereTheSumIsLeast) {
  const base::Folder folder;
  base::Monitor monitor;
  base::replace_file(folder / "net.onnx", convolutions());
  NetworkRequest request = request_of(folder / "net.onnx", folder / "free", "native:v3");
  request.trials_by_kernel = 4;
  const TunedNetwork free = tune_network(request, monitor);
  ASSERT_TRUE(free.complete);
  request.each.out = folder / "given";
  request.each.space.layouts = codegen::Layouts::given;
  const TunedNetwork given = tune_network(request, monitor);
  EXPECT_TRUE(read_tuned_network(folder / "given").layouts_given);
  request.each.space.layouts = codegen::Layouts::free;
  EXPECT_THROW(tune_network(request, monitor), base::UserError) << "the same folder";
  EXPECT_EQ(given.kernels.size(), 3u);

  // The choice is built, and it is right.
  const graph::Plan plan = plan_of(free);
  ASSERT_EQ(plan.kernels.size(), free.kernels.size());
  for (const NetworkKernel& kernel : free.kernels) EXPECT_TRUE(kernel.answer.has_value());
  EXPECT_EQ(to_document(read_tuned_network(folder / "free")), to_document(free));

  // A choice that is written down is kept, in the folder and by its searches.
  EXPECT_TRUE(free.layouts_chosen);
  EXPECT_FALSE(given.layouts_chosen);
  TunedNetwork blocked = all_in_blocks(free);
  write_tuned_network(blocked);
  request.each.out = folder / "free";
  request.each.space.layouts = {};
  request.trials_by_kernel = 6;
  const TunedNetwork kept = tune_network(request, monitor);
  EXPECT_EQ(kernels_of(kept), kernels_of(blocked));
  const CompiledNetwork made = compile_network({.folder = folder / "free", .name = "net"}, monitor);
  ASSERT_TRUE(made.results.has_value());
  EXPECT_TRUE(made.results->right()) << made.results->call << ": " << made.results->difference;
  EXPECT_LT(made.results->outputs[0].largest_error, 1e-4 * made.results->outputs[0].largest);

  // Another graft made other kernels: what is known decides again.
  blocked = kept;
  blocked.kernels.pop_back();
  write_tuned_network(blocked);
  EXPECT_THROW(plan_of(blocked), base::UserError) << "a folder without a plan";
  const TunedNetwork again = tune_network(request, monitor);
  EXPECT_TRUE(again.layouts_chosen);
  EXPECT_NE(kernels_of(again), kernels_of(blocked));
  EXPECT_EQ(plan_of(again).kernels.size(), again.kernels.size());
}

// Takes the model's file away as soon as something is measured.
class WithoutModel final : public base::Monitor {
 public:
  explicit WithoutModel(std::filesystem::path model) : model_(std::move(model)) {}
  void progress(std::string_view, std::int64_t, std::int64_t) override { std::filesystem::remove(model_); }

 private:
  const std::filesystem::path model_;
};

// The choice between layouts, programs within the network and what is written need it no more.
TEST(Network, IsReadFoldedAndPlannedOnce) {
  const base::Folder folder;
  WithoutModel monitor(folder / "net.onnx");
  base::replace_file(folder / "net.onnx", convolutions());
  NetworkRequest request = request_of(folder / "net.onnx", folder / "run", "native:v3");
  request.trials_by_kernel = 4;
  const TunedNetwork tuned = tune_network(request, monitor);
  EXPECT_FALSE(std::filesystem::exists(request.model));
  EXPECT_TRUE(tuned.complete);
  EXPECT_TRUE(tuned.layouts_chosen);
  EXPECT_GT(tuned.in_place_seconds.value_or(0), 0);
}

// Attention over 16 tokens, and what else a network needs so that other kernels have a part in the sum.
std::string small_attention() {
  GraphFile file;
  file.input("q", {2, 16, 8}).input("k", {2, 8, 16}).input("v", {2, 16, 8}).weight("w", {8, 8}, numbers(64));
  file.node("MatMul", {"q", "k"}, {"product"})
      .node("Softmax", {"product"}, {"weights"}, {attribute("axis", -1)})
      .node("MatMul", {"weights", "v"}, {"seen"})
      .node("MatMul", {"seen", "w"}, {"y"})
      .output("y");
  return file.model();
}

// Tunes a network in which kernels may be one at one place, checks the choice, and both ways.
void expect_choice_of_fusion(const std::string& model) {
  const base::Folder folder;
  base::Monitor monitor;
  base::replace_file(folder / "net.onnx", model);
  NetworkRequest request = request_of(folder / "net.onnx", folder / "run", "native");
  const TunedNetwork tuned = tune_network(request, monitor);
  ASSERT_TRUE(tuned.complete);
  EXPECT_TRUE(tuned.layouts_chosen);
  EXPECT_EQ(to_document(read_tuned_network(folder / "run")), to_document(tuned));
  ASSERT_EQ(plan_of(tuned).kernels.size(), tuned.kernels.size());
  for (const NetworkKernel& kernel : tuned.kernels) EXPECT_TRUE(kernel.answer.has_value()) << kernel.failure;

  // Either choice is kept when the search goes on, and its program is right.
  const graph::OpenPlan open = read_network(tuned.model, tuned.options, tuned.platform.target).plan;
  ASSERT_EQ(graph::fusions(open), 1u);
  const std::vector<double> ones(open.plan.kernels.size(), 1);  // fewer calls are better
  for (const graph::Plan& choice : {graph::first_choice(open), graph::best_choice(open, ones)}) {
    const std::string name = fmt::format("{} calls", choice.calls.size());
    const TunedNetwork before = with_choice(tuned, choice);
    write_tuned_network(before);
    ++request.trials_by_kernel;
    request.each.library = folder / (name + ", library");
    const TunedNetwork kept = tune_network(request, monitor);
    EXPECT_EQ(kernels_of(kept), kernels_of(before));
    EXPECT_EQ(plan_of(kept).calls.size(), choice.calls.size());
    const CompiledNetwork made = compile_network({.folder = folder / "run", .name = "net"}, monitor);
    ASSERT_TRUE(made.results.has_value());
    EXPECT_TRUE(made.results->right()) << made.results->call << ": " << made.results->difference;
    EXPECT_LT(made.results->outputs[0].largest_error, 1e-4 * made.results->outputs[0].largest);

    // Elsewhere, what is known decides, without a search.
    NetworkRequest elsewhere = request;
    elsewhere.each.out = folder / name;
    elsewhere.each.space.layouts = codegen::Layouts::given;
    const TunedNetwork again = tune_network(elsewhere, monitor);
    EXPECT_EQ(kernels_of(again), kernels_of(before));
    for (const NetworkKernel& kernel : again.kernels) EXPECT_EQ(kernel.trials, 0) << kernel.label;
  }

  // Another graft made other kernels: what is known decides again.
  TunedNetwork before = tuned;
  before.kernels.resize(1);
  write_tuned_network(before);
  EXPECT_GT(tune_network(request, monitor).kernels.size(), 1u);
}

// An inverted residual, and its input as ONNX has it.
std::string small_inverted_residual() {
  GraphFile file;
  const std::vector<std::string> depthwise = {attribute("group", 32),
                                              attribute("pads", std::vector<std::int64_t>{1, 1, 1, 1}),
                                              attribute("strides", std::vector<std::int64_t>{2, 2})};
  file.input("x", {1, 16, 9, 9}).weight("wide", {32, 16, 1, 1}, numbers(512)).weight("b", {32}, numbers(32));
  file.weight("deep", {32, 1, 3, 3}, numbers(288)).weight("narrow", {16, 32, 1, 1}, numbers(512));
  file.node("Conv", {"x", "wide", "b"}, {"a"})
      .node("Relu", {"a"}, {"c"})
      .node("Conv", {"c", "deep", "b"}, {"d"}, depthwise)
      .node("Relu", {"d"}, {"e"})
      .node("Conv", {"e", "narrow"}, {"y"})
      .output("y");
  return file.model();
}

TEST(Network, TimesDecideWhetherADepthwiseConvolutionAndItsProductAreOneKernel) {
  expect_choice_of_fusion(small_inverted_residual());
}

TEST(Network, TimesDecideWhetherAttentionIsOneKernel) {
  expect_choice_of_fusion(small_attention());
}

// A folder as an earlier graft wrote it, without its ONNX file and the runs of its kernels. Its kernels and plan stay
// what they are, whatever later ones fold and fuse.
TEST(Network, FoldersOfEarlierGraftsAreCompiledWithoutTheirModels) {
  base::Monitor monitor;
  const std::filesystem::path folder = GRAFT_SOURCE_DIR "/tests/study/frozen_network";
  const TunedNetwork tuned = read_tuned_network(folder);
  EXPECT_FALSE(std::filesystem::exists(tuned.model));
  const graph::Plan plan = plan_of(tuned);
  EXPECT_EQ(plan.inputs.size(), 2u);
  ASSERT_EQ(plan.outputs.size(), 3u);
  EXPECT_EQ(plan.outputs[2].name, "chosen.count");
  const CompiledNetwork made = compile_network({.folder = folder, .name = "frozen"}, monitor);
  EXPECT_TRUE(made.files.contains("libfrozen.a"));
  if (made.results) {
    EXPECT_TRUE(made.results->right()) << made.results->call << ": " << made.results->difference;
  }
}

// What no loop over indices says is computed all the same: here, and under qemu where that is installed.
TEST(Network, WithAFunctionThatIsNotTunedIsCompiledAndRight) {
  for (const char* const platform : {"native", "model:sifive-x280"}) {
    const base::Folder folder;
    base::Monitor monitor;
    GraphFile file;
    const std::vector<float> half = {0.5F};
    file.input("b", {1, 20, 4}).input("s", {1, 2, 20}).integers("most", {1}, {5}).weight("half", {1}, half);
    file.node("Sigmoid", {"s"}, {"score"})
        .node("NonMaxSuppression", {"b", "score", "most", "half"}, {"chosen"})
        .node("Add", {"chosen", "chosen"}, {"y"})
        .output("y");
    base::replace_file(folder / "net.onnx", file.model());
    const TunedNetwork tuned = tune_network(request_of(folder / "net.onnx", folder / "run", platform), monitor);
    EXPECT_EQ(to_document(read_tuned_network(folder / "run")), to_document(tuned));
    int foreign = 0;
    for (const NetworkKernel& kernel : tuned.kernels) {
      EXPECT_TRUE(kernel.has_program()) << kernel.label << kernel.failure;
      foreign += kernel.foreign != nullptr;
    }
    EXPECT_EQ(foreign, 1);
    EXPECT_TRUE(std::isfinite(tuned.seconds));
    const CompiledNetwork made = compile_network({.folder = folder / "run", .name = "net"}, monitor);
    if (!made.results) continue;  // no qemu
    EXPECT_TRUE(made.results->right()) << made.results->call << ": " << made.results->difference;
    ASSERT_EQ(made.results->outputs.size(), 2u);
    EXPECT_EQ(made.results->outputs[0].largest_error, 0);
    EXPECT_EQ(made.results->outputs[1].name, "chosen.count");
    EXPECT_GT(made.results->outputs[1].largest, 0);
  }
}

TEST(Network, RunsOnInputs) {
  const base::Folder folder;
  base::Monitor monitor;
  GraphFile file;
  file.input("x", {2, 3}).input("y", {3}).node("Add", {"x", "y"}, {"s"}).node("Relu", {"s"}, {"z"}).output("z");
  base::replace_file(folder / "net.onnx", file.model());
  tune_network(request_of(folder / "net.onnx", folder / "run", "native"), monitor);
  RunNetworkRequest request;
  request.folder = folder / "run";
  request.inputs["x"] = {{2, 3}, {1, -2, 3, -4, 5, -6}};
  request.inputs["y"] = {{3}, {1, 1, 1}};
  request.repetitions = 2;
  request.check = true;
  const NetworkRun run = run_network(request, monitor);
  ASSERT_EQ(run.outputs.size(), 1u);
  EXPECT_EQ(codegen::numbers_from(run.outputs[0], codegen::DType::f32), (std::vector<double>{2, 0, 4, 0, 6, 0}));
  EXPECT_EQ(run.seconds.size(), 2u);
  EXPECT_EQ(run.where, "host");
  ASSERT_TRUE(run.results.has_value());
  EXPECT_TRUE(run.results->right());
  request.inputs["z"] = {{1}, {1}};
  EXPECT_THROW(run_network(request, monitor), base::UserError);
  request.inputs.erase("z");
  request.inputs["y"] = {{4}, {1, 1, 1, 1}};
  EXPECT_THROW(run_network(request, monitor), base::UserError);
}

// One library for several shapes: what they have in common is searched and stored once.
TEST(Network, OfSeveralShapesIsOneFolderAndOneLibrary) {
  const base::Folder folder;
  base::Monitor monitor;
  GraphFile file;
  file.open_input("x", {"batch", "8", "16"}).weight("w", {16, 16}, numbers(256)).weight("b", {8, 16}, numbers(128));
  file.node("Relu", {"b"}, {"c"})
      .node("MatMul", {"x", "w"}, {"d"})
      .node("Add", {"d", "c"}, {"y"})
      .node("Softmax", {"y"}, {"z"}, {attribute("axis", 2)})
      .output("z");
  base::replace_file(folder / "net.onnx", file.model());
  NetworkRequest request = request_of(folder / "net.onnx", folder / "run", "native");
  request.options.shapes = {{"batch", {1, 3}}};
  request.use = {"batch=3:4"};
  const ShapedNetworks tuned = tune_networks(request, monitor);
  ASSERT_EQ(tuned.parts.size(), 2u);
  EXPECT_TRUE(tuned.complete);
  EXPECT_DOUBLE_EQ(tuned.parts[1].use, 4 * tuned.parts[0].use);
  EXPECT_TRUE(is_shaped(folder / "run"));
  EXPECT_EQ(to_document(read_networks(folder / "run")), to_document(tuned));
  EXPECT_EQ(networks_in(folder / "run"),
            (std::vector<std::filesystem::path>{folder / "run" / "batch-1", folder / "run" / "batch-3"}));
  EXPECT_THROW(read_tuned_network(folder / "run"), base::UserError);

  // The constants are there once, and the same request changes nothing.
  const auto content = [&](const char* name) { return base::read_file(folder / "run" / name); };
  EXPECT_LT(content("constants.bin").size(), 2 * 4 * 256u);
  EXPECT_FALSE(std::filesystem::exists(folder / "run" / "batch-1" / "constants.bin"));
  const std::string first = content("batch-1/network.json"), all = content("network.json");
  tune_networks(request, monitor);
  EXPECT_EQ(content("batch-1/network.json"), first);
  EXPECT_EQ(content("network.json"), all);

  const CompiledNetwork made = compile_network({.folder = folder / "run", .name = "net"}, monitor);
  ASSERT_EQ(made.shapes.size(), 2u);
  for (const CompiledNetwork& shape : made.shapes) {
    ASSERT_TRUE(shape.results.has_value());
    EXPECT_TRUE(shape.results->right()) << shape.results->call << ": " << shape.results->difference;
  }
  EXPECT_EQ(made.shapes[1].shape, "batch=3");
  EXPECT_TRUE(made.files.contains("libnet.a"));
  EXPECT_THROW(compile_network({.folder = folder / "run", .format = CompileFormat::bench, .name = "net"}, monitor),
               base::UserError);

  // Fewer trials than shapes are few, and not as many as the effort has.
  NetworkRequest few = request;
  few.trials = 1;
  few.each.out = folder / "few";
  for (const ShapedNetworks::Part& part : tune_networks(few, monitor).parts) {
    ASSERT_TRUE(part.network.finished.has_value());
    EXPECT_LE(part.network.finished->trials, std::int64_t(part.network.kernels.size()));
  }

  // Inputs say which network runs; another shape is added, and what is there stays.
  RunNetworkRequest run;
  run.folder = folder / "run";
  run.inputs["x"] = {{3, 8, 16}, std::vector<double>(384, 0.5)};
  EXPECT_EQ(run_network(run, monitor).tensors.at(0).shape, (std::vector<std::int64_t>{3, 8, 16}));
  run.inputs["x"].shape = {2, 8, 16};
  EXPECT_THROW(run_network(run, monitor), base::UserError);
  run.inputs.clear();
  EXPECT_THROW(run_network(run, monitor), base::UserError);
  request.options.shapes = {{"batch", {3, 2}}};
  request.use = {};
  EXPECT_EQ(tune_networks(request, monitor).parts.size(), 3u);
  EXPECT_EQ(plan_of(read_tuned_network(folder / "run" / "batch-1")).buffers.size(),
            plan_of(read_tuned_network(folder / "run" / "batch-2")).buffers.size());

  const auto refused = [&](const std::string& use) {
    request.use = {use};
    EXPECT_THROW(tune_networks(request, monitor), base::UserError) << use;
  };
  for (const char* const use : {"batch", "batch=2", "batch=2:0", "batch=2:x", "batch=5:1", "bath=2:1"}) refused(use);
  request.use = {};
  request.options.shapes = {{"batch", {2}}};
  EXPECT_THROW(tune_networks(request, monitor), base::UserError);
}

// A library of answers knows the kernels of a network that was tuned, under other names of layers, too.
TEST(Network, IsAnsweredFromALibrary) {
  const base::Folder folder;
  base::Monitor monitor;
  base::replace_file(folder / "net.onnx", small_network());
  NetworkRequest request = request_of(folder / "net.onnx", folder / "run", "native");
  request.each.library = folder / "library";
  const TunedNetwork first = tune_network(request, monitor);
  request.each.out = folder / "again";
  const TunedNetwork again = tune_network(request, monitor);
  EXPECT_DOUBLE_EQ(again.seconds, first.seconds);
  for (const NetworkKernel& kernel : again.kernels) {
    EXPECT_EQ(kernel.trials, 0);
    EXPECT_TRUE(kernel.run.empty());
    EXPECT_TRUE(kernel.answer.has_value());
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "again" / "kernels"));
  EXPECT_FALSE(again.in_place_seconds.has_value());  // nothing was run
  EXPECT_TRUE(compile_network({.folder = folder / "again"}, monitor).results->right());
}

// (1 - mask) * the lowest number, as exporters write masks, before a softmax; a row may be masked wholly. In 16 bits,
// too.
TEST(Network, WithAMaskIsTuned) {
  const base::Folder folder;
  base::Monitor monitor;
  GraphFile file;
  file.input("mask", {2, 1, 8}, graph::file::i64).input("x", {2, 8, 8});
  file.weight("one", {1}, {1})
      .weight("lowest", {1}, {-std::numeric_limits<float>::max()})
      .weight("w", {8, 8}, numbers(64));
  file.node("Cast", {"mask"}, {"f"}, {attribute("to", std::int64_t(graph::file::f32))})
      .node("Sub", {"one", "f"}, {"inverse"})
      .node("Mul", {"inverse", "lowest"}, {"bias"})
      .node("MatMul", {"x", "w"}, {"scores"})
      .node("Add", {"scores", "bias"}, {"masked"})
      .node("Softmax", {"masked"}, {"y"}, {attribute("axis", std::int64_t(-1))})
      .output("y");
  base::replace_file(folder / "net.onnx", file.model());
  for (const codegen::DType storage : {codegen::DType::f32, codegen::DType::f16, codegen::DType::bf16}) {
    const std::string name(codegen::name_of(storage));
    SCOPED_TRACE(name);
    NetworkRequest request = request_of(folder / "net.onnx", folder / name, "native");
    request.options.storage = {storage};
    for (const NetworkKernel& kernel : tune_network(request, monitor).kernels)
      ASSERT_TRUE(kernel.answer.has_value()) << kernel.failure;
    RunNetworkRequest run;
    run.folder = folder / name;
    run.check = true;
    run.inputs["mask"] = {{2, 1, 8}, {1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}};
    const NetworkRun result = run_network(run, monitor);
    EXPECT_TRUE(result.results->right()) << result.results->call << ": " << result.results->difference;
    const std::vector<double> found = codegen::numbers_from(result.outputs[0], codegen::DType::f32);
    for (std::size_t row = 0; row < 16; ++row) {
      double sum = 0;
      for (std::size_t e = 0; e < 8; ++e) sum += found[8 * row + e];
      EXPECT_NEAR(sum, 1, 1e-2);
    }
    EXPECT_NEAR(found[64], 1.0 / 8, 1e-2);  // masked wholly: every place alike
    EXPECT_EQ(found[2], 0);
  }
}

// Other targets, checked under qemu.
TEST(Network, IsRightOnOtherTargets) {
  const base::Folder folder;
  base::Monitor monitor;
  base::replace_file(folder / "net.onnx", small_network());
  for (const char* const platform : {"model:sifive-x280", "model:cortex-a72", "model:pwr9"}) {
    const std::filesystem::path out = folder / tasks::platform_named(platform).target.triple;
    tune_network(request_of(folder / "net.onnx", out, platform), monitor);
    const CompiledNetwork made = compile_network({.folder = out, .name = "net"}, monitor);
    ASSERT_EQ(made.check, "qemu") << made.unchecked;
    EXPECT_TRUE(made.results->right()) << platform << ": " << made.results->call << ": " << made.results->difference;
    const CompiledNetwork bench =
        compile_network({.folder = out, .format = CompileFormat::bench, .name = "net"}, monitor);
    EXPECT_TRUE(bench.executable);
    EXPECT_EQ(bench.files.size(), 1u);
  }
}

// Random networks, tuned, compiled and run. GRAFT_RANDOM_NETWORKS is how many, from which seed on: "2000 1".
TEST(Network, OfAnyShapeIsRight) {
  int count = 6;
  std::uint64_t seed = 1;
  if (const char* const asked = std::getenv("GRAFT_RANDOM_NETWORKS")) {
    char* end = nullptr;
    count = int(std::strtol(asked, &end, 10));
    if (*end != '\0') seed = std::strtoull(end, nullptr, 10);
  }
  base::Monitor monitor;
  for (int n = 0; n < count; ++n, ++seed) {
    SCOPED_TRACE(seed);
    const base::Folder folder;
    graph::RandomSizes sizes;
    sizes.nodes = int(2 + seed % 9);
    base::replace_file(folder / "net.onnx", graph::file::model_of(graph::random_graph(seed, sizes)));
    NetworkRequest request = request_of(folder / "net.onnx", folder / "run", "native");
    request.trials_by_kernel = 1;
    const TunedNetwork tuned = tune_network(request, monitor);
    for (const NetworkKernel& kernel : tuned.kernels)
      ASSERT_TRUE(kernel.answer.has_value())
          << "seed " << seed << ": " << kernel.workload.text() << ": " << kernel.failure;
    RunNetworkRequest asked;
    asked.folder = folder / "run";
    asked.check = true;
    asked.seed = seed;
    const NetworkRun run = run_network(asked, monitor);
    EXPECT_TRUE(run.results->right()) << "seed " << seed << ": " << run.results->call << ": "
                                      << run.results->difference;
    for (const graph::OutputError& error : run.results->outputs)
      EXPECT_LE(error.largest_error, 1e-3 * (1 + error.largest)) << "seed " << seed << ", output " << error.name;
  }
}

// Weights and what lies between kernels in 16 bits: half of the memory, results within what rounding may do.
TEST(Network, IsStoredIn16Bits) {
  const base::Folder folder;
  base::Monitor monitor;
  base::replace_file(folder / "net.onnx", small_network());
  for (const codegen::DType storage : {codegen::DType::bf16, codegen::DType::f16}) {
    const std::string name(codegen::name_of(storage));
    SCOPED_TRACE(name);
    NetworkRequest request = request_of(folder / "net.onnx", folder / name, "native");
    request.options.storage = {storage};
    const TunedNetwork tuned = tune_network(request, monitor);
    for (const NetworkKernel& kernel : tuned.kernels) ASSERT_TRUE(kernel.answer.has_value()) << kernel.failure;
    EXPECT_EQ(read_tuned_network(folder / name).options, request.options);
    EXPECT_EQ(to_document(read_tuned_network(folder / name)), to_document(tuned));
    const CompiledNetwork made = compile_network({.folder = folder / name, .name = "net"}, monitor);
    EXPECT_EQ(made.check, "host");
    ASSERT_TRUE(made.results.has_value());
    EXPECT_TRUE(made.results->right()) << made.results->call << ": " << made.results->difference;
    // What another storage found is not continued.
    request.options.storage = {};
    EXPECT_THROW(tune_network(request, monitor), base::UserError);
  }
  NetworkOptions options;
  const Settings settings = settings_of(options, {});
  const Setting& storage = *setting_of(settings, "storage");
  storage.set("bf16");
  EXPECT_EQ(options.storage, graph::Storage{codegen::DType::bf16});
  storage.set("s4:64");
  EXPECT_EQ(options.storage, (graph::Storage{codegen::DType::f32, 64}));
  for (const char* const wrong : {"s4", "s4:8", "s4:48", "s4:32x", "s4:99999999999"})
    EXPECT_THROW(storage.set(wrong), base::UserError) << wrong;
  EXPECT_THROW(storage.set("f64"), base::UserError);
  EXPECT_THROW(storage.set("i8"), base::UserError);
  EXPECT_THROW(storage.set("half"), base::UserError);
}

TEST(Network, RefusesAFolderOfAnother) {
  const base::Folder folder;
  base::Monitor monitor;
  EXPECT_THROW(read_tuned_network(folder.path()), base::UserError);
  GraphFile file;
  file.open_input("x", {"batch", "3"}).node("Relu", {"x"}, {"y"}).output("y");
  base::replace_file(folder / "net.onnx", file.model());
  NetworkRequest request = request_of(folder / "net.onnx", folder / "run", "native");
  EXPECT_THROW(tune_network(request, monitor), base::UserError);  // the batch is open
  request.options.shapes = {{"batch", {2}}};
  tune_network(request, monitor);
  request.options.shapes = {{"batch", {4}}};
  EXPECT_THROW(tune_network(request, monitor), base::UserError);
}

}  // namespace
}  // namespace graft::study
