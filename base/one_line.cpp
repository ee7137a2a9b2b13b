#include "base/one_line.h"

#include <algorithm>

namespace graft::base {
namespace {

// Bytes of the character that `text` begins with; 0: none of UTF-8 (surrogates and overlong forms included).
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xC2 && first < 0xE0 ? 2 : first >= 0xE0 && first < 0xF0 ? 3 : 4;
  if (first < 0xC2 || first > 0xF4) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F)) return 0;
  if ((first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F)) return 0;
  return length;
}

// Bytes of the escape sequence of a terminal that `text`, which begins with ESC, has: "ESC [ ... letter", "ESC ] ..."
// to BEL or "ESC \\", or two.
std::size_t escape_length(std::string_view text) {
  if (text.size() < 2) return text.size();
  if (text[1] != '[' && text[1] != ']') return 2;
  const bool is_title = text[1] == ']';
  for (std::size_t i = 2; i < text.size(); ++i) {
    if (text[i] == '\n') return i;
    if (is_title && text.substr(i).starts_with("\x1b\\")) return i + 2;
    if (is_title ? text[i] == '\a' : text[i] >= '@' && text[i] <= '~') return i + 1;
  }
  return text.size();
}

}  // namespace

std::string one_line(std::string_view foreign, std::size_t longest) {
  std::string line;
  std::string_view between;  // what separates the next character from those before
  while (!foreign.empty()) {
    const char c = foreign.front();
    const std::size_t length = c == '\x1b' ? escape_length(foreign) : utf8_length(foreign);
    // C1 controls, U+0080 to U+009F, move cursors as well.
    const bool is_c1 = length == 2 && c == '\xC2' && static_cast<unsigned char>(foreign[1]) < 0xA0;
    if (c == '\n') {
      between = "; ";
    } else if (static_cast<unsigned char>(c) <= ' ' || c == '\x7f' || is_c1) {
      if (between.empty()) between = " ";
    } else {
      if (!line.empty()) line += between;
      between = {};
      line += length == 0 ? std::string_view("?") : foreign.substr(0, length);
      if (line.size() > longest) break;
    }
    foreign.remove_prefix(std::max<std::size_t>(length, 1));
  }
  if (line.size() <= longest) return line;
  std::size_t end = longest - std::min<std::size_t>(longest, 3);
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80) --end;  // no half characters
  return line.substr(0, end) + "...";
}

std::string without_escapes(std::string_view foreign) {
  std::string out;
  while (!foreign.empty()) {
    const std::size_t plain = std::min(foreign.find('\x1b'), foreign.size());
    out += foreign.substr(0, plain);
    foreign.remove_prefix(plain);
    if (!foreign.empty()) foreign.remove_prefix(std::max<std::size_t>(escape_length(foreign), 1));
  }
  return out;
}

}  // namespace graft::base
