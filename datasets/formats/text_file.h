// Text files of other programs: unpacked, without a byte-order mark. A file that is known to be something else (a
// database, an archive, UTF-16, a pointer of git-lfs, another tool's cache) is refused by its name, with what to do:
// read as text, it would be a file whose every line is broken.
#pragma once

#include <cstddef>
#include <exception>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/files.h"

namespace graft::datasets::formats {

// What a file is whose text, unpacked, begins so, and what to do with it; nothing for text that one of the formats may
// read.
struct ForeignFile {
  std::string name, remedy;
};
std::optional<ForeignFile> foreign_file(std::string_view begin);
constexpr std::size_t bytes_of_kind = 4096;  // bytes that suffice for it

class TextFile {
 public:
  // UserError "<file>: ..." as base::InputFile, and for an other kind of file.
  explicit TextFile(const std::filesystem::path& path);
  // As base::InputFile::read.
  std::size_t read(std::span<char> into);

 private:
  base::InputFile input_;
  std::string begin_;         // what has been looked at and not been read yet
  std::exception_ptr fault_;  // found while looking
};

}  // namespace graft::datasets::formats
