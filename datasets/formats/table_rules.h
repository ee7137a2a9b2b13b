// Private to this folder: tables of programs that we know, CSV or JSON, by their columns: which ones are the
// parameters, the time, its unit, and what says that a row failed. One table of rules (table_rules.cpp); options of the
// import say otherwise.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "datasets/formats/format.h"
#include "datasets/formats/table_records.h"

namespace graft::datasets::formats {

// Columns are named by patterns: "mean", "params_*" for all that begin so, "Valid|valid" for either.
struct TableRule {
  std::string_view program;  // that wrote it; empty: any
  // Columns that only its tables have all of; "^KEY" is one of the map around the records.
  std::vector<std::string_view> needs;
  std::vector<std::string_view> parameters = {};  // what the '*' is for becomes their name; "..X": those in front of X
  std::vector<std::string_view> times = {};       // the first one that is there is the time
  std::string_view unit = {};                     // of all of these; empty: a column's or the user's
  std::string_view validity = {};                 // a column that says which rows are good, by these words
  std::vector<std::string_view> good = {};
  // A column of names with arguments, "gemm/n:8/16" or "n=8&mode=x", which become columns: n, arg_0.
  std::string_view names = {};
  std::string_view key = {};         // the parameter where there is no other
  std::string_view divisor = {};     // of the time, a column
  std::string_view failure = {};     // what begins a word in the place of the time of a configuration that failed
  bool takes_all_parameters = true;  // or only those that differ between rows
  bool has_summaries = false;        // rows of means and the like, as Google Benchmark's
  std::vector<std::pair<std::string_view, std::string_view>> aliases = {};  // columns that have other names here
  std::string_view refusal = {};  // why none of its files is a table, and what to do
};

// Whether a name is of that pattern.
bool is_of(std::string_view pattern, std::string_view name);
// The column of the head of that pattern; -1 if there is none.
int column_of(std::string_view pattern, std::span<const std::string> head);

// The rule for a table with these columns; nullptr: none. `keys`: of the map around. UserError at `place` for files
// that are not tables.
const TableRule* rule_for(std::span<const std::string> head, std::span<const std::string> keys, std::string_view place);

// Names arguments and columns as the rule says, and leaves out rows that sum up others. Returns the parameters.
std::vector<std::string> use_rule(const TableRule& rule, TableRecords& records, Import& import, std::string_view file);

// Whether programs whose tables are known have that name ("hyperfine"), for a format that there is not.
bool is_program_of_tables(std::string_view name);

}  // namespace graft::datasets::formats
