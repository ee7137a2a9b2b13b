#include "meta/task_set.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/error.h"
#include "base/random.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/space/space.h"
#include "tests/base/team.h"
#include "tests/support/judged_space.h"

namespace graft::meta {
namespace {

datasets::Dataset measured(const std::string& platform, int rows) {
  datasets::Dataset out;
  out.platform = platform;
  out.source = "modelled";
  out.target.triple = "x86_64-unknown-linux-gnu";
  out.target.vector_bits = 256;
  out.target.vector_registers = 16;
  const codegen::JudgedSpace space =
      codegen::judged_space(codegen::parse_workload("matmul(m=32,n=32,k=32)"), out.target);
  base::Stream stream(1, "measured " + platform);
  for (int i = 0; i < rows; ++i) {
    datasets::Trial trial;
    trial.candidate = space.sample(stream);
    trial.program_hash = codegen::hash(*codegen::program(trial.candidate, out.target));
    trial.measurement.seconds = {0.5 + i, 0.25 + i};
    out.add(trial);
  }
  return out;
}

datasets::Measurement timed(double seconds) {
  datasets::Measurement measurement;
  measurement.seconds = {seconds};
  return measurement;
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "accepted";
}

const features::Encoding& encoding() {
  return features::encodings().front();
}

TEST(TaskSet, EncodesWhatWasMeasured) {
  const datasets::Dataset a = measured("a", 12), b = measured("b", 9);
  const TaskSet tasks = make_task_set({a, b}, encoding(), 1);
  EXPECT_EQ(platforms(tasks), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(tasks.sources.at("b"), "modelled");
  EXPECT_EQ(tasks.stale_rows, 0);
  const Examples& group = tasks.groups.front();
  EXPECT_EQ(group.workload.text(), a.workloads.front().text());
  ASSERT_GE(group.size(), 1);
  // The first row is the first trial: its label is the minimum of the repetitions, its features those of its program.
  EXPECT_DOUBLE_EQ(group.log_seconds.front(), std::log(0.25));
  EXPECT_EQ(group.program_hashes.front(), a.rows.front().program_hash);
  const auto first = codegen::program(a.candidate(a.rows.front()), a.target);
  EXPECT_EQ(features::chosen(group.features, std::vector<std::int64_t>{0}), encoding().encode({.program = &*first}));
}

TEST(TaskSet, IsTheSameForAnyNumberOfThreadsAndRanks) {
  const datasets::Dataset a = measured("a", 150), b = measured("b", 9);
  const TaskSet tasks = make_task_set({a, b}, encoding(), 1);
  EXPECT_GT(tasks.groups.front().size(), 128);  // of several pieces
  const auto expect_same = [&](const TaskSet& same) {
    ASSERT_EQ(same.groups.size(), tasks.groups.size());
    for (std::size_t g = 0; g < same.groups.size(); ++g) {
      EXPECT_EQ(same.groups[g].features, tasks.groups[g].features);
      EXPECT_EQ(same.groups[g].log_seconds, tasks.groups[g].log_seconds);
      EXPECT_EQ(same.groups[g].program_hashes, tasks.groups[g].program_hashes);
    }
  };
  expect_same(make_task_set({a, b}, encoding(), 4));
  base::test::as_team(2, [&](base::Team& team) { expect_same(make_task_set({a, b}, encoding(), 2, &team)); });
}

TEST(TaskSet, RowsOfOtherProgramsAreStale) {
  datasets::Dataset data = measured("a", 12);
  const std::int64_t all = make_task_set({data}, encoding(), 1).groups.front().size();
  data.rows.front().program_hash += 1;
  const TaskSet tasks = make_task_set({data}, encoding(), 1);
  EXPECT_EQ(tasks.stale_rows, 1);
  EXPECT_EQ(tasks.groups.front().size(), all - 1);
  for (datasets::Dataset::Row& row : data.rows) row.program_hash ^= 2;
  const std::string what = refusal([&] { make_task_set({data}, encoding(), 1); });
  EXPECT_NE(what.find("no usable measurement"), std::string::npos) << what;
  EXPECT_NE(what.find("collect again"), std::string::npos) << what;
}

TEST(TaskSet, ImportedRowsAreNotHeldAgainstAHash) {
  datasets::Dataset data = measured("a", 12);
  const TaskSet before = make_task_set({data}, encoding(), 1);
  for (datasets::Dataset::Row& row : data.rows) row.program_hash = 0;
  const TaskSet tasks = make_task_set({data}, encoding(), 1);
  EXPECT_EQ(tasks.stale_rows, 0);
  EXPECT_EQ(tasks.groups.front().program_hashes.front(), before.groups.front().program_hashes.front());
  EXPECT_EQ(features::chosen(tasks.groups.front().features, std::vector<std::int64_t>{0}),
            features::chosen(before.groups.front().features, std::vector<std::int64_t>{0}));
  // A schedule that does not apply: counted by its sketch.
  data.add({0,
            {data.workloads.front(),
             std::make_shared<const codegen::Sketch>(codegen::parse_sketch("sketch odd\ntile C x $n\n", "test")),
             {7}},
            0,
            timed(1)});
  const TaskSet with_odd = make_task_set({data}, encoding(), 1);
  EXPECT_EQ(with_odd.stale_rows, 0);
  ASSERT_EQ(with_odd.without_program.size(), 1u);
  EXPECT_EQ(with_odd.without_program.front().sketch, "odd");
  EXPECT_EQ(with_odd.without_program.front().rows, 1);
  EXPECT_NE(with_odd.without_program.front().reason, "");
  EXPECT_EQ(make_task_set({data}, features::encoding_named("knobs"), 1).groups.front().size(),
            with_odd.groups.front().size() + 1);
}

TEST(TaskSet, RowsOfTablesHaveColumnsAlone) {
  datasets::Dataset data;
  data.platform = "import:x";
  data.source = "imported";
  const auto sketch = std::make_shared<const codegen::Sketch>(codegen::Sketch::of_columns("t", {{"n", {}}}));
  for (int i = 0; i < 5; ++i) data.add({0, {codegen::Workload("table(name=t)"), sketch, {i}}, 0, timed(1.0 + i)});
  const TaskSet tasks = make_task_set({data}, features::encoding_named("columns"), 2);
  ASSERT_EQ(tasks.groups.size(), 1u);
  EXPECT_EQ(tasks.groups.front().size(), 5);
  EXPECT_EQ(tasks.encoding, tasks.own_encoding.get());
  ASSERT_GT(tasks.encoding->features.size(), 1u);
  EXPECT_EQ(tasks.encoding->features[1].name, "n");
  EXPECT_EQ(tasks.groups.front().features.rows.at(3, 1), 3);
  EXPECT_NE(tasks.groups.front().program_hashes[0], tasks.groups.front().program_hashes[1]);
  EXPECT_TRUE(tasks.without_program.empty());
  const std::string what = refusal([&] { make_task_set({data}, encoding(), 1); });
  EXPECT_NE(what.find("choose the encoding 'columns'"), std::string::npos) << what;
}

TEST(TaskSet, DatasetsOfOnePlatformAreOne) {
  datasets::Dataset first = measured("a", 12), second = first;
  second.rows.resize(4);
  const TaskSet tasks = make_task_set({first, second}, encoding(), 1);
  EXPECT_EQ(tasks.groups.size(), 1u);
  EXPECT_EQ(tasks.groups.front().size(), make_task_set({first}, encoding(), 1).groups.front().size());
}

TEST(TaskSet, EmulatedTimesAreRefused) {
  datasets::Dataset data = measured("q", 3);
  data.source = "emulated";
  const std::string what = refusal([&] { make_task_set({data}, encoding(), 1); });
  EXPECT_NE(what.find("emulator"), std::string::npos) << what;
  EXPECT_NE(refusal([] { make_task_set({}, encoding(), 1); }).find("no usable measurement"), std::string::npos);
}

}  // namespace
}  // namespace graft::meta
