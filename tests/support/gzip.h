// Compressed files, for tests of their readers.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <string_view>

namespace graft {

inline void write_gzip(const std::filesystem::path& path, std::string_view content, const char* mode = "wb") {
  const gzFile file = ::gzopen(path.c_str(), mode);
  ASSERT_TRUE(file);
  if (!content.empty()) {
    ASSERT_EQ(::gzwrite(file, content.data(), unsigned(content.size())), int(content.size()));
  }
  ASSERT_EQ(::gzclose(file), Z_OK);
}

}  // namespace graft
