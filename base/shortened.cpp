#include "base/shortened.h"

#include <fmt/format.h>

namespace graft::base {
namespace {

constexpr std::size_t longest = 120, head = 60, tail = 30;

bool continues_character(char byte) {
  return (byte & 0xc0) == 0x80;
}

}  // namespace

std::string shortened(std::string_view text) {
  if (text.size() <= longest) return std::string(text);
  std::size_t begin = head, end = text.size() - tail;
  while (begin > 0 && continues_character(text[begin])) --begin;
  while (end < text.size() && continues_character(text[end])) ++end;
  return fmt::format("{} ... ({} more characters) ... {}", text.substr(0, begin), end - begin, text.substr(end));
}

}  // namespace graft::base
