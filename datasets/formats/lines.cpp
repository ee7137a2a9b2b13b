#include "datasets/formats/lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace graft::datasets::formats {

LineReader::LineReader(const std::filesystem::path& path, std::int64_t longest_line)
    : file_name_(path.string()), input_(path), longest_line_(longest_line) {}

std::string LineReader::place() const {
  return fmt::format("{}:{}", file_name_, number_);
}

void LineReader::fail(std::string_view message) const {
  throw base::UserError(place(), message);
}

bool LineReader::fill() {
  if (ended_) return false;
  buffer_.erase(0, begin_);
  begin_ = 0;
  const std::size_t used = buffer_.size();
  buffer_.resize(used + (std::size_t(1) << 18));
  std::size_t got = 0;
  try {
    got = input_.read({buffer_.data() + used, buffer_.size() - used});
  } catch (const base::UserError& error) {
    ended_ = true;
    buffer_.clear();  // a line without its end
    const std::string_view why = std::string_view(error.what()).substr(file_name_.size() + 2);
    throw base::UserError(place(), fmt::format("the file {} after this line", why));
  }
  ended_ = got == 0;
  buffer_.resize(used + got);
  return got > 0;
}

bool LineReader::next_line() {
  std::size_t looked_at = 0;
  for (;;) {
    const std::size_t end = buffer_.find('\n', begin_ + looked_at);
    const bool is_whole = end != std::string::npos;
    const std::size_t length = (is_whole ? end : buffer_.size()) - begin_;
    if (std::int64_t(length) > longest_line_ && !is_too_long_) {
      is_too_long_ = true;
      ++number_;
      fail(fmt::format("the line is longer than {} bytes", longest_line_));
    }
    if (is_too_long_) {  // said already; its rest is passed over, in pieces
      begin_ += length + (is_whole ? 1 : 0);
      looked_at = 0;
      is_too_long_ = !is_whole;
      if (is_whole || fill()) continue;
      return false;
    }
    if (!is_whole) {
      looked_at = length;
      if (fill()) continue;
      if (length == 0) return false;
    }
    whole_ = std::string_view(buffer_).substr(begin_, length);
    if (whole_.ends_with('\r')) whole_.remove_suffix(1);
    text_ = base::trim(whole_);
    is_unfinished_ = !is_whole;
    begin_ += std::min(length + 1, buffer_.size() - begin_);
    ++number_;
    return true;
  }
}

bool LineReader::next() {
  while (next_line()) {
    if (!text_.empty()) return true;
  }
  return false;
}

}  // namespace graft::datasets::formats
