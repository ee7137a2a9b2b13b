#include "datasets/episodes.h"

#include <algorithm>
#include <set>

#include "codegen/expression/suites.h"
#include "tests/datasets/support.h"

namespace graft::datasets {
namespace {

std::vector<Group> example_groups() {
  std::vector<Group> groups;
  for (const std::string platform : {"model:haswell", "model:pwr9", "native:v3"}) {
    for (int workload = 0; workload < 10; ++workload) {
      groups.push_back({platform, {"matmul(m=" + std::to_string(1 + workload) + ")"}, {}});
      for (std::int64_t row = 0; row < 30; ++row) groups.back().rows.push_back(3 * row);
    }
  }
  return groups;
}

TEST(Groups, HoldOkRowsOfOneWorkloadOnce) {
  Dataset dataset;
  dataset.platform = "native";
  dataset.workloads = {{"a"}, {"b"}, {"c"}};
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
  add(0, 0, 3, 300, Status::slower_than_limit);  // a bound is no time
  add(0, 1, 3, 100, Status::ok);                 // the same hash, but another workload
  add(2, 0, 1, 400, Status::crashed);
  add(1, 0, 5, 0, Status::ok);  // never lowered: each for itself
  add(1, 0, 6, 0, Status::ok);
  add(1, 1, 6, 0, Status::ok);
  add(1, 0, 6, 0, Status::ok);  // but the same candidate once
  const std::vector<Group> found = groups(dataset);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].platform, "native");
  EXPECT_EQ(found[0].workload.text, "a");
  EXPECT_EQ(found[0].rows, (std::vector<std::int64_t>{1, 4}));
  EXPECT_EQ(found[1].workload.text, "b");
  EXPECT_EQ(found[1].rows, (std::vector<std::int64_t>{0, 6, 7, 8}));
}

TEST(Narrowed, KeepsSomeRowsOfNamedSketches) {
  Dataset dataset;
  dataset.platform = "native";
  dataset.workloads = {{"a"}, {"b"}};
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

TEST(SplitByPlatform, HoldsOutAllOfIt) {
  const std::vector<Group> groups = example_groups();
  const Split split = split_by_platform(groups, "model:pwr9");
  EXPECT_EQ(split.held_out.size(), 10u);
  EXPECT_EQ(split.train.size(), 20u);
  for (const int i : split.held_out) EXPECT_EQ(groups[std::size_t(i)].platform, "model:pwr9");
  for (const int i : split.train) EXPECT_NE(groups[std::size_t(i)].platform, "model:pwr9");
}

TEST(SplitByPlatform, RefusesUnknownNames) {
  EXPECT_EQ(message_of<base::UserError>([] { split_by_platform(example_groups(), "model:hazwell"); }),
            "no data of platform 'model:hazwell'; did you mean 'model:haswell'?");
  EXPECT_TRUE(contains(message_of<base::UserError>([] { split_by_platform({}, "native"); }), "'native'"));
}

TEST(SplitByWorkload, HoldsOutAShareOnEveryPlatform) {
  const std::vector<Group> groups = example_groups();
  std::set<std::vector<int>> different;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Split split = split_by_workload(groups, 0.3, seed);
    EXPECT_EQ(split.held_out.size(), 9u) << "seed " << seed;
    EXPECT_EQ(split.train.size() + split.held_out.size(), groups.size()) << "seed " << seed;
    std::set<std::string> train, held_out;
    for (const int i : split.train) train.insert(groups[std::size_t(i)].workload.text);
    for (const int i : split.held_out) held_out.insert(groups[std::size_t(i)].workload.text);
    EXPECT_EQ(held_out.size(), 3u) << "seed " << seed;
    for (const std::string& workload : held_out) EXPECT_FALSE(train.contains(workload)) << "seed " << seed;
    EXPECT_EQ(split_by_workload(groups, 0.3, seed).held_out, split.held_out) << "seed " << seed;
    different.insert(split.held_out);
  }
  EXPECT_GT(different.size(), 10u);
}

TEST(SplitByWorkload, DependsOnTheSetOfWorkloadsOnly) {
  std::vector<Group> groups = example_groups();
  const auto held_out = [&] {
    std::set<std::string> texts;
    for (const int i : split_by_workload(groups, 0.5, 4).held_out) texts.insert(groups[std::size_t(i)].workload.text);
    return texts;
  };
  const std::set<std::string> before = held_out();
  std::reverse(groups.begin(), groups.end());
  EXPECT_EQ(held_out(), before);
}

TEST(SplitByWorkload, KeepsOneOnEachSide) {
  const std::vector<Group> groups = example_groups();
  EXPECT_EQ(split_by_workload(groups, 0, 1).held_out.size(), 3u);
  EXPECT_EQ(split_by_workload(groups, 1, 1).train.size(), 3u);
}

TEST(SplitByWorkload, RefusesWhatCannotBeSplit) {
  EXPECT_TRUE(contains(message_of<base::UserError>([] { split_by_workload(example_groups(), 1.5, 1); }), "1.5"));
  std::vector<Group> one = example_groups();
  one.resize(1);
  EXPECT_TRUE(contains(message_of<base::UserError>([&] { split_by_workload(one, 0.5, 1); }), "at least 2"));
}

TEST(NamedSplit, ByPlatformKnowsItsRoles) {
  std::vector<Group> groups;
  for (const char* platform : {"native:v3", "model:a64fx", "model:sifive-x280", "model:sifive-p450", "model:pwr9"}) {
    groups.push_back({platform, {"w"}, {0}});
  }
  const Split split = named_split(groups, "platforms");
  EXPECT_EQ(split.train, (std::vector<int>{1, 4}));
  EXPECT_EQ(split.held_out, (std::vector<int>{2}));
  EXPECT_EQ(role_of("model:sifive-p450"), "");
  groups.erase(groups.begin() + 2);
  EXPECT_TRUE(contains(message_of<base::UserError>([&] { named_split(groups, "platforms"); }), "no held-out part"));
}

TEST(NamedSplit, FoldsHoldEachWorkloadOutOnce) {
  std::vector<Group> groups;
  for (const codegen::Workload& workload : codegen::parse_workloads("suite:shipped"))
    groups.push_back({"p", workload, {0}});
  std::vector<int> times(groups.size(), 0);
  for (int fold = 0; fold < folds; ++fold) {
    const Split split = named_split(groups, workload_split(fold));
    EXPECT_EQ(split.train.size() + split.held_out.size(), groups.size());
    for (const int held_out : split.held_out) {
      ++times[std::size_t(held_out)];
      EXPECT_EQ(fold_of(groups[std::size_t(held_out)].workload), fold);
    }
    EXPECT_GE(split.held_out.size(), groups.size() / folds);
  }
  EXPECT_EQ(times, std::vector<int>(groups.size(), 1));
}

// Stored cards and tables name them.
TEST(NamedSplit, IsTheSameInEveryRelease) {
  EXPECT_EQ(fold_of(codegen::parse_workload("resnet18.C2")), 1);
  EXPECT_EQ(fold_of(codegen::parse_workload("matmul(m=1024,n=1024,k=1024)")), 4);
  EXPECT_EQ(fold_of(codegen::parse_workload("matmul(m=24,n=32,k=16)")), 4);
}

TEST(NamedSplit, RefusesOtherNames) {
  EXPECT_TRUE(contains(message_of<base::UserError>([] { named_split(example_groups(), "workload.1"); }),
                       "did you mean 'workloads.1'"));
}

TEST(Episode, SupportAndQueryAreDisjointAndCoverAll) {
  const Group group = example_groups().front();
  std::set<std::vector<std::int64_t>> different;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    for (const int shots : {0, 1, 10, 29}) {
      base::Stream stream(seed, "episode");
      const Episode episode = draw_episode(group, 7, shots, stream);
      EXPECT_EQ(episode.group, 7);
      EXPECT_EQ(episode.support.size(), std::size_t(shots)) << "seed " << seed;
      std::vector<std::int64_t> all = episode.support;
      all.insert(all.end(), episode.query.begin(), episode.query.end());
      std::sort(all.begin(), all.end());
      std::vector<std::int64_t> expected;
      for (std::int64_t i = 0; i < 30; ++i) expected.push_back(i);
      EXPECT_EQ(all, expected) << "seed " << seed << ", " << shots << " shots";

      base::Stream again(seed, "episode");
      EXPECT_EQ(draw_episode(group, 7, shots, again).support, episode.support) << "seed " << seed;
      if (shots == 10) different.insert(episode.support);
    }
  }
  EXPECT_GT(different.size(), 45u);
}

TEST(Episode, RefusesMoreShotsThanPrograms) {
  const Group group = example_groups().front();
  base::Stream stream(1, "episode");
  EXPECT_EQ(message_of<base::UserError>([&] { draw_episode(group, 0, 30, stream); }),
            "matmul(m=1) on model:haswell has 30 measured programs; 30 shots need at least 31");
  EXPECT_TRUE(contains(message_of<base::UserError>([&] { draw_episode(group, 0, -1, stream); }), "-1 shots"));
}

}  // namespace
}  // namespace graft::datasets
