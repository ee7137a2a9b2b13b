#include "study/knowledge/library.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/schedule/rules.h"
#include "codegen/space/space.h"
#include "tests/base/support.h"
#include "tests/study/support.h"
#include "tests/support/judged_space.h"
#include "tests/support/refusal.h"

namespace graft::study {
namespace {

KnownAnswer answer_for(const std::string& workload, double seconds, const std::string& platform = "native:v3") {
  const codegen::JudgedSpace space = codegen::judged_space(codegen::parse_workload(workload), small_target());
  base::Stream stream(3, "library");
  KnownAnswer answer;
  answer.platform = platform, answer.platform_hash = "hash of " + platform, answer.source = "native";
  answer.candidate = space.sample(stream);
  answer.program_hash = codegen::hash(*codegen::program(answer.candidate, small_target()));
  answer.pipeline = "O3";
  answer.measurement.seconds = {seconds, 1.5 * seconds};
  answer.measurement.clock = "wall";
  answer.measurement.check = "host";
  answer.trials = 64;
  answer.date = "2026-01-31T12:00:00Z", answer.graft = "0.1.0", answer.host = "a machine";
  return answer;
}

class StudyLibrary : public testing::Test {
 protected:
  base::Folder made;
  const std::filesystem::path folder = made.path();
};

TEST_F(StudyLibrary, AnswersComeBackAsTheyWereRecorded) {
  const Library library(folder / "made");
  const KnownAnswer answer = answer_for("matmul(m=64,n=48,k=32)", 1e-5);
  EXPECT_FALSE(library.find(answer.candidate.workload, answer.platform_hash));
  EXPECT_TRUE(library.record(answer));
  const auto found = library.find(answer.candidate.workload, answer.platform_hash);
  ASSERT_TRUE(found);
  EXPECT_EQ(to_document(*found).to_json(), to_document(answer).to_json());
  EXPECT_TRUE(holds(*found, small_target()));
  EXPECT_FALSE(library.find(codegen::parse_workload("matmul(m=64,n=48,k=33)"), answer.platform_hash));
  EXPECT_FALSE(library.find(answer.candidate.workload, "another"));
}

// What constants from caches make fastest does not answer for constants from memory.
TEST_F(StudyLibrary, AnswersOfBothKindsOfTimingLieNextToEachOther) {
  const Library library(folder);
  KnownAnswer warm = answer_for("matmul(m=64,n=48,k=32)", 1e-5), cold = warm, unsaid = warm;
  warm.cold = false, cold.cold = true;
  cold.measurement.seconds = {2e-5};
  const auto found = [&](bool is_cold) { return library.find(warm.candidate.workload, warm.platform_hash, is_cold); };
  EXPECT_TRUE(library.record(unsaid));
  EXPECT_FALSE(found(true)->cold) << "of an earlier graft: for both";
  EXPECT_TRUE(library.record(warm));
  EXPECT_FALSE(found(true)) << "the one that did not say is replaced";
  EXPECT_TRUE(library.record(cold));
  EXPECT_EQ(found(true)->cold, true);
  EXPECT_EQ(found(false)->cold, false);
  EXPECT_EQ(library.all().size(), 2u);
  EXPECT_EQ(Library(folder / "other").merge(library.exported(), "a library"), 2u);
}

// One answer for all workloads that compute the same, however they are written.
TEST_F(StudyLibrary, WorkloadsUnderOtherLettersAreOne) {
  const char* const letters = "input A[64,32]; input B[32,48]; output C[y,x] += A[y,z] * B[z,x] where y=64, x=48, z=32";
  const Library library(folder);
  const KnownAnswer slow = answer_for("matmul(m=64,n=48,k=32)", 2e-5), fast = answer_for(letters, 1e-5);
  EXPECT_TRUE(library.record(slow));
  const auto found = library.find(fast.candidate.workload, slow.platform_hash);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->candidate.workload, slow.candidate.workload);
  EXPECT_TRUE(library.near(fast.candidate.workload, slow.platform_hash, 4).empty());
  EXPECT_TRUE(library.record(fast));
  EXPECT_FALSE(library.record(slow));
  EXPECT_EQ(library.all().size(), 1u);
  EXPECT_EQ(library.find(slow.candidate.workload, slow.platform_hash)->candidate.workload, fast.candidate.workload);
}

TEST_F(StudyLibrary, TheFasterAnswerStays) {
  const Library library(folder);
  const KnownAnswer slow = answer_for("matmul(m=64,n=48,k=32)", 2e-5),
                    fast = answer_for("matmul(m=64,n=48,k=32)", 1e-5);
  EXPECT_TRUE(library.record(slow));
  EXPECT_TRUE(library.record(fast));
  EXPECT_FALSE(library.record(slow));
  EXPECT_EQ(datasets::seconds_of(library.all().at(0).measurement), 1e-5);
}

// Records of another version of the rules, or changed by hand, are no longer answers.
TEST_F(StudyLibrary, AProgramThatLoweringDoesNotGiveDoesNotHold) {
  KnownAnswer answer = answer_for("matmul(m=64,n=48,k=32)", 1e-5);
  answer.program_hash ^= 1;
  EXPECT_FALSE(holds(answer, small_target()));
  answer = answer_for("matmul(m=64,n=48,k=32)", 1e-5);
  answer.candidate.arguments.pop_back();
  EXPECT_FALSE(holds(answer, small_target()));
}

// Callers of a kernel pass its parameters as in the workload, independent of a schedule's layout steps.
TEST_F(StudyLibrary, AProgramWithLayoutsOfItsOwnDoesNotHold) {
  KnownAnswer answer = answer_for("matmul(m=64,n=48,k=32)", 1e-5);
  const codegen::JudgedSpace space =
      codegen::judged_space(answer.candidate.workload, small_target(), {}, codegen::Layouts::free);
  base::Stream stream(5, "layouts");
  int other = 0;
  for (int i = 0; i < 200; ++i) {
    answer.candidate = space.sample(stream);
    const auto program = codegen::program(answer.candidate, small_target());
    answer.program_hash = codegen::hash(*program);
    bool is_plain = true;
    for (const codegen::Buffer& buffer : program->buffers)
      is_plain = is_plain && (buffer.role == codegen::Role::temporary || buffer.layout.is_plain());
    other += is_plain ? 0 : 1;
    EXPECT_EQ(holds(answer, small_target()), is_plain);
  }
  EXPECT_GT(other, 0);
}

TEST_F(StudyLibrary, NearShapesAreTheSameOperatorsOnThePlatform) {
  const Library library(folder);
  for (const char* const workload : {"matmul(m=64,n=64,k=64)", "matmul(m=512,n=64,k=64)", "matmul(m=128,n=64,k=64)",
                                     "matmul(m=100,n=64,k=64,dtype=f64)", "batch_matmul(b=2,m=64,n=64,k=64)"})
    library.record(answer_for(workload, 1e-5));
  library.record(answer_for("matmul(m=96,n=64,k=64)", 1e-5, "native:v4"));
  const auto near = library.near(codegen::parse_workload("matmul(m=100,n=64,k=64)"), "hash of native:v3", 2);
  ASSERT_EQ(near.size(), 2u);
  EXPECT_EQ(near[0].candidate.workload.text(), "matmul(m=128,n=64,k=64,dtype=f32)");
  EXPECT_EQ(near[1].candidate.workload.text(), "matmul(m=64,n=64,k=64,dtype=f32)");
}

TEST(ShapeDistance, IsOfNumbersThatAreNoNames) {
  EXPECT_EQ(shape_distance("matmul(m=7,dtype=f32)", "matmul(m=7,dtype=f32)"), 0.0);
  EXPECT_DOUBLE_EQ(shape_distance("matmul(m=7,n=1)", "matmul(m=15,n=0)").value(), 2);
  EXPECT_FALSE(shape_distance("matmul(m=7,dtype=f32)", "matmul(m=7,dtype=f64)"));
  EXPECT_FALSE(shape_distance("a1[i]", "a2[i]"));
}

TEST_F(StudyLibrary, OneFileIsSharedAndMerged) {
  const Library here(folder / "here"), there(folder / "there");
  there.record(answer_for("matmul(m=64,n=48,k=32)", 1e-5));
  there.record(answer_for("matmul(m=8,n=8,k=8)", 3e-7));
  here.record(answer_for("matmul(m=8,n=8,k=8)", 1e-7));
  EXPECT_EQ(here.merge(there.exported(), "shared.json"), 1u);
  EXPECT_EQ(here.all().size(), 2u);
  EXPECT_EQ(
      datasets::seconds_of(here.find(codegen::parse_workload("matmul(m=8,n=8,k=8)"), "hash of native:v3")->measurement),
      1e-7);
}

TEST_F(StudyLibrary, FilesOfOthersAreRefusedWithTheirPlace) {
  const Library library(folder);
  using codegen::refusal;
  EXPECT_NE(refusal([&] { library.merge("{}", "x.json"); }).find("missing key 'graft_library'"), std::string::npos);
  EXPECT_NE(refusal([&] { library.merge("{\"graft_library\":2,\"answers\":[]}", "x.json"); }).find("newer graft"),
            std::string::npos);
  base::Document answer = to_document(answer_for("matmul(m=8,n=8,k=8)", 1e-7));
  const auto with = [&](const char* key, base::Document value) {
    base::Document changed = answer;
    changed.set(key, std::move(value));
    return base::Document::map()
        .set("graft_library", 1)
        .set("answers", base::Document::list().push(answer).push(changed))
        .to_json();
  };
  for (const auto& [key, value] : std::vector<std::pair<const char*, base::Document>>{
           {"sketch", "sketch x\ncolumns $a\n"},
           {"workload", "matmul(m=0,n=8,k=8)"},
           {"measurement", base::Document::map().set("status", "crashed").set("reason", "x")},
           {"arguments", 3},
           {"program", "zz"},
           {"extra", 1}}) {
    EXPECT_NE(refusal([&, k = key, v = value] { library.merge(with(k, v), "x.json"); }).find("x.json"),
              std::string::npos)
        << key;
    EXPECT_TRUE(library.all().empty()) << key;  // nothing of a file that is refused
  }
  base::replace_file(folder / "0123456789abcdef.json", "{\"answer\":");
  EXPECT_NE(refusal([&] { library.all(); }).find("0123456789abcdef.json"), std::string::npos);
}

TEST_F(StudyLibrary, ProcessesRecordOneAfterTheOther) {
  const KnownAnswer answer = answer_for("matmul(m=8,n=8,k=8)", 1e-7);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const Library library(folder);
      KnownAnswer mine = answer;
      mine.measurement.seconds = {1e-7 * (4 - i)};
      for (int k = 0; k < 5; ++k) library.record(mine);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Library library(folder);
  ASSERT_EQ(library.all().size(), 1u);
  EXPECT_EQ(datasets::seconds_of(library.all().front().measurement), 1e-7);
}

}  // namespace
}  // namespace graft::study
