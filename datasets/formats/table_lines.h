// Private to this folder: how a table is written, and its lines.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/formats/format.h"
#include "datasets/formats/table_records.h"
#include "datasets/formats/table_rules.h"

namespace graft::datasets::formats {

// The first column of an exported table, and of no other: the configuration follows, and last the seconds.
constexpr std::string_view workload_column = "graft_workload";

struct TableForm {
  char separator = ',';
  bool has_decimal_comma = false;  // 12,5 is a number
  bool has_head = true;            // the first line that is not a comment names the columns
  std::int64_t before_head = 0;    // lines in front of it that say something else
  // For JSON, and for a program whose tables are known.
  std::shared_ptr<const TableRecords> records = {};
  bool is_json = false;
  const TableRule* rule = nullptr;
  std::vector<std::string> parameters = {};  // by the rule
};
// As the options separator, decimal and head say, else by the first lines: the separator by which most lines have
// equally many cells; no head if the first line has numbers where the others have some. Lines of other sizes in front
// of a head are left out. Notes what differs from plain CSV. UserError for fractions that may as well be groups of
// digits
// ("12,345" alone), and for JSON that holds no records.
TableForm table_form(Import& import, const std::filesystem::path& path);

// Whether a text is a number, NaN and infinities among them.
bool is_number(std::string_view text);

// The records of a table, one at a time. The head is the first line that is not a comment, or the last comment in
// front of it if that names as many columns and the line holds a number; without a head, columns are column_1,
// column_2, ... A line that begins with '#' is a comment unless it has all cells and a number among them. A cell in
// quotes may hold line breaks; if a quote is not closed within a hundred lines, or the record does not fit the
// head, only the line with that quote is broken.
class TableLines {
 public:
  // Files are read several times: with `counts`, comments and broken lines are counted. UserError for a file without a
  // line.
  TableLines(Import& import, const std::filesystem::path& path, const TableForm& form, bool counts);

  const TableForm& form() const { return form_; }
  const std::vector<std::string>& head() const { return head_; }
  const std::string& head_place() const { return head_place_; }
  // The next record with as many cells as the head; false at the end.
  bool next();
  const std::vector<std::string>& cells() const { return cells_; }

  // As a LineReader has them, for the record.
  const std::string& file() const { return lines_.file(); }
  std::string place() const;
  std::int64_t line() const { return line_.number; }
  [[noreturn]] void fail(std::string_view message) const;
  bool is_unfinished() const { return line_.is_unfinished; }

 private:
  struct Line {
    std::string text;
    std::int64_t number = 0;
    bool is_unfinished = false;
  };
  bool next_line();
  bool take_line();
  void read_head();
  bool is_comment() const;
  std::string_view read_record(std::vector<std::string>& cells);
  std::string_view read_joined(std::vector<std::string>& cells);

  Import& import_;
  TableForm form_;
  bool counts_;
  LineReader lines_;
  Line line_;               // the first of the record
  std::deque<Line> ahead_;  // lines that a quote was expected to end in
  std::vector<std::string> head_, cells_;
  std::string head_place_;
  bool is_pending_ = false;   // the first record has been read with the head
  std::size_t next_row_ = 0;  // of form_.records
};

}  // namespace graft::datasets::formats
