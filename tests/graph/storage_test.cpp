// Plans whose numbers between kernels have 16 bits.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "graph/fold.h"
#include "graph/plan.h"
#include "graph/reference.h"
#include "tests/graph/support/onnx_file.h"
#include "tests/graph/support/random_graph.h"
#include "tests/graph/support/run_plan.h"
#include "tests/graph/support/small.h"

namespace {

using namespace graft::graph;
using file::attribute;
using file::GraphFile;
using graft::codegen::DType;
using graft::codegen::Elements;
using List = std::vector<std::int64_t>;

// Tensors have the types of the buffers that they are, and nothing is rounded within a kernel.
void expect_types_of_buffers(const Plan& plan) {
  for (const Plan::Call& call : plan.calls) {
    const auto& computation = plan.kernels[std::size_t(call.kernel)].workload.computation();
    std::size_t operand = 0;
    for (const graft::codegen::Tensor& tensor : computation.tensors) {
      using graft::codegen::Role;
      if (tensor.is_literal() || tensor.role == Role::temporary) {
        const int writer = computation.stage_writing(int(&tensor - computation.tensors.data()));
        const bool is_copy =
            writer >= 0 && computation.stages[std::size_t(writer)].value.root().op == graft::codegen::Op::load;
        if (!is_copy) {
          EXPECT_NE(tensor.dtype, DType::bf16)
              << "rounded within " << plan.kernels[std::size_t(call.kernel)].workload.text();
        }
        continue;
      }
      const int buffer = tensor.role == Role::output ? call.result : call.operands[operand++];
      EXPECT_EQ(tensor.dtype, plan.buffers[std::size_t(buffer)].type) << call.label << ", " << tensor.name;
    }
  }
}

TEST(Storage, WeightsAndWhatLiesBetweenKernelsAreShort) {
  GraphFile file;
  file.input("x", {1, 3, 8, 8}).weight("w", {4, 3, 3, 3}, numbers(108, 1)).weight("b", {4}, numbers(4, 2));
  file.weight("v", {4, 4, 3, 3}, numbers(144, 3)).weight("c", {4}, numbers(4, 4));
  file.node("Conv", {"x", "w", "b"}, {"a"}, {attribute("pads", List{1, 1, 1, 1})})
      .node("Relu", {"a"}, {"r"})
      .node("Conv", {"r", "v", "c"}, {"d"}, {attribute("pads", List{1, 1, 1, 1})})
      .node("Relu", {"d"}, {"s"})
      .node("Conv", {"s", "v", "c"}, {"y"}, {attribute("pads", List{1, 1, 1, 1})})
      .output("y");
  const Graph graph = folded(file::read(file, 17), "m.onnx");
  const Plan plan = planned(graph, vector_target(), "m.onnx", DType::bf16);
  expect_types_of_buffers(plan);
  ASSERT_EQ(plan.calls.size(), 3u);
  const auto type_of = [&](int buffer) { return plan.buffers[std::size_t(buffer)].type; };
  // The first one reads the input as it is, so that its weights stay as they are, too.
  EXPECT_EQ(type_of(plan.calls[0].operands[0]), DType::f32);
  EXPECT_EQ(type_of(plan.calls[0].operands[1]), DType::f32);
  EXPECT_EQ(type_of(plan.calls[0].result), DType::bf16);
  EXPECT_EQ(type_of(plan.calls[1].operands[0]), DType::bf16);
  EXPECT_EQ(type_of(plan.calls[1].operands[1]), DType::bf16);
  EXPECT_EQ(type_of(plan.calls[1].operands[2]), DType::f32);  // added, not multiplied
  EXPECT_EQ(type_of(plan.calls[2].result), DType::f32);
  // Both layers read the weights, which are converted once.
  EXPECT_EQ(plan.calls[1].operands[1], plan.calls[2].operands[1]);
  const Plan::Buffer& weights = plan.buffers[std::size_t(plan.calls[1].operands[1])];
  const std::vector<float> exact = numbers(144, 3);
  for (std::size_t e = 0; e < exact.size(); ++e)
    EXPECT_EQ(weights.known->number(e), graft::codegen::rounded_to(double(exact[e]), DType::bf16));
}

TEST(Storage, SinglePrecisionIsWhatItWas) {
  const Graph graph = folded(random_graph(3), "random");
  const Plan one = planned(graph, vector_target(), "m"), other = planned(graph, vector_target(), "m", DType::f32);
  ASSERT_EQ(one.kernels.size(), other.kernels.size());
  for (std::size_t k = 0; k < one.kernels.size(); ++k)
    EXPECT_EQ(one.kernels[k].workload.text(), other.kernels[k].workload.text());
}

TEST(Storage, PlansOfRandomGraphsAreConsistent) {
  for (std::uint64_t seed = 200; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomSizes sizes;
    sizes.nodes = int(2 + seed % 14);
    const Graph graph = folded(random_graph(seed, sizes), "random");
    const Plan plan = planned(graph, vector_target(), "random", DType::bf16);
    expect_types_of_buffers(plan);
    const auto inputs = random_inputs(graph, seed);
    EXPECT_EQ(run(plan, inputs).size(), graph.outputs.size());
    for (const Plan::Buffer& buffer : plan.buffers) {
      if (buffer.part_of >= 0) {
        EXPECT_EQ(buffer.type, plan.buffers[std::size_t(buffer.part_of)].type);
      }
      if (buffer.where == Plan::Buffer::Where::input) {
        EXPECT_NE(buffer.type, DType::bf16);
      }
      if (buffer.where == Plan::Buffer::Where::output) {
        EXPECT_NE(buffer.type, DType::bf16);
      }
    }
  }
}

}  // namespace
