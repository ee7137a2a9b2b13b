#include "datasets/agreement.h"

#include <cmath>
#include <functional>

#include "tests/datasets/support.h"

namespace graft::datasets {
namespace {

const std::string matmul = "matmul(m=8,n=8,k=8,dtype=f32)";
const std::string conv1 = "conv2d(n=1,c=8,h=8,w=8,k=8,r=1,s=1,stride=1,pad=0,dtype=f32)";
const std::string conv3 = "conv2d(n=1,c=8,h=8,w=8,k=8,r=3,s=3,stride=1,pad=1,dtype=f32)";

// Programs 0 .. count - 1 of some workloads, with seconds by number.
Dataset measured(const std::string& platform, const std::vector<std::string>& workloads, int count,
                 const std::function<double(int)>& seconds) {
  Dataset dataset;
  dataset.platform = platform;
  dataset.source = "native";
  for (const std::string& workload : workloads) {
    for (int i = 0; i < count; ++i) {
      Trial trial;
      trial.candidate = {codegen::Workload(workload), sketch_numbered(0), {i, 1, 0, 0}};
      trial.program_hash = std::uint64_t(i) + 1;
      trial.measurement.seconds = {seconds(i)};
      dataset.add(trial);
    }
  }
  return dataset;
}

TEST(Family, IsTheOperatorAndItsWindow) {
  EXPECT_EQ(family_of(codegen::Workload(matmul)), "matmul");
  EXPECT_EQ(family_of(codegen::Workload(conv1)), "conv2d 1x1");
  EXPECT_EQ(family_of(codegen::Workload(conv3)), "conv2d 3x3");
  EXPECT_EQ(family_of(codegen::parse_workload("conv1d(c=4,w=8,k=4,s=3)")), "conv1d 3");
  EXPECT_EQ(family_of(codegen::parse_workload("input A[9,30]; output B[i,j] = exp(A[i,j]) where i=9, j=30")),
            "expression");
}

TEST(Agreement, OfEqualAndOppositeOrders) {
  const auto up = [](int i) { return 1 + i; };
  const Agreement found = agreement({measured("a", {matmul, conv1, conv3}, 20, up),
                                     measured("b", {matmul, conv1, conv3}, 20, [](int i) { return 3.0 * (1 + i); }),
                                     measured("c", {matmul, conv1}, 20, [](int i) { return 40.0 - 2 * i; })});
  ASSERT_EQ(found.platforms.size(), 3u);
  ASSERT_EQ(found.families.size(), 4u);
  EXPECT_EQ(found.families[0].name, "all");
  EXPECT_EQ(found.families[0].workloads.size(), 3u);
  const auto& all = found.families[0].spearman;
  EXPECT_DOUBLE_EQ(all[0][1].value.mean, 1);
  EXPECT_DOUBLE_EQ(all[0][1].value.low, 1);
  EXPECT_EQ(all[0][1].workloads, 3);
  EXPECT_EQ(all[0][1].programs, 60);
  EXPECT_DOUBLE_EQ(all[2][1].value.mean, -1);
  EXPECT_TRUE(std::isnan(all[2][1].value.low));  // two workloads: no interval
  EXPECT_DOUBLE_EQ(all[2][2].value.mean, 1);
  EXPECT_EQ(found.families[1].name, "conv2d 1x1");
  EXPECT_EQ(found.families[2].name, "conv2d 3x3");
  EXPECT_TRUE(std::isnan(found.families[2].spearman[0][2].value.mean));  // c has none of it
  EXPECT_DOUBLE_EQ(found.regret[0][1].value.mean, 1);
  EXPECT_DOUBLE_EQ(found.regret[0][2].value.mean, 20);  // program 0 takes 40 there, program 19 takes 2
  EXPECT_DOUBLE_EQ(found.regret[2][0].value.mean, 20);
  EXPECT_DOUBLE_EQ(found.regret[2][1].worst, 20);
}

TEST(Agreement, RegretIsTheGeometricMeanAndTheWorst) {
  Dataset a = measured("a", {matmul, conv1}, 10, [](int i) { return 1 + i; });
  Dataset b = measured("b", {matmul}, 10, [](int i) { return i == 0 ? 4 : 2; });          // regret 2
  const Dataset more = measured("b", {conv1}, 10, [](int i) { return i == 0 ? 8 : 1; });  // regret 8
  const Agreement found = agreement({a, b, more});
  ASSERT_EQ(found.platforms.size(), 2u);  // two datasets of one platform are one
  EXPECT_DOUBLE_EQ(found.regret[0][1].value.mean, 4);
  EXPECT_DOUBLE_EQ(found.regret[0][1].worst, 8);
  EXPECT_EQ(found.regret[0][1].worst_workload, conv1);
  EXPECT_EQ(found.regret[0][1].workloads, 2);
}

TEST(Agreement, OnlyOkRowsInCommonCount) {
  Dataset a = measured("a", {matmul}, 12, [](int i) { return 1 + i; });
  Dataset b = measured("b", {matmul}, 30, [](int i) { return 1 + i; });
  b.rows[3].measurement = {.status = Status::crashed, .reason = "signal 11", .seconds = {}, .clock = "", .check = ""};
  EXPECT_EQ(agreement({a, b}).families[0].spearman[0][1].programs, 11);
}

TEST(Agreement, Refusals) {
  std::vector<Dataset> emulated = {measured("a", {matmul}, 20, [](int i) { return 1.0 + i; }),
                                   measured("q", {matmul}, 20, [](int i) { return 1.0 + i; })};
  emulated.back().source = "emulated";
  EXPECT_TRUE(contains(message_of<base::UserError>([&] { agreement(emulated); }), "q: times under an emulator"));
  const auto up = [](int i) { return 1 + i; };
  const Dataset a = measured("a", {matmul}, 9, up);
  EXPECT_TRUE(contains(message_of<base::UserError>([&] { agreement({a, a}); }), "one platform"));
  EXPECT_TRUE(contains(message_of<base::UserError>([&] {
                         agreement({a, measured("b", {matmul}, 9, up)});
                       }),
                       "collect those of one on the other (`programs`)"));
  EXPECT_EQ(agreement({a, measured("b", {matmul}, 9, up)}, 9).families.size(), 2u);
}

}  // namespace
}  // namespace graft::datasets
