#include "datasets/formats/table_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <iterator>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "datasets/formats/table.h"

namespace graft::datasets::formats {
namespace {

constexpr std::string_view never_closed = "a quote that is never closed on this line";

struct Separator {
  char character;
  std::string_view name, names;
};
constexpr std::array separators = {Separator{',', "comma", "commas"}, Separator{'\t', "tab", "tabs"},
                                   Separator{';', "semicolon", "semicolons"}, Separator{'|', "bar", "bars"}};

std::string_view digits_in_front(std::string_view text) {
  return text.substr(0, std::min(text.find_first_not_of("0123456789"), text.size()));
}

// "12,5", "-0,5e-3": a number with a comma in front of its fraction.
bool has_comma_as_point(std::string_view text) {
  text = base::trim(text);
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  const std::size_t whole = digits_in_front(text).size();
  if (whole == 0 || whole == text.size() || text[whole] != ',') return false;
  text.remove_prefix(whole + 1);
  const std::size_t fraction = digits_in_front(text).size();
  if (fraction == 0) return false;
  text.remove_prefix(fraction);
  if (text.empty()) return true;
  if (text[0] != 'e' && text[0] != 'E') return false;
  text.remove_prefix(1);
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.empty() && digits_in_front(text).size() == text.size();
}

// "12,345", which may be 12345.
bool may_be_group_of_digits(std::string_view text) {
  text = base::trim(text);
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  const std::size_t whole = digits_in_front(text).size();
  return whole <= 3 && text[0] != '0' && text.size() == whole + 4 &&
         digits_in_front(text.substr(whole + 1)).size() == 3;
}

bool has_point(std::string_view text) {
  return text.find('.') != std::string_view::npos && is_number(text);
}

// The cells of a line, quotes resolved; why it has none, or "".
std::string_view read_cells(std::string_view line, char separator, std::vector<std::string>& cells) {
  cells.assign(1, "");
  const auto after_blanks = [&](std::size_t at) {
    while (at < line.size() && line[at] == ' ') ++at;
    return at;
  };
  for (std::size_t at = 0;;) {
    std::string& cell = cells.back();
    if (const std::size_t quote = after_blanks(at); quote < line.size() && line[quote] == '"') {
      for (at = quote + 1;; ++at) {
        if (at >= line.size()) return never_closed;
        if (line[at] != '"') {
          cell += line[at];
        } else if (at + 1 < line.size() && line[at + 1] == '"') {
          cell += line[at++];
        } else {
          break;
        }
      }
      at = after_blanks(at + 1);
      if (at < line.size() && line[at] != separator) return "text after a closing quote";
    } else {
      const std::size_t end = std::min(line.find(separator, at), line.size());
      cell = base::trim(line.substr(at, end - at));
      at = end;
    }
    if (at >= line.size()) return "";
    ++at;
    cells.emplace_back();
  }
}

// The first lines that are not comments, for a look at how the table is written.
std::vector<std::string> first_lines(const std::filesystem::path& path) {
  constexpr std::size_t most_lines = 200, most_bytes = std::size_t(1) << 20;
  std::vector<std::string> found;
  std::size_t bytes = 0;
  LineReader lines(path);
  try {
    while (found.size() < most_lines && bytes < most_bytes && lines.next_line()) {
      bytes += lines.whole().size();
      if (!lines.text().empty() && !lines.text().starts_with('#')) found.emplace_back(lines.whole());
    }
  } catch (const base::UserError&) {  // counted when the table is read
  }
  return found;
}

// How well a separator fits: lines of equally many cells, more than one, and the share of numbers among those cells.
struct Fit {
  std::size_t lines = 0;
  double numbers = 0;
  std::vector<std::vector<std::string>> rows;  // those lines
  bool has_first = false;                      // the first line is one of them
  std::size_t first = 0;                       // the number of those in front of them
};

Fit fit_of(const std::vector<std::string>& lines, char separator) {
  std::vector<std::vector<std::string>> all;
  std::map<std::size_t, std::size_t> counts;  // lines by their number of cells
  for (const std::string& line : lines) {
    std::vector<std::string> cells;
    if (!read_cells(line, separator, cells).empty()) cells.clear();
    if (cells.size() > 1) ++counts[cells.size()];
    all.push_back(std::move(cells));
  }
  Fit fit;
  std::size_t width = 0;
  for (const auto& [size, count] : counts) {
    if (count <= fit.lines) continue;
    fit.lines = count;
    width = size;
  }
  if (width == 0) return fit;
  fit.has_first = all.front().size() == width;
  while (all[fit.first].size() != width) ++fit.first;
  std::size_t numbers = 0;
  for (std::vector<std::string>& cells : all) {
    if (cells.size() != width) continue;
    for (const std::string& cell : cells) {
      numbers += is_number(cell) || (separator != ',' && has_comma_as_point(cell));
    }
    fit.rows.push_back(std::move(cells));
  }
  fit.numbers = double(numbers) / double(fit.lines * width);
  return fit;
}

// Whether the first line names columns although numbers are among the names, as columns of numbers of threads have.
bool has_numbers_for_names(const std::vector<std::vector<std::string>>& rows) {
  bool has_word = false;
  for (std::size_t c = 0; c < rows.front().size(); ++c) {
    const std::string& name = rows.front()[c];
    if (!is_number(name)) {
      has_word = has_word || !name.empty();
      continue;
    }
    const bool has_fractions =
        std::any_of(rows.begin() + 1, rows.end(), [&](const auto& cells) { return has_point(cells[c]); });
    if (has_point(name) || !has_fractions) return false;
  }
  return has_word;
}

bool first_line_is_head(const Fit& fit) {
  if (!fit.has_first) return true;
  const std::vector<std::string>& first = fit.rows.front();
  if (std::none_of(first.begin(), first.end(), is_number) || has_numbers_for_names(fit.rows)) return true;
  // A word over numbers is their name, and so is a number over words.
  const auto others = std::int64_t(fit.rows.size()) - 1;
  for (std::size_t c = 0; c < first.size(); ++c) {
    const auto numbers =
        std::count_if(fit.rows.begin() + 1, fit.rows.end(), [&](const auto& cells) { return is_number(cells[c]); });
    if (is_number(first[c]) ? 2 * numbers < others : !first[c].empty() && others > 0 && numbers == others) return true;
  }
  return false;
}

// Whether the first line is none of the table's, but a later one names its columns: words above numbers.
bool names_columns_later(const Fit& fit) {
  if (fit.has_first || fit.rows.size() < 2) return false;
  const std::vector<std::string>& head = fit.rows.front();
  const bool has_names =
      std::none_of(head.begin(), head.end(), [](const std::string& cell) { return cell.empty() || is_number(cell); });
  return has_names && std::any_of(fit.rows[1].begin(), fit.rows[1].end(), is_number);
}

char separator_named(std::string_view name) {
  std::vector<std::string> names;
  for (const Separator& each : separators) {
    if (name == each.name || name == std::string_view(&each.character, 1)) return each.character;
    names.emplace_back(each.name);
  }
  throw base::UserError("option separator",
                        fmt::format("unknown separator '{}'{}", name, base::did_you_mean(name, names)));
}

// The second of two words for an option that has one of them; nothing if it is not given.
std::optional<bool> chosen(const Import& import, std::string_view option, std::string_view first,
                           std::string_view second) {
  const std::string_view said = import.option(option);
  if (said.empty()) return std::nullopt;
  if (said != first && said != second) {
    throw base::UserError(fmt::format("option {}", option),
                          fmt::format("expected {} or {}, got '{}'", first, second, said));
  }
  return said == second;
}

// Whether numbers are written with a comma in front of their fraction, and not with a point.
bool has_decimal_comma(const Fit& fit, const std::filesystem::path& path) {
  std::string seen;
  bool is_certain = false;
  for (const std::vector<std::string>& cells : fit.rows) {
    for (const std::string& cell : cells) {
      if (has_point(cell)) return false;
      if (!has_comma_as_point(cell)) continue;
      is_certain = is_certain || !may_be_group_of_digits(cell);
      if (seen.empty()) seen = cell;
    }
  }
  if (!seen.empty() && !is_certain) {
    throw base::UserError(path.string(),
                          fmt::format("'{}' may be a fraction or thousands; say which: option decimal=comma, or "
                                      "decimal=point (then it is a word)",
                                      seen.substr(0, 40)));
  }
  return !seen.empty();
}

void use_points(std::vector<std::string>& cells) {
  for (std::string& cell : cells) {
    if (has_comma_as_point(cell)) *std::find(cell.begin(), cell.end(), ',') = '.';
  }
}

}  // namespace

bool is_number(std::string_view text) {
  text = base::trim(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error != std::errc::invalid_argument && end == text.data() + text.size();
}

std::vector<std::string> csv_cells(std::string_view line, std::string_view place) {
  std::vector<std::string> cells;
  if (const std::string_view problem = read_cells(line, ',', cells); !problem.empty()) {
    throw base::UserError(place, problem);
  }
  return cells;
}

namespace {

TableForm lines_form(Import& import, const std::filesystem::path& path) {
  const std::vector<std::string> lines = first_lines(path);
  const std::string_view said = import.option("separator");
  TableForm form;
  if (!lines.empty() && lines.front().starts_with(workload_column)) return form;  // our own
  Fit best;
  if (!said.empty()) {
    form.separator = separator_named(said);
    best = fit_of(lines, form.separator);
  } else {
    for (const Separator& each : separators) {
      Fit fit = fit_of(lines, each.character);
      if (std::pair(fit.lines, fit.numbers) <= std::pair(best.lines, best.numbers)) continue;
      best = std::move(fit);
      form.separator = each.character;
    }
  }
  const std::optional<bool> comma = chosen(import, "decimal", "point", "comma");
  form.has_decimal_comma = comma ? *comma : form.separator != ',' && has_decimal_comma(best, path);
  if (form.has_decimal_comma) {
    for (std::vector<std::string>& cells : best.rows) use_points(cells);
  }
  const std::optional<bool> head = chosen(import, "head", "no", "yes");
  form.has_head = head ? *head : first_line_is_head(best);

  std::vector<std::string> notes;
  if (form.has_head && names_columns_later(best)) {
    form.before_head = std::int64_t(best.first);
    notes.push_back(fmt::format("{} in front of the names of the columns left out", base::counted(best.first, "line")));
  }
  if (said.empty() && form.separator != ',') {
    const auto used = std::find_if(separators.begin(), separators.end(),
                                   [&](const Separator& each) { return each.character == form.separator; });
    notes.push_back(fmt::format("cells are separated by {} (option separator says otherwise)", used->names));
  }
  if (!comma && form.has_decimal_comma) {
    notes.emplace_back("numbers have a comma in front of their fraction (option decimal says otherwise)");
  }
  if (!head && !form.has_head) {
    notes.emplace_back(
        "the first line holds numbers and names nothing, so columns are column_1, column_2, ... (option "
        "head=yes takes it for names)");
  }
  if (!notes.empty()) import.monitor().note(fmt::format("{}: {}", path.filename().string(), base::join(notes, "; ")));
  return form;
}

// All lines in memory.
TableRecords records_of(Import& import, const std::filesystem::path& path, const TableForm& form) {
  constexpr std::size_t most_cells = std::size_t(1) << 24;
  TableRecords records;
  TableLines lines(import, path, form, true);
  records.head = lines.head();
  while (lines.next()) {
    records.rows.push_back(lines.cells());
    records.lines.push_back(lines.line());
    if (records.rows.size() * records.head.size() > most_cells)
      throw TooMuch(path.string(),
                    fmt::format("more than {} cells; leave out the columns that do not matter", most_cells));
  }
  return records;
}

void use_rule(TableForm& form, TableRecords records, Import& import, const std::filesystem::path& path) {
  if (form.rule != nullptr) form.parameters = use_rule(*form.rule, records, import, path.string());
  form.records = std::make_shared<const TableRecords>(std::move(records));
}

}  // namespace

TableForm table_form(Import& import, const std::filesystem::path& path) {
  if (is_json(path)) {
    TableForm form;
    form.is_json = true;
    TableRecords records = json_records(import, path);
    form.rule = rule_for(records.head, records.keys, path.string());
    if (records.rows.empty() && !import.first_skipped().empty()) throw base::UserError(import.first_skipped());
    if (records.rows.empty())
      throw base::UserError(path.string(),
                            "is JSON without a list of maps; write a map for each configuration with its "
                            "time, a line each (pandas: to_json(orient='records', lines=True))");
    use_rule(form, std::move(records), import, path);
    return form;
  }
  TableForm form = lines_form(import, path);
  form.rule = rule_for(TableLines(import, path, form, false).head(), {}, path.string());
  if (form.rule != nullptr) use_rule(form, records_of(import, path, form), import, path);
  return form;
}

TableLines::TableLines(Import& import, const std::filesystem::path& path, const TableForm& form, bool counts)
    : import_(import), form_(form), counts_(counts), lines_(path) {
  read_head();
}

std::string TableLines::place() const {
  return fmt::format("{}:{}", file(), line_.number);
}

void TableLines::fail(std::string_view message) const {
  throw base::UserError(place(), message);
}

// Any line, into line_.
bool TableLines::take_line() {
  if (!ahead_.empty()) {
    line_ = std::move(ahead_.front());
    ahead_.pop_front();
    return true;
  }
  for (;;) {
    try {
      if (!lines_.next_line()) return false;
    } catch (const base::UserError& error) {
      if (counts_) import_.skip(error, lines_.file());
      continue;
    }
    line_.text = lines_.whole();
    line_.number = lines_.number();
    line_.is_unfinished = lines_.is_unfinished();
    return true;
  }
}

// Any line that holds something, commented or not.
bool TableLines::next_line() {
  while (take_line()) {
    if (!base::trim(line_.text).empty()) return true;
    if (counts_) import_.ignore("empty line", place());
  }
  return false;
}

// The cells of the record that begins with line_; why it has none, or "".
std::string_view TableLines::read_record(std::vector<std::string>& cells) {
  std::string_view problem = read_cells(line_.text, form_.separator, cells);
  if (problem == never_closed) problem = read_joined(cells);
  if (problem.empty() && form_.has_decimal_comma) use_points(cells);
  return problem;
}

// The same for a line whose last quote is open: with the lines after it, if these close the quote so that the record
// fits the head.
std::string_view TableLines::read_joined(std::vector<std::string>& cells) {
  constexpr std::size_t most_lines = 100, most_bytes = std::size_t(1) << 14;
  Line first = line_;
  std::vector<Line> taken;
  std::string text = first.text;
  bool is_read = false;
  while (!is_read && taken.size() < most_lines && text.size() < most_bytes && take_line()) {
    text += '\n';
    text += line_.text;
    const bool may_close = line_.text.find('"') != std::string::npos;
    taken.push_back(std::move(line_));
    if (!may_close) continue;
    const std::string_view problem = read_cells(text, form_.separator, cells);
    is_read = problem.empty() && (head_.empty() || cells.size() == head_.size());
    if (problem != never_closed && !is_read) break;
  }
  line_ = std::move(first);
  if (is_read) {
    line_.is_unfinished = taken.back().is_unfinished;
    return "";
  }
  ahead_.insert(ahead_.begin(), std::make_move_iterator(taken.begin()), std::make_move_iterator(taken.end()));
  return never_closed;
}

void TableLines::read_head() {
  if (form_.records != nullptr) {
    head_ = form_.records->head;
    head_place_ = file() + ":1";
    return;
  }
  std::vector<std::string> comment, cells;
  std::string comment_place;
  std::int64_t before = 0;
  while (next_line()) {
    const std::string_view text = base::trim(line_.text);
    if (text.starts_with('#')) {
      if (counts_ && !comment_place.empty()) import_.ignore("comment", comment_place);
      if (!read_cells(text.substr(std::min(text.find_first_not_of("# \t"), text.size())), form_.separator, comment)
               .empty()) {
        comment.clear();
      }
      comment_place = place();
      continue;
    }
    if (before < form_.before_head) {
      ++before;
      if (counts_) import_.ignore("line in front of the table", place());
      continue;
    }
    if (const std::string_view problem = read_record(cells); !problem.empty()) fail(problem);
    const auto is_name = [](const std::string& cell) { return !cell.empty() && !is_number(cell); };
    if (comment.size() > 1 && comment.size() == cells.size() && std::any_of(cells.begin(), cells.end(), is_number) &&
        std::all_of(comment.begin(), comment.end(), is_name)) {
      head_ = std::move(comment);
      head_place_ = comment_place;
      is_pending_ = true;
    } else {
      if (counts_ && !comment_place.empty()) import_.ignore("comment", comment_place);
      head_place_ = place();
      is_pending_ = !form_.has_head;
      if (form_.has_head) head_ = std::move(cells);
      for (std::size_t c = 1; is_pending_ && c <= cells.size(); ++c) head_.push_back(fmt::format("column_{}", c));
    }
    if (is_pending_) cells_ = std::move(cells);
    for (std::string& name : head_) std::replace(name.begin(), name.end(), '\n', ' ');
    return;
  }
  throw base::UserError(lines_.file() + ":1", "an empty file; expected a line with the names of the columns");
}

bool TableLines::is_comment() const {
  const std::string_view text = base::trim(line_.text);
  if (!text.starts_with('#')) return false;
  std::vector<std::string> cells;
  return !read_cells(text, form_.separator, cells).empty() || cells.size() != head_.size() ||
         std::none_of(cells.begin(), cells.end(), is_number);
}

bool TableLines::next() {
  if (form_.records != nullptr) {
    if (next_row_ == form_.records->rows.size()) return false;
    cells_ = form_.records->rows[next_row_];
    line_.number = form_.records->lines[next_row_++];
    return true;
  }
  if (is_pending_) {
    is_pending_ = false;
    return true;
  }
  while (next_line()) {
    if (is_comment()) {
      if (counts_) import_.ignore("comment", place());
      continue;
    }
    try {
      if (const std::string_view problem = read_record(cells_); !problem.empty()) fail(problem);
      if (cells_.size() == head_.size()) return true;
      fail(fmt::format("{} cells; the head has {}", cells_.size(), head_.size()));
    } catch (const base::UserError& error) {
      if (counts_) import_.skip(error, file(), is_unfinished());
    }
  }
  return false;
}

}  // namespace graft::datasets::formats
