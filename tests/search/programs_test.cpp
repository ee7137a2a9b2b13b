#include "search/programs.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <vector>

#include "base/parallel.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/space/table_schema.h"
#include "search/ask_tell.h"
#include "tests/search/support.h"

namespace graft::search {
namespace {

std::vector<codegen::Candidate> drawn(int count) {
  base::Stream stream(1, "programs");
  std::vector<codegen::Candidate> candidates;
  for (int i = 0; i < count; ++i) candidates.push_back(space_of_two_sketches().sample(stream));
  return candidates;
}

codegen::Candidate impossible() {
  codegen::Candidate candidate = drawn(1).front();
  candidate.arguments.pop_back();
  return candidate;
}

TEST(Programs, IdentityAndEncodingAreThoseOfTheProgram) {
  Programs programs(small_target(), &encoding());
  std::vector<codegen::Candidate> candidates = drawn(20);
  candidates.push_back(impossible());
  for (const int threads : {1, 3}) {
    const std::vector<std::uint64_t> identities = programs.identities(candidates, threads);
    const auto encodings = programs.encodings(candidates, threads);
    for (std::size_t i = 0; i < 20; ++i) {
      const auto program = codegen::program(candidates[i], small_target());
      EXPECT_EQ(identities[i], codegen::hash(*program));
      const codegen::Target target = small_target();
      EXPECT_EQ(*encodings[i], encoding().encode({&*program, &candidates[i], &target}));
    }
    EXPECT_EQ(identities.back(), 0u);
    EXPECT_EQ(encodings.back(), nullptr);
  }
  EXPECT_EQ(programs.identity(impossible()).reason(), codegen::program(impossible(), small_target()).reason());
}

TEST(Programs, OneLoweringForEachCandidateWhoeverAsks) {
  Programs programs(small_target(), &encoding());
  const std::vector<codegen::Candidate> candidates = drawn(50);
  std::set<std::uint64_t> distinct;
  for (const codegen::Candidate& candidate : candidates) distinct.insert(codegen::hash(candidate));
  for (int again = 0; again < 3; ++again) {
    (void)programs.identities(candidates, 1);
    (void)programs.encodings(candidates, 1);
  }
  EXPECT_EQ(programs.counts().made, std::int64_t(distinct.size()));
  EXPECT_EQ(programs.counts().refused, 0);
  EXPECT_EQ(programs.counts().encoded, std::int64_t(distinct.size()));
}

TEST(Programs, HaveNoEncodingWithoutOne) {
  Programs programs(small_target());
  EXPECT_EQ(programs.encodings(drawn(1), 1).front(), nullptr);
  EXPECT_NE(programs.identities(drawn(1), 1).front(), 0u);
}

// More programs than are kept for their encoding: it is the same when it is made later.
TEST(Programs, EncodingsOfOldOnesAreTheSame) {
  Programs many(small_target(), &encoding()), few(small_target(), &encoding());
  const std::vector<codegen::Candidate> candidates = drawn(1500);
  (void)many.identities(candidates, 2);
  const std::vector<codegen::Candidate> first(candidates.begin(), candidates.begin() + 5);
  const auto later = many.encodings(first, 1), at_once = few.encodings(first, 1);
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(*later[i], *at_once[i]);
}

TEST(Programs, AreTheSameForAllThreads) {
  Programs alone(small_target(), &encoding()), shared(small_target(), &encoding());
  const std::vector<codegen::Candidate> candidates = drawn(200);
  const std::vector<std::uint64_t> expected = alone.identities(candidates, 1);
  base::parallel_for(8, 4, [&](std::int64_t) {
    EXPECT_EQ(shared.identities(candidates, 1), expected);
    (void)shared.encodings(candidates, 1);
  });
  EXPECT_EQ(*shared.encodings(candidates, 1).back(), *alone.encodings(candidates, 1).back());
}

// A row of a table needs no program: it is its values, by name.
TEST(Programs, OfTablesAreTheirRows) {
  const auto sketch = std::make_shared<const codegen::Sketch>(
      codegen::Sketch::of_columns("t", {{"block", {}}, {"order", {"ij", "ji"}}}));
  const codegen::Candidate row{codegen::Workload("table(name=t)"), sketch, {16, 1}};
  Programs programs(small_target());
  EXPECT_EQ(*programs.identity(row), codegen::hash_by_name(row));
  // An encoding that looks at programs has none of it, and a search that it guides gives it up.
  Programs of_programs(small_target(), &encoding());
  EXPECT_EQ(of_programs.encodings({&row, 1}, 1).front(), nullptr);
  const Oracle model;
  Scorer scorer(of_programs, 1);
  scorer.use(&model);
  EXPECT_EQ(scorer.scores({&row, 1}).front(), -std::numeric_limits<float>::infinity());
}

// A search lowers little more than what it scores: mutants that turn out to be the same program.
TEST(Programs, ASearchLowersOncePerCandidate) {
  Programs programs(small_target(), &encoding());
  const NearestRow prior;
  AskTellSettings settings;
  AskTell search({space_of_two_sketches(), programs, ""}, &prior, settings);
  for (int round = 0; round < 3; ++round) {
    std::vector<datasets::Trial> trials;
    for (const codegen::Candidate& candidate : search.ask(16)) {
      datasets::Trial trial{0, candidate, *programs.identity(candidate), {}};
      trial.measurement.seconds = {seconds_of_program(candidate)};
      trials.push_back(std::move(trial));
    }
    search.tell(std::move(trials));
  }
  const Programs::Counts counts = programs.counts();
  EXPECT_GT(counts.encoded, 500);
  EXPECT_LE(double(counts.made - counts.refused), 1.3 * double(counts.encoded));
}

}  // namespace
}  // namespace graft::search
