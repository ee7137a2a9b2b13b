#include "search/comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

#include "base/error.h"

namespace graft::search {
namespace {

constexpr double none = std::numeric_limits<double>::infinity();

Searched of(const std::string& method, std::int64_t seed, std::vector<double> best_seconds,
            const std::string& workload = "w") {
  return {method, workload, "p", seed, std::move(best_seconds)};
}

TEST(CompareSearches, CountsWhatIsDefined) {
  // The fastest known of w is 1 s, so that 95 % of its speed is 1 / 0.95 s.
  const auto rows = compare_searches({of("slow", 1, {4, 4, 2, 2, 1}), of("slow", 2, {none, 4, 4, 2, 2}),
                                      of("fast", 1, {1.04, 1, 1, 1, 1}), of("fast", 2, {2, 1, 1, 1, 1})},
                                     {1, 4}, "slow", 0.95, 1);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].method, "slow");
  EXPECT_EQ(rows[1].searches, 2);
  EXPECT_NEAR(rows[0].speed[0].mean, std::sqrt(0.25 * 0.01), 1e-12);  // nothing ok yet: a hundredth
  EXPECT_NEAR(rows[0].speed[1].mean, 0.5, 1e-12);
  EXPECT_NEAR(rows[1].speed[0].mean, std::sqrt(1 / 1.04 / 2), 1e-12);
  EXPECT_NEAR(rows[1].speed[1].mean, 1, 1e-12);
  EXPECT_NEAR(rows[1].slower[1].mean, -0.5, 1e-12);  // half the time
  EXPECT_NEAR(rows[0].slower[1].mean, 0, 1e-12);
  EXPECT_NEAR(rows[0].trials_to_near.mean, std::sqrt(5.0 * 6), 1e-9);  // the second never came near: its 5 and one
  EXPECT_EQ(rows[0].never, 1);
  EXPECT_NEAR(rows[1].trials_to_near.mean, std::sqrt(1.0 * 2), 1e-9);
  EXPECT_NEAR(rows[1].times_fewer.mean, std::sqrt(5.0 / 1 * 6 / 2), 1e-9);
  EXPECT_EQ(rows[1].never, 0);
  EXPECT_TRUE(std::isnan(rows[1].times_fewer.low));  // two searches have no interval
}

TEST(CompareSearches, IntervalsHoldTheirMeans) {
  const auto rows = compare_searches({of("slow", 1, {4, 4, 1}), of("slow", 2, {none, 4, 1}), of("slow", 3, {2, 2, 2}),
                                      of("fast", 1, {1, 1, 1}), of("fast", 2, {2, 1, 1}), of("fast", 3, {4, 2, 1})},
                                     {2}, "slow", 0.95, 1);
  EXPECT_EQ(rows[0].slower[0].low, 0);
  EXPECT_EQ(rows[0].slower[0].high, 0);
  EXPECT_LT(rows[1].times_fewer.low, rows[1].times_fewer.mean);
  EXPECT_GT(rows[1].times_fewer.high, rows[1].times_fewer.mean);
}

TEST(CompareSearches, RefusesWhatCannotBePaired) {
  const auto says = [](const std::vector<Searched>& searches, const std::string& against = "a") {
    try {
      compare_searches(searches, {2}, against, 0.95, 1);
    } catch (const base::UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const Searched a = of("a", 1, {2, 1}), b = of("b", 1, {2, 1});
  EXPECT_EQ(says({a, b}), "");
  EXPECT_NE(says({a, b, a}).find("two searches of w on p, seed 1"), std::string::npos);
  EXPECT_NE(says({a, of("a", 2, {2, 1}), b}).find("no search of w on p, seed 2"), std::string::npos);
  EXPECT_NE(says({a, b, of("b", 1, {2, 1}, "v")}).find("no search of v on p"), std::string::npos);
  EXPECT_NE(says({a, b}, "c").find("method of none"), std::string::npos);
  EXPECT_NE(says({a, of("b", 1, {2})}).find("has 1 trials of the 2"), std::string::npos);
  EXPECT_NE(says({a, of("b", 1, {none, none})}).find("no trial"), std::string::npos);
}

TEST(Searched, IsTheBestSoFarOfOneWorkload) {
  std::vector<datasets::Trial> trials(3);
  for (datasets::Trial& trial : trials) trial.candidate.workload = codegen::Workload("w");
  trials[0].measurement.status = datasets::Status::crashed;
  trials[1].measurement.seconds = {3, 2};
  trials[2].measurement.seconds = {4};
  const Searched search = searched("m", "p", 7, trials);
  EXPECT_EQ(search.workload, "w");
  EXPECT_EQ(search.best_seconds, (std::vector<double>{none, 2, 2}));
  trials[2].candidate.workload = codegen::Workload("v");
  EXPECT_THROW(searched("m", "p", 7, trials), base::UserError);
}

TEST(Searched, HandsOverTheFastestByNewTimesOfItsFinalists) {
  const auto trial = [](std::int64_t number, double seconds) {
    datasets::Trial out;
    out.candidate.workload = codegen::Workload("w");
    out.candidate.sketch = std::make_shared<const codegen::Sketch>(codegen::Sketch::of_columns("s", {{"n", {}}}));
    out.candidate.arguments = {number};
    out.measurement.seconds = {seconds};
    return out;
  };
  // By the search's times the first four, then 5 in place of 1, never 6.
  const std::vector<datasets::Trial> trials = {trial(1, 9), trial(2, 8), trial(3, 7),
                                               trial(4, 6), trial(5, 5), trial(6, 9.5)};
  const std::vector<codegen::Candidate> asked = finalists(trials);
  ASSERT_EQ(asked.size(), 5u);
  Retimed again;
  const std::vector<double> times = {2, 4, 3, none, 5};
  for (std::size_t i = 0; i < asked.size(); ++i) {
    EXPECT_EQ(asked[i].arguments, trials[i].candidate.arguments);
    again[codegen::hash(asked[i])] = times[i];
  }
  EXPECT_EQ(searched("m", "p", 7, trials, &again).best_seconds, (std::vector<double>{2, 2, 2, 2, 3, 3}));
  EXPECT_EQ(searched("m", "p", 7, trials).best_seconds, (std::vector<double>{9, 8, 7, 6, 5, 5}));
}

}  // namespace
}  // namespace graft::search
