// Earlier measurements, and whether the machine has changed.
#include "study/knowledge/history.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "search/run_directory.h"
#include "tests/base/support.h"
#include "tests/study/support.h"
#include "tests/support/refusal.h"

namespace graft::study {
namespace {

TEST(History, AllOfSeveralProgramsChangeTogether) {
  const auto changed = [](std::vector<double> before, std::vector<double> now) {
    return is_another_machine(before, now);
  };
  EXPECT_TRUE(changed({1, 2, 3}, {1.5, 2.9, 4.2}));
  EXPECT_TRUE(changed({1, 2, 3}, {0.5, 1, 1.5}));
  EXPECT_FALSE(changed({1, 2, 3}, {1.02, 2.9, 4.2}));  // one of them is as fast as it was
  EXPECT_FALSE(changed({1, 2, 3}, {1.1, 2.2, 3.3}));   // a busy machine
  EXPECT_FALSE(changed({1, 2, 3}, {0.9, 2.9, 4.2}));
  EXPECT_FALSE(changed({1, 2}, {NAN, NAN}));
  EXPECT_FALSE(changed({}, {}));
  EXPECT_TRUE(changed({1, 2}, {NAN, 4}));
}

TEST(History, FoldersAreCounted) {
  const base::Folder folder;
  EXPECT_EQ(next_before(folder / "run").filename(), "run.before-1");
  EXPECT_EQ(next_before((folder / "run/").string()).filename(), "run.before-1");
  std::filesystem::create_directories(folder / "run.before-1");
  EXPECT_EQ(folders_before(folder / "run").size(), 1u);
  EXPECT_EQ(next_before(folder / "run").filename(), "run.before-2");
}

TEST(History, IsOfEachRunAndWorkload) {
  const base::Folder folder;
  base::Stream stream(1, "history");
  {
    search::RunDirectory run(folder / "run", base::Document::map().set("command", "tune"), base::Document::map());
    for (std::int64_t i = 0; i < 12; ++i)
      run.append(trial_of(stream, i, std::uint64_t(100 + i), 1e-3 * double(12 - i)));
  }
  const codegen::Target target = small_target();
  const History history = history_of({folder / "run"}, space().workload(), lowers_on(target));
  ASSERT_EQ(history.runs.size(), 1u);
  EXPECT_EQ(history.runs.front().size(), 12u);
  ASSERT_EQ(history.best.size(), 4u);
  EXPECT_EQ(codegen::hash(history.best.front()), codegen::hash(history.runs.front().back().candidate));
  EXPECT_FALSE(history.identity.empty());
  EXPECT_EQ(history_of({}, space().workload(), lowers_on(target)).identity, "");
  // A folder of several runs: those of the workload, if there are any.
  std::filesystem::create_directories(folder / "network/kernels");
  const auto write = [&](const char* name, const codegen::Workload& workload) {
    search::RunDirectory run(folder / "network/kernels" / name,
                             base::Document::map().set("command", "tune").set("workload", workload.text()),
                             base::Document::map());
    run.append(trial_of(stream, 0, 7, 1e-3));
  };
  const codegen::Workload strange = codegen::parse_workload("matmul(m=8,n=8,k=16)");
  write("000", strange);
  write("001", space().workload());
  EXPECT_EQ(history_of({folder / "network"}, space().workload(), lowers_on(target)).runs.size(), 1u);
  EXPECT_TRUE(
      history_of({folder / "network"}, codegen::parse_workload("matmul(m=4,n=4,k=4)"), lowers_on(target)).runs.empty());
  EXPECT_TRUE(codegen::contains(codegen::refusal([&] { history_of({folder / "nothing"}, strange, lowers_on(target)); }),
                                "no run of graft"));
  // From another workload: learnt from, and nothing of it is measured.
  const History other = history_of({folder / "run"}, codegen::parse_workload("matmul(m=8,n=8,k=8)"), lowers_on(target));
  ASSERT_EQ(other.runs.size(), 1u);
  EXPECT_EQ(other.runs.front().size(), 12u);
  EXPECT_TRUE(other.best.empty());
  EXPECT_EQ(other.identity, history.identity);
}

TEST(History, NeedsATrialThatWorksHere) {
  const base::Folder folder;
  base::Stream stream(1, "history");
  {
    search::RunDirectory run(folder / "run", base::Document::map().set("command", "tune"), base::Document::map());
    datasets::Trial failed = trial_of(stream, 0, 1, 1e-3);
    failed.measurement.status = datasets::Status::timed_out;
    run.append(failed);
  }
  const codegen::Target target = small_target();
  EXPECT_TRUE(
      codegen::contains(codegen::refusal([&] { history_of({folder / "run"}, space().workload(), lowers_on(target)); }),
                        "has no trial that works here"));
}

}  // namespace
}  // namespace graft::study
