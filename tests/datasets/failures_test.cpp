#include "datasets/failures.h"

#include <gtest/gtest.h>

namespace graft::datasets {
namespace {

Measurement failed(Status status, std::string reason) {
  Measurement measurement;
  measurement.status = status;
  measurement.reason = std::move(reason);
  return measurement;
}

TEST(Failures, AreCountedByStatusAndReasonWithoutItsNumbers) {
  FailureCounts counts;
  EXPECT_TRUE(counts.kinds().empty());
  Measurement ok;
  ok.seconds = {1};
  counts.add(ok);
  counts.add(failed(Status::crashed, "ended by signal 4"));
  counts.add(failed(Status::wrong_result, "C: element 4 is 0.5"));
  counts.add(failed(Status::wrong_result, "C: element 7 is -1e-09"));
  counts.add(failed(Status::timed_out, "C: element 7 is -1e-09"));
  const std::vector<FailureKind> kinds = counts.kinds();
  ASSERT_EQ(kinds.size(), 3u);
  EXPECT_EQ(to_text(kinds[0]), "wrong_result: C: element 4 is 0.5");
  EXPECT_EQ(kinds[0].count, 2);
  EXPECT_EQ(to_text(kinds[1]), "crashed: ended by signal 4");
  EXPECT_EQ(kinds[1].count, 1);
  EXPECT_EQ(kinds[2].status, Status::timed_out);
}

TEST(Failures, AreOneShortLine) {
  EXPECT_EQ(to_text({Status::out_of_memory, "", 1}), "out_of_memory");
  const std::string text = to_text({Status::does_not_compile, "one\ntwo" + std::string(1000, 'x'), 1});
  EXPECT_EQ(text.substr(0, 25), "does_not_compile: one two");
  EXPECT_EQ(text.size(), 160u);
}

}  // namespace
}  // namespace graft::datasets
