#include "study/flows/ask_tell.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "codegen/schedule/candidate_program.h"
#include "codegen/space/candidate.h"
#include "study/flows/tune.h"
#include "tests/study/support.h"

namespace graft::study {
namespace {

AskTellRequest request_for(const std::string& workload) {
  AskTellRequest request;
  request.workload = codegen::parse_workload(workload);
  request.platform = tasks::platform_named("model:sifive-p450");
  request.model = "scratch";
  return request;
}

// Some time, the same for equal programs.
AskTellSession::MeasuredCandidate timed(const codegen::Candidate& candidate) {
  const codegen::Target target = tasks::platform_named("model:sifive-p450").target;
  datasets::Measurement measurement;
  measurement.seconds = {1e-3 * double(1 + codegen::hash(*codegen::program(candidate, target)) % 1000)};
  measurement.clock = "wall";
  return {candidate, measurement};
}

std::vector<std::uint64_t> hashes_of(const std::vector<codegen::Candidate>& candidates) {
  std::vector<std::uint64_t> hashes;
  for (const codegen::Candidate& candidate : candidates) hashes.push_back(codegen::hash(candidate));
  return hashes;
}

// As who stores its measurements may keep it: the steps, without sketch and arguments.
codegen::Candidate by_steps(const codegen::Candidate& candidate) {
  return schedule_from(codegen::to_text(*codegen::schedule(candidate)), "test", candidate.workload);
}

TEST(AskTellSessions, AreContinuedByTellingAnotherOneTheSame) {
  base::Monitor monitor;
  AskTellSession first(request_for("matmul(m=48,n=64,k=80)"), monitor);
  std::vector<std::vector<AskTellSession::MeasuredCandidate>> rounds;
  for (int round = 0; round < 3; ++round) {
    std::vector<AskTellSession::MeasuredCandidate>& told = rounds.emplace_back();
    for (const codegen::Candidate& candidate : first.ask(12)) told.push_back(timed(candidate));
    first.tell(told);
  }
  const std::vector<std::uint64_t> next = hashes_of(first.ask(12));
  ASSERT_EQ(next.size(), 12u);

  AskTellSession as_told(request_for("matmul(m=48,n=64,k=80)"), monitor);
  for (const auto& told : rounds) as_told.tell(told);
  EXPECT_EQ(hashes_of(as_told.ask(12)), next);

  AskTellSession at_once(request_for("matmul(m=48,n=64,k=80)"), monitor);
  std::vector<AskTellSession::MeasuredCandidate> all;
  for (const auto& told : rounds) {
    for (const AskTellSession::MeasuredCandidate& each : told)
      all.push_back({by_steps(each.candidate), each.measurement});
  }
  at_once.tell(all);
  EXPECT_EQ(hashes_of(at_once.ask(12)), next);
}

TEST(AskTellSessions, BreedFromASchedule) {
  base::Monitor monitor;
  AskTellRequest request = request_for("matmul(m=48,n=64,k=80)");
  AskTellSession drawn(request, monitor);
  const std::vector<codegen::Candidate> candidates = drawn.ask(8);

  AskTellSession session(request, monitor);
  std::vector<AskTellSession::MeasuredCandidate> told;
  for (const codegen::Candidate& candidate : candidates) {
    told.push_back({by_steps(candidate), {}});
    told.back().measurement.seconds = {&candidate == &candidates.back() ? 1e-6 : 1e-3};
  }
  session.tell(told);
  EXPECT_EQ(codegen::hash(session.best()->candidate), codegen::hash(candidates.back()));
  // Children of the fastest one: most of its choices are theirs.
  int near = 0;
  for (const codegen::Candidate& next : session.ask(24)) {
    if (!(*next.sketch == *candidates.back().sketch)) continue;
    int different = 0;
    for (std::size_t a = 0; a < next.arguments.size(); ++a)
      different += next.arguments[a] != candidates.back().arguments[a];
    near += 2 * different <= int(next.arguments.size());
  }
  EXPECT_GE(near, 6);
}

// The same computation as an operator, as its index expression, and under other letters.
TEST(AskTellSessions, StartFromTheSameUnderOtherLetters) {
  base::Monitor monitor;
  AskTellSession session(request_for("matmul(m=48,n=64,k=80)"), monitor);
  const codegen::Candidate known = session.ask(1).front();
  const codegen::Target target = tasks::platform_named("model:sifive-p450").target;
  AskTellRequest other = request_for(
      "input P[48,80]; input Q[80,64]; output R[row,column] += P[row,inner] * Q[inner,column] "
      "where row=48, column=64, inner=80");
  EXPECT_EQ(other.workload.key(), known.workload.key());
  other.start = {known};
  AskTellSession renamed(other, monitor);
  const codegen::Candidate first = renamed.ask(1).front();
  EXPECT_EQ(first.arguments, known.arguments);
  EXPECT_EQ(first.sketch->lines.size(), known.sketch->lines.size());
  const auto before = codegen::program(known, target), after = codegen::program(first, target);
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(before->loops.size(), after->loops.size());
}

TEST(AskTellSessions, RefuseWhatContradictsItself) {
  base::Monitor monitor;
  AskTellSession session(request_for("matmul(m=48,n=64,k=80)"), monitor);
  AskTellSession other(request_for("matmul(m=48,n=64,k=81)"), monitor);
  const AskTellSession::MeasuredCandidate foreign = timed(other.ask(1).front());
  EXPECT_THROW(session.tell({foreign}), base::UserError);
  EXPECT_THROW(session.tell({{session.ask(1).front(), {}}}), base::UserError);
  EXPECT_TRUE(session.trials().empty());
}

}  // namespace
}  // namespace graft::study
