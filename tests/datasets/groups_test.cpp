#include "datasets/groups.h"

#include "codegen/expression/suites.h"
#include "tests/datasets/support.h"

namespace graft::datasets {
namespace {

TEST(Groups, HoldOkRowsOfOneWorkloadOnce) {
  Dataset dataset;
  dataset.platform = "native";
  dataset.workloads = {codegen::Workload("a"), codegen::Workload("b"), codegen::Workload("c")};
  dataset.sketches = {sketch_numbered(0), sketch_numbered(1)};
  const auto add = [&](int workload, int sketch, std::int64_t argument, std::uint64_t hash, Status status) {
    Dataset::Row row{workload, sketch, {argument}, hash, {}};
    row.measurement.status = status;
    row.measurement.seconds = {1};
    dataset.rows.push_back(row);
  };
  add(1, 0, 1, 100, Status::ok);
  add(0, 0, 1, 200, Status::ok);
  add(0, 0, 2, 200, Status::ok);                 // the same program by another argument
  add(0, 0, 3, 300, Status::slower_than_limit);  // a bound is not a time
  add(0, 1, 3, 100, Status::ok);                 // the same hash, but another workload
  add(2, 0, 1, 400, Status::crashed);
  add(1, 0, 5, 0, Status::ok);  // never lowered: each for itself
  add(1, 0, 6, 0, Status::ok);
  add(1, 1, 6, 0, Status::ok);
  add(1, 0, 6, 0, Status::ok);  // but the same candidate once
  const std::vector<Group> found = groups(dataset);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].platform, "native");
  EXPECT_EQ(found[0].workload.text(), "a");
  EXPECT_EQ(found[0].rows, (std::vector<std::int64_t>{1, 4}));
  EXPECT_EQ(found[1].workload.text(), "b");
  EXPECT_EQ(found[1].rows, (std::vector<std::int64_t>{0, 6, 7, 8}));
}

TEST(Narrowed, KeepsSomeRowsOfNamedSketches) {
  Dataset dataset;
  dataset.platform = "native";
  dataset.workloads = {codegen::Workload("a"), codegen::Workload("b")};
  dataset.sketches = {sketch_numbered(0), sketch_numbered(1)};
  for (int i = 0; i < 60; ++i) {
    Dataset::Row row{i % 2, i % 3 == 0 ? 1 : 0, {i}, std::uint64_t(100 + i), {}};
    row.measurement.status = i == 58 ? Status::crashed : Status::ok;
    row.measurement.seconds = {1};
    dataset.rows.push_back(row);
  }
  EXPECT_EQ(narrowed(dataset, {}, 0, 1).rows.size(), 59u);
  const Dataset one = narrowed(dataset, {sketch_numbered(0)->name}, 0, 1);
  EXPECT_EQ(one.rows.size(), 39u);
  for (const Dataset::Row& row : one.rows) EXPECT_EQ(row.sketch, 0);
  const Dataset few = narrowed(dataset, {}, 7, 1);
  ASSERT_EQ(few.rows.size(), 14u);  // of two workloads, each in the order that it had
  for (std::size_t i = 1; i < few.rows.size(); ++i) {
    if (few.rows[i].workload != few.rows[i - 1].workload) continue;
    EXPECT_LT(few.rows[i - 1].arguments[0], few.rows[i].arguments[0]);
  }
  EXPECT_EQ(few.platform, dataset.platform);
  const auto arguments = [](const Dataset& of) {
    std::vector<std::int64_t> out;
    for (const Dataset::Row& row : of.rows) out.push_back(row.arguments[0]);
    return out;
  };
  EXPECT_EQ(arguments(few), arguments(narrowed(dataset, {}, 7, 1)));
  EXPECT_NE(arguments(few), arguments(narrowed(dataset, {}, 7, 2)));
  EXPECT_TRUE(narrowed(dataset, {"no such"}, 0, 1).rows.empty());
}

TEST(NamedSplit, PlatformsHaveTheirRoles) {
  EXPECT_EQ(role_of("model:a64fx"), "source");
  EXPECT_EQ(role_of("model:pwr9"), "source");
  EXPECT_EQ(role_of("model:sifive-x280"), "held out");
  for (const char* const other : {"native:v3", "model:sifive-p450"}) EXPECT_EQ(role_of(other), "") << other;
}

TEST(NamedSplit, FoldsHoldAFifthOfTheShippedWorkloadsOut) {
  const std::vector<codegen::Workload> workloads = codegen::parse_workloads("suite:shipped");
  std::vector<std::size_t> sizes(folds, 0);
  for (const codegen::Workload& workload : workloads) ++sizes.at(std::size_t(fold_of(workload)));
  for (const std::size_t size : sizes) EXPECT_GE(size, workloads.size() / folds);
  EXPECT_EQ(workload_split(3), "workloads.3");
}

// Stored cards and tables name them.
TEST(NamedSplit, IsTheSameInEveryRelease) {
  EXPECT_EQ(fold_of(codegen::parse_workload("resnet18.C2")), 1);
  EXPECT_EQ(fold_of(codegen::parse_workload("matmul(m=1024,n=1024,k=1024)")), 4);
  EXPECT_EQ(fold_of(codegen::parse_workload("matmul(m=24,n=32,k=16)")), 4);
}

}  // namespace
}  // namespace graft::datasets
