// Private to this folder: a table's head, its lines, and the roles of its columns.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/formats/columns.h"
#include "datasets/formats/format.h"

namespace graft::datasets::formats {

constexpr std::string_view every_platform = "*";
// The first column of an exported table, and of no other: the configuration follows, and last the seconds.
constexpr std::string_view workload_column = "graft_workload";

// The lines of a CSV file, one at a time. The head is the first line that is not a comment, or the last comment in
// front of it if that names as many columns and the line holds a number. A line that begins with '#' is a comment
// unless it has all cells and a number among them.
class TableLines {
 public:
  // Files are read several times: with `counts`, comments and broken lines are counted. UserError
  // for a file without a head.
  TableLines(Import& import, const std::filesystem::path& path, bool counts);

  const std::vector<std::string>& head() const { return head_; }
  const std::string& head_place() const { return head_place_; }
  // The next line with as many cells as the head; false at the end.
  bool next();
  const std::vector<std::string>& cells() const { return cells_; }
  const LineReader& lines() const { return lines_; }

 private:
  bool next_line();
  void read_head();
  bool is_comment(std::string_view line) const;

  Import& import_;
  bool counts_;
  LineReader lines_;
  std::vector<std::string> head_, cells_;
  std::string head_place_;
  bool is_pending_ = false;  // the first record has been read with the head
};

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
    double seconds = 1;  // per unit
  };
  std::vector<int> workload, configuration;
  std::vector<Time> times;
  bool is_inverse = false;   // more is better: 1 / value is used as the time
  bool is_exported = false;  // by export_table: the first column holds the texts of workloads
};

// Decided by the options of the import, the platform's name and the contents of the columns. UserError that says which
// columns could have which role.
TableRoles table_roles(Import& import, const std::filesystem::path& path, const Columns& columns, const Tuples& tuples,
                       const TableLines& lines);

}  // namespace graft::datasets::formats
