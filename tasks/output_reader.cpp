#include "tasks/output_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>

#include "base/error.h"
#include "base/printed_value.h"
#include "base/shortened.h"
#include "base/statistics.h"
#include "base/text.h"
#include "codegen/space/sketch.h"

namespace graft::tasks {
namespace {

Check check_from(const std::string& text) {
  const auto [name, suffix] = parted(text, "check");
  Check check;
  check.text = name == "*" ? "its output" : base::shortened(name);
  if (name != "*") check.name.emplace(name, "check");
  if (suffix.empty()) return check;
  const std::size_t colon = suffix.find(':');
  std::vector<double> numbers;
  for (const std::string& each :
       {suffix.substr(0, colon), colon == std::string::npos ? std::string("0") : suffix.substr(colon + 1)}) {
    const std::optional<double> number = codegen::number_in(each);
    if (!number || !(*number >= 0))
      throw base::UserError("check", fmt::format("'{}' is not a tolerance", base::shortened(suffix)));
    numbers.push_back(*number);
  }
  check.tolerance = Tolerance{numbers.front(), numbers.back()};
  return check;
}

// Without the parts of it that were measured.
std::string unmeasured(const std::vector<PrintedLine>& lines, std::size_t line, std::size_t begin,
                       const std::vector<PrintedPart>& measured) {
  std::string text;
  for (const PrintedPart& part : measured) {
    if (part.line != line || part.end <= begin) continue;
    text += lines[line].text.substr(begin, std::max(part.begin, begin) - begin);
    begin = part.end;
  }
  text += lines[line].text.substr(std::min(begin, lines[line].text.size()));
  const std::size_t last = text.find_last_not_of(" \t,;|");
  return last == std::string::npos ? "" : text.substr(0, last + 1);
}

std::vector<std::string> all_but(const std::vector<PrintedLine>& lines, const std::vector<PrintedPart>& measured) {
  std::set<std::size_t> origins;
  for (const PrintedPart& part : measured) origins.insert(lines[part.line].origin);
  std::vector<std::string> texts;
  for (const PrintedLine& line : lines) {
    if (!origins.contains(line.origin)) texts.push_back(line.text);
  }
  return texts;
}

}  // namespace

OutputReader::OutputReader(const Command& command) {
  const auto set_goal = [&](const std::string& text, const char* field) {
    if (text.empty()) return;
    if (goal_) throw base::UserError(field, "only one of time, maximize and minimize is what the search is for");
    is_time_ = std::string_view(field) == "time";
    goal_ = Measure{PrintedMeasure(text, field, is_time_)};
  };
  set_goal(command.time, "time");
  set_goal(command.maximize, "maximize");
  set_goal(command.minimize, "minimize");
  more_is_better_ = !command.maximize.empty();
  for (const std::string& text : command.also) {
    also_.push_back(bounded(text));
    for (const Measure& other : also_) {
      if (&other != &also_.back() && other.printed.name() == also_.back().printed.name())
        throw base::UserError("also", fmt::format("'{}' is there twice", base::shortened(other.printed.name())));
    }
  }
  if (!command.check.empty()) check_ = check_from(command.check);
  by_name_ = !(goal_ && goal_->printed.is_regex()) && !(check_ && check_->name && check_->name->is_regex());
  for (const Measure& measure : also_) by_name_ = by_name_ && !measure.printed.is_regex();
}

// "energy:J", "energy:J<=5", "accuracy>=0.9".
OutputReader::Measure OutputReader::bounded(const std::string& text) {
  const std::size_t at = text.starts_with('/') ? text.find_last_of("<>") : text.find_first_of("<>");
  const bool has_bound = at != std::string::npos && text.substr(at + 1, 1) == "=";
  Measure measure{PrintedMeasure(has_bound ? text.substr(0, at) : text, "also", false)};
  if (!has_bound) return measure;
  measure.bound_sign = text[at];
  measure.bound_text = base::trim(std::string_view(text).substr(at + 2));
  const std::optional<base::Unit>& unit = measure.printed.unit();
  const std::optional<base::PrintedValue> bound =
      base::value_at(measure.bound_text, 0, unit ? unit->quantity : "", base::Among::commas);
  const bool is_other = bound && bound->unit && (!unit || unit->quantity != bound->unit->quantity);
  if (!bound || !bound->doubt.empty() || bound->end != measure.bound_text.size() || is_other)
    throw base::UserError("also", fmt::format("'{}' is not a bound of '{}'", base::shortened(measure.bound_text),
                                              base::shortened(measure.printed.name())));
  measure.bound = bound->number * (bound->unit ? bound->unit->scale : unit ? unit->scale : 1);
  return measure;
}

OutputReader::Read OutputReader::read(std::string_view out, std::string_view err, double wall_seconds) {
  Lines lines{printed_lines(out, by_name_), printed_lines(err, by_name_), {}, {}};
  Read read;
  read.seconds = goal_ ? values(*goal_, lines, read) : std::vector{wall_seconds};
  for (double& each : read.seconds) {
    if (!(each > 0 && std::isfinite(each)) && read.problem.empty())
      read.problem = is_time_ ? fmt::format("a time of {} s", each)
                              : fmt::format("'{}' is {}", base::shortened(goal_->printed.name()), each);
    if (more_is_better_) each = 1 / each;
  }
  for (Measure& measure : also_) {
    const std::vector<double> all = values(measure, lines, read);
    read.also.push_back(base::median(all));
    if (!std::isfinite(read.also.back()) && read.problem.empty())
      read.problem = fmt::format("'{}' is {}", base::shortened(measure.printed.name()), read.also.back());
  }
  if (!check_) return read;
  const auto by_place = [](const PrintedPart& a, const PrintedPart& b) {
    return std::pair(a.line, a.begin) < std::pair(b.line, b.begin);
  };
  std::sort(lines.measured_out.begin(), lines.measured_out.end(), by_place);
  std::sort(lines.measured_err.begin(), lines.measured_err.end(), by_place);
  read.checked = check_->name ? checked_in(lines.out, lines.measured_out) : all_but(lines.out, lines.measured_out);
  if (check_->name && read.checked.empty()) read.checked = checked_in(lines.err, lines.measured_err);
  return read;
}

std::vector<double> OutputReader::values(Measure& measure, Lines& lines, Read& read) const {
  PrintedMeasure::Found found = measure.printed.find(lines.out);
  bool in_err = false;
  if (found.is_missing) {
    PrintedMeasure::Found other = measure.printed.find(lines.err);
    const auto is_blank = [](const PrintedLine& line) { return base::trim(line.text).empty(); };
    in_err = !other.is_missing || std::all_of(lines.out.begin(), lines.out.end(), is_blank);
    if (in_err) found = std::move(other);
  }
  std::vector<PrintedPart>& parts = in_err ? lines.measured_err : lines.measured_out;
  parts.insert(parts.end(), found.parts.begin(), found.parts.end());
  if (read.note.empty()) read.note = found.note;
  if (found.problem.empty() && measure.quantity && *measure.quantity != found.quantity) {
    const auto named = [](const std::string& quantity) { return quantity.empty() ? "no unit" : quantity; };
    found.problem = fmt::format("'{}' has {}, and had {} before", base::shortened(measure.printed.name()),
                                named(found.quantity), named(*measure.quantity));
  }
  if (found.problem.empty()) measure.quantity = found.quantity;
  if (read.problem.empty()) read.problem = found.problem;
  return std::move(found.values);
}

// What follows the name, wherever it is.
std::vector<std::string> OutputReader::checked_in(const std::vector<PrintedLine>& lines,
                                                  const std::vector<PrintedPart>& measured) const {
  const PrintedName& name = *check_->name;
  const std::vector<PrintedName::Match> matches = name.find(lines);
  int rank = matches.empty() ? 0 : matches.front().rank;
  for (const PrintedName::Match& match : matches) rank = std::min(rank, match.rank);
  std::vector<std::string> texts;
  for (const PrintedName::Match& match : matches) {
    const PrintedLine& line = lines[match.line];
    if (match.rank != rank) continue;
    texts.push_back(name.is_regex() ? line.text.substr(match.group, match.group_end - match.group)
                                    : unmeasured(lines, match.line, name.value_after(match, line), measured));
  }
  return texts;
}

double OutputReader::seconds_for(double value) const {
  if (!goal_) return value;
  const std::optional<base::Unit>& unit = goal_->printed.unit();
  value *= unit ? unit->scale : 1;
  return more_is_better_ ? 1 / value : value;
}

std::vector<std::pair<std::string, double>> OutputReader::also_in(const base::Document& answer) const {
  std::vector<std::pair<std::string, double>> all;
  for (const Measure& measure : also_) {
    const std::optional<base::Unit>& unit = measure.printed.unit();
    all.emplace_back(measure.printed.name(), answer.at(measure.printed.name()).as_number() * (unit ? unit->scale : 1));
  }
  return all;
}

std::vector<std::pair<std::string, double>> OutputReader::medians(const std::vector<std::vector<double>>& runs) const {
  std::vector<std::pair<std::string, double>> all;
  for (std::size_t m = 0; m < also_.size(); ++m) {
    std::vector<double> values;
    for (const std::vector<double>& run : runs) values.push_back(run[m]);
    all.emplace_back(also_[m].printed.name(), base::median(values));
  }
  return all;
}

std::string OutputReader::beyond_bounds(const std::vector<std::pair<std::string, double>>& also) const {
  for (std::size_t m = 0; m < also_.size(); ++m) {
    const Measure& measure = also_[m];
    const double value = also[m].second;
    const bool is_beyond = measure.bound_sign == '<'   ? value > measure.bound
                           : measure.bound_sign == '>' ? value < measure.bound
                                                       : false;
    if (is_beyond)
      return fmt::format("'{}' is {:g}{}, {} {}", base::shortened(measure.printed.name()), value,
                         measure.quantity && !measure.quantity->empty() ? " " + *measure.quantity : "",
                         measure.bound_sign == '<' ? "above" : "below", measure.bound_text);
  }
  return "";
}

}  // namespace graft::tasks
