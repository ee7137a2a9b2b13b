#include "codegen/schedule/step.h"

#include <gtest/gtest.h>

#include "codegen/schedule/step_forms.h"
#include "tests/schedule/support.h"

namespace graft::codegen {
namespace {

using namespace test;

TEST(Step, ExamplesOfTheFormsAreSteps) {
  for (const StepForm& form : step_forms()) {
    const Step step = parse_step(form.example, "form");
    EXPECT_EQ(step.kind, form.kind);
    EXPECT_EQ(to_text(step), form.example);
    EXPECT_TRUE(form.form.starts_with(std::string(name_of(form.kind)) + " ")) << form.form;
  }
}

TEST(Step, EveryKindIsReadAndWritten) {
  const Schedule schedule = steps(
      "tile C i 64 16 4\n"
      "order C i.0 j.0 l.0 i.1\n"
      "vector C j.1\n"
      "unroll C i.2 l.1\n"
      "parallel C i.0 j.0\n"
      "accumulate C above l.0 l.1\n"
      "pack C B above l.0\n"
      "fuse T Y\n"
      "absorb Y P\n"
      "compute Y P above y.0\n"
      "rfactor C l 16\n"
      "winograd Y 4\n"
      "tensorize C dot j.2\n"
      "prefetch C B l.1 4\n"
      "layout A 0/8 1 0%8\n"
      "block A 0/8 1 0%8\n"
      "copy C A i 4 j 2\n"
      "bind C thread_x i.0 j.1\n"
      "lanes C l.2\n"
      "reciprocal Y j\n"
      "unsign C A\n");
  ASSERT_EQ(schedule.size(), step_names().size());
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    EXPECT_EQ(schedule[i].kind, StepKind(i));
    EXPECT_EQ(parse_step(to_text(schedule[i]), "again"), schedule[i]) << to_text(schedule[i]);
  }
  EXPECT_EQ(steps(to_text(schedule)), schedule);
  EXPECT_EQ(schedule[0], (Step{StepKind::tile, "C", "i", {}, {64, 16, 4}}));
  EXPECT_EQ(schedule[6], (Step{StepKind::pack, "C", "B", {"l.0"}, {}}));
  EXPECT_EQ(schedule[12], (Step{StepKind::tensorize, "C", "dot", {"j.2"}, {}}));
  EXPECT_EQ(schedule[13], (Step{StepKind::prefetch, "C", "B", {"l.1"}, {4}}));
  EXPECT_EQ(schedule[16], (Step{StepKind::copy, "C", "A", {"i", "j"}, {4, 2}}));
  EXPECT_EQ(schedule[17], (Step{StepKind::bind, "C", "thread_x", {"i.0", "j.1"}, {}}));
  EXPECT_EQ(to_text(parse_step("copy C A", "test")), "copy C A");
  EXPECT_EQ(to_text(parse_step("block A 0 / 8 1 % 4 / 2", "test")), "block A 0/8 1%4/2");
  EXPECT_EQ(to_text(parse_step("  pack  C B   above l.0 ", "test")), "pack C B above l.0");
  EXPECT_EQ(to_text(parse_step("pack C B  by 16 above l.0 i.1", "test")), "pack C B by 16 above l.0 i.1");
}

TEST(Step, RefusalsNamePlaceAndWord) {
  const std::pair<const char*, const char*> refusals[] = {
      {"", "expected a step, got an empty line"},
      {"tiles C i 4", "unknown step 'tiles'; did you mean 'tile'"},
      {"tile", "tile: expected a stage, got the end"},
      {"tile C", "tile: expected an axis, got the end"},
      {"tensorize C", "tensorize: expected an intrinsic, got the end"},
      {"tensorize C dot", "tensorize: expected a loop, got the end"},
      {"tensorize C dot j.1 l.1", "tensorize: expected one loop, got 2"},
      {"tile C i", "tile: expected a size, got the end"},
      {"tile C i 0", "expected a size >= 1, got '0'"},
      {"tile C i 4x", "expected a size >= 1, got '4x'"},
      {"order C", "order: expected a loop, got the end"},
      {"vector C i.0 j.0", "vector: expected one loop, got 2"},
      {"reciprocal Y", "reciprocal: expected an axis, got the end"},
      {"reciprocal Y j i", "reciprocal: unexpected 'i'"},
      {"lanes C", "lanes: expected a loop, got the end"},
      {"lanes C l.0 l.1", "lanes: expected one loop, got 2"},
      {"parallel C", "parallel: expected a loop, got the end"},
      {"accumulate C l.0", "accumulate: expected 'above', got 'l.0'"},
      {"pack C B", "pack: expected 'above', got the end"},
      {"pack C B above", "pack: expected a loop, got the end"},
      {"fuse T Y now", "fuse: unexpected 'now'"},
      {"pack C B by 0 above l.0", "expected a size >= 1, got '0'"},
      {"pack C B by 4 l.0", "pack: expected 'above', got 'l.0'"},
      {"rfactor C", "rfactor: expected an axis, got the end"},
      {"rfactor C l 2 4", "rfactor: expected one size, got 2"},
      {"winograd Y", "winograd: expected a size, got the end"},
      {"winograd Y four", "expected a size >= 1, got 'four'"},
      {"absorb Y P now", "absorb: unexpected 'now'"},
      {"prefetch C B", "prefetch: expected a loop, got the end"},
      {"prefetch C B l.1", "prefetch: expected a size, got the end"},
      {"prefetch C B l.1 0", "expected a size >= 1, got '0'"},
      {"prefetch C B l.1 l.2 1", "expected a size >= 1, got 'l.2'"},
      {"prefetch C B l.1 1 2", "prefetch: expected one size, got 2"},
      {"layout A", "layout: expected a loop, got the end"},
      {"layout A 0 1:4", "'1:4' is not a stored dimension"},
      {"layout A 0 /", "'0/' is not a stored dimension"},
      {"layout A / 0", "'/0' is not a stored dimension"},
      {"copy C", "copy: expected a tensor, got the end"},
      {"copy C A i", "copy: expected a size, got the end"},
      {"copy C A i j", "expected a size >= 1, got 'j'"},
      {"bind C", "bind: expected a kind of loop, got the end"},
      {"bind C thread_x", "bind: expected a loop, got the end"},
      {"compute Y P y.0", "compute: expected 'above', got 'y.0'"},
  };
  for (const auto& [line, words] : refusals) {
    const std::string message = refusal([&] { return parse_step(line, "mine:3"); });
    EXPECT_TRUE(contains(message, words)) << line << ": " << message;
    EXPECT_TRUE(contains(message, "mine:3")) << message;
  }
}

}  // namespace
}  // namespace graft::codegen
