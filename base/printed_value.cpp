#include "base/printed_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/document.h"
#include "base/error.h"
#include "base/text.h"

namespace graft::base {
namespace {

constexpr std::string_view plus_minus[] = {"\xc2\xb1", "+/-", "+-"};

// Bytes of a character of units.
std::size_t unit_character(std::string_view text, std::size_t at) {
  if (std::isalpha((unsigned char)at_or_end(text, at)) || at_or_end(text, at) == '%') return 1;
  for (const std::string_view micro : {"\xc2\xb5", "\xce\xbc"}) {
    if (text.substr(std::min(at, text.size())).starts_with(micro)) return micro.size();
  }
  return 0;
}

std::size_t skip_blank(std::string_view text, std::size_t at) {
  return at + blank_at(text.substr(std::min(at, text.size())));
}

// The parts of a duration in descending order after its first number, "1h02m3.5s".
bool add_duration(std::string_view text, PrintedValue& value) {
  struct Part {
    std::string_view name;
    double seconds;
  };
  constexpr Part parts[] = {{"d", 86400}, {"h", 3600}, {"min", 60}, {"m", 60}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}};
  double sum = 0, last = 1e9, number = value.number;
  int count = 0;
  std::size_t end = value.end;
  for (std::size_t at = value.end;; ++count) {
    const std::size_t begin = skip_blank(text, at), word = unit_end(text, begin);
    const auto* const part = std::find_if(std::begin(parts), std::end(parts), [&](const Part& each) {
      return each.name == text.substr(begin, word - begin);
    });
    if (part == std::end(parts) || part->seconds >= last) break;
    if (count == 0 && begin != at && part->name.size() == 1) break;
    sum += number * part->seconds, last = part->seconds, end = word;
    at = skip_blank(text, word);
    if (!is_digit(at_or_end(text, at)) || (at != word && last <= 1)) {
      ++count;
      break;
    }
    const std::optional<PrintedNumber> more = number_at(text.substr(at), Among::commas);
    if (!more) return false;
    number = more->value;
    at += more->length;
  }
  if (count < 2) return false;
  value.number = sum, value.unit = Unit{"s", 1}, value.end = end;
  return true;
}

bool is_key(std::string_view text, std::size_t word_end) {
  const char next = at_or_end(text, skip_blank(text, word_end));
  return next == ':' || next == '=';
}

// " per WORD" after a unit.
std::string with_per(std::string_view text, std::size_t& end, std::string unit) {
  const std::size_t per = skip_blank(text, end);
  if (per == end || text.substr(per, 4) != "per ") return unit;
  const std::size_t begin = skip_blank(text, per + 4), last = unit_end(text, begin);
  if (last == begin) return unit;
  end = last;
  return unit + "/" + std::string(text.substr(begin, last - begin));
}

std::string doubtful(std::string_view text, std::size_t begin, std::size_t end, std::string_view why) {
  return fmt::format("'{}' {}", text.substr(begin, end - begin), why);
}

// The unit after the number that ends at value.end, of which `begin` is the beginning.
void read_unit(std::string_view text, std::size_t begin, std::string_view quantity, PrintedValue& value) {
  const std::size_t first = skip_blank(text, value.end);
  const bool is_attached = first == value.end;
  if (at_or_end(text, first) == '[' || at_or_end(text, first) == '(') {
    const std::size_t close = text.find(text[first] == '[' ? ']' : ')', first);
    if (close == std::string_view::npos) return;
    value.unit = unit_named(text.substr(first + 1, close - first - 1));
    if (value.unit) value.end = close + 1;
    return;
  }
  std::size_t end = unit_end(text, first);
  if (end == first) return;
  const std::string word(text.substr(first, end - first));
  if (!is_attached && is_key(text, end)) return;
  if (add_duration(text, value)) return;
  const bool goes_on = is_digit(at_or_end(text, end)) || at_or_end(text, end) == '_';
  const bool is_height = word == "h" && !is_attached && is_digit(at_or_end(text, skip_blank(text, end)));
  const std::string whole = with_per(text, end, word);
  std::optional<Unit> unit = goes_on || is_height ? std::nullopt : unit_named(whole);
  if (word == "min" && is_attached) unit = Unit{"s", 60};
  if (unit) {
    const bool is_next_name = !is_attached && !quantity.empty() && unit->quantity != quantity &&
                              unit->quantity.find_first_of("/JWB") != std::string::npos &&
                              is_digit(at_or_end(text, skip_blank(text, end)));
    if (is_next_name) return;
    value.unit = std::move(unit), value.end = end;
    return;
  }
  const std::size_t slash = word.find('/');
  const bool is_of_units = slash != std::string::npos && unit_named(word.substr(0, slash));
  constexpr std::string_view cut_units = "mMkKGTunpdh";
  const bool may_be_unit = word == "min" || is_of_units || whole != word ||
                           (word.size() == 1 && cut_units.find(word.front()) != std::string_view::npos);
  if (is_attached || may_be_unit) value.doubt = doubtful(text, begin, end, "has no unit that is known");
}

// "1.1ms-1.2ms", "1.1 ms / 1.2 ms", "1.1 s to 1.2 s".
bool is_of_range(std::string_view rest) {
  for (const std::string_view more :
       {"/", "-", "+", " / ", " - ", "\xe2\x80\x93", " \xe2\x80\x93 ", " to ", "..", " .. "}) {
    if (rest.starts_with(more) && is_digit(at_or_end(rest, more.size()))) return true;
  }
  return false;
}

std::optional<PrintedValue> number_with_unit(std::string_view text, std::size_t at, std::string_view quantity,
                                             Among among) {
  const std::optional<PrintedNumber> number = number_at(text.substr(std::min(at, text.size())), among);
  if (!number) return std::nullopt;
  PrintedValue value{number->value, std::nullopt, at + number->length, number->doubt, number->has_decimal_comma};
  if (value.doubt.empty()) read_unit(text, at, quantity, value);
  if (value.unit && is_of_range(text.substr(value.end)))
    value.doubt = doubtful(text, at, value.end, "is one of several");
  return value;
}

}  // namespace

std::size_t unit_end(std::string_view text, std::size_t at) {
  while (true) {
    if (const std::size_t size = unit_character(text, at))
      at += size;
    else if (at_or_end(text, at) == '/' && unit_character(text, at + 1) > 0)
      ++at;
    else
      return at;
  }
}

std::optional<Unit> unit_in(std::string_view text) {
  text = trim(text);
  for (const std::string_view before : {"in ", "unit: ", "units: "}) {
    if (text.starts_with(before)) text = trim(text.substr(before.size()));
  }
  if (text == "min") return std::nullopt;
  return unit_named(text.substr(0, text.find(',')));
}

std::optional<PrintedValue> value_at(std::string_view text, std::size_t at, std::string_view quantity, Among among) {
  std::optional<PrintedValue> value = number_with_unit(text, at, quantity, among);
  if (!value || !value->doubt.empty()) return value;
  std::size_t next = skip_blank(text, value->end);
  const bool in_bracket = at_or_end(text, next) == '(';
  next = skip_blank(text, next + in_bracket);
  for (const std::string_view sign : plus_minus) {
    if (!text.substr(std::min(next, text.size())).starts_with(sign)) continue;
    const std::optional<PrintedValue> spread =
        number_with_unit(text, skip_blank(text, next + sign.size()), quantity, among);
    if (!spread || !spread->doubt.empty() || (in_bracket && at_or_end(text, spread->end) != ')')) {
      value->doubt = doubtful(text, at, text.size(), "is not understood");
      break;
    }
    value->end = spread->end + in_bracket;
    if (in_bracket && !value->unit) read_unit(text, at, quantity, *value);
    if (!value->unit) value->unit = spread->unit;
    break;
  }
  return value;
}

PrintedList list_at(std::string_view text, std::size_t at, std::string_view quantity) {
  PrintedList list;
  const char close = text[at] == '[' ? ']' : text[at] == '{' ? '}' : ')';
  const std::size_t end = text.find(close, at);
  if (end == std::string_view::npos) {
    list.doubt = doubtful(text, at, text.size(), "has no end");
    return list;
  }
  list.end = end + 1;
  const std::string_view inside = text.substr(0, end);
  // "[1,2,3]" and "[1, 2]" are lists; "[1,2, 3]" may be one of two numbers, and "[1,2]" of one.
  bool has_wide = false, has_narrow = false;
  for (std::size_t comma = inside.find(',', at); comma != std::string_view::npos; comma = inside.find(',', comma + 1))
    (is_digit(at_or_end(inside, comma + 1)) ? has_narrow : has_wide) = true;
  const std::optional<PrintedNumber> whole = number_at(trim(inside.substr(at + 1)));
  const bool is_one = has_narrow && whole && whole->length == trim(inside.substr(at + 1)).size();
  if (is_one || (has_wide && has_narrow)) {
    list.doubt = doubtful(text, at, end + 1, "is one number or more");
    return list;
  }
  try {
    const Document numbers = parse_json(fmt::format("[{}]", inside.substr(at + 1)), "list");
    for (const Document& each : numbers.as_list()) list.values.push_back({each.as_number(), {}, end});
    return list;
  } catch (const UserError&) {
    list.values.clear();  // not as JSON has it
  }
  for (std::size_t next = at + 1;;) {
    while (next < end && (blank_at(inside.substr(next)) > 0 || std::string_view(",;|").find(text[next]) < 3)) ++next;
    if (next >= end) break;
    std::optional<PrintedValue> value = value_at(inside, next, quantity, Among::list);
    if (!value || !value->doubt.empty()) {
      list.doubt = value ? value->doubt : doubtful(text, at, end + 1, "is not a list of numbers");
      return list;
    }
    next = value->end;
    list.values.push_back(std::move(*value));
  }
  if (list.values.size() == 1 && list.values.front().has_decimal_comma)
    list.doubt = doubtful(text, at, end + 1, "is one number or more");
  return list;
}

}  // namespace graft::base
