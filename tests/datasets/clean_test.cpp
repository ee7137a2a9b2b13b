#include "datasets/clean.h"

#include <cmath>

#include "tests/datasets/support.h"

namespace graft::datasets {
namespace {

// 2 * 100^3 = 2e6 operations: 2 ns at 1e15 a second.
const std::string workload = "matmul(m=100,n=100,k=100,dtype=f32)";

Trial timed(std::uint64_t program, std::vector<double> seconds, const std::string& of = workload) {
  Trial trial;
  trial.candidate = {
      codegen::Workload(of), sketch_numbered(std::int64_t(program % 3)), {std::int64_t(program), 1, 0, 0}};
  trial.program_hash = program;
  trial.measurement.seconds = std::move(seconds);
  return trial;
}

std::vector<std::pair<std::int64_t, Drop>> dropped(const Cleaned& cleaned) {
  std::vector<std::pair<std::int64_t, Drop>> all;
  for (const Cleaned::Dropped& each : cleaned.dropped) all.emplace_back(each.row, each.why);
  return all;
}

using Dropped = std::vector<std::pair<std::int64_t, Drop>>;

TEST(Clean, DropsByReasonAndSaysWhich) {
  Dataset dataset;
  Trial crashed = timed(1, {});
  crashed.measurement.status = Status::crashed;
  crashed.measurement.reason = "signal 11";
  Trial slow = timed(2, {1e-3});
  slow.measurement.status = Status::slower_than_limit;
  dataset.add(crashed);
  dataset.add(slow);
  dataset.add(timed(3, {1e-3, 1.01e-3, 1.02e-3}));
  dataset.add(timed(3, {2e-3}));                                   // the program of the row before
  dataset.add(timed(3, {1e-6}, "matmul(m=8,n=8,k=8,dtype=f32)"));  // of another workload
  dataset.add(timed(4, {1.9e-9, 1e-3}));                           // one repetition is impossible
  dataset.add(timed(5, {2.1e-9}));                                 // not quite
  dataset.add(timed(6, {1.1e4}));
  dataset.add(timed(1, {1e-3}));  // the earlier row of this program failed
  const Cleaned cleaned = datasets::cleaned(dataset);
  EXPECT_EQ(
      dropped(cleaned),
      (Dropped{
          {0, Drop::failed}, {1, Drop::failed}, {3, Drop::duplicate}, {5, Drop::impossible}, {7, Drop::impossible}}));
  EXPECT_EQ(cleaned.dataset.rows.size(), 4u);
  EXPECT_EQ(cleaned.count(Drop::failed), 2);
  EXPECT_EQ(cleaned.count(Drop::unsteady), 0);
  const base::Document& what = cleaned.dataset.provenance.at("cleaned");
  EXPECT_EQ(what.at("rows").as_integer(), 9);
  EXPECT_EQ(what.at("impossible").as_integer(), 2);
}

TEST(Clean, TakesOutlyingRepetitionsOut) {
  Dataset dataset;
  for (std::uint64_t i = 1; i <= 20; ++i) dataset.add(timed(i, {1e-3, 1.01e-3, 0.99e-3}));
  dataset.add(timed(21, {1e-3, 1.01e-3, 1e-4}));   // a clock that jumped would be the minimum
  dataset.add(timed(22, {1e-3, 1.3e-3, 1.2e-3}));  // 1.2 is the median: 1.3 and 1.0 are within 1.25
  dataset.add(timed(23, {1e-3, 2e-3, 4e-3}));      // nothing agrees
  dataset.add(timed(24, {1e-3, 3e-3}));            // of two, neither is to be believed
  const Cleaned cleaned = datasets::cleaned(dataset);
  EXPECT_EQ(dropped(cleaned), (Dropped{{22, Drop::unsteady}, {23, Drop::unsteady}}));
  ASSERT_EQ(cleaned.dataset.rows.size(), 22u);
  EXPECT_EQ(cleaned.dataset.rows[20].measurement.seconds, (std::vector<double>{1e-3, 1.01e-3}));
  EXPECT_EQ(cleaned.dataset.rows[21].measurement.seconds.size(), 3u);
  EXPECT_EQ(cleaned.repetitions, 1);
  EXPECT_EQ(cleaned.steadied_rows, 1);
}

// Where all rows are noisy, the same distance is not an outlier.
TEST(Clean, OutliersAreRelativeToTheNoiseOfTheWorkload) {
  Dataset dataset;
  for (std::uint64_t i = 1; i <= 20; ++i) dataset.add(timed(i, {1e-3, 1.15e-3, 0.87e-3}));
  dataset.add(timed(21, {1e-3, 1.8e-3, 1e-3}));
  EXPECT_TRUE(datasets::cleaned(dataset).dropped.empty());
  EXPECT_EQ(datasets::cleaned(dataset).repetitions, 0);
}

TEST(Clean, ProgramsWithoutAHashAreTheirSketchAndArguments) {
  Dataset dataset;
  Trial first = timed(1, {1e-3}), other = timed(2, {1e-3});
  first.program_hash = other.program_hash = 0;
  for (const Trial& trial : {first, other, first}) dataset.add(trial);
  EXPECT_EQ(dropped(datasets::cleaned(dataset)), (Dropped{{2, Drop::duplicate}}));
}

TEST(Clean, TwiceIsOnce) {
  Dataset dataset;
  for (std::uint64_t i = 0; i < 200; ++i) {
    base::Stream stream(3, "clean", i);
    const double seconds = 1e-3 * (1 + stream.uniform());
    dataset.add(timed(1 + i % 150,
                      {seconds, seconds * (1 + 0.02 * stream.uniform()), seconds * (1 + 0.02 * stream.uniform())}));
  }
  const Cleaned once = datasets::cleaned(dataset);
  EXPECT_EQ(once.count(Drop::duplicate), 50);
  const Cleaned twice = datasets::cleaned(once.dataset);
  EXPECT_TRUE(twice.dropped.empty());
  EXPECT_EQ(twice.dataset.rows.size(), once.dataset.rows.size());
}

}  // namespace
}  // namespace graft::datasets
