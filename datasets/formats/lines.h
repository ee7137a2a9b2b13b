// Others' files, one record per line, plain or gzip: read in pieces, so that memory is bounded by the longest line that
// is allowed, and every error names file and line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"
#include "datasets/formats/json.h"
#include "datasets/formats/text_file.h"

namespace graft::datasets::formats {

// A limit of a whole dataset is exceeded, or a file changes while it is read: leaving out one record would not help, so
// the import is refused.
class TooMuch : public base::UserError {
 public:
  using UserError::UserError;
};

// Runs `work`; an error of it that does not begin with the file's name is prefixed with the reader's place.
template <class Reader, class Work>
void located(const Reader& reader, std::string_view file, Work work) {
  const auto has_place = [&](std::string_view message) {
    return message.starts_with(file) && message.substr(file.size()).starts_with(':');
  };
  try {
    work();
  } catch (const TooMuch& error) {
    if (has_place(error.what())) throw;
    throw TooMuch(reader.place(), error.what());
  } catch (const base::UserError& error) {
    if (has_place(error.what())) throw;
    reader.fail(error.what());
  }
}

class LineReader {
 public:
  // UserError as TextFile.
  explicit LineReader(const std::filesystem::path& path, std::int64_t longest_line = std::int64_t(1) << 20);

  // The next line; false at the end. UserError "<file>:<line>: ..." for a line that is too long, and for gzip that is
  // broken or ends in the middle. Reading may continue after such an error: after the long line, and at the end.
  bool next_line();
  bool next();                                       // the next line that is not blank
  std::string_view text() const { return text_; }    // without its end and white space around it; valid until `next`
  std::string_view whole() const { return whole_; }  // without its end; valid until `next`
  std::int64_t number() const { return number_; }    // from 1
  // Whether the file ends in this line without a line's end, as one that was cut off does.
  bool is_unfinished() const { return is_unfinished_; }
  const std::string& file() const { return file_name_; }
  std::string place() const;                                        // "<file>:<line>"
  JsonReader json() const { return {text_, file_name_, number_}; }  // of this line
  [[noreturn]] void fail(std::string_view message) const;           // UserError at this line
  template <class Work>
  void located(Work work) const {
    formats::located(*this, file_name_, work);
  }

 private:
  bool fill();  // false: nothing is left in the file

  std::string file_name_;
  TextFile input_;
  std::int64_t longest_line_;
  std::string buffer_;
  std::size_t begin_ = 0;  // of what has not been given out
  bool ended_ = false, is_too_long_ = false, is_unfinished_ = false;
  std::string_view text_, whole_;
  std::int64_t number_ = 0;
};

// The limit on the unpacked size of a tuner's documents.
constexpr std::int64_t largest_document = std::int64_t(1) << 28;

}  // namespace graft::datasets::formats
