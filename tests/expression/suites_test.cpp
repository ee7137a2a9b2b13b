#include "codegen/expression/suites.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"

namespace graft::codegen {
namespace {

TEST(Suites, AreDistinctCanonicalWorkloads) {
  for (const Suite& suite : suites()) {
    std::set<std::string> texts;
    for (const Workload& workload : suite.workloads) {
      EXPECT_EQ(parse_workload(workload.text()), workload);
      EXPECT_GT(flops(workload), 0) << workload.text();
      EXPECT_TRUE(texts.insert(workload.text()).second) << suite.name << ": " << workload.text() << " twice";
    }
  }
}

TEST(Suites, ShippedHasEnoughKinds) {
  const std::vector<Workload> shipped = parse_workloads("suite:shipped");
  EXPECT_GE(shipped.size(), 24u);
  std::set<std::string> operators;
  for (const Workload& workload : shipped) operators.insert(workload.text().substr(0, workload.text().find('(')));
  for (const char* name : {"matmul", "dense", "batch_matmul", "conv2d", "depthwise_conv2d", "grouped_conv2d",
                           "max_pool2d", "softmax", "layer_norm"}) {
    EXPECT_TRUE(operators.contains(name)) << name;
  }
}

// Splits count positions: what is in a suite stays in its place.
TEST(Suites, KeepTheirOrder) {
  const std::vector<Workload> shipped = parse_workloads("suite:shipped");
  const std::vector<Workload> resnet = parse_workloads("suite:resnet18");
  ASSERT_EQ(resnet.size(), 12u);
  for (std::size_t i = 0; i < resnet.size(); ++i) {
    EXPECT_EQ(resnet[i], parse_workload("resnet18.C" + std::to_string(i + 1)));
    EXPECT_EQ(resnet[i], shipped[i]);
  }
  EXPECT_EQ(shipped[14], parse_workload("matmul(m=1024,n=1024,k=1024)"));
  EXPECT_EQ(shipped[23], parse_workload("layer_norm(m=512,n=768)"));
}

TEST(ParseWorkloads, ReadsOneAsItself) {
  EXPECT_EQ(parse_workloads("matmul(m=2,n=3,k=4)"), std::vector{parse_workload("matmul(m=2,n=3,k=4)")});
}

TEST(ParseWorkloads, RefusesUnknownSuites) {
  try {
    parse_workloads("suite:shiped");
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_STREQ(error.what(), "unknown suite 'shiped'; did you mean 'shipped'?");
  }
}

}  // namespace
}  // namespace graft::codegen
