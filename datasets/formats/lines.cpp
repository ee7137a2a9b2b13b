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
    const std::string_view why = std::string_view(error.what()).substr(file_name_.size() + 2);
    throw base::UserError(place(), fmt::format("the file {} behind this line", why));
  }
  ended_ = used + got < buffer_.size();
  buffer_.resize(used + got);
  return got > 0;
}

bool LineReader::next() {
  std::size_t looked_at = 0;
  for (;;) {
    const std::size_t end = buffer_.find('\n', begin_ + looked_at);
    const std::size_t length = (end == std::string::npos ? buffer_.size() : end) - begin_;
    if (std::int64_t(length) > longest_line_) {
      ++number_;
      fail(fmt::format("the line is longer than {} bytes", longest_line_));
    }
    if (end == std::string::npos) {
      looked_at = length;
      if (fill()) continue;
      if (length == 0) return false;
    }
    text_ = base::trim(std::string_view(buffer_).substr(begin_, length));
    begin_ += std::min(length + 1, buffer_.size() - begin_);
    looked_at = 0;
    ++number_;
    if (!text_.empty()) return true;
  }
}

}  // namespace graft::datasets::formats
