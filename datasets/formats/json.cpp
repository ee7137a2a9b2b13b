#include "datasets/formats/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/hash.h"

namespace graft::datasets::formats {
namespace {

constexpr std::size_t most_levels = 200;
constexpr std::size_t few_keys = 16;

void append_utf8(std::string& to, std::uint32_t code) {
  if (code < 0x80) {
    to += char(code);
  } else if (code < 0x800) {
    to += {char(0xc0 | (code >> 6)), char(0x80 | (code & 0x3f))};
  } else if (code < 0x10000) {
    to += {char(0xe0 | (code >> 12)), char(0x80 | ((code >> 6) & 0x3f)), char(0x80 | (code & 0x3f))};
  } else {
    to += {char(0xf0 | (code >> 18)), char(0x80 | ((code >> 12) & 0x3f)), char(0x80 | ((code >> 6) & 0x3f)),
           char(0x80 | (code & 0x3f))};
  }
}

}  // namespace

JsonReader::JsonReader(std::string_view text, std::string_view file, std::int64_t first_line)
    : text_(text), file_(file), first_line_(first_line) {}

void JsonReader::fail(std::string_view message) const {
  throw base::UserError(place(), message);
}

std::string JsonReader::place() const {
  const std::string_view before = text_.substr(0, std::min(position_, text_.size()));
  const std::int64_t line = first_line_ + std::count(before.begin(), before.end(), '\n');
  const std::size_t begin = before.rfind('\n');
  const std::size_t column =
      begin == std::string_view::npos ? before.size() + std::size_t(first_column_) : before.size() - begin;
  return fmt::format("{}:{}:{}", file_, line, column);
}

void JsonReader::skip_space() {
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (c != ' ' && c != '\n' && c != '\t' && c != '\r') return;
    ++position_;
  }
}

void JsonReader::expect(char c, std::string_view what) {
  skip_space();
  if (position_ >= text_.size()) fail(fmt::format("expected {}, got the end", what));
  if (text_[position_] != c) {
    fail(fmt::format("expected {}, got '{}'", what, text_.substr(position_, std::min<std::size_t>(16, text_.size()))));
  }
  ++position_;
}

void JsonReader::literal(std::string_view word) {
  skip_space();
  if (!text_.substr(position_).starts_with(word)) fail(fmt::format("expected {}", word));
  position_ += word.size();
}

JsonReader::Kind JsonReader::kind() {
  skip_space();
  if (position_ >= text_.size()) fail("expected a value, got the end");
  switch (text_[position_]) {
    case '{':
      return Kind::map;
    case '[':
      return Kind::list;
    case '"':
      return Kind::string;
    case 't':
    case 'f':
      return Kind::boolean;
    case 'n':
      return word_for_number(position_) > 0 ? Kind::number : Kind::null;
    default:
      return Kind::number;
  }
}

void JsonReader::open(bool is_map) {
  if (depth_ == most_levels) fail(fmt::format("is nested deeper than {} levels", most_levels));
  if (depth_ == levels_.size()) levels_.emplace_back();
  Level& level = levels_[depth_++];
  level.is_map = is_map;
  level.is_first = true;
  level.keys.clear();
  // clear() would visit as many buckets as the largest map of this level had.
  if (!level.more_keys.empty()) level.more_keys = std::unordered_set<std::uint64_t>();
}

bool JsonReader::next(char close) {
  skip_space();
  Level& level = levels_[depth_ - 1];
  if (position_ < text_.size() && text_[position_] == close) {
    ++position_;
    --depth_;
    return false;
  }
  if (!level.is_first) expect(',', close == ']' ? "',' or ']'" : "',' or '}'");
  level.is_first = false;
  return true;
}

void JsonReader::begin_list() {
  expect('[', "a list");
  open(false);
}

void JsonReader::expect_item(std::string_view otherwise) {
  if (!next_item()) fail(otherwise);
}

bool JsonReader::next_item() {
  return next(']');
}

void JsonReader::begin_map() {
  expect('{', "a map");
  open(true);
}

bool JsonReader::next_key(std::string_view& key) {
  bool is_twice = false;
  const std::size_t at = position_;
  if (!next_key(key, is_twice)) return false;
  if (is_twice) {
    position_ = text_.find('"', at);
    fail(fmt::format("key '{}' is there twice", key));
  }
  return true;
}

bool JsonReader::next_key(std::string_view& key, bool& is_twice) {
  if (!next('}')) return false;
  key = quoted();
  Level& level = levels_[depth_ - 1];
  const std::uint64_t hash = base::hash_bytes(key);
  bool is_new = true;
  if (level.keys.size() < few_keys) {
    is_new = std::find(level.keys.begin(), level.keys.end(), hash) == level.keys.end();
    level.keys.push_back(hash);
  } else {
    if (level.more_keys.empty()) level.more_keys.insert(level.keys.begin(), level.keys.end());
    is_new = level.more_keys.insert(hash).second;
  }
  is_twice = !is_new;
  expect(':', "':'");
  return true;
}

std::string_view JsonReader::quoted() {
  expect('"', "a string");
  const std::size_t begin = position_;
  std::size_t end = begin;
  while (end < text_.size() && text_[end] != '"' && text_[end] != '\\' && (unsigned char)text_[end] >= 0x20) ++end;
  if (end < text_.size() && text_[end] == '"') {
    position_ = end + 1;
    return text_.substr(begin, end - begin);
  }
  unescaped_.assign(text_.substr(begin, end - begin));
  position_ = end;
  const auto hex = [&] {
    std::uint32_t code = 0;
    const std::string_view digits = text_.substr(std::min(position_, text_.size()), 4);
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (error != std::errc() || digits.size() < 4 || stop != digits.data() + 4) fail("expected four hex digits");
    position_ += 4;
    return code;
  };
  for (;;) {
    if (position_ >= text_.size()) fail("a string is never closed");
    const char c = text_[position_++];
    if (c == '"') return unescaped_;
    if ((unsigned char)c < 0x20) {
      --position_;
      fail("a control character in a string");
    }
    if (c != '\\') {
      unescaped_ += c;
      continue;
    }
    const char escaped = position_ < text_.size() ? text_[position_++] : '\0';
    constexpr std::string_view from = "\"\\/bfnrt", to = "\"\\/\b\f\n\r\t";
    if (const std::size_t found = from.find(escaped); found != std::string_view::npos) {
      unescaped_ += to[found];
    } else if (escaped == 'u') {
      std::uint32_t code = hex();
      if (code >= 0xd800 && code < 0xdc00 && text_.substr(position_).starts_with("\\u")) {
        position_ += 2;
        const std::uint32_t low = hex();
        if (low < 0xdc00 || low > 0xdfff) fail("half of a surrogate pair");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      } else if (code >= 0xd800 && code <= 0xdfff) {
        fail("half of a surrogate pair");
      }
      append_utf8(unescaped_, code);
    } else {
      fail("an unknown escape in a string");
    }
  }
}

std::string_view JsonReader::string() {
  if (!at(Kind::string)) fail("expected a string");
  return quoted();
}

// "NaN", "-Infinity", and as C and Rust write them.
std::size_t JsonReader::word_for_number(std::size_t at) const {
  std::size_t end = at + (at < text_.size() && text_[at] == '-' ? 1 : 0);
  for (const std::string_view word : {"NaN", "nan", "NAN", "Infinity", "infinity", "inf", "Inf", "INF"}) {
    if (!text_.substr(std::min(end, text_.size())).starts_with(word)) continue;
    end += word.size();
    return end < text_.size() && std::isalnum((unsigned char)text_[end]) ? 0 : end - at;
  }
  return 0;
}

std::string_view JsonReader::number_text() {
  skip_space();
  if (const std::size_t word = word_for_number(position_); word > 0) {
    position_ += word;
    return text_.substr(position_ - word, word);
  }
  std::size_t end = position_;
  const auto digits = [&] {
    const std::size_t begin = end;
    while (end < text_.size() && text_[end] >= '0' && text_[end] <= '9') ++end;
    return end - begin;
  };
  if (end < text_.size() && text_[end] == '-') ++end;
  const bool zero = end < text_.size() && text_[end] == '0';
  const std::size_t whole = digits();
  bool good = whole > 0 && !(zero && whole > 1);
  if (end < text_.size() && text_[end] == '.') {
    ++end;
    good &= digits() > 0;
  }
  if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
    ++end;
    if (end < text_.size() && (text_[end] == '-' || text_[end] == '+')) ++end;
    good &= digits() > 0;
  }
  if (!good) {
    const std::size_t stop = std::min(text_.find_first_of(" ,]}\n", position_), position_ + 24);
    fail(fmt::format("expected a number, got '{}'", text_.substr(position_, stop - position_)));
  }
  const std::string_view number = text_.substr(position_, end - position_);
  position_ = end;
  return number;
}

double JsonReader::any_number() {
  const std::string_view digits = number_text();
  double value = 0;
  const std::errc error = std::from_chars(digits.data(), digits.data() + digits.size(), value).ec;
  if (error == std::errc()) return value;
  return digits.find("e-") != digits.npos || digits.find("E-") != digits.npos ? 0 : HUGE_VAL;
}

double JsonReader::number() {
  const std::string_view digits = number_text();
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc()) fail(fmt::format("{} is beyond what a double holds", digits));
  if (!std::isfinite(value)) fail(fmt::format("expected a finite number, got {}", digits));
  return value;
}

std::int64_t JsonReader::integer() {
  const std::string_view digits = number_text();
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc::result_out_of_range) fail(fmt::format("{} is beyond 64 bits", digits));
  if (error != std::errc() || end != digits.data() + digits.size()) {
    fail(fmt::format("expected an integer, got {}", digits));
  }
  return value;
}

bool JsonReader::boolean() {
  skip_space();
  const bool value = text_.substr(position_).starts_with("true");
  literal(value ? "true" : "false");
  return value;
}

void JsonReader::null() {
  literal("null");
}

void JsonReader::skip() {
  const std::size_t outside = depth_;
  do {
    if (depth_ > outside) {
      const bool is_map = levels_[depth_ - 1].is_map;
      if (!next(is_map ? '}' : ']')) continue;
      if (is_map) {
        skip_space();
        quoted();
        expect(':', "':'");
      }
    }
    switch (kind()) {
      case Kind::null:
        null();
        break;
      case Kind::boolean:
        boolean();
        break;
      case Kind::number:
        number_text();
        break;
      case Kind::string:
        quoted();
        break;
      case Kind::list:
        begin_list();
        break;
      case Kind::map:
        begin_map();
        break;
    }
  } while (depth_ > outside);
}

std::string_view JsonReader::raw() {
  skip_space();
  const std::size_t begin = position_;
  skip();
  return text_.substr(begin, position_ - begin);
}

JsonReader JsonReader::apart() {
  skip_space();
  const std::size_t begin = position_;
  std::size_t end = begin, depth = 0;
  for (bool is_done = false; !is_done;) {
    if (end == text_.size()) fail("a value that is never closed");
    switch (text_[end]) {
      case '"':
        for (++end; end < text_.size() && text_[end] != '"'; ++end) end += text_[end] == '\\';
        if (end >= text_.size()) fail("a string is never closed");
        is_done = depth == 0;
        ++end;
        break;
      case '[':
      case '{':
        if (++depth > most_levels) fail(fmt::format("is nested deeper than {} levels", most_levels));
        ++end;
        break;
      case ']':
      case '}':
        if (depth > 0) ++end;
        is_done = depth <= 1;
        depth -= depth > 0;
        break;
      case ',':
        is_done = depth == 0;
        end += depth > 0;
        break;
      default:
        ++end;
    }
  }
  const std::string_view before = text_.substr(counted_, begin - counted_);
  counted_lines_ += std::count(before.begin(), before.end(), '\n');
  if (const std::size_t last = before.rfind('\n'); last != std::string_view::npos) last_line_ = counted_ + last + 1;
  counted_ = begin;
  JsonReader result(text_.substr(begin, end - begin), file_, first_line_ + counted_lines_);
  result.first_column_ = std::int64_t(begin - last_line_) + (last_line_ == 0 ? first_column_ : 1);
  position_ = end;
  return result;
}

void JsonReader::end() {
  skip_space();
  if (position_ < text_.size()) fail("unexpected text after the value");
}

}  // namespace graft::datasets::formats
