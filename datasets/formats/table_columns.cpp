#include "datasets/formats/table_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <system_error>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "datasets/formats/table.h"

namespace graft::datasets::formats {
namespace {

constexpr std::size_t most_numbers = 16;  // of a tuple

bool is_number(std::string_view text) {
  text = base::trim(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error != std::errc::invalid_argument && end == text.data() + text.size();
}

// The numbers of "(4, 8, 16)" or "[4, 8, 16]", as they are written; empty for any other text.
std::vector<std::string> tuple_of(std::string_view cell) {
  cell = base::trim(cell);
  const bool is_closed =
      (cell.starts_with('(') && cell.ends_with(')')) || (cell.starts_with('[') && cell.ends_with(']'));
  if (!is_closed || cell.size() < 3) return {};
  cell = base::trim(cell.substr(1, cell.size() - 2));
  if (cell.ends_with(',')) cell.remove_suffix(1);
  std::vector<std::string> numbers;
  for (const std::string_view part : base::split(cell, ',')) {
    if (!is_number(part) || numbers.size() == most_numbers) return {};
    numbers.emplace_back(base::trim(part));
  }
  return numbers;
}

std::string lower(std::string_view text) {
  std::string result;
  for (const char c : text) result += char(std::tolower((unsigned char)c));
  return result;
}

// "duration (us)" and "time[ms]" name their unit, in any words; "exec_time_ms" too, if it is one of time.
std::optional<std::string> unit_in(std::string_view name) {
  name = base::trim(name);
  const std::size_t open = name.find_last_of("([");
  if (open != std::string_view::npos && (name.ends_with(')') || name.ends_with(']'))) {
    return std::string(base::trim(name.substr(open + 1, name.size() - open - 2)));
  }
  const std::size_t dash = name.rfind('_');
  if (dash == std::string_view::npos || !is_unit_of_time(name.substr(dash + 1))) return std::nullopt;
  const std::string stem = lower(name.substr(0, dash));
  for (const std::string_view word : {"time", "duration", "latency", "elapsed", "cost"}) {
    if (stem.find(word) != std::string::npos) return std::string(name.substr(dash + 1));
  }
  return std::nullopt;
}

// Whether the name of a column says that more of it is better.
bool says_more_is_better(std::string_view name) {
  const std::string text = lower(name);
  if (text.find('%') != std::string::npos || text.find("/s") != std::string::npos ||
      text.find("per_s") != std::string::npos) {
    return true;
  }
  std::vector<std::string> words{""};
  for (const char c : text) {
    if (std::isalnum((unsigned char)c)) {
      words.back() += c;
    } else {
      words.emplace_back();
    }
  }
  constexpr std::string_view known[] = {"percent",    "pct",   "flops", "mflops",     "gflops",    "tflops",
                                        "mflop",      "gflop", "tflop", "throughput", "bandwidth", "speedup",
                                        "efficiency", "score", "fps",   "gbps",       "qps",       "ops",
                                        "gops",       "tops",  "reward"};
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return std::find(std::begin(known), std::end(known), word) != std::end(known);
  });
}

}  // namespace

TableLines::TableLines(Import& import, const std::filesystem::path& path, bool counts)
    : import_(import), counts_(counts), lines_(path) {
  read_head();
}

// Any line that holds something, commented or not.
bool TableLines::next_line() {
  for (;;) {
    try {
      if (!lines_.next_line()) return false;
    } catch (const base::UserError& error) {
      if (counts_) import_.skip(error, lines_.file());
      continue;
    }
    if (!lines_.text().empty()) return true;
    if (counts_) import_.ignore("empty line", lines_.place());
  }
}

void TableLines::read_head() {
  std::vector<std::string> comment;
  std::string comment_place;
  while (next_line()) {
    std::string_view text = lines_.text();
    if (lines_.number() == 1 && text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    const bool is_comment = text.starts_with('#');
    if (is_comment) {
      if (counts_ && !comment_place.empty()) import_.ignore("comment", comment_place);
      text.remove_prefix(std::min(text.find_first_not_of("# \t"), text.size()));
    }
    std::vector<std::string> cells;
    try {
      cells = csv_cells(text, lines_.place());
    } catch (const base::UserError&) {
      if (!is_comment) throw;
    }
    if (is_comment) {
      comment = std::move(cells);
      comment_place = lines_.place();
      continue;
    }
    const auto is_name = [](const std::string& cell) { return !cell.empty() && !is_number(cell); };
    if (comment.size() > 1 && comment.size() == cells.size() && std::any_of(cells.begin(), cells.end(), is_number) &&
        std::all_of(comment.begin(), comment.end(), is_name)) {
      head_ = std::move(comment);
      head_place_ = comment_place;
      cells_ = std::move(cells);
      is_pending_ = true;
    } else {
      if (counts_ && !comment_place.empty()) import_.ignore("comment", comment_place);
      head_ = std::move(cells);
      head_place_ = lines_.place();
    }
    return;
  }
  throw base::UserError(lines_.file() + ":1", "an empty file; expected a line with the names of the columns");
}

bool TableLines::is_comment(std::string_view line) const {
  if (!line.starts_with('#')) return false;
  try {
    const std::vector<std::string> cells = csv_cells(line, "");
    return cells.size() != head_.size() || std::none_of(cells.begin(), cells.end(), is_number);
  } catch (const base::UserError&) {
    return true;
  }
}

bool TableLines::next() {
  if (is_pending_) {
    is_pending_ = false;
    return true;
  }
  while (next_line()) {
    if (is_comment(lines_.text())) {
      if (counts_) import_.ignore("comment", lines_.place());
      continue;
    }
    try {
      cells_ = csv_cells(lines_.text(), lines_.place());
      if (cells_.size() == head_.size()) return true;
      lines_.fail(fmt::format("{} cells; the head has {}", cells_.size(), head_.size()));
    } catch (const base::UserError& error) {
      if (counts_) import_.skip(error, lines_.file(), lines_.is_unfinished());
    }
  }
  return false;
}

Tuples::Tuples(TableLines& lines) : sizes_(lines.head().size(), 0) {
  if (lines.head().front() == workload_column || !lines.next()) return;
  for (std::size_t c = 0; c < sizes_.size(); ++c) sizes_[c] = int(tuple_of(lines.cells()[c]).size());
  const auto is_open = [&] { return std::any_of(sizes_.begin(), sizes_.end(), [](int size) { return size > 0; }); };
  while (is_open() && lines.next()) {
    for (std::size_t c = 0; c < sizes_.size(); ++c) {
      if (sizes_[c] > 0 && int(tuple_of(lines.cells()[c]).size()) != sizes_[c]) sizes_[c] = 0;
    }
  }
}

std::vector<std::string> Tuples::names(const std::vector<std::string>& head) const {
  std::vector<std::string> names;
  for (std::size_t c = 0; c < head.size(); ++c) {
    if (sizes_[c] == 0) names.push_back(head[c]);
    for (int i = 0; i < sizes_[c]; ++i) names.push_back(fmt::format("{}_{}", head[c], i));
  }
  return names;
}

std::vector<std::string> Tuples::apart(const std::vector<std::string>& cells) const {
  std::vector<std::string> result;
  for (std::size_t c = 0; c < cells.size(); ++c) {
    if (sizes_[c] == 0) {
      result.push_back(cells[c]);
    } else {
      std::vector<std::string> numbers = tuple_of(cells[c]);
      numbers.resize(std::size_t(sizes_[c]));
      std::move(numbers.begin(), numbers.end(), std::back_inserter(result));
    }
  }
  return result;
}

std::vector<int> Tuples::columns_of(int head_column) const {
  int first = 0;
  for (int c = 0; c < head_column; ++c) first += std::max(sizes_[std::size_t(c)], 1);
  std::vector<int> columns;
  for (int i = 0; i < std::max(sizes_[std::size_t(head_column)], 1); ++i) columns.push_back(first + i);
  return columns;
}

namespace {

// Columns are those of the head here.
class Choice {
 public:
  Choice(Import& import, const std::filesystem::path& path, const Columns& columns, const Tuples& tuples,
         const TableLines& lines)
      : import_(import),
        path_(path),
        columns_(columns),
        tuples_(tuples),
        head_(lines.head()),
        place_(lines.head_place()),
        uses_(head_.size(), Use::open) {}

  TableRoles roles() {
    TableRoles roles;
    const std::string& platform = import_.settings().platform;
    const std::string_view inverse = import_.option("higher-is-better", "no");
    if (inverse != "yes" && inverse != "no") {
      throw base::UserError("--options higher-is-better", fmt::format("expected yes or no, got '{}'", inverse));
    }
    roles.is_inverse = inverse == "yes";
    if (const std::string_view unit = import_.option("unit"); !unit.empty()) seconds_per(unit, "--options unit");
    mark("ignore", Use::ignored);
    mark("workload", Use::workload);
    mark("parameters", Use::parameter);
    roles.is_exported = head_.front() == workload_column && uses_.front() == Use::open;
    if (roles.is_exported) uses_.front() = Use::ignored;

    const std::string time(import_.option("time"));
    std::vector<int> times, parameters;
    if (!time.empty()) {
      if (platform == every_platform) {
        throw base::UserError("--platform", "'*' takes a column of times for each platform; with --time, name the one");
      }
      if (!import_.option("times-from").empty())
        throw base::UserError("--options times-from", "is for tables without --time");
      const int column = named("time", time);
      if (uses_[std::size_t(column)] != Use::open) {
        throw base::UserError("--time", fmt::format("column '{}' is named by another option, too", time));
      }
      times.push_back(column);
      uses_[std::size_t(column)] = Use::time;
      parameters = parameters_around(column);
    } else {
      const int first = first_time(roles.is_exported);
      std::vector<std::string> known;
      for (int c = 0; c < count(); ++c) {
        if (use(c) == Use::open && c < first) parameters.push_back(c);
        if (use(c) != Use::open || c < first) continue;
        known.push_back(head_[std::size_t(c)]);
        if (platform == every_platform || platform == known.back()) times.push_back(c);
      }
      if (times.empty()) {
        throw base::UserError(place_, fmt::format("no column of times '{}'{}; another name is given to a column by "
                                                  "--time COLUMN; {}",
                                                  platform, base::did_you_mean(platform, known), described()));
      }
    }
    if (!import_.option("parameters").empty()) parameters = with(Use::parameter);
    if (parameters.empty()) {
      throw base::UserError(place_, fmt::format("no column is left that says what was measured; name them: "
                                                "--options parameters=A,B; {}",
                                                described()));
    }
    for (const int column : times) roles.times.push_back(time_of(column, !time.empty(), roles));
    roles.workload = flat(with(Use::workload));
    roles.configuration = flat(parameters);
    say(times, parameters, roles);
    return roles;
  }

 private:
  enum class Use { open, ignored, workload, parameter, time };

  int count() const { return int(head_.size()); }
  Use use(int column) const { return uses_[std::size_t(column)]; }
  bool is_single(int column) const { return tuples_.columns_of(column).size() == 1; }
  bool has_fraction(int column) const {
    return is_single(column) && columns_.has_fraction(tuples_.columns_of(column).front());
  }
  bool is_number_only(int column) const {
    return is_single(column) && !columns_.has_text(tuples_.columns_of(column).front());
  }

  int named(std::string_view option, const std::string& name) const {
    const auto found = std::find(head_.begin(), head_.end(), name);
    if (found != head_.end()) return int(found - head_.begin());
    throw base::UserError(
        place_, fmt::format("no column '{}' ({}){}; {}", name, option, base::did_you_mean(name, head_), described()));
  }

  void mark(std::string_view option, Use use) {
    const std::string_view list = import_.option(option);
    if (list.empty()) return;
    for (const std::string& name : csv_cells(list, fmt::format("--options {}", option))) {
      Use& before = uses_[std::size_t(named(option, name))];
      if (before != Use::open) {
        throw base::UserError(fmt::format("--options {}", option), fmt::format("column '{}' is named twice", name));
      }
      before = use;
    }
  }

  std::vector<int> with(Use use) const {
    std::vector<int> columns;
    for (int c = 0; c < count(); ++c) {
      if (this->use(c) == use) columns.push_back(c);
    }
    return columns;
  }

  std::vector<int> flat(const std::vector<int>& columns) const {
    std::vector<int> result;
    for (const int column : columns) {
      for (const int each : tuples_.columns_of(column)) result.push_back(each);
    }
    return result;
  }

  std::string names(const std::vector<int>& columns) const {
    constexpr std::size_t most = 20;  // that are listed
    std::vector<std::string> names;
    for (const int column : columns) names.push_back(head_[std::size_t(column)].substr(0, 40));
    if (names.size() > most) {
      const std::size_t more = names.size() - most;
      names.resize(most);
      names.push_back(fmt::format("{} more", more));
    }
    return base::join(names, ", ");
  }

  // Which columns could be what.
  std::string described() const {
    std::vector<int> times, others;
    for (int c = 0; c < count(); ++c) (is_number_only(c) && has_fraction(c) ? times : others).push_back(c);
    return fmt::format(
        "numbers with fractions, so perhaps times: {}; whole numbers or words, so perhaps parameters: {}",
        times.empty() ? "none" : names(times), others.empty() ? "none" : names(others));
  }

  // Where times begin in a table that has a column for each platform.
  int first_time(bool is_exported) const {
    const std::string from(import_.option("times-from"));
    if (!from.empty()) return checked_first(named("times-from", from));
    if (is_exported) return checked_first(count() - 1);
    const auto found = std::find(head_.begin(), head_.end(), import_.settings().platform);
    int first = found == head_.end() ? -1 : int(found - head_.begin());
    for (int c = 0; c < count(); ++c) {
      if (use(c) == Use::open && has_fraction(c) && (first < 0 || c < first)) first = c;
    }
    if (first < 0) {
      throw base::UserError(place_,
                            fmt::format("no column with fractions, so which ones are times is unknown; name the "
                                        "first one: --options times-from=COLUMN, or the only one: --time "
                                        "COLUMN; {}",
                                        described()));
    }
    return checked_first(first);
  }

  int checked_first(int first) const {
    for (int c = 0; c < first; ++c) {
      if (use(c) == Use::open || use(c) == Use::parameter) return first;
    }
    throw base::UserError(place_, fmt::format("column '{}' is taken for a time, and nothing stands before it that says "
                                              "what was measured; name the first time: --options times-from=COLUMN, or "
                                              "the only one: --time COLUMN; {}",
                                              head_[std::size_t(first)], described()));
  }

  // Those before the time. Other measurements usually follow the time; if most rows equal another one in the
  // columns before it, the columns of whole numbers and words directly after it are parameters as far as they
  // distinguish rows.
  std::vector<int> parameters_around(int time) const {
    std::vector<int> parameters, behind;
    for (int c = 0; c < time; ++c) {
      if (use(c) == Use::open) parameters.push_back(c);
    }
    for (int c = time + 1; c < count() && !has_fraction(c) && behind.size() < 16; ++c) {
      if (use(c) == Use::open) behind.push_back(c);
    }
    if (!import_.option("parameters").empty() || behind.empty()) return parameters;
    std::vector<int> chosen = parameters;
    std::size_t rows = 0, different = different_rows(chosen, rows);
    if (!parameters.empty() && 2 * different > rows) return parameters;
    for (std::size_t i = 0; i < behind.size() && different < rows; ++i) {
      chosen.push_back(behind[i]);
      if (const std::size_t now = different_rows(chosen, rows); now > different) {
        different = now;
      } else {
        chosen.pop_back();
      }
    }
    return chosen.empty() ? behind : chosen;
  }

  // How many different values these columns and the workload's have together.
  std::size_t different_rows(const std::vector<int>& columns, std::size_t& rows) const {
    constexpr std::size_t most_rows = 10'000'000;  // that are looked at
    std::vector<int> all = columns;
    for (const int column : with(Use::workload)) all.push_back(column);
    std::vector<std::uint64_t> hashes;
    for (TableLines lines(import_, path_, false); hashes.size() < most_rows && lines.next();) {
      std::uint64_t hash = 0;
      for (const int column : all) {
        hash = base::hash_combine(hash, base::hash_bytes(lines.cells()[std::size_t(column)]));
      }
      hashes.push_back(hash);
    }
    rows = hashes.size();
    std::sort(hashes.begin(), hashes.end());
    return std::size_t(std::unique(hashes.begin(), hashes.end()) - hashes.begin());
  }

  TableRoles::Time time_of(int column, bool is_named, const TableRoles& roles) const {
    const std::string& name = head_[std::size_t(column)];
    if (!is_single(column)) throw base::UserError(place_, fmt::format("column '{}' holds tuples, no times", name));
    TableRoles::Time time;
    time.column = tuples_.columns_of(column).front();
    time.platform = is_named ? import_.settings().platform : name;
    const std::string said(import_.option("unit"));
    if (roles.is_inverse) {
      if (!said.empty())
        throw base::UserError("--options unit", "is for times, not for values of which more is better");
      time.unit = "1 / " + name;
      return time;
    }
    const bool is_platform = roles.is_exported && column == count() - 1;  // its name says nothing of the values
    if (!is_platform && import_.option("higher-is-better").empty() && says_more_is_better(name)) {
      throw base::UserError(place_, fmt::format("column '{}' seems to hold values of which more is better; say so: "
                                                "--higher-is-better, or that they are times: --options "
                                                "higher-is-better=no",
                                                name));
    }
    const std::optional<std::string> in_head = is_platform ? std::nullopt : unit_in(name);
    if (in_head && is_unit_of_time(*in_head)) {
      time.unit = *in_head;
      time.seconds = seconds_per(*in_head, place_);
      if (!said.empty() && seconds_per(said, "--options unit") != time.seconds) {
        throw base::UserError("--options unit", fmt::format("'{}', but column '{}' names another unit", said, name));
      }
      return time;
    }
    if (in_head && said.empty()) {
      throw base::UserError(place_, fmt::format("'{}' of column '{}' is not a known unit of time; say the unit: "
                                                "--options unit=s (or ms, us, ns), or, where more is better, "
                                                "--higher-is-better",
                                                *in_head, name));
    }
    time.unit = said.empty() ? "s" : said;
    time.seconds = seconds_per(time.unit, "--options unit");
    return time;
  }

  void say(const std::vector<int>& times, const std::vector<int>& parameters, const TableRoles& roles) const {
    std::vector<int> rest;
    for (int c = 0; c < count(); ++c) {
      const bool is_used = use(c) == Use::workload || std::find(times.begin(), times.end(), c) != times.end() ||
                           std::find(parameters.begin(), parameters.end(), c) != parameters.end();
      if (!is_used && !(roles.is_exported && c == 0)) rest.push_back(c);
    }
    std::string text = fmt::format("{}: parameters: {}; {}: {} in {}", path_.filename().string(), names(parameters),
                                   roles.is_inverse ? "values of which more is better" : "times", names(times),
                                   roles.times.front().unit);
    if (const std::vector<int> workload = with(Use::workload); !workload.empty()) {
      text += "; workload: " + names(workload);
    }
    if (!rest.empty()) text += "; left out: " + names(rest);
    import_.monitor().note(text);
  }

  Import& import_;
  const std::filesystem::path& path_;
  const Columns& columns_;
  const Tuples& tuples_;
  const std::vector<std::string>& head_;
  const std::string& place_;
  std::vector<Use> uses_;
};

}  // namespace

TableRoles table_roles(Import& import, const std::filesystem::path& path, const Columns& columns, const Tuples& tuples,
                       const TableLines& lines) {
  return Choice(import, path, columns, tuples, lines).roles();
}

}  // namespace graft::datasets::formats
