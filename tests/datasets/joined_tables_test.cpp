#include "datasets/joined_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "datasets/agreement.h"
#include "tests/datasets/formats_support.h"

namespace graft::datasets {
namespace {

// A table, as imported, of the platform.
Dataset table(const std::string& platform, const std::string& text, const std::string& file = "t.csv",
              std::map<std::string, std::string, std::less<>> options = {}) {
  const Folder folder;
  write_plainly(folder / file, text);
  options.emplace("time", "time");
  options.emplace("unit", "s");
  return formats::imported_platforms("table", folder, {folder / file}, platform, std::move(options))
      .at(platform)
      .dataset;
}

// Rows of an algorithm and a tile, in another order of the columns if requested; without some algorithms.
std::string text_of(const std::string& head, const std::function<std::string(const std::string&, int, double)>& line,
                    const std::vector<std::string>& algorithms = {"direct", "fft", "gemm"}) {
  std::string text = head + "\n";
  for (const std::string& algorithm : algorithms) {
    for (const int tile : {1, 2, 4, 8}) text += line(algorithm, tile, 0.5 + double(algorithm.size()) * tile) + "\n";
  }
  return text;
}
std::string plain(const std::string& algorithm, int tile, double time) {
  return fmt::format("{},{},{}", algorithm, tile, time);
}
std::string turned(const std::string& algorithm, int tile, double time) {
  return fmt::format("{},{},{}", tile, algorithm, 2 * time);
}

const codegen::TableSchema::Column& column(const codegen::TableSchema& schema, const std::string& name) {
  return *std::find_if(schema.columns.begin(), schema.columns.end(),
                       [&](const auto& each) { return each.name == name; });
}

bool has_note(const JoinedTables& joined, const std::string& part) {
  return std::any_of(joined.notes.begin(), joined.notes.end(),
                     [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

TEST(JoinedTables, ColumnsByNameAndValuesByValue) {
  const Dataset a = table("a", text_of("algo,tile,time", plain)),
                b = table("b", text_of("tile,algo,time", turned, {"fft", "gemm"}));
  const JoinedTables joined = joined_tables(std::vector{a, b});
  EXPECT_TRUE(joined.notes.empty()) << joined.notes.front();
  ASSERT_EQ(joined.schema.columns.size(), 2u);
  EXPECT_EQ(column(joined.schema, "algo").words, (std::vector<std::string>{"direct", "fft", "gemm"}));
  EXPECT_EQ(column(joined.schema, "tile").numbers, (std::vector<std::string>{"1", "2", "4", "8"}));
  EXPECT_EQ(column(joined.schema, "tile").middle, 3.75);
  ASSERT_EQ(joined.schema.kernels.size(), 1u);
  EXPECT_EQ(joined.schema.kernels[0].key, (std::vector<std::string>{"algo", "tile"}));
  // Row 4 of a is fft with tile 1, which is row 0 of b.
  const std::uint64_t fft = codegen::row_identity(joined.schema, a.candidate(a.rows[4]));
  EXPECT_NE(fft, 0u);
  EXPECT_EQ(fft, codegen::row_identity(joined.schema, b.candidate(b.rows[0])));
  EXPECT_NE(fft, codegen::row_identity(joined.schema, b.candidate(b.rows[1])));
  EXPECT_EQ(codegen::table_schema_from(codegen::to_document(joined.schema)), joined.schema);
}

TEST(JoinedTables, WhatOneTableAddsIsSaidAndNoPartOfARow) {
  const Dataset a = table("a", text_of("algo,tile,time", plain));
  int id = 0;
  const Dataset b = table("b", text_of("seed,algo,tile,time", [&](const std::string& algorithm, int tile, double time) {
                            return fmt::format("{},{}", 7 * ++id % 101, plain(algorithm, tile, time));
                          }));
  const JoinedTables joined = joined_tables(std::vector{a, b});
  EXPECT_TRUE(has_note(joined, "column 'seed' is in tables of import:b only"));
  EXPECT_EQ(joined.schema.kernels[0].key, (std::vector<std::string>{"algo", "tile"}));
  EXPECT_EQ(codegen::row_identity(joined.schema, a.candidate(a.rows[5])),
            codegen::row_identity(joined.schema, b.candidate(b.rows[5])));
  const Agreement agreed = agreement({a, b});
  EXPECT_EQ(agreed.families[0].spearman[0][1].programs, 12);
  EXPECT_EQ(agreed.notes, joined.notes);
}

TEST(JoinedTables, DoubtsAreNotesAndStrangersARefusal) {
  const Dataset a = table("a", text_of("algo,tile,time", plain)),
                numbers = table("b", "algo,tile,time\n1,1,0.5\n2,1,0.7\n1,2,0.9\n"),
                words = table("c", "algo,tile,time\nx,1,0.5\ny,1,0.7\nx,2,0.9\n"),
                stranger = table("d", "block,unroll,time\n1,1,0.5\n2,1,0.7\n");
  EXPECT_TRUE(has_note(joined_tables(std::vector{a, numbers}), "numbers on import:b and words on import:a"));
  EXPECT_TRUE(has_note(joined_tables(std::vector{a, words}), "no value of import:c occurs on another platform (x)"));
  const std::string refused = message_of<base::UserError>([&] { joined_tables(std::vector{a, stranger}); });
  EXPECT_NE(refused.find("no column in common"), std::string::npos) << refused;
  EXPECT_TRUE(joined_tables({}).schema.columns.empty());
}

TEST(JoinedTables, WorkloadsOfFilesWithOtherNames) {
  const Dataset a = table("a", text_of("algo,tile,time", plain), "a.csv"),
                b = table("b", text_of("tile,algo,time", turned), "b.csv"),
                named = table("b", text_of("tile,algo,time", turned), "b.csv", {{"workload", "a"}}),
                other = table("b", "algo,tile,time\nfft,16,0.5\nfft,32,0.7\nfft,1,0.9\n", "other.csv");
  EXPECT_EQ(named.workloads[0].text(), "table(name=a)");
  EXPECT_TRUE(joined_tables(std::vector{a, named}).notes.empty());
  const JoinedTables joined = joined_tables(std::vector{a, b});
  ASSERT_EQ(joined.schema.kernels.size(), 1u);
  EXPECT_TRUE(has_note(joined, "taken for one workload"));
  EXPECT_EQ(codegen::joined_name(joined.schema, "table(name=b)"), "table(name=a)");
  EXPECT_EQ(agreement({a, b}).families[0].spearman[0][1].programs, 12);
  EXPECT_EQ(joined_tables(std::vector{a, other}).schema.kernels.size(), 2u);  // a third of the rows
  // Two workloads of one platform could be that of the other.
  Dataset both = b;
  for (Dataset::Row row : std::vector<Dataset::Row>(b.rows)) {
    row.workload = 1;
    both.rows.push_back(row);
  }
  both.workloads.push_back(codegen::Workload("table(name=c)"));
  const JoinedTables doubtful = joined_tables(std::vector{a, both});
  EXPECT_EQ(doubtful.schema.kernels.size(), 3u);
  EXPECT_TRUE(has_note(doubtful, "is joined with none"));
  // Sizes make another workload.
  Dataset sized = b;
  sized.workloads[0] = codegen::Workload("table(name=b,size=3)");
  EXPECT_EQ(joined_tables(std::vector{a, sized}).schema.kernels.size(), 2u);
}

TEST(JoinedTables, NamesOfRowsAreNoValues) {
  std::string text = "net,batch,time\n";
  for (int i = 0; i < 40; ++i) text += fmt::format("net{},{},{}\n", i, 1 + i % 3, 1.5 + i);
  const JoinedTables joined = joined_tables(std::vector{table("a", text)});
  EXPECT_TRUE(column(joined.schema, "net").names_rows);
  EXPECT_FALSE(column(joined.schema, "batch").names_rows);
  std::string kernels = "kernel,tile,time\n";
  for (int i = 0; i < 96; ++i) kernels += fmt::format("k{},{},{}\n", i % 24, 1 << i / 24, 1.5 + i);
  EXPECT_FALSE(column(joined_tables(std::vector{table("a", kernels)}).schema, "kernel").names_rows);
}

// Rows that only differ in a column that the other platform lacks are not that platform's row.
TEST(JoinedTables, RowsThatOthersDoNotDistinguishAreNotCompared) {
  std::string fine = "algo,tile,unroll,time\n", coarse = "algo,tile,time\n";
  for (int i = 0; i < 12; ++i) {
    coarse += fmt::format("a,{},{}\n", i, 1.5 + i);
    for (int unroll = 1; unroll < (i == 0 ? 3 : 2); ++unroll)
      fine += fmt::format("a,{},{},{}\n", i, unroll, 2.5 + i + unroll);
  }
  EXPECT_EQ(agreement({table("a", fine), table("b", coarse)}).families[0].spearman[0][1].programs, 11);
}

}  // namespace
}  // namespace graft::datasets
