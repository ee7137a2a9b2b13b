#include "base/hash.h"

#include <fmt/format.h>

#include <charconv>

#include "base/error.h"

namespace graft::base {

std::uint64_t hash_mix(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

std::uint64_t hash_bytes(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash_mix(hash);
}

std::uint64_t hash_combine(std::uint64_t first, std::uint64_t second) {
  // The golden-ratio increment keeps (0, 0) away from 0, the mixer makes the order count.
  return hash_mix(hash_mix(first + 0x9e3779b97f4a7c15u) + second);
}

std::string to_hex(std::uint64_t hash) {
  return fmt::format("{:016x}", hash);
}

std::uint64_t from_hex(std::string_view text) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  if (text.size() == 16 && text.front() != '-') {
    const auto [rest, error] = std::from_chars(text.data(), end, value, 16);
    if (error == std::errc{} && rest == end) return value;
  }
  throw UserError(fmt::format("'{}' is not a hash: expected 16 hex digits", text));
}

}  // namespace graft::base
