#include "study/knowledge/answer.h"

#include <gtest/gtest.h>

#include "tests/base/support.h"
#include "tests/study/support.h"

namespace graft::study {
namespace {

base::Document request() {
  return base::Document::map().set("command", "tune").set("platform", "model:x").set("source", "modelled");
}

// Trials of distinct programs, of 3, 1 and 2 seconds.
search::RunContent three_trials() {
  search::RunContent run;
  run.request = request();
  base::Stream stream(4, "answer");
  for (const double seconds : {3.0, 1.0, 2.0}) {
    const std::size_t index = run.journal.trials.size();
    run.journal.trials.push_back(trial_of(stream, std::int64_t(index), 100 + index, seconds));
  }
  return run;
}

search::Build build_of(datasets::Trial trial, const std::string& pipeline, double seconds) {
  trial.measurement.seconds = {seconds};
  return {std::move(trial), pipeline};
}

search::Build wrong(datasets::Trial trial) {
  trial.measurement = {};
  trial.measurement.status = datasets::Status::wrong_result;
  return {std::move(trial), ""};
}

TEST(Answer, IsTheFastestTrialWhereNothingWasBuilt) {
  const search::RunContent run = three_trials();
  const auto answer = answer_of(run, space().workload());
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->trial, 1);
  EXPECT_EQ(answer->seconds(), 1);
  EXPECT_EQ(answer->platform, "model:x");
  EXPECT_EQ(answer->pipeline, "");
  EXPECT_NEAR(answer->gflops(), 2.0 * 64 * 64 * 64 * 1e-9, 1e-12);
  EXPECT_FALSE(answer_of(run, codegen::parse_workload("matmul(m=1,n=2,k=1)")).has_value());
}

// Builds of pipelines are compared with each other, trials never with them.
TEST(Answer, IsTheFastestBuildWhereThereAreSome) {
  search::RunContent run = three_trials();
  run.builds = {build_of(run.journal.trials[1], "search", 2.5), build_of(run.journal.trials[2], "O3", 2)};
  const auto answer = answer_of(run, space().workload());
  EXPECT_EQ(answer->trial, 2);
  EXPECT_EQ(answer->pipeline, "O3");
  EXPECT_EQ(answer->seconds(), 2);
}

TEST(Answer, PassesOverWhatFailedWhenItWasCheckedAgain) {
  search::RunContent run = three_trials();
  run.builds = {wrong(run.journal.trials[1])};
  EXPECT_EQ(answer_of(run, space().workload())->trial, 2);
  // So does an equal program of another schedule.
  run.journal.trials[2].program_hash = run.journal.trials[1].program_hash;
  EXPECT_EQ(answer_of(run, space().workload())->trial, 0);
  // A check that succeeded is the answer's, and makes no faster trial worse.
  run = three_trials();
  run.builds = {build_of(run.journal.trials[2], "", 2)};
  run.builds[0].trial.measurement.check = "qemu";
  EXPECT_EQ(answer_of(run, space().workload())->trial, 1);
  run.builds.push_back(wrong(run.journal.trials[1]));
  EXPECT_EQ(answer_of(run, space().workload())->trial, 2);
  EXPECT_EQ(answer_of(run, space().workload())->measurement.check, "qemu");
  for (const int other : {0, 2}) run.builds.push_back(wrong(run.journal.trials[std::size_t(other)]));
  EXPECT_FALSE(answer_of(run, space().workload()).has_value());
}

TEST(Answer, OfAnOpenRunIsThatOfItsContent) {
  const base::Folder folder;
  const search::RunContent made = three_trials();
  search::RunDirectory run(folder / "run", request(), base::Document::map());
  for (const datasets::Trial& trial : made.journal.trials) run.append(trial);
  run.record({wrong(made.journal.trials[1])});
  const auto open = answer_of(run, space().workload());
  const auto read = answer_of(search::read_run(folder / "run"), space().workload());
  ASSERT_TRUE(open.has_value() && read.has_value());
  EXPECT_EQ(open->trial, 2);
  EXPECT_EQ(to_document(*open), to_document(*read));
}

}  // namespace
}  // namespace graft::study
