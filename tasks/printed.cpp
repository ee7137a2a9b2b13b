#include "tasks/printed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/error.h"
#include "base/letters.h"
#include "base/one_line.h"
#include "base/printed_value.h"
#include "base/shortened.h"
#include "base/text.h"
#include "base/units.h"

namespace graft::tasks {
namespace {

constexpr std::size_t longest_searched = 4096;  // by a regular expression
constexpr std::size_t longest_line = 65536;
constexpr std::size_t longest_shown = 100;

std::string_view from(std::string_view text, std::size_t at) {
  return text.substr(std::min(at, text.size()));
}

std::string shown(std::string_view line) {
  return fmt::format("'{}'", base::one_line(base::trim(line), longest_shown));
}

// "(mean)" after a value; "" if there is no such remark, or one with numbers.
std::string remark_at(std::string_view text, std::size_t at) {
  text = from(text, at);
  text.remove_prefix(base::blank_at(text));
  const std::size_t close = text.starts_with('(') ? text.find(')') : std::string_view::npos;
  if (close == std::string_view::npos) return "";
  const std::string_view remark = text.substr(0, close + 1);
  return std::any_of(remark.begin(), remark.end(), base::is_digit) ? "" : std::string(remark);
}

bool begins_value(std::string_view text) {
  text.remove_prefix(base::blank_at(text));
  return text.starts_with('[') || base::number_at(text).has_value();
}

// What stands between a name and its value.
struct Head {
  std::size_t value = 0;
  std::string qualifier = {};
  std::optional<base::Unit> unit = {};
  bool in_cells = false, is_apart = false, is_said = false;  // the last: by more than blanks
};

// "in ms", "/ms" and ", ms" before a colon.
bool take_unit(std::string_view text, Head& head) {
  for (const std::string_view before : {"in ", "/", ", "}) {
    if (!from(text, head.value).starts_with(before) || (before == "in " && !head.is_apart)) continue;
    const std::size_t begin = head.value + before.size(), end = base::unit_end(text, begin);
    const std::size_t next = end + base::blank_at(from(text, end));
    const bool is_label = base::at_or_end(text, next) == ':' || base::at_or_end(text, next) == '=';
    const std::optional<base::Unit> unit = base::unit_named(text.substr(begin, end - begin));
    if (!unit || (!is_label && (before != "in " || !begins_value(from(text, next))))) continue;
    head.unit = unit;
    head.value = end;
    head.is_apart = true;
    return true;
  }
  return false;
}

// Bytes of a separator.
std::size_t separator_at(std::string_view text) {
  if (text.empty()) return 0;
  if (std::string_view(":=\"'|~").find(text.front()) != std::string_view::npos) return text.starts_with("=>") ? 2 : 1;
  if (text.starts_with("->")) return 2;
  if (text.front() == '-' && base::blank_at(text.substr(1)) > 0) return 1;
  if (text.starts_with("..")) return std::min(text.find_first_not_of('.'), text.size());
  return text.starts_with("\xe2\x89\x88") ? 3 : 0;
}

// A bracket that says more of the name, or its unit. False if it is the value.
bool take_bracket(std::string_view text, Head& head) {
  const std::size_t close = text.find(text[head.value] == '(' ? ')' : ']', head.value);
  if (close == std::string_view::npos) return false;
  const std::string_view inside = text.substr(head.value + 1, close - head.value - 1);
  const std::size_t next = close + 1 + base::blank_at(from(text, close + 1));
  const bool has_value = begins_value(inside),
             has_colon = base::at_or_end(text, next) == ':' || base::at_or_end(text, next) == '=';
  const bool is_label = has_colon || (!has_value && separator_at(from(text, next)) > 0);
  const std::optional<base::Unit> unit = base::unit_in(inside);
  if (!is_label && (!begins_value(from(text, next)) || has_value)) return false;
  if (unit)
    head.unit = unit;
  else
    head.qualifier += fmt::format("({})", base::trim(inside));
  head.value = close + 1;
  head.is_apart = true;
  return true;
}

// "time is 1.5", "loop time of 1.5".
bool take_word(std::string_view text, Head& head) {
  for (const std::string_view word : {"is ", "was ", "of "}) {
    if (!head.is_apart || !from(text, head.value).starts_with(word)) continue;
    if (!begins_value(from(text, head.value + word.size()))) continue;
    head.value += word.size();
    return true;
  }
  return false;
}

Head head_after(std::string_view text, std::size_t at) {
  Head head{at};
  while (head.value < text.size()) {
    const std::string_view rest = text.substr(head.value);
    const bool may_be_cells = head.value == at && (rest.starts_with(',') || rest.starts_with(';'));
    if (take_unit(text, head) || take_word(text, head)) continue;
    if ((rest.front() == '(' || rest.front() == '[') && take_bracket(text, head)) continue;
    const std::size_t size =
        may_be_cells ? 1 : base::blank_at(rest) + (base::blank_at(rest) > 0 ? 0 : separator_at(rest));
    if (size == 0) break;
    head.in_cells = head.in_cells || may_be_cells;
    head.is_apart = true;
    head.is_said = head.is_said || base::blank_at(rest) == 0;
    head.value += size;
  }
  return head;
}

// A time of day that the line begins with, or a number in brackets.
std::string_view without_timestamp(std::string_view text) {
  text = base::trim(text);
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    const bool has_digit =
        std::any_of(text.begin(), text.begin() + std::ptrdiff_t(std::min(close, text.size())), base::is_digit);
    return close != std::string_view::npos && has_digit ? text.substr(close + 1) : text;
  }
  const std::size_t end = std::min(text.find_first_not_of("0123456789:.,-+/TZ "), text.size());
  return text.substr(0, end).find(':') != std::string_view::npos ? text.substr(end) : text;
}

// What distinguishes places of one name: the text before it, and the numbers in that.
struct Label {
  std::string text;
  std::vector<double> numbers;
};

Label label_of(std::string_view before) {
  Label label;
  before = without_timestamp(before);
  for (std::size_t at = 0; at < before.size();) {
    const char c = before[at];
    if (base::is_digit(c)) {
      double number = 0;
      for (; base::is_digit(base::at_or_end(before, at)); ++at) number = 10 * number + (before[at] - '0');
      label.text += '#';
      label.numbers.push_back(number);
      continue;
    }
    ++at;
    if (c != ' ' && c != '\t')
      label.text += c;
    else if (!label.text.ends_with(' '))
      label.text += ' ';
  }
  constexpr std::string_view around = " ,;|\"'(){}[]<>*-+=:.";
  const std::size_t first = label.text.find_first_not_of(around);
  if (first == std::string::npos) return {"", label.numbers};
  label.text = label.text.substr(first, label.text.find_last_not_of(around) - first + 1);
  return label;
}

// Equal, or counting.
bool goes_on(const std::vector<double>& before, const std::vector<double>& after) {
  return before.size() == after.size() && std::equal(before.begin(), before.end(), after.begin(),
                                                     [](double a, double b) { return a == b || a + 1 == b; });
}

}  // namespace

bool is_name_character(char c) {
  return std::isalnum((unsigned char)c) || c == '_' || c == '.';
}

std::pair<std::string, std::string> parted(const std::string& text, const char* field) {
  const bool is_regex = text.starts_with('/');
  const std::size_t close = is_regex ? text.rfind('/') : std::string::npos;
  if (is_regex && close == 0) throw base::UserError(field, "expected /REGEX/ or /REGEX/:UNIT");
  const std::size_t colon = text.find(':', is_regex ? close : 0);
  if (is_regex && colon != std::string::npos && colon != close + 1)
    throw base::UserError(field, "expected /REGEX/:UNIT");
  return {text.substr(0, colon), colon == std::string::npos ? "" : text.substr(colon + 1)};
}

PrintedName::PrintedName(const std::string& text, const char* field) : text_(text) {
  if (text.starts_with('/')) {
    text_ = text.substr(1, text.size() - 2);
    if (text_.empty()) throw base::UserError(field, "expected a name");
    try {
      regex_.emplace(text_, std::regex::ECMAScript | std::regex::optimize);
    } catch (const std::regex_error& error) {
      throw base::UserError(field,
                            fmt::format("'{}' is not a regular expression: {}", base::shortened(text_), error.what()));
    }
    if (regex_->mark_count() < 1) throw base::UserError(field, "the regular expression has no group ( )");
  }
  if (base::trim(text_).empty()) throw base::UserError(field, "expected a name");
}

std::vector<PrintedName::Match> PrintedName::find(const std::vector<PrintedLine>& lines) const {
  std::vector<Match> matches;
  const std::string wanted = base::lower_case(text_);
  for (std::size_t l = 0; l < lines.size(); ++l) {
    const std::string& text = lines[l].text;
    if (regex_ && text.size() <= longest_searched) {
      for (std::sregex_iterator at(text.begin(), text.end(), *regex_), end; at != end; ++at) {
        if (!(*at)[1].matched) continue;
        const std::size_t begin = std::size_t(at->position(0)), group = std::size_t(at->position(1));
        matches.push_back({l, begin, begin + std::size_t(at->length(0)), group, group + std::size_t(at->length(1))});
      }
    }
    if (regex_ || text.size() > longest_line) continue;
    const std::string line = base::lower_case(text);
    const std::size_t last = lines[l].is_entry() ? lines[l].value : line.size();
    for (std::size_t at = line.find(wanted); at != std::string::npos; at = line.find(wanted, at + 1)) {
      Match match{l, at, at + wanted.size()};
      const bool begins = at == 0 || !is_name_character(line[at - 1]) || (lines[l].is_entry() && line[at - 1] == '.');
      if (!begins || match.end > last) continue;
      match.rank = text.compare(at, wanted.size(), text_) == 0 ? 0 : other_case;
      const char next = base::at_or_end(line, match.end);
      if (next == '_' || next == '-') {
        const std::size_t end = base::unit_end(text, match.end + 1);
        match.unit = base::unit_named(from(text, match.end + 1).substr(0, end - match.end - 1));
        if (match.unit) match.end = end, ++match.rank;
      }
      const bool leads = from(line, match.end).starts_with("..");
      if (!is_name_character(base::at_or_end(line, match.end)) || leads) matches.push_back(match);
    }
  }
  return matches;
}

std::size_t PrintedName::value_after(const Match& match, const PrintedLine& line) const {
  return regex_ ? match.group : std::max(head_after(line.text, match.end).value, line.value);
}

struct PrintedMeasure::Candidate {
  Label label = {};
  std::vector<base::PrintedValue> values = {};
  std::optional<base::Unit> unit = {};  // that the name is printed with
  std::string doubt = {};
  std::string line = {};
  PrintedPart part = {};
  std::string after = {};  // a remark in brackets
  int rank = 0;
  bool is_first = false;   // of several numbers
  bool is_unread = false;  // the name alone, with something after it that is not a number
  bool is_number() const { return !values.empty() || !doubt.empty(); }
};

PrintedMeasure::PrintedMeasure(const std::string& text, const char* field, bool is_time)
    : name_(parted(text, field).first, field), is_time_(is_time) {
  unit_text_ = parted(text, field).second;
  const std::optional<std::string> in_name =
      name_.is_regex() ? std::nullopt : base::unit_in_name(name(), is_time ? "s" : "", true);
  if (in_name) name_unit_ = base::unit_named(*in_name);
  if (is_time && !name_.is_regex() && base::says_more_is_better(name()))
    throw base::UserError(
        field, fmt::format("'{}' is a measure of which more is better, it seems: say it with maximize (or minimize)",
                           base::shortened(name())));
  if (!unit_text_.empty()) {
    unit_ = base::unit_named(unit_text_);
    if (is_time && (!unit_ || unit_->quantity != "s")) base::seconds_per(unit_text_, field);  // throws
    if (!unit_) unit_ = base::Unit{unit_text_, 1};
  }
  if (unit_ && name_unit_ && *unit_ != *name_unit_)
    throw base::UserError(field, fmt::format("the name '{}' says another unit than '{}'", base::shortened(name()),
                                             base::shortened(unit_text_)));
  if (name_unit_) unit_ = name_unit_;
  if (in_name && unit_text_.empty()) unit_text_ = *in_name;
  if (!unit_ && is_time) unit_ = base::Unit{"s", 1};
}

PrintedMeasure::Found PrintedMeasure::find(const std::vector<PrintedLine>& lines) const {
  std::vector<Candidate> candidates;
  const std::vector<PrintedName::Match> matches = name_.find(lines);
  for (const PrintedName::Match& match : matches) {
    const bool is_same_line = !candidates.empty() && candidates.back().part.line == match.line;
    if (is_same_line && match.begin < candidates.back().part.end) continue;
    candidates.push_back(read(match, lines[match.line], is_same_line ? candidates.back().part.end : 0));
    put_unit(candidates.back());
  }
  std::vector<Candidate> numbers;
  bool is_unread = false, is_read = false;
  for (const Candidate& candidate : candidates) {
    if (candidate.is_number()) numbers.push_back(candidate);
    is_unread = is_unread || candidate.is_unread;
    is_read = is_read || (candidate.is_number() && candidate.label.text.empty());
  }
  if (!numbers.empty() && (is_read || !is_unread)) return one_of(numbers);
  const char* const what = is_time_ ? "time" : "number";
  Found found;
  found.is_missing = numbers.empty();
  const auto last = std::find_if(lines.rbegin(), lines.rend(),
                                 [](const PrintedLine& line) { return !base::trim(line.text).empty(); });
  if (!candidates.empty())
    found.problem =
        fmt::format("prints no {} after '{}': {}", what, base::shortened(name()), shown(candidates.back().line));
  else if (last == lines.rend())
    found.problem = fmt::format("prints no {} '{}', nor anything else", what, base::shortened(name()));
  else
    found.problem =
        fmt::format("prints no {} '{}'; its last line: {}", what, base::shortened(name()), shown(last->text));
  return found;
}

PrintedMeasure::Candidate PrintedMeasure::read(const PrintedName::Match& match, const PrintedLine& line,
                                               std::size_t before) const {
  Candidate candidate;
  const std::string_view text = line.text;
  candidate.line = line.text;
  candidate.rank = match.rank;
  candidate.part = {match.line, match.begin, match.end};
  if (name_.is_regex()) {
    read_group(candidate, match, text);
    return candidate;
  }
  candidate.label = label_of(text.substr(before, match.begin - before));
  if (base::unit_named(name())) {  // "35.2 GFLOPS"
    std::size_t begin = match.begin;
    while (begin > 0 && std::string_view(" \t").find(text[begin - 1]) != std::string_view::npos) --begin;
    while (begin > 0 && std::string_view(" \t:=([|").find(text[begin - 1]) == std::string_view::npos) --begin;
    const std::optional<base::PrintedValue> value = base::value_at(text, begin, "", base::Among::words);
    if (begin < match.begin && value && value->unit && value->end >= match.end) {
      candidate.values = {*value};
      candidate.doubt = value->doubt;
      candidate.part = {match.line, begin, value->end};
      candidate.label = label_of(text.substr(before, begin - before));
      return candidate;
    }
  }
  const Head head = head_after(text, match.end);
  candidate.unit = head.unit ? head.unit : match.unit;
  candidate.label.text += head.qualifier;
  if (head.is_apart) read_values(candidate, text, head.value, head.in_cells);
  candidate.after = remark_at(text, candidate.part.end);
  candidate.is_unread = !candidate.is_number() && candidate.label.text.empty() && head.is_said;
  return candidate;
}

void PrintedMeasure::read_values(Candidate& candidate, std::string_view text, std::size_t at, bool in_cells) const {
  const std::string_view quantity = unit_ ? std::string_view(unit_->quantity) : std::string_view();
  const char first = base::at_or_end(text, at);
  if (first == '[' || first == '{' || first == '(') {
    if (!begins_value(from(text, at + 1))) return;
    base::PrintedList list = base::list_at(text, at, quantity);
    candidate.values = std::move(list.values);
    candidate.doubt = std::move(list.doubt);
    candidate.part.end = list.end;
    if (candidate.values.empty() || !candidate.doubt.empty()) return;
    const std::size_t next = list.end + base::blank_at(from(text, list.end)), end = base::unit_end(text, next);
    const std::optional<base::Unit> after = base::unit_named(text.substr(next, end - next));
    if (after) candidate.part.end = end;
    const std::optional<base::Unit> unit = after ? after : candidate.values.back().unit;
    for (base::PrintedValue& value : candidate.values) {
      const bool is_last = &value == &candidate.values.back();
      if (!is_last && value.unit && !candidate.values.front().unit) candidate.doubt = "some numbers have units";
      if (!value.unit) value.unit = unit;
    }
    return;
  }
  const base::Among among = in_cells ? base::Among::commas : base::Among::words;
  const std::optional<base::PrintedValue> value = base::value_at(text, at, quantity, among);
  if (!value) return;
  candidate.values = {*value};
  candidate.doubt = value->doubt;
  candidate.part.end = value->end;
  // Other numbers that may be meant as well.
  for (std::size_t next = value->end;;) {
    while (next < text.size() &&
           (base::blank_at(text.substr(next)) > 0 || std::string_view(",;|").find(text[next]) < 3))
      ++next;
    const std::optional<base::PrintedValue> more =
        next > value->end ? base::value_at(text, next, quantity, among) : std::nullopt;
    if (!more || !more->doubt.empty()) return;
    if (more->unit && more->unit->quantity != quantity) return;
    candidate.is_first = true;
    if (more->unit && !value->unit && candidate.doubt.empty())
      candidate.doubt = fmt::format("{} has no unit, but another number has", shown(text.substr(at, value->end - at)));
    next = more->end;
  }
}

// The group holds the number, and no part of a longer one.
void PrintedMeasure::read_group(Candidate& candidate, const PrintedName::Match& match, std::string_view text) const {
  std::size_t begin = match.group;
  while (begin < match.group_end && base::blank_at(text.substr(begin)) > 0) ++begin;
  const std::string_view quantity = unit_ ? std::string_view(unit_->quantity) : std::string_view();
  std::optional<base::PrintedValue> value = base::value_at(text, begin, quantity, base::Among::words);
  if (!value) value = base::value_at(text.substr(0, match.group_end), begin, quantity, base::Among::words);
  if (!value) return;
  const std::size_t number_end = begin + base::number_at(text.substr(begin)).value_or(base::PrintedNumber{}).length;
  const bool is_cut = (begin > 0 && begin == match.group && begin > match.begin && base::is_digit(text[begin - 1])) ||
                      number_end > match.group_end;
  if (is_cut) value->doubt = fmt::format("the group is a part of a number: {}", shown(text.substr(match.group)));
  candidate.values = {*value};
  candidate.doubt = value->doubt;
  candidate.part.end = std::max(match.end, value->end);
  for (std::size_t open = text.substr(0, begin).find_first_of("(["); open != std::string_view::npos && open < begin;
       open = text.find_first_of("([", open + 1)) {
    const std::size_t close = text.find_first_of(")]", open);
    if (close != std::string_view::npos && close < begin)
      candidate.unit = base::unit_in(text.substr(open + 1, close - open - 1));
  }
}

// The values in the unit of their quantity.
void PrintedMeasure::put_unit(Candidate& candidate) const {
  const std::optional<base::Unit> of_name = candidate.unit ? candidate.unit : name_unit_;
  for (base::PrintedValue& value : candidate.values) {
    if (!candidate.doubt.empty()) return;
    if (value.unit && of_name && *value.unit != *of_name) {
      candidate.doubt = "its name and the number have different units";
      return;
    }
    const std::optional<base::Unit> unit = value.unit ? value.unit : of_name ? of_name : unit_;
    if (unit_ && unit && unit->quantity != unit_->quantity) {
      candidate.doubt =
          is_time_ ? "its unit is not one of time" : fmt::format("its unit is not one of {}", unit_->quantity);
      return;
    }
    if (unit) value.number *= unit->scale;
    value.unit = unit;
  }
}

// The places of the name without more of a name before it, or, without any, all; if these are of one name, the ones as
// it is written, if there are others in another case, and of these the ones without a unit in the name.
std::vector<const PrintedMeasure::Candidate*> PrintedMeasure::chosen_of(const std::vector<Candidate>& candidates,
                                                                        std::string& note) const {
  std::vector<const Candidate*> chosen;
  for (const Candidate& candidate : candidates) chosen.push_back(&candidate);
  const auto keep = [&](auto&& is_kept) {
    const auto left_out = std::stable_partition(chosen.begin(), chosen.end(), is_kept);
    if (left_out == chosen.begin() || left_out == chosen.end()) return;
    note = fmt::format("'{}' is read from {}, not from {}", base::shortened(name()), shown(chosen.front()->line),
                       shown((*left_out)->line));
    chosen.erase(left_out, chosen.end());
  };
  keep([](const Candidate* each) { return each->label.text.empty(); });
  const bool has_one_label = std::all_of(chosen.begin(), chosen.end(), [&](const Candidate* each) {
    return each->label.text == chosen.front()->label.text;
  });
  if (!has_one_label) return chosen;
  keep([](const Candidate* each) { return each->rank < PrintedName::other_case; });
  keep([](const Candidate* each) { return each->rank == 0; });
  return chosen;
}

PrintedMeasure::Found PrintedMeasure::one_of(const std::vector<Candidate>& candidates) const {
  Found found;
  const std::vector<const Candidate*> chosen = chosen_of(candidates, found.note);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const Candidate& each = *chosen[i];
    const Candidate& before = *chosen[i == 0 ? 0 : i - 1];
    const bool is_remarked = !each.after.empty() && !before.after.empty() && each.after != before.after;
    if (is_remarked || each.label.text != before.label.text ||
        !(i == 0 || goes_on(before.label.numbers, each.label.numbers))) {
      found.problem = fmt::format("'{}' is in several places: {} and {}; take more of the line into the name",
                                  base::shortened(name()), shown(before.line), shown(each.line));
    } else if (!each.doubt.empty()) {
      found.problem = fmt::format("not understood: {}: {}", shown(each.line), each.doubt);
    }
    if (!found.problem.empty()) {
      found.values.clear();
      return found;
    }
    for (const base::PrintedValue& value : each.values) {
      const std::string quantity = value.unit ? value.unit->quantity : "";
      if (!found.values.empty() && quantity != found.quantity && found.problem.empty())
        found.problem = fmt::format("'{}' has different units: {}", base::shortened(name()), shown(each.line));
      found.quantity = quantity;
      found.values.push_back(value.number);
    }
    if (each.is_first && found.note.empty())
      found.note = fmt::format("'{}' is the first of several numbers: {}", base::shortened(name()), shown(each.line));
    found.parts.push_back(each.part);
  }
  if (!found.problem.empty()) found.values.clear();
  return found;
}

}  // namespace graft::tasks
