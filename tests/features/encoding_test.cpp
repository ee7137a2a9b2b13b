#include "features/encoding.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"
#include "codegen/program/forms.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/space/space.h"
#include "features/arguments.h"
#include "features/columns.h"
#include "features/context_relation.h"
#include "features/example.h"
#include "tests/features/encoded.h"
#include "tests/support/judged_space.h"
#include "tests/support/programs.h"

namespace graft::features {
namespace {

using codegen::LoopProgram;
using codegen::parse_program;
using test::value;

std::string some_program(int inputs) {
  std::string text;
  for (int b = 0; b < inputs; ++b) text += fmt::format("buffer I{} f32 [{}] input\n", b, 10 * (b + 1));
  text += "buffer O f32 [1000] output\nrun\n  for i 1000\n    O[i] = 1\n";
  for (int b = 0; b < inputs; ++b)
    text += fmt::format("  for i {} {}\n    O[i] += I{}[i]\n", 10 * (b + 1), b % 2 == 0 ? "serial" : "vector", b);
  return text;
}

codegen::Target target(std::int64_t vector_bits) {
  codegen::Target target;
  target.triple = "riscv64-unknown-linux-gnu";
  target.vector_bits = vector_bits;
  target.vector_registers = 32;
  target.threads = target.cores = 2;
  return target;
}

// A small workload of every operator of the table, and what an index expression adds: every parameter at a small size.
std::vector<std::string> every_operator() {
  std::vector<std::string> texts;
  for (const codegen::Operator& op : codegen::operators()) {
    std::string arguments;
    for (const codegen::Operator::Parameter& parameter : op.parameters) {
      if (parameter.has_default && parameter.name != "block") continue;
      const bool window = parameter.name.size() == 1 && std::string("rsa").find(parameter.name) != std::string::npos;
      const std::int64_t size = parameter.name == "groups" ? 2 : parameter.name == "block" ? 4 : window ? 4 : 8;
      arguments +=
          fmt::format("{}{}={}", arguments.empty() ? "" : ",", parameter.name, std::max(size, parameter.least));
    }
    texts.push_back(fmt::format("{}({})", op.name, arguments));
  }
  texts.push_back("matmul(m=8,n=8,k=8,dtype=i32)");
  texts.push_back("matmul(m=8,n=8,k=8,dtype=i8)");
  return texts;
}

TEST(Encoding, EveryOperatorHasTheSameLengthAndFiniteValues) {
  int programs = 0;
  for (const std::string& text : every_operator()) {
    const codegen::Workload workload = codegen::parse_workload(text);
    for (const std::int64_t bits : {0, 256}) {
      const codegen::JudgedSpace space = codegen::judged_space(workload, target(bits));
      base::Stream stream(7, text);
      for (int sample = 0; sample < 4; ++sample) {
        const codegen::Candidate candidate = space.sample(stream);
        const codegen::Target chosen = target(bits);
        const auto program = codegen::program(candidate, chosen);
        if (!program) continue;
        ++programs;
        for (const Encoding& encoding : encodings()) {
          const Encoded encoded = encoding.encode({&*program, &candidate, &chosen});
          ASSERT_EQ(encoded.programs(), 1);
          ASSERT_GE(encoded.rows.rows, 1) << encoding.name;
          ASSERT_EQ(encoded.rows.columns, std::int64_t(encoding.features.size())) << encoding.name;
          ASSERT_EQ(encoded.begins, (std::vector<std::int64_t>{0, encoded.rows.rows}));
          ASSERT_TRUE(encoding.shape != Shape::row || encoded.rows.rows == 1);
          ASSERT_EQ(encoded.parents.size(), encoding.shape == Shape::tree ? std::size_t(encoded.rows.rows) : 0u);
          for (std::size_t r = 0; r < encoded.parents.size(); ++r)
            ASSERT_TRUE(r == 0 ? encoded.parents[r] == -1 : encoded.parents[r] >= 0 && encoded.parents[r] < int(r));
          for (const float number : encoded.rows.values) ASSERT_TRUE(std::isfinite(number)) << encoding.name << text;
        }
      }
    }
  }
  EXPECT_GT(programs, 100);
}

TEST(Encoding, NamesOfLoopsAndBuffersChangeNothing) {
  for (const std::string& text : {codegen::test::matmul, codegen::test::tiled, codegen::test::convolution}) {
    const LoopProgram program = parse_program(text, "p");
    LoopProgram renamed = program;
    for (std::size_t b = 0; b < renamed.buffers.size(); ++b) renamed.buffers[b].name = fmt::format("z{}", 9 - b);
    for (std::size_t l = 0; l < renamed.loops.size(); ++l) renamed.loops[l].name = fmt::format("y{}", 99 - l);
    for (const Encoding& encoding : encodings())
      EXPECT_EQ(encoding.encode({.program = &program}), encoding.encode({.program = &renamed})) << encoding.name;
  }
}

TEST(Encoding, StoresWithoutLoopsAndDeepProgramsEncode) {
  const std::string scalar = "buffer O f64 [] output\nrun\n  O[] = 1\n";
  const LoopProgram program = parse_program(scalar, "p");
  for (const Encoding& encoding : encodings()) {
    const Encoded encoded = encoding.encode({.program = &program});
    for (const float number : encoded.rows.values) EXPECT_TRUE(std::isfinite(number)) << encoding.name;
  }
}

// Integers do the same work as floating point, in columns of their own.
TEST(Encoding, IntegerWorkIsCounted) {
  std::string integers = codegen::test::matmul;
  for (std::size_t at = 0; (at = integers.find("f32", at)) != std::string::npos;) integers.replace(at, 3, "i32");
  for (const std::string name : {"stores", "tree"}) {
    const auto floating = test::rows_of(name, codegen::test::matmul).back(),
               integer = test::rows_of(name, integers).back();
    const char* separator = name == "tree" ? "." : "_";
    EXPECT_GT(value(floating, fmt::format("float{}mad", separator)), 0);
    EXPECT_EQ(value(floating, fmt::format("int{}mad", separator)), 0);
    EXPECT_EQ(value(integer, fmt::format("int{}mad", separator)),
              value(floating, fmt::format("float{}mad", separator)));
    EXPECT_EQ(value(integer, fmt::format("float{}mad", separator)), 0);
  }
  EXPECT_EQ(test::rows_of("context_relation", integers), test::rows_of("context_relation", codegen::test::matmul));
}

TEST(Encoding, KnobsAreArgumentsOfTheSketch) {
  const Example example;  // sizes 16, 32 and 4, then alternative 1 of a choice
  const Encoding& encoding = encoding_named("knobs");
  const Subject subject = example.subject();
  const auto values = test::rows_of(encoding, encoding.encode(subject)).front();
  ASSERT_EQ(subject.candidate->arguments, (std::vector<std::int64_t>{16, 32, 4, 1}));
  EXPECT_EQ(test::count(values, "a00"), 16);
  EXPECT_EQ(test::count(values, "a01"), 32);
  EXPECT_EQ(test::count(values, "a02"), 4);
  EXPECT_EQ(value(values, "a03"), 0);
  EXPECT_EQ(value(values, "a03.is1"), 1);
  EXPECT_EQ(value(values, "a03.is0"), 0);
  EXPECT_EQ(value(values, "a04"), 0);
  EXPECT_EQ(value(values, fmt::format("sketch{:02}", subject.candidate->sketch->hash % sketch_buckets)), 1);
  float all = 0;
  const auto without = test::rows_of("knobs", example.program()).front();
  for (const auto& [name, number] : without) all += std::abs(number);
  EXPECT_EQ(all, 0);  // without a candidate
}

codegen::TableSchema schema_of_columns() {
  std::vector<std::string> many_numbers, many_words;
  for (int i = 0; i < 20; ++i) many_numbers.push_back(std::to_string(100 + i));
  for (int i = 0; i < 70; ++i) many_words.push_back("w" + std::to_string(i));
  codegen::TableSchema schema;
  schema.columns = {{"plain", {}, {}, true, 5, false},          {"few", {"-3", "0.5", "8"}, {}, true, 2, false},
                    {"word", {}, {"a", "b"}, false, 0, false},  {"many", many_numbers, {}, true, 110, false},
                    {"words", {}, many_words, false, 0, false}, {"net", {}, {"n1", "n2"}, false, 0, true},
                    {"absent", {"1", "3"}, {}, true, 2, false}};
  schema.kernels = {{{"table(name=x)", "table(name=y)"}, {"few", "word"}}};
  return schema;
}

codegen::Candidate row_of_columns(const std::string& workload, const std::vector<codegen::Sketch::Column>& columns,
                                  const std::vector<std::int64_t>& arguments) {
  return {codegen::Workload{workload},
          std::make_shared<const codegen::Sketch>(codegen::Sketch::of_columns("x", columns)), arguments};
}

TEST(Encoding, ColumnsOfTablesAreJoinedByNameAndValue) {
  const Encoding encoding = made_for(encoding_named("columns"), schema_of_columns());
  EXPECT_FALSE(encoding.needs_program);
  EXPECT_FALSE(encoding_named("columns+facts").needs_program);
  EXPECT_TRUE(encoding_named("context_relation").needs_program);
  ASSERT_NE(encoding.schema, nullptr);
  EXPECT_NE(encoding.hash, encoding_named("columns").hash);
  // In another order than the schema's, with other alternatives and a column that it lacks.
  const codegen::Candidate row = row_of_columns("table(name=x)",
                                                {{"word", {"b", "c"}},
                                                 {"other", {}},
                                                 {"few", {"0.5"}},
                                                 {"plain", {}},
                                                 {"many", {"118", "119"}},
                                                 {"words", {"w7"}},
                                                 {"net", {"n1"}}},
                                                {0, 9, 0, -7, 0, 0, 0});
  const auto values = test::rows_of(encoding, encoding.encode({.candidate = &row})).front();
  const std::pair<std::string, float> expected[] = {{"columns", 5},
                                                    {"plain", -7},
                                                    {"plain.log", -3},
                                                    {"few", 0.5f},
                                                    {"few.log", std::log2(1.5f)},
                                                    {"few=0.5", 1},
                                                    {"word=b", 1},
                                                    {"many", 118},
                                                    {"many.log", std::log2(119.0f)},
                                                    {"absent", 2},
                                                    {"absent.log", std::log2(3.0f)}};
  float sum = 0, expected_sum = 2;  // two buckets of the word
  for (const auto& [name, number] : expected) {
    EXPECT_EQ(value(values, name), number) << name;
    expected_sum += std::abs(number);
  }
  for (const auto& [name, number] : values) sum += std::abs(number);
  EXPECT_FLOAT_EQ(sum, expected_sum);
  // net is a name of rows, not a column of the encoding
  for (const auto& [name, number] : values) EXPECT_FALSE(name.starts_with("net"));
  const Example example;  // a sketch with steps
  const Encoded with_steps = encoding.encode(example.subject());
  for (const float number : with_steps.rows.values) EXPECT_EQ(number, 0);
  EXPECT_TRUE(with_steps.identities.empty());
}

TEST(Encoding, RowsOfTablesHaveAnIdentity) {
  const Encoding encoding = made_for(encoding_named("columns+facts"), schema_of_columns());
  const std::vector<codegen::Sketch::Column> columns = {{"word", {"a", "b"}}, {"few", {"0.5", "8"}}},
                                             turned = {{"few", {"8"}}, {"plain", {}}, {"word", {"b"}}};
  const auto identity = [&](const codegen::Candidate& row) {
    const Encoded encoded = encoding.encode({.candidate = &row});
    return encoded.identities.at(0);
  };
  const std::uint64_t known = identity(row_of_columns("table(name=x)", columns, {1, 1}));
  EXPECT_NE(known, 0u);
  EXPECT_EQ(known, identity(row_of_columns("table(name=y)", turned, {0, 3, 0})));
  EXPECT_NE(known, identity(row_of_columns("table(name=x)", columns, {0, 1})));
  EXPECT_EQ(identity(row_of_columns("table(name=x)", {{"few", {"8"}}}, {0})), 0u);  // lacks a column of the key
  // They follow their programs.
  Encoded all;
  for (const std::int64_t word : {0, 1}) {
    const codegen::Candidate row = row_of_columns("table(name=x)", columns, {word, 1});
    append(all, encoding.encode({.candidate = &row}));
  }
  EXPECT_EQ(all.identities.size(), 2u);
  const std::int64_t second = 1;
  EXPECT_EQ(chosen(all, {&second, 1}).identities, std::vector<std::uint64_t>{known});
}

TEST(Encoding, FactsOfTheTargetStandBesideARow) {
  const Example example;
  const Encoding &alone = encoding_named("context_relation"), &both = encoding_named("context_relation+facts");
  EXPECT_NE(alone.hash, both.hash);
  EXPECT_EQ(both.features.size(), alone.features.size() + 8);
  const auto values = test::rows_of(both, both.encode(example.subject())).front();
  const auto own = test::rows_of(alone, alone.encode(example.subject())).front();
  for (const auto& [name, number] : own) EXPECT_EQ(value(values, name), number);
  EXPECT_EQ(test::count(values, "target.vector_bits"), 256);
  EXPECT_EQ(test::count(values, "target.l1_bytes"), 32 * 1024);
  EXPECT_EQ(test::count(values, "target.l3_bytes"), 0);  // unknown
  EXPECT_EQ(test::count(test::rows_of("context_relation+facts", example.program()).front(), "target.cores"), 0);
  EXPECT_THROW((void)encoding_named("tree+facts"), base::UserError);
}

TEST(Encoding, JoinedOnesStandBesideEachOther) {
  const Example example;
  const Encoding &first = encoding_named("context_relation"), &second = encoding_named("on_target"),
                 &both = encoding_named("context_relation+on_target");
  EXPECT_TRUE(both.hash != first.hash && both.hash != second.hash);
  EXPECT_NE(joined(second, first).hash, both.hash);
  const base::Matrix left = first.encode(example.subject()).rows, right = second.encode(example.subject()).rows,
                     row = both.encode(example.subject()).rows;
  ASSERT_EQ(row.columns, left.columns + right.columns);
  for (std::int64_t c = 0; c < row.columns; ++c)
    EXPECT_EQ(row.at(0, c), c < left.columns ? left.at(0, c) : right.at(0, c - left.columns)) << c;
  for (const Feature& feature : both.features)
    EXPECT_EQ(feature.of_target, feature.name == "target_lanes" || feature.name == "target_registers") << feature.name;
  // What the target is decides.
  EXPECT_NE(both.encode(example.subject()).rows, both.encode({.program = &example.program()}).rows);
}

TEST(Encoding, FeaturesAreDeclaredOnce) {
  for (const Encoding& encoding : encodings()) {
    std::set<std::string> names;
    for (const Feature& feature : encoding.features) {
      EXPECT_TRUE(names.insert(feature.name).second) << feature.name;
      EXPECT_FALSE(feature.unit.empty()) << feature.name;
      EXPECT_FALSE(feature.definition.empty()) << feature.name;
    }
    EXPECT_NE(encoding.hash, 0u);
    EXPECT_EQ(&encoding_named(encoding.name), &encoding);
  }
  // Values of models that are out there: the hash is the one of the first release.
  EXPECT_EQ(base::to_hex(context_relation().hash), "ff1888397a59cbbc");
  // A model trained on one list must not meet another: a change of the list raises the version and this number.
  EXPECT_EQ(encoding_named("context_relation").features.size(), 6u * (4 * 32 + 17) + 15 + 11);
  EXPECT_EQ(context_relation().hash, encoding_named("context_relation").hash);
}

TEST(Encoding, UnknownNamesAreRefused) {
  try {
    (void)encoding_named("context_relatoin");
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_EQ(std::string(error.what()), "unknown encoding 'context_relatoin'; did you mean 'context_relation'?");
  }
}

TEST(Encoding, ThreadsChangeNothing) {
  std::vector<LoopProgram> programs;
  for (int b = 0; b < 20; ++b) programs.push_back(parse_program(some_program(b % 9), "p"));
  const Encoding& encoding = encoding_named("context_relation");
  const Encoded alone = encode(encoding, programs, 1);
  EXPECT_EQ(alone.programs(), 20);
  EXPECT_EQ(alone, encode(encoding, programs, 4));
  EXPECT_EQ(encode(encoding, std::span(&programs[7], 1)), chosen(alone, std::vector<std::int64_t>{7}));
  EXPECT_EQ(encode(encoding, {}).programs(), 0);
}

TEST(Encoded, ProgramsOfSeveralRows) {
  Encoded encoded;
  encoded.rows = base::Matrix(4, 2);
  encoded.rows.values = {1, 2, 3, 4, 5, 6, 7, 8};
  encoded.begins = {0, 1, 4};
  encoded.parents = {-1, -1, 0, 0};
  EXPECT_EQ(encoded.programs(), 2);
  const base::Matrix sums = summed(encoded);
  EXPECT_EQ(sums.values, (std::vector<float>{1, 2, 15, 18}));

  const Encoded both = chosen(encoded, std::vector<std::int64_t>{1, 0, 1});
  EXPECT_EQ(both.begins, (std::vector<std::int64_t>{0, 3, 4, 7}));
  EXPECT_EQ(both.parents, (std::vector<std::int32_t>{-1, 0, 0, -1, -1, 0, 0}));
  EXPECT_EQ(both.rows.row(3)[1], 2.0f);

  Encoded all;
  for (const std::int64_t program : {1, 0, 1}) append(all, chosen(encoded, std::vector<std::int64_t>{program}));
  EXPECT_EQ(all, both);

  const Encoded simple = one_row_each(encoded.rows);
  EXPECT_EQ(simple.programs(), 4);
  EXPECT_EQ(summed(simple), encoded.rows);
}

}  // namespace
}  // namespace graft::features
