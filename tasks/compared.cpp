#include "tasks/compared.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <limits>

#include "base/one_line.h"
#include "base/printed_number.h"
#include "base/text.h"
#include "base/within.h"

namespace graft::tasks {
namespace {

constexpr std::size_t longest_shown = 60;

bool is_of_word(char c) {
  return std::isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

struct Token {
  std::string_view text;
  std::optional<double> number = {};
  bool is_word() const { return !number && is_of_word(text.front()); }
};

std::optional<base::PrintedNumber> whole_number_at(std::string_view text) {
  std::optional<base::PrintedNumber> number = base::number_at(text);
  if (number && !number->doubt.empty()) number = base::number_at(text, base::Among::commas);
  const bool goes_on = number && number->length < text.size() && is_of_word(text[number->length]);
  return goes_on ? std::nullopt : number;
}

// Words, numbers, and every other character by itself.
std::vector<Token> tokens_of(std::string_view text) {
  std::vector<Token> tokens;
  while (true) {
    text.remove_prefix(base::blank_at(text));
    if (text.empty()) return tokens;
    if (const std::optional<base::PrintedNumber> number = whole_number_at(text)) {
      tokens.push_back({text.substr(0, number->length), number->value});
    } else {
      std::size_t end = 0;
      while (end < text.size() && is_of_word(text[end])) ++end;
      tokens.push_back({text.substr(0, std::max<std::size_t>(end, 1))});
    }
    text.remove_prefix(tokens.back().text.size());
  }
}

bool are_equal(const Token& own, const Token& wanted, const std::optional<Tolerance>& tolerance) {
  if (own.text == wanted.text) return true;
  if (!tolerance || !own.number || !wanted.number) return false;
  const double most = tolerance->absolute + tolerance->relative * std::abs(*wanted.number);
  return base::within(*own.number, *wanted.number, std::isfinite(most) ? most : 0, std::numeric_limits<double>::max());
}

std::string shown(std::string_view text) {
  const std::string line = base::one_line(base::trim(text), longest_shown);
  return line.empty() ? "nothing" : line;
}

}  // namespace

std::optional<std::string> difference(const std::vector<std::string>& own, const std::vector<std::string>& wanted,
                                      const std::optional<Tolerance>& tolerance) {
  if (own.size() != wanted.size())
    return fmt::format("has {}, not {}", base::counted(own.size(), "line"), wanted.size());
  for (std::size_t line = 0; line < own.size(); ++line) {
    if (own[line] == wanted[line] && !tolerance) continue;
    const std::vector<Token> a = tokens_of(own[line]), b = tokens_of(wanted[line]);
    std::size_t at = 0;
    while (at < a.size() && at < b.size() && are_equal(a[at], b[at], tolerance)) ++at;
    if (at == a.size() && at == b.size()) continue;
    if (std::max(own[line].size(), wanted[line].size()) <= longest_shown || at == a.size() || at == b.size())
      return fmt::format("is {}, not {}", shown(own[line]), shown(wanted[line]));
    return fmt::format("is {}, not {} (part {} of {})", shown(a[at].text), shown(b[at].text), at + 1, b.size());
  }
  return std::nullopt;
}

std::string unfit_as_reference(const std::vector<std::string>& texts, bool are_lines) {
  bool is_empty = true;
  for (const std::string& text : texts) {
    const std::vector<Token> tokens = tokens_of(text);
    is_empty = is_empty && tokens.empty();
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const bool is_value = i == 0 ? !are_lines || tokens.size() == 1 : !tokens[i - 1].is_word();
      if (tokens[i].number && std::isnan(*tokens[i].number) && is_value) return fmt::format("is {}", shown(text));
    }
  }
  return is_empty ? "is empty" : "";
}

}  // namespace graft::tasks
