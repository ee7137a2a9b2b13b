#include "base/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace graft::base {
namespace {

// <cctype> depends on the locale and on the sign of char.
bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool begins_identifier(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool continues_identifier(char c) {
  return begins_identifier(c) || is_digit(c) || c == '.';
}

constexpr std::size_t longest_name = 256;  // it comes back in messages

// The start of `rest` as an error message shows it: a whole identifier or number, or one character.
std::string excerpt(std::string_view rest) {
  if (rest.empty()) return "the end of the text";
  std::size_t length = 0;
  while (length < rest.size() && length < 40 && continues_identifier(rest[length])) ++length;
  if (length == 0) {
    // A whole UTF-8 character: a cut one would make the message itself invalid.
    length = 1;
    while (length < rest.size() && length < 4 && (rest[length] & 0xc0) == 0x80) ++length;
  }
  return fmt::format("'{}'", rest.substr(0, length));
}

}  // namespace

Cursor::Cursor(std::string_view text, std::string_view name) : text_(text), name_(name) {}

void Cursor::skip_space() {
  while (position_ < text_.size() && is_space(text_[position_])) ++position_;
}

bool Cursor::at_end() {
  skip_space();
  return position_ == text_.size();
}

char Cursor::peek() {
  return at_end() ? '\0' : text_[position_];
}

bool Cursor::accept(std::string_view token) {
  skip_space();
  if (!rest().starts_with(token)) return false;
  position_ += token.size();
  return true;
}

void Cursor::expect(std::string_view token) {
  if (!accept(token)) fail(fmt::format("expected '{}', got {}", token, excerpt(rest())));
}

bool Cursor::at_identifier() {
  return begins_identifier(peek());
}

std::string Cursor::identifier() {
  if (!at_identifier()) fail(fmt::format("expected a name, got {}", excerpt(rest())));
  const std::size_t begin = position_;
  while (position_ < text_.size() && continues_identifier(text_[position_])) ++position_;
  if (const std::size_t length = position_ - begin; length > longest_name) {
    position_ = begin;
    fail(fmt::format("a name of {} characters; at most {}", length, longest_name));
  }
  return std::string(text_.substr(begin, position_ - begin));
}

bool Cursor::at_number() {
  skip_space();
  std::string_view left = rest();
  if (left.starts_with('-')) left.remove_prefix(1);
  if (left.starts_with('.')) left.remove_prefix(1);
  return !left.empty() && is_digit(left.front());
}

std::int64_t Cursor::integer() {
  skip_space();
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(rest().data(), rest().data() + rest().size(), value);
  if (error == std::errc::result_out_of_range) fail(fmt::format("{} does not fit 64 bits", excerpt(rest())));
  if (error != std::errc{}) fail(fmt::format("expected an integer, got {}", excerpt(rest())));
  position_ += std::size_t(end - rest().data());
  return value;
}

double Cursor::number() {
  if (!at_number()) fail(fmt::format("expected a number, got {}", excerpt(rest())));
  double value = 0;
  const auto [end, error] = std::from_chars(rest().data(), rest().data() + rest().size(), value);
  if (error != std::errc{}) fail(fmt::format("{} is out of the range of a double", excerpt(rest())));
  position_ += std::size_t(end - rest().data());
  return value;
}

Cursor Cursor::line(char comment) {
  const std::size_t end = std::min(text_.find('\n', position_), text_.size());
  Cursor line = *this;
  line.text_ = text_.substr(0, end);
  if (comment != '\0') line.text_ = text_.substr(0, std::min(text_.find(comment, position_), end));
  position_ = std::min(end + 1, text_.size());
  return line;
}

void Cursor::fail(std::string_view message) const {
  const std::string_view before = text_.substr(0, position_);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t newline = before.rfind('\n');
  const std::size_t column = newline == std::string_view::npos ? before.size() + 1 : before.size() - newline;
  throw UserError(fmt::format("{}:{}:{}", name_, line, column), message);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> found;
  for (std::size_t i = 0; i < text.size();) {
    if (is_space(text[i])) {
      ++i;
      continue;
    }
    const std::size_t begin = i;
    while (i < text.size() && !is_space(text[i])) ++i;
    found.push_back(text.substr(begin, i - begin));
  }
  return found;
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::string counted(std::int64_t count, std::string_view word) {
  if (count != 1 && word.ends_with("ry")) return fmt::format("{} {}ies", count, word.substr(0, word.size() - 1));
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : word.ends_with("ch") ? "es" : "s");
}

std::string without_numbers(std::string_view text) {
  const auto is_digit = [&](std::size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; };
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    if (!is_digit(i)) {
      result += text[i++];
      continue;
    }
    // A dash within a word is not a sign.
    const bool is_signed =
        result.ends_with('-') &&
        (result.size() == 1 || std::string_view(" (=").find(result[result.size() - 2]) != std::string_view::npos);
    if (is_signed) result.pop_back();
    result += '#';
    while (is_digit(i)) ++i;
    if (i < text.size() && text[i] == '.' && is_digit(i + 1)) {
      for (++i; is_digit(i);) ++i;
    }
    if (i < text.size() && text[i] == 'e') {
      const std::size_t exponent = i + (i + 1 < text.size() && (text[i + 1] == '-' || text[i + 1] == '+') ? 2 : 1);
      if (is_digit(exponent)) {
        for (i = exponent; is_digit(i);) ++i;
      }
    }
  }
  return result;
}

}  // namespace graft::base
