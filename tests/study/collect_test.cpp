#include "study/flows/collect.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "tests/base/support.h"
#include "tests/study/support.h"

namespace graft::study {
namespace {

CollectRequest small_request(const std::filesystem::path& out) {
  CollectRequest request;
  for (const char* const text : {"matmul(m=8,n=16,k=8)", "matmul(m=8,n=8,k=8)"})
    request.workloads.push_back(codegen::parse_workload(text));
  request.platform = tasks::platform_named("model:sifive-u54");
  request.samples = 4;
  request.out = out;
  request.command_line = "a test";
  return request;
}

// Whose notes are kept.
class Notes : public base::Monitor {
 public:
  void note(std::string_view line) override { lines.emplace_back(line); }
  std::vector<std::string> lines;
};

CollectResult collect_alone(const CollectRequest& request, const Pool& pool, base::Monitor& monitor) {
  tasks::Shared shared;
  base::Team team;
  return collect(request, pool, shared, team, monitor);
}

TEST(Collect, WritesADatasetAndContinuesFromItAlone) {
  const base::Folder folder;
  Notes notes;
  const std::filesystem::path out = folder / "data.h5";
  CollectRequest request = small_request(out);
  const CollectResult result = collect_alone(request, {}, notes);
  EXPECT_TRUE(result.complete);
  EXPECT_EQ(result.trials, 8);
  ASSERT_EQ(result.rows.size(), 2u);
  for (const CollectResult::Row& row : result.rows) {
    EXPECT_EQ(row.trials.size(), 4u);
    EXPECT_EQ(row.seconds.size(), 4u);
    EXPECT_TRUE(row.quality.has_value());
  }
  EXPECT_TRUE(notes.lines.empty());
  const std::string bytes = base::read_file(out);
  std::filesystem::remove_all(out.string() + ".run");
  EXPECT_EQ(collect_alone(request, {}, notes).trials, 8);
  ASSERT_EQ(notes.lines.size(), 1u);
  EXPECT_NE(notes.lines[0].find("8 trials are recorded"), std::string::npos);
  EXPECT_EQ(base::read_file(out), bytes);

  std::filesystem::remove_all(out.string() + ".run");
  request.seed = 2;
  EXPECT_EQ(base::refusal([&] {
              collect_alone(request, {}, notes);
            }).find(out.string() + ": exists, and was made with seed 1, not 2; choose another name"),
            0u);
}

TEST(Collect, RefusesAWorkloadWithoutPrograms) {
  const base::Folder folder;
  Notes notes;
  CollectRequest request = small_request(folder / "data.h5");
  request.programs = {"some.h5"};
  EXPECT_NE(base::refusal([&] { collect_alone(request, {}, notes); }).find("no measured program"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "data.h5.run"));
}

// The first programs are those of every file in turn; a program of two files comes once, and one that failed never.
TEST(Pool, TakesTheFilesInTurn) {
  base::Stream stream(3, "pool");
  std::vector<datasets::Trial> trials;
  for (int i = 0; i < 5; ++i) trials.push_back(trial_of(stream, i, std::uint64_t(100 + i), 1));
  trials[4].measurement = {};
  trials[4].measurement.status = datasets::Status::crashed;
  std::vector<datasets::Dataset> files(2);
  for (const int i : {0, 1, 2}) files[0].add(trials[std::size_t(i)]);
  for (const int i : {4, 1, 3}) files[1].add(trials[std::size_t(i)]);
  const Pool pool(files);
  ASSERT_EQ(pool.workloads().size(), 1u);
  std::vector<std::uint64_t> found, expected;
  for (const codegen::Candidate& candidate : pool.of(space().workload())) found.push_back(codegen::hash(candidate));
  for (const int i : {0, 1, 3, 2}) expected.push_back(codegen::hash(trials[std::size_t(i)].candidate));
  EXPECT_EQ(found, expected);
  EXPECT_TRUE(pool.of(codegen::parse_workload("matmul(m=1,n=2,k=3)")).empty());
}

}  // namespace
}  // namespace graft::study
