#include "datasets/formats/table_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>

#include "base/error.h"
#include "base/hash.h"
#include "base/printed_value.h"
#include "base/text.h"
#include "base/units.h"
#include "datasets/formats/configurations.h"
#include "datasets/formats/table.h"

namespace graft::datasets::formats {
namespace {

constexpr std::size_t most_numbers = 16;  // of a tuple

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

std::string workload_name(const std::filesystem::path& file) {
  std::string name = file.filename().string();
  for (const std::string_view extension : {".gz", ".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson"}) {
    if (name.size() > extension.size() && name.ends_with(extension)) name.resize(name.size() - extension.size());
  }
  return name;
}

// Columns are known for what they hold by these words in their names.
constexpr std::string_view of_times[] = {"time",    "times",   "timing",  "duration",
                                         "latency", "elapsed", "runtime", "cost"};
constexpr std::string_view of_statistics[] = {"mean", "median", "avg", "average", "min", "max", "best"};
constexpr std::string_view of_spreads[] = {"std", "stdev",    "stddev", "deviation", "stderr",
                                           "sem", "variance", "iqr",    "spread",    "noise"};
constexpr std::string_view of_measurements[] = {"energy",      "power",    "watt", "watts",      "joule",  "joules",
                                                "temperature", "accuracy", "acc",  "loss",       "cycles", "ipc",
                                                "occupancy",   "misses",   "hits", "utilization"};
constexpr std::string_view of_units[] = {"unit", "units"};
// The number of a trial: it is another one in each row, and nothing that was chosen.
constexpr std::string_view of_trials[] = {"number", "trial", "trials", "id",    "index", "idx",        "no",   "nr",
                                          "uid",    "uuid",  "job",    "jobid", "row",   "evaluation", "hash", "runid"};
constexpr std::string_view of_moments[] = {"timestamp", "datetime", "date"};

// The unit of times in the name of a column.
std::optional<std::string> unit_in(std::string_view name) {
  const std::vector<std::string> words = base::words_of_name(name);
  const bool is_of_times = base::has_word(words, of_times) || base::has_word(words, of_statistics);
  const std::optional<std::string> unit = base::unit_in_name(name, "s", is_of_times);
  return unit && base::is_unit_of_time(*unit) ? unit : std::nullopt;
}

}  // namespace

std::optional<double> seconds_with_unit(std::string_view cell) {
  cell = base::trim(cell);
  const std::optional<base::PrintedValue> value = base::value_at(cell, 0, "s", base::Among::words);
  if (!value || !value->doubt.empty() || value->end != cell.size() || !value->unit || value->unit->quantity != "s")
    return std::nullopt;
  return value->number * value->unit->scale;
}

Tuples::Tuples(TableLines& lines) : sizes_(lines.head().size(), 0) {
  if (lines.head().front() == workload_column || !lines.next()) return;
  const int validity = lines.form().rule == nullptr ? -1 : column_of(lines.form().rule->validity, lines.head());
  for (std::size_t c = 0; c < sizes_.size(); ++c) {
    if (int(c) != validity) sizes_[c] = int(tuple_of(lines.cells()[c]).size());
  }
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
        form_(lines.form()),
        uses_(head_.size(), Use::open) {}

  TableRoles roles() {
    TableRoles roles;
    const std::string& platform = import_.settings().platform;
    const std::string_view inverse = import_.option("higher-is-better", "no");
    if (inverse != "yes" && inverse != "no") {
      throw base::UserError("option higher-is-better", fmt::format("expected yes or no, got '{}'", inverse));
    }
    roles.is_inverse = inverse == "yes";
    if (const std::string_view unit = import_.option("unit"); !unit.empty()) base::seconds_per(unit, "option unit");
    mark("ignore", Use::ignored);
    read_rule(roles);
    read_units(roles);
    roles.name = workload_name(path_);
    read_workload(roles);
    mark("parameters", Use::parameter);
    mark_rule();
    roles.is_exported = is_ours() && uses_.front() == Use::open;
    if (roles.is_exported) uses_.front() = Use::ignored;

    const std::string time = time_column();
    auto [times, parameters] = time.empty() ? columns_by_head(platform, roles.is_exported) : columns_by_time(time);
    if (has_given_parameters()) {
      parameters = with(Use::parameter);
    } else {
      parameters = without_numbers_of_trials(parameters);
    }
    if (parameters.empty()) {
      throw base::UserError(place_, fmt::format("no column is left that says what was measured; name them: "
                                                "option parameters=A,B; {}",
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

  struct TimesAndParameters {
    std::vector<int> times, parameters;
  };

  TimesAndParameters columns_by_time(const std::string& time) {
    if (import_.settings().platform == every_platform) {
      throw base::UserError("platform",
                            "'*' takes a column of times for each platform; with option time, name the one");
    }
    if (!import_.option("times-from").empty())
      throw base::UserError("option times-from", "is for tables without option time");
    const int column = named("time", time);
    if (uses_[std::size_t(column)] != Use::open)
      throw base::UserError("option time", fmt::format("column '{}' is named by another option, too", time));
    uses_[std::size_t(column)] = Use::time;
    return {{column}, parameters_around(column)};
  }

  TimesAndParameters columns_by_head(const std::string& platform, bool is_exported) {
    TimesAndParameters out;
    const int first = first_time(is_exported);
    std::vector<std::string> known;
    for (int c = 0; c < count(); ++c) {
      if (use(c) != Use::open) continue;
      const std::string& name = head_[std::size_t(c)];
      if (c < first || (is_another_measurement(c) && platform != name)) {
        if (may_be_parameter(c)) out.parameters.push_back(c);
        continue;
      }
      known.push_back(name);
      if (platform == every_platform || platform == name) out.times.push_back(c);
    }
    if (out.times.empty()) {
      throw base::UserError(place_, fmt::format("no column of times '{}'{}; another name is given to a column by "
                                                "option time=COLUMN; {}",
                                                platform, base::did_you_mean(platform, known), described()));
    }
    return out;
  }

  int count() const { return int(head_.size()); }
  bool is_ours() const { return head_.front() == workload_column; }
  Use use(int column) const { return uses_[std::size_t(column)]; }
  bool is_single(int column) const { return tuples_.columns_of(column).size() == 1; }
  bool has_fraction(int column) const {
    return is_single(column) && columns_.has_fraction(tuples_.columns_of(column).front());
  }
  std::vector<std::string> words(int column) const { return base::words_of_name(head_[std::size_t(column)]); }
  // Never one of the times, and never a parameter: a spread of times, an energy, a moment.
  bool is_another_measurement(int column) const {
    if (is_ours()) return false;  // names say nothing there
    const std::vector<std::string> words = this->words(column);
    return base::has_word(words, of_moments) || (base::has_word(words, of_spreads) && is_number_only(column)) ||
           (base::has_word(words, of_measurements) && has_fraction(column));
  }
  // Not a parameter, as its name says.
  bool is_measured(int column) const {
    if (is_another_measurement(column)) return true;
    if (is_ours()) return false;
    const std::string& name = head_[std::size_t(column)];
    const bool is_of_times = base::has_word(words(column), of_times), has_unit = unit_in(name).has_value();
    if (is_of_times && has_unit && is_number_only(column)) return true;
    return has_fraction(column) && (is_of_times || has_unit || base::says_more_is_better(name));
  }
  // The numbers of rows, as pandas writes and reads them, distinguish all rows and say nothing of them.
  bool is_row_number(int column) const {
    const std::string& name = head_[std::size_t(column)];
    return (name.empty() || name == "Unnamed: 0") && is_number_only(column) && !is_ours();
  }
  bool may_be_parameter(int column) const { return !is_measured(column) && !is_row_number(column); }
  bool is_number_only(int column) const {
    return is_single(column) && !columns_.has_text(tuples_.columns_of(column).front());
  }

  int named(std::string_view option, const std::string& name) const {
    const auto found = std::find(head_.begin(), head_.end(), name);
    if (found != head_.end()) return int(found - head_.begin());
    throw base::UserError(
        place_, fmt::format("no column '{}' ({}){}; {}", name, option, base::did_you_mean(name, head_), described()));
  }

  // A column such as time_unit, all of whose cells are units of time.
  void read_units(TableRoles& roles) {
    for (int c = 0; c < count() && units_ < 0; ++c)
      if (use(c) == Use::open && !is_ours() && is_single(c) && base::has_word(words(c), of_units)) units_ = c;
    if (units_ < 0) return;
    bool any = false;
    for (TableLines lines(import_, path_, form_, false); lines.next();) {
      const std::string_view cell = base::trim(lines.cells()[std::size_t(units_)]);
      any = any || base::is_unit_of_time(cell);
      if (cell.empty() || base::is_unit_of_time(cell)) continue;
      units_ = -1;
      return;
    }
    if (!any || import_.option("higher-is-better") == "yes") units_ = -1;
    if (units_ < 0) return;
    if (!import_.option("unit").empty())
      throw base::UserError("option unit", fmt::format("column '{}' has the unit of each row; leave the option out",
                                                       head_[std::size_t(units_)]));
    uses_[std::size_t(units_)] = Use::ignored;
    roles.units = tuples_.columns_of(units_).front();
  }

  // What is known of the program that wrote the table, if no option says otherwise.
  void read_rule(TableRoles& roles) {
    roles.rule = form_.rule;
    if (form_.rule == nullptr) return;
    const auto column = [&](std::string_view pattern) {
      const int found = column_of(pattern, head_);
      if (found < 0 || use(found) != Use::open || !is_single(found)) return -1;
      uses_[std::size_t(found)] = Use::ignored;
      return tuples_.columns_of(found).front();
    };
    roles.validity = column(form_.rule->validity);
    roles.divisor = column(form_.rule->divisor);
  }

  bool has_given_parameters() const { return !import_.option("parameters").empty() || !form_.parameters.empty(); }

  // The only column of times, as an option says, or the rule, or its name; "" if there may be several.
  std::string time_column() const {
    if (!import_.option("time").empty()) return std::string(import_.option("time"));
    if (!import_.option("times-from").empty() || is_ours()) return "";
    for (const std::string_view pattern : form_.rule == nullptr ? std::vector<std::string_view>{} : form_.rule->times) {
      if (const int found = column_of(pattern, head_); found >= 0 && use(found) == Use::open)
        return head_[std::size_t(found)];
    }
    std::vector<int> named, with_unit;
    for (int c = 0; c < count(); ++c) {
      if (use(c) != Use::open || !base::has_word(words(c), of_times) || is_another_measurement(c)) continue;
      if (!is_single(c) || holds(c) == Holds::words) continue;
      named.push_back(c);
      if (unit_in(head_[std::size_t(c)])) with_unit.push_back(c);
    }
    if (form_.records == nullptr || (!form_.is_json && form_.rule->times.empty()))
      return with_unit.size() == 1 && is_without_platforms(with_unit.front()) ? head_[std::size_t(with_unit.front())]
                                                                              : "";
    const std::vector<int>& found = with_unit.empty() ? named : with_unit;
    if (found.size() == 1) return head_[std::size_t(found.front())];
    throw base::UserError(place_, fmt::format("which column is the time? option time=COLUMN; {}", described()));
  }

  // Whether no column may hold the times of a platform, as those after the parameters do, in addition to this one.
  bool is_without_platforms(int time) const {
    const std::string& platform = import_.settings().platform;
    if (platform == every_platform || std::find(head_.begin(), head_.end(), platform) != head_.end()) return false;
    for (int c = time + 1; c < count(); ++c)
      if (use(c) == Use::open && has_fraction(c) && is_number_only(c) && !is_measured(c)) return false;
    return true;
  }

  // Marks the parameters of the rule that no option gives another use.
  void mark_rule() {
    if (!import_.option("parameters").empty()) return;
    for (const std::string& name : form_.parameters) {
      const auto found = std::find(head_.begin(), head_.end(), name);
      Use& use = uses_[std::size_t(found - head_.begin())];
      if (use == Use::open && name != import_.option("time")) use = Use::parameter;
    }
  }

  void mark(std::string_view option, Use use) {
    const std::string_view list = import_.option(option);
    if (list.empty()) return;
    for (const std::string& name : csv_cells(list, fmt::format("option {}", option))) {
      Use& before = uses_[std::size_t(named(option, name))];
      if (before != Use::open) {
        throw base::UserError(fmt::format("option {}", option), fmt::format("column '{}' is named twice", name));
      }
      before = use;
    }
  }

  // The columns that name the workload, and an item that is not a column as its name in place of the file's.
  void read_workload(TableRoles& roles) {
    const std::string list(import_.option("workload"));
    if (list.empty()) return;
    const auto give_name = [&](const std::string& name) {
      roles.name = name;
      try {
        roles.computation = codegen::parse_workload(name);
      } catch (const base::UserError&) {  // a name, of which nothing is known
      }
      return roles.computation.has_value();
    };
    if (give_name(list)) return;  // with commas of its own
    roles.name = workload_name(path_);
    std::string name;
    for (const std::string& item : csv_cells(list, "option workload")) {
      if (std::find(head_.begin(), head_.end(), item) != head_.end()) {
        Use& before = uses_[std::size_t(named("workload", item))];
        if (before != Use::open)
          throw base::UserError("option workload", fmt::format("column '{}' is named twice", item));
        before = Use::workload;
        continue;
      }
      constexpr std::size_t long_enough = 4;  // not to be like a column by chance
      if (item.size() >= long_enough && base::did_you_mean(item, head_).starts_with("; did you mean"))
        named("workload", item);
      if (!name.empty()) {
        throw base::UserError(
            "option workload",
            fmt::format("neither '{}' nor '{}' is a column; at most one item may be a name", name, item));
      }
      give_name(name = item);
    }
    if (roles.computation && !with(Use::workload).empty()) {
      throw base::UserError("option workload",
                            fmt::format("{} is a whole workload; leave the columns out", roles.name));
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
    for (const int column : columns) {
      const std::string& name = head_[std::size_t(column)];
      names.push_back(name.empty() ? "the one without a name" : name.substr(0, 40));
    }
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
      if (use(c) == Use::open && has_fraction(c) && !is_another_measurement(c) && (first < 0 || c < first)) first = c;
    }
    if (first < 0) {
      throw base::UserError(place_,
                            fmt::format("no column with fractions, so which ones are times is unknown; name the "
                                        "first one: option times-from=COLUMN, or the only one: option "
                                        "time=COLUMN; {}",
                                        described()));
    }
    return checked_first(first);
  }

  int checked_first(int first) const {
    for (int c = 0; c < first; ++c) {
      if (use(c) == Use::open || use(c) == Use::parameter) return first;
    }
    throw base::UserError(place_, fmt::format("column '{}' is taken for a time, and nothing stands before it that says "
                                              "what was measured; name the first time: option times-from=COLUMN, or "
                                              "the only one: option time=COLUMN; {}",
                                              head_[std::size_t(first)], described()));
  }

  // Those before the time. Other measurements usually follow the time; if most rows equal another one in the
  // columns before it, the columns of whole numbers and words directly after it are parameters as far as they
  // distinguish rows.
  std::vector<int> parameters_around(int time) const {
    std::vector<int> parameters, behind;
    for (int c = 0; c < time; ++c) {
      if (use(c) == Use::open && may_be_parameter(c)) parameters.push_back(c);
    }
    for (int c = time + 1; c < count() && !has_fraction(c) && behind.size() < 16; ++c) {
      if (use(c) == Use::open && may_be_parameter(c)) behind.push_back(c);
    }
    if (has_given_parameters()) return parameters;
    parameters = without_results(parameters);
    if (behind.empty()) return parameters;
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

  // Without columns of fractions that differ in most rows and distinguish none which the others do not: they follow
  // from the others, as what is measured does.
  std::vector<int> without_results(std::vector<int> parameters) const {
    constexpr std::size_t most = 16;  // that are looked at, each in a pass over the file
    std::vector<int> candidates;
    for (const int column : parameters) {
      if (has_fraction(column) && is_number_only(column) && candidates.size() < most) candidates.push_back(column);
    }
    for (const int column : candidates) {
      std::size_t rows = 0;
      if (2 * different_rows({column}, rows) <= rows) continue;
      std::vector<int> others = parameters;
      std::erase(others, column);
      if (!others.empty() && different_rows(others, rows) == different_rows(parameters, rows)) parameters = others;
    }
    return parameters;
  }

  // Without numbers of trials: whole numbers that count the rows, or words and whole numbers of such a name, that
  // differ in each row and are not needed to distinguish them.
  std::vector<int> without_numbers_of_trials(std::vector<int> parameters) const {
    constexpr std::size_t enough = 8;  // rows, to be counted by chance no longer
    if (is_ours()) return parameters;
    for (const int column : std::vector<int>(parameters)) {
      const bool is_named_so = base::has_word(words(column), of_trials);
      if (parameters.size() < 2 || !is_single(column) || has_fraction(column)) continue;
      if (!is_named_so && !counts_rows(column)) continue;
      std::size_t rows = 0;
      if (different_rows({column}, rows) < rows || rows < 2) continue;
      std::vector<int> others = parameters;
      std::erase(others, column);
      const std::size_t different = different_rows(others, rows);
      if (is_named_so ? different > 1 : different == rows && rows >= enough) parameters = others;
    }
    return parameters;
  }

  bool counts_rows(int column) const {
    double next = 0;
    bool is_first = true;
    for (TableLines lines(import_, path_, form_, false); lines.next(); is_first = false, ++next) {
      const std::optional<double> number = number_in(lines.cells()[std::size_t(column)]);
      if (!number || (!is_first && *number != next)) return false;
      next = *number;
    }
    return true;
  }

  // What the first cell is that is a number.
  enum class Holds { words, numbers, numbers_with_units };
  Holds holds(int column) const {
    for (TableLines lines(import_, path_, form_, false); lines.next();) {
      const std::string_view cell = base::trim(lines.cells()[std::size_t(column)]);
      if (number_in(cell)) return Holds::numbers;
      if (seconds_with_unit(cell)) return Holds::numbers_with_units;
    }
    return Holds::words;
  }

  // Whether all values are negative, and not all the same mark of a failure: a tuner that only maximises wrote them.
  bool is_negated(int column) const {
    std::optional<double> first;
    bool differ = false;
    for (TableLines lines(import_, path_, form_, false); lines.next();) {
      const std::optional<double> number = number_in(lines.cells()[std::size_t(column)]);
      if (!number || !std::isfinite(*number)) continue;
      if (*number >= 0) return false;
      differ = differ || (first && *first != *number);
      first = number;
    }
    return differ;
  }

  // How many different values these columns and the workload's have together.
  std::size_t different_rows(const std::vector<int>& columns, std::size_t& rows) const {
    constexpr std::size_t most_rows = 10'000'000;  // that are looked at
    std::vector<int> all = columns;
    for (const int column : with(Use::workload)) all.push_back(column);
    std::vector<std::uint64_t> hashes;
    for (TableLines lines(import_, path_, form_, false); hashes.size() < most_rows && lines.next();) {
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
    const double sign = is_named && !roles.is_inverse && is_negated(column) ? -1 : 1;
    time.seconds = sign;
    time.platform = is_named ? import_.settings().platform : name;
    const std::string said(import_.option("unit"));
    if (roles.is_inverse) {
      if (!said.empty()) throw base::UserError("option unit", "is for times, not for values of which more is better");
      time.unit = "1 / " + name;
      return time;
    }
    const bool is_platform = roles.is_exported && column == count() - 1;  // its name says nothing of the values
    if (!is_platform && import_.option("higher-is-better").empty() && base::says_more_is_better(name)) {
      throw base::UserError(place_, fmt::format("column '{}' seems to hold values of which more is better; say so: "
                                                "option higher-is-better=yes, or that they are times: option "
                                                "higher-is-better=no",
                                                name));
    }
    if (units_ >= 0) {
      time.unit = fmt::format("units of column '{}'", head_[std::size_t(units_)]);
      return time;
    }
    if (is_named && holds(column) == Holds::numbers_with_units) {
      time.unit = "the units of their cells";
      return time;
    }
    const std::optional<std::string> in_head = is_platform ? std::nullopt : unit_in(name);
    if (in_head) {
      time.unit = *in_head;
      time.seconds = sign * base::seconds_per(*in_head, place_);
      if (!said.empty() && sign * base::seconds_per(said, "option unit") != time.seconds) {
        throw base::UserError("option unit", fmt::format("'{}', but column '{}' names another unit", said, name));
      }
      return time;
    }
    if (const std::string_view inside = base::in_brackets(name); !is_platform && !inside.empty() && said.empty()) {
      throw base::UserError(place_, fmt::format("'{}' of column '{}' is not a known unit of time; say the unit: "
                                                "option unit=s (or ms, us, ns), or, where more is better, option "
                                                "higher-is-better=yes",
                                                inside, name));
    }
    if (const std::string_view known = unit_of_rule(name); !known.empty() && said.empty()) {
      time.unit = known;
      time.seconds = sign * base::seconds_per(known, place_);
      return time;
    }
    if (said.empty() && !is_platform) {
      throw base::UserError(place_, fmt::format("nothing says the unit of the times in column '{}'; give it: option "
                                                "unit=s (or ms, us, ns); {}",
                                                name, described()));
    }
    time.unit = said.empty() ? "s" : said;
    time.seconds = sign * base::seconds_per(time.unit, "option unit");
    return time;
  }

  // For a column of times that the rule knows.
  std::string_view unit_of_rule(const std::string& name) const {
    if (form_.rule == nullptr) return "";
    const bool is_known = std::any_of(form_.rule->times.begin(), form_.rule->times.end(),
                                      [&](std::string_view pattern) { return is_of(pattern, name); });
    return is_known ? form_.rule->unit : "";
  }

  void say(const std::vector<int>& times, const std::vector<int>& parameters, const TableRoles& roles) const {
    std::vector<int> rest, measured;
    for (int c = 0; c < count(); ++c) {
      const bool is_used = use(c) == Use::workload || std::find(times.begin(), times.end(), c) != times.end() ||
                           std::find(parameters.begin(), parameters.end(), c) != parameters.end();
      if (is_used || (roles.is_exported && c == 0)) continue;
      (use(c) == Use::open && is_measured(c) ? measured : rest).push_back(c);
    }
    const std::string program =
        form_.rule == nullptr || form_.rule->program.empty() ? "" : fmt::format("a table of {}; ", form_.rule->program);
    std::string text = fmt::format("{}: {}parameters: {}; {}: {} in {}", path_.filename().string(), program,
                                   names(parameters), roles.is_inverse ? "values of which more is better" : "times",
                                   names(times), roles.times.front().unit);
    if (roles.times.front().seconds < 0) text += ", all negated";
    if (const std::vector<int> workload = with(Use::workload); !workload.empty()) {
      text += "; workload: " + names(workload);
    }
    if (roles.name != workload_name(path_)) text += fmt::format("; the workload's name: {}", roles.name);
    if (!measured.empty()) text += "; other measurements, left out: " + names(measured);
    if (!rest.empty()) text += "; left out: " + names(rest);
    import_.monitor().note(text);
  }

  Import& import_;
  const std::filesystem::path& path_;
  const Columns& columns_;
  const Tuples& tuples_;
  const std::vector<std::string>& head_;
  const std::string& place_;
  const TableForm& form_;
  std::vector<Use> uses_;
  int units_ = -1;  // TableRoles::units, as a column of the head
};

}  // namespace

TableRoles table_roles(Import& import, const std::filesystem::path& path, const Columns& columns, const Tuples& tuples,
                       const TableLines& lines) {
  return Choice(import, path, columns, tuples, lines).roles();
}

}  // namespace graft::datasets::formats
