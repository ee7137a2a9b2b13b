// What the columns of several tables mean together: columns are joined by name and values by value, whatever their
// order or number in each table. Made of the tables that meet (datasets/joined_tables.h); a model keeps the one that it
// learned by, and sees a new table through it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "codegen/space/candidate.h"

namespace graft::codegen {

struct TableSchema {
  struct Column {
    std::string name;
    std::vector<std::string> numbers;  // that occur, ascending; none if there are very many
    std::vector<std::string> words;    // that occur, in alphabetical order
    bool has_numbers = false;
    double middle = 0;        // the mean of its numbers, in place of one that a row lacks
    bool names_rows = false;  // its words are names of single rows and say nothing of others
    bool operator==(const Column&) const = default;
  };
  std::vector<Column> columns;
  // What one workload is called in the tables, which may be known by the names of files, and the columns that all of
  // its tables have, sorted: their values say which row is which.
  struct Kernel {
    std::vector<std::string> workloads;  // texts; the first is the name of all
    std::vector<std::string> key;
    bool operator==(const Kernel&) const = default;
  };
  std::vector<Kernel> kernels;
  bool operator==(const TableSchema&) const = default;
};

// Whether the candidate is a table's row.
bool is_row_of_table(const Candidate& candidate);
// A column's value as text, by which values of several tables are compared.
std::string column_value(const Sketch& sketch, std::size_t column, std::int64_t argument);
// A hash of the values of all columns by their names, regardless of their order and of what else occurs in the table.
std::uint64_t hash_by_name(const Candidate& row);
// The same of the named columns, which must be sorted; 0 if the row lacks one.
std::uint64_t hash_by_name(const Candidate& row, const std::vector<std::string>& columns);
// Which row it is of the schema's workloads, equal for all tables; never 0 if it is one. A workload without a kernel is
// that of the only kernel there is. 0: unknown, or no row of a table.
std::uint64_t row_identity(const TableSchema& schema, const Candidate& candidate);
// The name by which the schema joins the workload; itself if it has no kernel.
const std::string& joined_name(const TableSchema& schema, const std::string& workload);

// {"columns":[...],"kernels":[...]}; read strictly, UserError with the place.
base::Document to_document(const TableSchema& schema);
TableSchema table_schema_from(const base::Document& document);

}  // namespace graft::codegen
