#include "base/printed_number.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <system_error>

namespace graft::base {
namespace {

constexpr std::string_view unbroken_blanks[] = {"\xc2\xa0", "\xe2\x80\xaf", "\xe2\x80\x89"};
constexpr std::string_view minus = "\xe2\x88\x92";

bool is_digit(std::string_view text, std::size_t at) {
  return base::is_digit(at_or_end(text, at));
}
bool is_letter(std::string_view text, std::size_t at) {
  return std::isalpha((unsigned char)at_or_end(text, at)) != 0;
}
std::size_t digits_from(std::string_view text, std::size_t at) {
  while (is_digit(text, at)) ++at;
  return at;
}

// What separates groups of three digits here, besides `mark`; 0: nothing does.
std::size_t group_mark_at(std::string_view text, char mark) {
  if (text.empty()) return 0;
  if (text.front() == mark || text.front() == '\'' || text.front() == '_') return 1;
  for (const std::string_view blank : unbroken_blanks) {
    if (text.starts_with(blank)) return blank.size();
  }
  return 0;
}

std::size_t sign_at(std::string_view text, bool& negative) {
  negative = text.starts_with('-') || text.starts_with(minus);
  return text.starts_with(minus) ? minus.size() : text.starts_with('-') || text.starts_with('+') ? 1 : 0;
}

// "e-3", "D+03", "q2": its bytes, and its value as a text; 0: there is none.
std::size_t exponent_at(std::string_view text, std::string& exponent) {
  if (text.empty() || std::string_view("eEdDqQ").find(text.front()) == std::string_view::npos) return 0;
  bool negative = false;
  const std::size_t first = 1 + sign_at(text.substr(1), negative);
  const std::size_t end = digits_from(text, first);
  const bool is_day = first == 1 && std::string_view("eE").find(text.front()) == std::string_view::npos;  // "1d12h"
  if (end == first || (is_day && is_letter(text, end))) return 0;
  exponent = fmt::format("e{}{}", negative ? "-" : "", text.substr(first, end - first));
  return end;
}

// Whether what follows a point makes it the end of a number: "5.", "5.E-03".
bool ends_number(std::string_view rest) {
  std::string exponent;
  if (rest.empty()) return true;
  return is_letter(rest, 0) ? exponent_at(rest, exponent) > 0 : rest.front() != '.' && !is_digit(rest, 0);
}

// Digits with one mark for fractions, and one for thousands.
struct Mantissa {
  std::string digits;  // with '.'
  std::size_t end = 0;
  bool has_thousands = false, has_fraction = false;
};

Mantissa mantissa_at(std::string_view text, char point, char thousands) {
  Mantissa out;
  out.end = digits_from(text, 0);
  out.digits = text.substr(0, out.end);
  const bool may_have_groups = out.end >= 1 && out.end <= 3 && text.front() != '0';
  std::string_view mark;  // the same between all groups
  while (may_have_groups) {
    const std::size_t size = group_mark_at(text.substr(out.end), thousands);
    const std::size_t first = out.end + size, last = digits_from(text, first);
    if (size == 0 || last != first + 3 || (out.has_thousands && text.substr(out.end, size) != mark)) break;
    mark = text.substr(out.end, size);
    out.digits += text.substr(first, 3);
    out.end = last;
    out.has_thousands = true;
  }
  const bool has_point = out.end < text.size() && text[out.end] == point;
  const std::size_t last = has_point ? digits_from(text, out.end + 1) : out.end;
  if (last > out.end + 1) {
    out.has_fraction = true;
    out.digits += fmt::format(".{}", text.substr(out.end + 1, last - out.end - 1));
    out.end = last;
  } else if (has_point && point == '.' && out.end > 0 && ends_number(text.substr(out.end + 1))) {
    ++out.end;
  }
  return out;
}

// Whether digits that belong to the same word follow.
bool is_cut(std::string_view text, std::size_t end) {
  if (is_digit(text, end)) return true;
  if (end >= text.size()) return false;
  const std::size_t mark = text[end] == '.' ? 1 : group_mark_at(text.substr(end), ',');
  return mark > 0 && is_digit(text, end + mark);
}

std::optional<Mantissa> mantissa_of(std::string_view text, Among among, PrintedNumber& number) {
  const Mantissa with_point = mantissa_at(text, '.', among == Among::commas ? '\'' : ',');
  if (with_point.digits.empty()) return std::nullopt;
  const bool comma_follows = with_point.end < text.size() && text[with_point.end] == ',';
  if (among == Among::commas)
    return comma_follows || !is_cut(text, with_point.end) ? std::optional(with_point) : std::nullopt;
  const Mantissa with_comma = mantissa_at(text, ',', '.');
  const bool has_comma = text.substr(0, with_comma.end).find(',') != std::string_view::npos;
  const bool is_pointed = !is_cut(text, with_point.end);
  const bool is_commaed = (has_comma || with_comma.has_thousands) && !is_cut(text, with_comma.end);
  if (is_pointed && is_commaed && has_comma && with_point.digits != with_comma.digits)
    number.doubt =
        fmt::format("'{}' is {} or {}", text.substr(0, with_comma.end), with_point.digits, with_comma.digits);
  if (is_pointed) return with_point;
  number.has_decimal_comma = is_commaed && has_comma;
  if (is_commaed) return with_comma;
  return comma_follows && !with_point.has_thousands ? std::optional(with_point) : std::nullopt;  // "0.5,0.25"
}

std::optional<PrintedNumber> named_number(std::string_view text) {
  std::string word;
  for (std::size_t i = 0; is_letter(text, i); ++i) word += char(std::tolower((unsigned char)text[i]));
  if (word != "nan" && word != "inf" && word != "infinity") return std::nullopt;
  std::size_t end = word.size();
  if (word == "nan" && end < text.size() && text[end] == '(') {
    const std::size_t close = text.find(')', end);
    if (close != std::string_view::npos) end = close + 1;
  }
  if (is_digit(text, end) || (end < text.size() && text[end] == '_')) return std::nullopt;
  const double value =
      word == "nan" ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  return PrintedNumber{value, end};
}

std::optional<PrintedNumber> hexadecimal(std::string_view text) {
  if (!text.starts_with("0x") && !text.starts_with("0X")) return std::nullopt;
  PrintedNumber number;
  const auto [end, error] =
      std::from_chars(text.data() + 2, text.data() + text.size(), number.value, std::chars_format::hex);
  if (error != std::errc()) return std::nullopt;
  number.length = std::size_t(end - text.data());
  const bool has_exponent = text.substr(0, number.length).find_first_of("pP") != std::string_view::npos;
  return is_letter(text, number.length) && !has_exponent ? std::nullopt : std::optional(number);
}

std::optional<PrintedNumber> decimal(std::string_view text, Among among) {
  PrintedNumber number;
  const std::optional<Mantissa> mantissa = mantissa_of(text, among, number);
  if (!mantissa) return std::nullopt;
  std::string exponent;
  number.length = mantissa->end + exponent_at(text.substr(mantissa->end), exponent);
  const std::string all = mantissa->digits + exponent;
  const auto [end, error] = std::from_chars(all.data(), all.data() + all.size(), number.value);
  if (error != std::errc()) number.doubt = fmt::format("'{}' is beyond what a double holds", all);
  const std::string_view rest = text.substr(number.length);
  const bool is_plain = mantissa->end <= 3 && !mantissa->has_fraction && exponent.empty();
  if (among == Among::words && is_plain && rest.starts_with(' ') && digits_from(rest, 1) == 4 && !is_letter(rest, 4))
    number.doubt = fmt::format("'{}' may be one number or two", text.substr(0, number.length + 4));
  return number;
}

// What follows may say that it is not a number, or part of another.
enum class Follows { nothing, no_number, doubt };
Follows follows(std::string_view rest) {
  if (rest.empty()) return Follows::nothing;
  const char c = rest.front();
  if (std::string_view(":=_#\\@<>").find(c) != std::string_view::npos || rest.starts_with(".."))
    return Follows::no_number;
  if (std::string_view("/-+.'").find(c) != std::string_view::npos && is_digit(rest, 1)) return Follows::no_number;
  if (c == '(' && is_digit(rest, 1)) return Follows::doubt;  // "1.25(3)"
  rest.remove_prefix(blank_at(rest));
  if (rest.starts_with("/ ") && is_digit(rest, 2)) return Follows::no_number;
  for (const std::string_view more : {"*", "^", "\xc3\x97", "x 10", "x10", "- ", "\xe2\x80\x93", "to ", ".."}) {
    if (rest.starts_with(more) && (more == "*" || more == "^" || more.starts_with('x') || is_digit(rest, more.size()) ||
                                   is_digit(rest, more.size() + 1)))
      return Follows::doubt;  // powers and ranges
  }
  return Follows::nothing;
}

}  // namespace

char at_or_end(std::string_view text, std::size_t at) {
  return at < text.size() ? text[at] : '\0';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::size_t blank_at(std::string_view text) {
  std::size_t at = 0;
  for (bool more = true; more;) {
    more = false;
    while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at, more = true;
    for (const std::string_view blank : unbroken_blanks) {
      if (text.substr(at).starts_with(blank)) at += blank.size(), more = true;
    }
  }
  return at;
}

std::optional<PrintedNumber> number_at(std::string_view text, Among among) {
  bool negative = false;
  const std::size_t sign = sign_at(text, negative);
  const std::string_view rest = text.substr(sign);
  std::optional<PrintedNumber> number = named_number(rest);
  if (!number) number = hexadecimal(rest);
  if (!number) number = decimal(rest, among);
  if (!number) return std::nullopt;
  number->length += sign;
  if (negative) number->value = -number->value;
  switch (follows(text.substr(number->length))) {
    case Follows::no_number:
      return std::nullopt;
    case Follows::doubt:
      number->doubt = fmt::format("'{}' goes on in a way that is not understood", text.substr(0, number->length));
      break;
    case Follows::nothing:
      break;
  }
  return number;
}

}  // namespace graft::base
