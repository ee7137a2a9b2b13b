#include "graph/wire.h"

#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>

namespace graft::graph {
namespace {

constexpr int varint_type = 0, long_type = 1, bytes_type = 2, short_type = 5;

std::uint64_t varint(std::string_view& rest) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (rest.empty()) throw Broken{"a number is cut off"};
    const auto byte = static_cast<unsigned char>(rest.front());
    rest.remove_prefix(1);
    value |= std::uint64_t(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  throw Broken{"a number has more than 64 bits"};
}

std::string_view taken(std::string_view& rest, std::uint64_t length) {
  if (length > rest.size()) throw Broken{"a field is longer than what contains it"};
  const std::string_view bytes = rest.substr(0, std::size_t(length));
  rest.remove_prefix(std::size_t(length));
  return bytes;
}

template <class T>
T little_endian(std::string_view bytes) {
  T value{};
  static_assert(std::endian::native == std::endian::little);
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

// Numbers of one width, single or packed.
template <class Stored, class T>
void append_fixed(const Field& field, int type, std::vector<T>& numbers) {
  if (field.type == type) {
    numbers.push_back(std::bit_cast<T>(Stored(field.integer)));
    return;
  }
  std::string_view rest = field.as_bytes();
  if (rest.size() % sizeof(T) != 0) throw Broken{"a list of numbers is cut off"};
  while (!rest.empty()) numbers.push_back(little_endian<T>(taken(rest, sizeof(T))));
}

}  // namespace

std::int64_t Field::as_integer() const {
  if (type != varint_type) throw Broken{"a field that is an integer has another type"};
  return std::int64_t(integer);
}

float Field::as_float() const {
  if (type != short_type) throw Broken{"a field that is a number has another type"};
  return std::bit_cast<float>(std::uint32_t(integer));
}

std::string_view Field::as_bytes() const {
  if (type != bytes_type) throw Broken{"a field that is a text or a message has another type"};
  return bytes;
}

void Field::append_to(std::vector<std::int64_t>& integers) const {
  if (type == varint_type) {
    integers.push_back(std::int64_t(integer));
    return;
  }
  std::string_view rest = as_bytes();
  while (!rest.empty()) integers.push_back(std::int64_t(varint(rest)));
}

void Field::append_to(std::vector<float>& numbers) const {
  append_fixed<std::uint32_t>(*this, short_type, numbers);
}

void Field::append_to(std::vector<double>& numbers) const {
  append_fixed<std::uint64_t>(*this, long_type, numbers);
}

bool Fields::next(Field& field) {
  if (rest_.empty()) return false;
  const std::uint64_t key = varint(rest_);
  if (key >> 3 == 0 || key >> 3 > std::uint64_t(std::numeric_limits<std::int32_t>::max()))
    throw Broken{"a field has an impossible number"};
  field = {.number = int(key >> 3), .type = int(key & 7)};
  switch (field.type) {
    case varint_type:
      field.integer = varint(rest_);
      break;
    case long_type:
      field.integer = little_endian<std::uint64_t>(taken(rest_, sizeof(std::uint64_t)));
      break;
    case short_type:
      field.integer = little_endian<std::uint32_t>(taken(rest_, sizeof(std::uint32_t)));
      break;
    case bytes_type:
      field.bytes = taken(rest_, varint(rest_));
      break;
    default:
      throw Broken{"a field has an impossible type"};
  }
  return true;
}

}  // namespace graft::graph
