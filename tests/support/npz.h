// Files in the form of numpy.savez, for tests.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zip.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace graft {

inline std::string npy(std::string_view descr, const std::vector<std::int64_t>& shape, std::string_view data,
                       bool fortran_order = false) {
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': ({}{}), }}", descr, fortran_order ? "True" : "False",
                  fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += char(header.size() & 255);
  bytes += char(header.size() >> 8);
  return bytes + header + std::string(data);
}

inline std::string npy(const std::vector<std::int64_t>& shape, const std::vector<float>& values) {
  std::string data(values.size() * sizeof(float), '\0');
  std::memcpy(data.data(), values.data(), data.size());
  return npy("<f4", shape, data);
}

// `entries`: contents by name within the archive ("B.npy").
inline void write_npz(const std::filesystem::path& path, const std::map<std::string, std::string>& entries) {
  int code = 0;
  zip_t* const archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
  if (archive == nullptr) throw std::runtime_error("zip_open");
  for (const auto& [name, bytes] : entries)
    zip_file_add(archive, name.c_str(), zip_source_buffer(archive, bytes.data(), bytes.size(), 0), ZIP_FL_OVERWRITE);
  if (zip_close(archive) != 0) throw std::runtime_error("zip_close");
}

}  // namespace graft
