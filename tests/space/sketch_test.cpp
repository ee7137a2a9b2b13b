#include "codegen/space/sketch.h"

#include <gtest/gtest.h>

#include "codegen/program/forms.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/space/candidate.h"
#include "tests/schedule/support.h"

namespace graft::codegen {
namespace {

using namespace test;

constexpr const char* text =
    "sketch by_j\n"
    "tile C i $i1 $i2\n"
    "order C $outer{i.0 j.0|j.0 i.0} l.0 i.1 i.2\n"
    "unroll C i.2\n"
    "$packing{pack C B above l.0|}\n"
    "$outer{|unroll C i.1}\n";

std::string filled(const Sketch& sketch, std::vector<std::int64_t> arguments) {
  const base::Result<Schedule> schedule = fill(sketch, arguments);
  return schedule ? to_text(*schedule) : schedule.reason().text;
}

TEST(Sketch, TextIsReadAndWritten) {
  const Sketch sketch = parse_sketch(text, "test");
  EXPECT_EQ(sketch.name, "by_j");
  EXPECT_EQ(sketch.arguments, (std::vector<Sketch::Argument>{{"i1", 0}, {"i2", 0}, {"outer", 2}, {"packing", 2}}));
  EXPECT_EQ(to_text(sketch), text);
  EXPECT_EQ(parse_sketch(to_text(sketch), "again"), sketch);
  const Sketch spaced =
      parse_sketch("\n# mine\n  sketch by_j\n\n" + std::string(text).substr(12) + "   # the end\n", "test");
  EXPECT_EQ(spaced, sketch);
  EXPECT_EQ(hash(spaced), hash(sketch));
  std::vector<Sketch::Line> fewer(sketch.lines.begin(), sketch.lines.end() - 1);
  EXPECT_NE(hash(Sketch(sketch.name, sketch.arguments, std::move(fewer))), hash(sketch));
}

TEST(Sketch, FillPutsNumbersAndAlternativesIn) {
  const Sketch sketch = parse_sketch(text, "test");
  EXPECT_EQ(filled(sketch, {8, 4, 0, 0}),
            "tile C i 8 4\norder C i.0 j.0 l.0 i.1 i.2\nunroll C i.2\npack C B above l.0\n");
  // One argument in two lines; an alternative without words makes no step.
  EXPECT_EQ(filled(sketch, {8, 2, 1, 1}), "tile C i 8 2\norder C j.0 i.0 l.0 i.1 i.2\nunroll C i.2\nunroll C i.1\n");
}

TEST(Sketch, ArgumentsThatDoNotFitHaveAReason) {
  const Sketch sketch = parse_sketch(text, "test");
  EXPECT_EQ(filled(sketch, {8, 4, 0}), "sketch by_j: takes 4 arguments, got 3");
  EXPECT_EQ(filled(sketch, {8, 4, 0, 0, 0}), "sketch by_j: takes 4 arguments, got 5");
  EXPECT_EQ(filled(sketch, {8, 4, 2, 0}), "sketch by_j: outer has no alternative 2");
  EXPECT_EQ(filled(sketch, {8, 4, 0, -1}), "sketch by_j: packing has no alternative -1");
  EXPECT_TRUE(contains(filled(sketch, {8, 0, 0, 0}), "expected a size >= 1, got '0'"));
}

TEST(Sketch, RefusalsNameTheLine) {
  const std::pair<const char*, const char*> refusals[] = {
      {"", "expected 'sketch NAME', got an empty text"},
      {"tile C i 4\n", "mine:1: expected 'sketch NAME' on the first line, got 'tile C i 4'"},
      {"sketch two words\n", "mine:1: expected 'sketch NAME'"},
      {"sketch s\ntile C i $\n", "mine:2: expected an argument's name after '$'"},
      {"sketch s\ntile C i $a$b\n", "mine:2: expected a space after '$a'"},
      {"sketch s\ntile C i x$a\n", "mine:2: an argument must stand alone"},
      {"sketch s\norder C $a{i.0|j.0\n", "mine:2: '$a{' is never closed"},
      {"sketch s\norder C $a{i.0|j.0}\n$a{x|y|z}\n", "mine:3: '$a' has 3 alternatives here and 2 before"},
      {"sketch s\norder C $a{i.0|j.0}\ntile C i $a\n", "mine:3: '$a' has 0 alternatives here and 2 before"},
      {"sketch s\ncolumns\n", "mine:2: expected arguments after 'columns'"},
      {"sketch s\ncolumns $a b\n", "mine:2: expected arguments after 'columns'"},
      {"sketch s\ncolumns $a $a\n", "mine:2: expected arguments after 'columns'"},
      {"sketch s\ncolumns $a\ntile C i $a\n", "mine:3: a sketch of columns has nothing after them"},
      {"sketch s\ntile C i $a\ncolumns $a\n", "mine:3: columns after steps"},
      {"sketch s\ntile C i $a\nprogram\nrun\n", "mine: program: comes after other parts"},
      {"sketch s\nprogram\nrun\n  for i 0\n", "mine: program:2"},
  };
  for (const auto& [sketch, words] : refusals) {
    const std::string message = refusal([&] { return parse_sketch(sketch, "mine"); });
    EXPECT_TRUE(contains(message, words)) << sketch << ": " << message;
  }
}

TEST(Sketch, RowsOfTablesHaveColumns) {
  const Sketch table = Sketch::of_columns(" a table", {{"size x", {}}, {"size x", {"a|b", " c "}}, {"", {"", "#"}}});
  EXPECT_EQ(to_text(table), "sketch a_table\ncolumns $size_x $size_x_2{a_b|c} $_{|_}\n");
  EXPECT_EQ(table.arguments, (std::vector<Sketch::Argument>{{"size_x", 0}, {"size_x_2", 2}, {"_", 2}}));
  EXPECT_EQ(parse_sketch(to_text(table), "again"), table);
  EXPECT_EQ(hash(parse_sketch(to_text(table), "again")), hash(table));
  EXPECT_FALSE(table == Sketch::of_columns("a table", {{"size x", {}}}));
  EXPECT_EQ(filled(table, {1, 0, 0}), "sketch a_table: a row of a table has no steps");
  const Candidate row{codegen::Workload("table(name=x)"), std::make_shared<const Sketch>(table), {1, 0, 0}};
  EXPECT_EQ(program(row, Target()).reason().text, "sketch a_table: a row of a table has no steps");
}

TEST(Sketch, AnOutsidersProgramIsABody) {
  const char* const program_text =
      "buffer A f32 [8] input\nbuffer B f32 [8] output\nrun\n  for i 8\n    B[i] = A[i] * 2\n";
  const LoopProgram own = parse_program(program_text, "test");
  const Sketch sketch = Sketch::of_program("mine", own);
  EXPECT_EQ(to_text(sketch), "sketch mine\nprogram\n" + to_text(own));
  EXPECT_EQ(parse_sketch(to_text(sketch), "again"), sketch);
  EXPECT_EQ(filled(sketch, {}), "sketch mine: a program without steps");
  const Candidate candidate{codegen::Workload("mine"), std::make_shared<const Sketch>(sketch), {}};
  EXPECT_EQ(*program(candidate, Target()), own);  // whatever the workload is called
  LoopProgram other = own;
  other.loops[0].kind = LoopKind::unrolled;
  EXPECT_FALSE(Sketch::of_program("mine", other) == sketch);
}

}  // namespace
}  // namespace graft::codegen
