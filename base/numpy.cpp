#include "base/numpy.h"

#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/files.h"

namespace graft::base {
namespace {

constexpr std::int64_t most_elements = std::int64_t(1) << 40;

// What the header of a ".npy" file says, a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (2,
// 3)}.
struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::string_view place) : text_(text), place_(place) {}

  Header parse() {
    std::optional<std::string> descr;
    std::optional<bool> order;
    std::optional<std::vector<std::int64_t>> shape;
    expect('{');
    while (!taken('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr") {
        descr = quoted();
      } else if (key == "fortran_order") {
        order = boolean();
      } else if (key == "shape") {
        shape = tuple();
      } else {
        refuse(fmt::format("unknown key '{}'", key));
      }
      if (!taken(',')) {
        expect('}');
        break;
      }
    }
    if (!descr || !order || !shape) refuse("it lacks descr, fortran_order or shape");
    return {*descr, *order, *shape};
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw UserError(std::string(place_), "header of a .npy file: " + why);
  }
  void skip() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n')) text_.remove_prefix(1);
  }
  bool taken(char c) {
    skip();
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!taken(c)) refuse(fmt::format("expected '{}'", c));
  }
  std::string quoted() {
    skip();
    if (text_.empty() || (text_[0] != '\'' && text_[0] != '"'))
      refuse("expected a string; arrays of records are not read");
    const std::size_t end = text_.find(text_[0], 1);
    if (end == std::string_view::npos) refuse("a string without an end");
    std::string word(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return word;
  }
  bool boolean() {
    skip();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (!text_.starts_with(word)) continue;
      text_.remove_prefix(word.size());
      return value;
    }
    refuse("expected True or False");
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> extents;
    expect('(');
    while (!taken(')')) {
      skip();
      std::int64_t extent = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), extent);
      if (error != std::errc() || extent < 0) refuse("an extent that is not a number");
      text_.remove_prefix(std::size_t(end - text_.data()));
      extents.push_back(extent);
      if (!taken(',')) {
        expect(')');
        break;
      }
    }
    return extents;
  }

  std::string_view text_, place_;
};

double half(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  const double magnitude = exponent == 0    ? std::ldexp(fraction, -24)
                           : exponent == 31 ? (fraction == 0 ? HUGE_VAL : std::nan(""))
                                            : std::ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

template <class T>
T value_at(const char* at, bool swap) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, at, sizeof bytes);
  if (swap) std::reverse(bytes, bytes + sizeof bytes);
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}
template <class T>
double number_at(const char* at, bool swap) {
  return double(value_at<T>(at, swap));
}
template <class T>
std::int64_t integer_at(const char* at, bool swap) {
  return std::int64_t(value_at<T>(at, swap));
}

using ReadNumber = double (*)(const char*, bool);
using ReadInteger = std::int64_t (*)(const char*, bool);

struct ElementType {
  std::string_view name;
  std::size_t bytes;
  ReadNumber read;
  ReadInteger read_integer = nullptr;  // of integers
};

constexpr ElementType element_types[] = {
    {"b1", 1, number_at<std::uint8_t>, integer_at<std::uint8_t>},
    {"i1", 1, number_at<std::int8_t>, integer_at<std::int8_t>},
    {"i2", 2, number_at<std::int16_t>, integer_at<std::int16_t>},
    {"i4", 4, number_at<std::int32_t>, integer_at<std::int32_t>},
    {"i8", 8, number_at<std::int64_t>, integer_at<std::int64_t>},
    {"u1", 1, number_at<std::uint8_t>, integer_at<std::uint8_t>},
    {"u2", 2, number_at<std::uint16_t>, integer_at<std::uint16_t>},
    {"u4", 4, number_at<std::uint32_t>, integer_at<std::uint32_t>},
    {"u8", 8, number_at<std::uint64_t>, integer_at<std::uint64_t>},
    {"f2", 2, [](const char* at, bool swap) { return half(std::uint16_t(number_at<std::uint16_t>(at, swap))); }},
    {"f4", 4, number_at<float>},
    {"f8", 8, number_at<double>},
};

// Values of column-major order in row-major order.
template <class T>
std::vector<T> transposed(const std::vector<std::int64_t>& shape, const std::vector<T>& columns) {
  std::vector<T> rows(columns.size());
  std::vector<std::int64_t> index(shape.size());
  for (T& value : rows) {
    std::int64_t at = 0;
    for (std::size_t d = shape.size(); d-- > 0;) at = at * shape[d] + index[d];
    value = columns[std::size_t(at)];
    for (std::size_t d = shape.size(); d-- > 0 && ++index[d] == shape[d];) index[d] = 0;
  }
  return rows;
}

struct CloseZip {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct CloseEntry {
  void operator()(zip_file_t* entry) const { zip_fclose(entry); }
};

}  // namespace

NumpyArray parse_npy(std::string_view bytes, std::string_view place) {
  const auto refuse = [&](const std::string& why) { throw UserError(std::string(place), why); };
  if (!bytes.starts_with("\x93NUMPY") || bytes.size() < 12) refuse("no .npy file");
  const auto byte = [&](std::size_t at) { return std::size_t(static_cast<unsigned char>(bytes[at])); };
  const std::size_t version = byte(6);
  if (version < 1 || version > 3) refuse(fmt::format(".npy format {} is not known", version));
  const std::size_t begin = version == 1 ? 10 : 12;
  std::size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (bytes.size() - begin < length) refuse("the file ends within its header");
  const Header header = HeaderParser(bytes.substr(begin, length), place).parse();
  const std::string_view data = bytes.substr(begin + length);

  const std::string_view descr = header.descr;
  const bool has_order = !descr.empty() && std::string_view("<>|=").find(descr[0]) != std::string_view::npos;
  const auto* const type = std::find_if(std::begin(element_types), std::end(element_types),
                                        [&](const auto& each) { return has_order && descr.substr(1) == each.name; });
  if (type == std::end(element_types))
    refuse(fmt::format("elements of type '{}' are not read; save them as float32", descr));
  NumpyArray array{header.shape, {}, {}};
  std::int64_t elements = 1;
  for (const std::int64_t extent : header.shape) {
    if (extent > 0 && elements > most_elements / extent) refuse("more elements than any real array has");
    elements *= extent;
  }
  if (data.size() != std::size_t(elements) * type->bytes)
    refuse(fmt::format("{} bytes of data for {} elements of {} bytes", data.size(), elements, type->bytes));
  const bool swap = descr[0] == (std::endian::native == std::endian::little ? '>' : '<');
  array.values.reserve(std::size_t(elements));
  for (std::size_t e = 0; e < std::size_t(elements); ++e)
    array.values.push_back(type->read(data.data() + e * type->bytes, swap));
  for (std::size_t e = 0; type->read_integer != nullptr && e < std::size_t(elements); ++e)
    array.integers.push_back(type->read_integer(data.data() + e * type->bytes, swap));
  if (header.fortran_order) {
    array.values = transposed(array.shape, array.values);
    if (!array.integers.empty()) array.integers = transposed(array.shape, array.integers);
  }
  return array;
}

std::string npy_of(const std::vector<std::int64_t>& shape, std::string_view type, std::string_view bytes) {
  std::string extents;
  for (const std::int64_t extent : shape) extents += fmt::format("{}, ", extent);
  if (shape.size() > 1) extents.erase(extents.size() - 2);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, extents);
  constexpr std::size_t before = 10, alignment = 64;  // magic, version and length; of the data
  header += std::string(alignment - 1 - (before + header.size()) % alignment, ' ') + "\n";
  std::string file = "\x93NUMPY";
  file += '\x01', file += '\0';
  file += char(header.size() & 0xff), file += char(header.size() >> 8);
  return file + header + std::string(bytes);
}

std::map<std::string, NumpyArray> read_npz(const std::filesystem::path& path, std::int64_t most_bytes) {
  InputFile{path};  // refuses pipes, for which the library would wait
  int code = 0;
  const std::unique_ptr<zip_t, CloseZip> archive(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (!archive && code == ZIP_ER_NOENT) throw UserError(path.string(), "cannot be read: no such file or directory");
  if (!archive) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    const std::string text = zip_error_strerror(&error);
    zip_error_fini(&error);
    throw UserError(path.string(), fmt::format("no .npz file: {}", text));
  }
  std::map<std::string, NumpyArray> arrays;
  std::int64_t all = 0;
  for (zip_int64_t i = 0; i < zip_get_num_entries(archive.get(), 0); ++i) {
    zip_stat_t about;
    zip_stat_init(&about);
    if (zip_stat_index(archive.get(), zip_uint64_t(i), 0, &about) != 0 || (about.valid & ZIP_STAT_SIZE) == 0)
      throw UserError(path.string(), zip_strerror(archive.get()));
    std::string name = about.name;
    const std::string place = fmt::format("{}: {}", path.string(), name);
    if (!name.ends_with(".npy")) throw UserError(place, "not a .npy file; numpy.savez writes nothing else");
    name.resize(name.size() - 4);
    if (about.size > std::uint64_t(most_bytes - all))
      throw UserError(path.string(), fmt::format("its arrays have more than {} bytes", most_bytes));
    all += std::int64_t(about.size);
    const std::unique_ptr<zip_file_t, CloseEntry> entry(zip_fopen_index(archive.get(), zip_uint64_t(i), 0));
    if (!entry) throw UserError(place, zip_strerror(archive.get()));
    std::string bytes(about.size, '\0');
    if (zip_fread(entry.get(), bytes.data(), about.size) != zip_int64_t(about.size))
      throw UserError(place, "the archive is damaged");
    if (!arrays.emplace(name, parse_npy(bytes, place)).second) throw UserError(place, "occurs twice");
  }
  return arrays;
}

}  // namespace graft::base
