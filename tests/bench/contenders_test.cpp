// What a workload is to a library, and that every contender computes it: each is checked against the reference, and the
// check fails for a wrong one.
#include <gtest/gtest.h>

#include <algorithm>

#include "bench/blas.h"
#include "bench/compilers.h"
#include "bench/library.h"
#include "bench/onednn.h"
#include "bench/peak.h"
#include "bench/problem.h"
#include "bench/shapes.h"
#include "codegen/program/peak.h"
#include "codegen/schedule/lower.h"
#include "tests/support/refusal.h"

namespace graft::bench {
namespace {

using codegen::contains;
using codegen::parse_workload;

const std::string transposed = "input A[5,4]; input B[6,5]; output C[i,j] += A[l,i] * B[j,l] where i=4, j=6, l=5";
const std::string batched =
    "input A[2,4,5]; input B[2,5,6]; output C[b,i,j] += B[b,l,j] * A[b,i,l] where b=2, i=4, j=6, l=5";

std::optional<MatrixProduct> product_of(const std::string& text) {
  return matrix_product(parse_workload(text).computation());
}

TEST(Shapes, MatrixProductsAreKnownByTheirForm) {
  const auto plain = product_of("matmul(m=4,n=6,k=5)");
  ASSERT_TRUE(plain);
  EXPECT_EQ((std::vector{plain->batch, plain->m, plain->n, plain->k}), (std::vector<std::int64_t>{1, 4, 6, 5}));
  EXPECT_FALSE(plain->a_transposed || plain->b_transposed);
  const auto turned = product_of(transposed);
  ASSERT_TRUE(turned);
  EXPECT_TRUE(turned->a_transposed && turned->b_transposed);
  const auto many = product_of(batched);
  ASSERT_TRUE(many);
  EXPECT_EQ((std::vector{many->batch, many->m, many->n, many->k}), (std::vector<std::int64_t>{2, 4, 6, 5}));
  EXPECT_EQ(many->a, 0);
}

TEST(Shapes, OtherWorkloadsAreNoMatrixProducts) {
  for (const char* text : {"dense(m=4,n=6,k=5)", "conv2d(c=4,h=6,w=6,k=4,r=1,s=1)",
                           "input A[8,5]; input B[5,6]; output C[i,j] += A[i,l] * B[l,j] where i=4, j=6, l=5",
                           "input A[4,5]; input B[5,6]; output C[i,j] max= A[i,l] * B[l,j] where i=4, j=6, l=5",
                           "input A[4,5]; input B[5,6]; output C[i,j] += A[i,l] + B[l,j] where i=4, j=6, l=5"}) {
    EXPECT_FALSE(product_of(text)) << text;
  }
}

TEST(Shapes, ConvolutionsAreKnownByTheirParameters) {
  const auto plain = convolution(parse_workload("conv2d(n=2,c=3,h=9,w=8,k=5,r=3,s=2,stride=2,pad=1)"));
  ASSERT_TRUE(plain);
  EXPECT_EQ((std::vector{plain->groups, plain->block, plain->out_h(), plain->out_w()}),
            (std::vector<std::int64_t>{1, 1, 5, 5}));
  const auto blocked = convolution(parse_workload("conv2d_nchwc(c=8,h=6,w=6,k=16,r=3,s=3,pad=1,block=8)"));
  ASSERT_TRUE(blocked);
  EXPECT_EQ(blocked->block, 8);
  EXPECT_EQ(blocked->k, 16);
  const auto depthwise = convolution(parse_workload("depthwise_conv2d(c=7,h=6,w=6,r=3,s=3)"));
  ASSERT_TRUE(depthwise);
  EXPECT_EQ(depthwise->groups, 7);
  EXPECT_EQ(depthwise->k, 7);
  const auto last = convolution(parse_workload("conv2d_nhwc(c=7,h=6,w=5,k=3,r=3,s=3)"));
  ASSERT_TRUE(last);
  EXPECT_TRUE(last->channels_last);
  EXPECT_EQ((std::vector{last->c_block(), last->k_block()}), (std::vector<std::int64_t>{7, 3}));
  EXPECT_FALSE(convolution(parse_workload("matmul(m=4,n=6,k=5)")));
  EXPECT_FALSE(convolution(parse_workload(batched)));
}

TEST(Problems, OutputsAreRightOnlyWhenEveryElementIs) {
  const Problem problem(parse_workload("matmul(m=4,n=6,k=5)"));
  problem.clear_outputs();
  EXPECT_FALSE(problem.outputs_right());
  const codegen::Target host = codegen::host_target();
  const Kernel kernel(codegen::naive_program(problem.computation()), host, codegen::search_pipeline(host));
  kernel.prepare(problem.buffers().data());
  kernel.run(problem.buffers().data(), in_order());
  EXPECT_TRUE(problem.outputs_right());
  float& last = problem.values(2)[23];
  last += 1e-4F;
  EXPECT_FALSE(problem.outputs_right());
}

TEST(Problems, OfAllTypesAreChecked) {
  for (const char* type : {"f64", "i32", "i8", "u8"}) {
    const Problem problem(parse_workload(std::string("matmul(m=4,n=6,k=5,dtype=") + type + ")"));
    EXPECT_FALSE(problem.is_f32());
    problem.clear_outputs();
    EXPECT_FALSE(problem.outputs_right()) << type;
    const codegen::Target host = codegen::host_target();
    const Kernel kernel(codegen::naive_program(problem.computation()), host, codegen::search_pipeline(host));
    kernel.prepare(problem.buffers().data());
    kernel.run(problem.buffers().data(), in_order());
    EXPECT_TRUE(problem.outputs_right()) << type;
    auto* const last = static_cast<char*>(problem.buffers()[2]) + problem.tensor(2).bytes() - 1;
    *last = char(*last ^ 0x40);
    EXPECT_FALSE(problem.outputs_right()) << type;
  }
}

// Each by itself, over outputs that were made wrong before.
void expect_right(const std::vector<Contender>& contenders, const Problem& problem) {
  for (const Contender& contender : contenders) {
    problem.clear_outputs();
    if (contender.clear) contender.clear();
    contender.call();
    EXPECT_TRUE(contender.check()) << contender.name << " of " << problem.workload().text();
  }
}
std::vector<std::string> names(const std::vector<Contender>& contenders) {
  std::vector<std::string> result;
  for (const Contender& contender : contenders) result.push_back(contender.name);
  return result;
}

TEST(Contenders, OpenBlasComputesMatrixProducts) {
  for (const std::string& text : {std::string("matmul(m=33,n=17,k=21)"), transposed, batched}) {
    const Problem problem(parse_workload(text));
    const auto contenders = openblas_contenders(problem, 1);
    EXPECT_EQ(names(contenders), std::vector<std::string>{"openblas"});
    expect_right(contenders, problem);
  }
  EXPECT_TRUE(openblas_contenders(Problem(parse_workload("dense(m=4,n=6,k=5)")), 1).empty());
}

TEST(Contenders, OneDnnComputesMatrixProductsAndConvolutions) {
  for (const std::string& text : {std::string("matmul(m=33,n=17,k=21)"), transposed, batched}) {
    const Problem problem(parse_workload(text));
    const auto contenders = onednn_contenders(problem, 1);
    EXPECT_EQ(names(contenders), std::vector<std::string>{"onednn"});
    expect_right(contenders, problem);
  }
  for (const char* text :
       {"conv2d(n=2,c=13,h=9,w=8,k=5,r=3,s=2,stride=2,pad=1)", "conv2d(c=32,h=12,w=12,k=32,r=3,s=3,pad=1)",
        "conv2d_nchwc(c=16,h=7,w=6,k=32,r=3,s=3,pad=1,block=16)", "conv2d_nchwc(n=2,c=8,h=5,w=5,k=4,r=1,s=1,block=4)",
        "depthwise_conv2d(n=2,c=20,h=7,w=6,r=3,s=3,pad=1)", "conv2d_nhwc(n=2,c=16,h=7,w=6,k=32,r=3,s=2,stride=2,pad=1)",
        "depthwise_conv2d_nhwc(n=2,c=32,h=7,w=6,r=3,s=3,pad=1)"}) {
    const Problem problem(parse_workload(text));
    const auto contenders = onednn_contenders(problem, 1);
    EXPECT_EQ(names(contenders).at(0), "onednn_direct") << text;
    const bool plain = problem.tensor(0).shape.size() == 4;
    const auto all = names(contenders);
    const bool is_last = std::string_view(text).find("nhwc") != std::string_view::npos;
    if (!is_last) {
      EXPECT_EQ(std::count(all.begin(), all.end(), "onednn_plain"), plain ? 1 : 0) << text;
    }
    EXPECT_LE(std::count(all.begin(), all.end(), "onednn_reordered"), plain ? 1 : 0) << text;
    if (is_last) {
      EXPECT_EQ(std::count(all.begin(), all.end(), "onednn_reordered"), 1) << text;
    }
    expect_right(contenders, problem);
  }
}

TEST(Contenders, OneDnnIsCheckedByItsOwnResult) {
  const Problem problem(parse_workload("conv2d(c=13,h=6,w=6,k=5,r=3,s=3)"));
  const auto contenders = onednn_contenders(problem, 1);
  EXPECT_FALSE(contenders.at(0).check()) << "right before it ran";
  contenders.at(0).call();
  EXPECT_TRUE(contenders.at(0).check());
}

TEST(Contenders, CCompilersComputeTheSameLoops) {
  for (const char* text : {"conv2d(c=3,h=6,w=5,k=4,r=3,s=3,stride=2,pad=1)", "dense(m=4,n=6,k=5)"}) {
    const Problem problem(parse_workload(text));
    const std::vector<std::string> wanted{"gcc_naive", "clang_interchanged"};
    const auto contenders = c_contenders(problem, wanted);
    EXPECT_EQ(names(contenders), wanted) << text;
    expect_right(contenders, problem);
  }
}

TEST(Contenders, OneDnnMultipliesBytes) {
  for (const char* a : {"u8", "i8"}) {
    const Problem problem(parse_workload(std::string("input A[33,21] : ") + a +
                                         "; constant B[21,17] : i8; output C[i,j] : i32 += A[i,l] * B[l,j] where i=33, "
                                         "j=17, l=21"));
    EXPECT_TRUE(openblas_contenders(problem, 1).empty());
    const auto contenders = onednn_contenders(problem, 1);
    EXPECT_LE(contenders.size(), 1u);  // none where the library has only its reference code
    for (const Contender& contender : contenders) {
      problem.clear_outputs();
      contender.call();
      EXPECT_EQ(contender.name, "onednn");
    }
  }
  EXPECT_TRUE(onednn_contenders(Problem(parse_workload("matmul(m=4,n=6,k=5,dtype=i32)")), 1).empty());
  EXPECT_TRUE(onednn_contenders(Problem(parse_workload("conv2d(c=4,h=6,w=6,k=4,r=3,s=3,dtype=i8)")), 1).empty());
}

TEST(Libraries, TwoFromMemoryAreTwo) {
  const Problem small(parse_workload("matmul(m=4,n=6,k=5)")), large(parse_workload("matmul(m=7,n=6,k=5)"));
  const codegen::Target host = codegen::host_target();
  const Kernel first(codegen::naive_program(small.computation()), host, codegen::search_pipeline(host));
  const Kernel second(codegen::naive_program(large.computation()), host, codegen::search_pipeline(host));
  second.run(large.buffers().data(), in_order());
  EXPECT_TRUE(large.outputs_right());
  first.run(small.buffers().data(), in_order());
  EXPECT_TRUE(small.outputs_right());
}

// A unit that is used in full does nothing but multiply-adds: none may be optimised away, none may wait for memory.
TEST(Peak, IsMultiplyAddsOnRegisters) {
  const codegen::Target host = codegen::host_target();
  const codegen::LoopProgram program = peak_program(host);
  const double accumulators = double(program.buffers[3].elements()) / double(host.lanes(4));
  EXPECT_GE(accumulators, 4);
  EXPECT_LE(accumulators + 2, double(host.vector_registers));
  const auto listed = codegen::listing(program, host);
  ASSERT_TRUE(listed) << listed.reason().text;
  const std::string& code = listed->assembly;
  std::int64_t multiply_adds = 0;
  for (std::size_t at = code.find("fmadd"); at != std::string::npos; at = code.find("fmadd", at + 1)) {
    ++multiply_adds;
    const std::string line = code.substr(at, code.find('\n', at) - at);
    EXPECT_FALSE(contains(line, "(")) << line;
  }
  if (host.triple.starts_with("x86_64") && host.vector_bits >= 256) {
    EXPECT_GE(multiply_adds, std::int64_t(accumulators));
  }
}

TEST(Peak, IsCheckedOnEveryCore) {
  const Contender peak = peak_contender(codegen::host_target(), 2, in_order());
  peak.clear();
  EXPECT_FALSE(peak.check());
  peak.call();
  EXPECT_TRUE(peak.check());
}

}  // namespace
}  // namespace graft::bench
