// Private to this room: RAII wrappers of HDF5, as far as our files need it. A file is made and read as one image in
// memory: the library never sees a full disk or a half-written file, and base::replace_file makes it appear as a whole.
//
// After the last byte that HDF5 knows comes a seal, one line with the hash of everything before it. It is checked
// before the library sees a byte, because HDF5 1.10 can crash on damaged files. Other HDF5 programs read our
// files and ignore the seal; a file that they change is refused here.
//
// Root attributes of every file: "graft_schema" (this version) and "kind".
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/arrays.h"

namespace graft::datasets::h5 {

constexpr std::int64_t schema = 1;
constexpr std::int64_t row_chunk = 1024;  // elements of a column that are compressed together

// Adds (or replaces) the seal. Public for tests, which damage files below it.
std::string sealed(std::string image);

// Names are paths of groups, "rows/seconds"; groups are created as needed.
class Writer {
 public:
  explicit Writer(std::string_view kind);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Texts are UTF-8 strings of variable length; Failure if one holds a zero byte, which they cannot.
  void text(const std::string& name, const std::string& value);
  void texts(const std::string& name, std::span<const std::string> values);
  // Columns are chunked (`chunk` elements) and deflated, and grow: values of a further call are appended to those
  // of earlier calls. Integers are stored as i32 if all of them fit, else as i64.
  void integers(const std::string& name, std::span<const std::int64_t> values, std::int64_t chunk = row_chunk);
  void bytes(const std::string& name, std::span<const std::uint8_t> values, std::int64_t chunk = row_chunk);
  void hashes(const std::string& name, std::span<const std::uint64_t> values, std::int64_t chunk = row_chunk);
  void numbers(const std::string& name, std::span<const double> values, std::int64_t chunk = row_chunk);
  // Any shape; deflated as one chunk if there are thousands: weights hardly shrink, trees to a third.
  void array(const std::string& name, const base::Array& array);
  void group(const std::string& name);  // for one that may stay empty

  // Throws Failure.
  void commit(const std::filesystem::path& path);

 private:
  struct Handles;
  std::unique_ptr<Handles> handles_;
};

// Positions first .. first + count - 1 of a column; count < 0: to its end.
struct Part {
  std::int64_t first = 0, count = -1;
};

// All methods throw UserError "<file>: ..." for objects that are missing or of another type, and for extents that the
// file is too small to hold.
class Reader {
 public:
  // A sealed file of our schema and of this kind.
  Reader(const std::filesystem::path& path, std::string_view kind);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  std::string text(const std::string& name) const;
  std::vector<std::string> texts(const std::string& name) const;
  // Elements of a column: all, or a part of it, which must be within it; only the chunks that hold it are unpacked.
  std::vector<std::int64_t> integers(const std::string& name, Part part = {}) const;
  std::vector<std::uint64_t> hashes(const std::string& name, Part part = {}) const;
  std::vector<double> numbers(const std::string& name, Part part = {}) const;
  std::int64_t length(const std::string& name) const;
  base::Array array(const std::string& name) const;
  std::vector<std::string> names_in(const std::string& group) const;  // sorted

  [[noreturn]] void refuse(std::string_view why) const;

 private:
  struct Handles;
  std::unique_ptr<Handles> handles_;
};

// The kind that the file names: "" for a foreign HDF5 file. UserError if it is not a readable HDF5 file.
std::string kind_of(const std::filesystem::path& path);

}  // namespace graft::datasets::h5
