// Private to this folder: the roles of a table's columns.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/expression/workload.h"
#include "datasets/formats/columns.h"
#include "datasets/formats/format.h"
#include "datasets/formats/table_lines.h"

namespace graft::datasets::formats {

constexpr std::string_view every_platform = "*";

// Cells that hold tuples of numbers, "(4, 8, 16)", in all lines become a column for each number: `tile` becomes tile_0,
// tile_1, tile_2. Not in an exported table, whose columns are those of the dataset.
class Tuples {
 public:
  explicit Tuples(TableLines& lines);  // reads all of them

  std::vector<std::string> names(const std::vector<std::string>& head) const;
  // The cells of those columns.
  std::vector<std::string> apart(const std::vector<std::string>& cells) const;
  // The columns that a column of the head became.
  std::vector<int> columns_of(int head_column) const;

 private:
  std::vector<int> sizes_;  // by column of the head; 0: no tuples
};

// The roles of columns; column numbers are those after Tuples.
struct TableRoles {
  struct Time {
    int column = 0;
    std::string platform;
    std::string unit;
    double seconds = 1;  // per unit; negative: all values are negated times
  };
  // Columns, if there are any: of the unit of each row's times (Google Benchmark's time_unit), of what says that a row
  // is good, and of what the times are divided by.
  int units = -1, validity = -1, divisor = -1;
  const TableRule* rule = nullptr;  // of the program that wrote the table
  std::vector<int> workload, configuration;
  std::string name;                              // of the workload: the file's, or the one that an option gives
  std::optional<codegen::Workload> computation;  // of all rows, if that one is a workload that we know
  std::vector<Time> times;
  bool is_inverse = false;   // more is better: 1 / value is used as the time
  bool is_exported = false;  // by export_table: the first column holds the texts of workloads
};

// Decided by the options of the import, the platform's name, the names and the contents of the columns; a note says
// what was decided. A program whose tables are known (table_rules.h) is named there; options say otherwise. Columns
// that were measured (a spread, an energy, another time) are not parameters unless an option
// says so. UserError that says which columns could have which role, and for times whose unit nothing says.
TableRoles table_roles(Import& import, const std::filesystem::path& path, const Columns& columns, const Tuples& tuples,
                       const TableLines& lines);

// The seconds of a cell that is a number with its unit, "1,234.5 us"; nothing for other ones.
std::optional<double> seconds_with_unit(std::string_view cell);

}  // namespace graft::datasets::formats
