// What journals and datasets hold are sketches, arguments and hashes of programs. They mean the same in every release:
// each row of these journals, written by earlier ones, must lower to the program that was measured. A failure is never
// the test's: give the step that changed a new name, and leave the old one as it was (codegen/schedule/step.h).
//
// frozen/*.jsonl.gz: of the datasets that were shipped first, some programs of each sketch; and two of each further
// sketch that was derived for suite:shipped and for the intrinsics in examples/ then; later, of the steps that came
// since. Times mean nothing here.
#include <set>

#include "codegen/schedule/candidate_program.h"
#include "codegen/schedule/step.h"
#include "datasets/journal.h"
#include "tests/datasets/support.h"

namespace graft::datasets {
namespace {

TEST(Frozen, ProgramsKeepTheirHash) {
  std::set<std::string> steps;
  std::int64_t programs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(GRAFT_SOURCE_DIR "/tests/datasets/frozen")) {
    const JournalContent journal = read_journal(entry.path());
    const base::Document* known = journal.head.find("target");  // that of an imported platform is not
    const codegen::Target target = known == nullptr ? codegen::Target() : codegen::target_from(*known);
    for (const Trial& trial : journal.trials) {
      const auto program = codegen::program(trial.candidate, target);
      ASSERT_TRUE(program) << entry.path() << ", trial " << trial.index << ": " << program.reason().text;
      EXPECT_EQ(codegen::hash(*program), trial.program_hash) << entry.path() << ", trial " << trial.index << "\n"
                                                             << codegen::to_text(*trial.candidate.sketch);
      const auto schedule = codegen::schedule(trial.candidate);
      for (const codegen::Step& step : *schedule) {
        steps.insert(std::string(codegen::name_of(step.kind)));
      }
      ++programs;
    }
  }
  EXPECT_GE(programs, 250);
  for (const std::string& name : codegen::step_names()) {
    EXPECT_TRUE(steps.contains(name)) << "no frozen program has a step " << name << "; add a journal that has";
  }
}

}  // namespace
}  // namespace graft::datasets
