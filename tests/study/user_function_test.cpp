#include "study/flows/user_function.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "codegen/machine/compile.h"
#include "codegen/machine/foreign_code.h"
#include "graph/check.h"
#include "study/flows/compile_network.h"
#include "tests/base/support.h"
#include "tests/graph/support/onnx_file.h"
#include "tests/support/refusal.h"

namespace graft::study {
namespace {

using codegen::refusal;
using graph::file::attribute;
using graph::file::GraphFile;

// y[i] = sum_j x[i,j]^2 / (1 + j), of a matrix.
constexpr const char* code = R"(
#include <stdint.h>
static float weight(int64_t place) { return 1.0f / (float)(1 + place); }
void weighted(void* const* buffers, const int64_t* n) {
  const float* x = buffers[0];
  float* y = buffers[1];
  /* n: 2 buffers, 2 dimensions, rows, columns, 1 dimension, rows */
  for (int64_t i = 0; i < n[2]; ++i) {
    y[i] = 0;
    for (int64_t j = 0; j < n[3]; ++j) y[i] += x[i * n[3] + j] * x[i * n[3] + j] * weight(j);
  }
}
)";

// A node of another domain than ONNX's own between two of its own.
GraphFile network(bool says_shape) {
  GraphFile file;
  file.input("x", {3, 4}).node("Neg", {"x"}, {"a"}).node("own.Weighted", {"a"}, {"b"}, {}, "middle");
  if (says_shape) file.value("b", {3});
  return file.node("Exp", {"b"}, {"y"}).output("y");
}

TEST(UserFunction, ComputesNodesOfATunedAndCompiledNetwork) {
  const base::Folder folder;
  base::Monitor monitor;
  base::replace_file(folder / "own.c", code);
  base::replace_file(folder / "net.onnx", network(true).model());
  NetworkRequest request;
  request.model = folder / "net.onnx";
  request.options.functions = {"own.Weighted=weighted:" + (folder / "own.c").string()};
  request.trials_by_kernel = 1;
  request.each.platform = tasks::platform_named("native");
  request.each.model = request.each.explorer = "random";
  request.each.out = folder / "run";
  request.each.command_line = "a test";
  const TunedNetwork tuned = tune_network(request, monitor);
  ASSERT_EQ(tuned.kernels.size(), 3u);
  EXPECT_EQ(tuned.kernels[1].label, "middle (own.Weighted)");

  // What the folder holds needs neither the file of C nor that of the model.
  std::filesystem::remove(folder / "own.c");
  std::filesystem::remove(folder / "net.onnx");
  const TunedNetwork read = read_tuned_network(folder / "run");
  EXPECT_EQ(read.options, tuned.options);
  EXPECT_EQ(*read.kernels[1].foreign, *tuned.kernels[1].foreign);
  const std::vector<double> x = {1, 2, 0, -1, 0, 0, 0, 0, 0.5, 1, 1, 2};
  const auto y = graph::reference(plan_of(read), {{"x", x}}, monitor).at(0);
  for (std::size_t i = 0; i < 3; ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < 4; ++j) sum += x[4 * i + j] * x[4 * i + j] / double(1 + j);
    EXPECT_NEAR(std::as_const(y)[i], std::exp(sum), 1e-5 * std::exp(sum));
  }
  const CompiledNetwork made = compile_network({.folder = folder / "run", .name = "net"}, monitor);
  EXPECT_EQ(made.check, "host");
  EXPECT_TRUE(made.results->right()) << made.results->difference;
}

TEST(UserFunction, OfAnotherFormIsRefused) {
  const base::Folder folder;
  const auto said = [&](const std::string& text, const std::string& content) {
    base::replace_file(folder / "own.c", content);
    return refusal([&] { return read_functions({text + (folder / "own.c").string()}); });
  };
  const auto contains = [](const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(contains(said("own.Weighted:", code), "is not of the form Operation=function:FILE.c"));
  EXPECT_TRUE(contains(said("=weighted:", code), "is not of the form"));
  EXPECT_TRUE(contains(said("a=other:", code), "has no function 'void other(void* const* buffers, const int64_t* n)'"));
  EXPECT_TRUE(contains(said("a=f:", "int f(void* const* b) { return 0; }"), "has no function 'void f("));
  EXPECT_TRUE(contains(said("a=f:", "int f(;"), "clang refuses it: "));
  EXPECT_TRUE(contains(said("a=f:",
                            "#include <stdint.h>\nfloat expf(float);\nvoid f(void* const* b, const int64_t* n) "
                            "{ *(float*)b[1] = expf(*(float*)b[0]); }"),
                       "calls 'expf', which is not in it; a kernel has no library"));
  const std::string own = "own.Weighted=weighted:" + (folder / "own.c").string();
  base::replace_file(folder / "own.c", code);
  EXPECT_TRUE(contains(refusal([&] { return read_functions({own, own}); }), "two functions are to compute it"));
}

// What LLVM reads and would not survive: a value that not every way to its use computes.
TEST(UserFunction, OfBrokenCodeIsAFailure) {
  const codegen::Foreign broken{"f",
                                {2, 1, 1, 1, 1},
                                "define void @f(ptr %a, ptr %b) {\n  br i1 true, label %one, label %two\n"
                                "one:\n  %v = load i32, ptr %a\n  br label %two\n"
                                "two:\n  store i32 %v, ptr %b\n  ret void\n}\n",
                                {codegen::DType::i32, codegen::DType::i32}};
  const auto said = [&](const codegen::Foreign& of) {
    try {
      (void)codegen::compile(of, codegen::host_target(), "kernel");
    } catch (const base::Failure& failure) {
      return std::string(failure.what());
    }
    return std::string();
  };
  EXPECT_NE(said(broken).find("does not dominate"), std::string::npos) << said(broken);
  codegen::Foreign cut = broken;
  cut.code.resize(60);
  EXPECT_NE(said(cut).find("line "), std::string::npos);
}

TEST(UserFunction, NeedsAShapeThatTheFileSays) {
  const graph::Functions functions = {{"own.Weighted", {"weighted", {}}}};
  const auto said = [&](const GraphFile& file, const graph::Functions& of) {
    return refusal([&] { return graph::with_functions(graph::file::read(file), of, "m.onnx"); });
  };
  EXPECT_EQ(said(network(false), functions),
            "m.onnx: node 'middle' (own.Weighted): the file does not say the type and shape of 'b', which a function "
            "computes; write them there (value_info)");
  EXPECT_EQ(
      said(network(true), {{"own.Weigted", {"weighted", {}}}}),
      "m.onnx: no node is a 'own.Weigted', which function 'weighted' is to compute; did you mean 'own.Weighted'?");
  GraphFile two;
  two.input("x", {2}).node("own.F", {"x"}, {"a"}, {attribute("slope", 1)}).value("a", {2});
  two.node("own.F", {"a"}, {"y"}, {attribute("slope", 2)}).output("y").value("y", {2});
  EXPECT_EQ(
      said(two, {{"own.F", {"f", {}}}}),
      "m.onnx: node 1 (own.F): has other attributes than one before, and the function that computes both gets none "
      "of them");
}

}  // namespace
}  // namespace graft::study
