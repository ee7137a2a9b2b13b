#include "datasets/hdf5.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "datasets/h5.h"

namespace graft::datasets {
namespace {

constexpr std::string_view kind = "arrays";
constexpr std::string_view digits = "0123456789abcdef";

// A name of any bytes as the name of an HDF5 link, which is not empty and has no '/', no zero byte, and is not "." or
// "..": %xx as in web addresses. An empty name is a lone '%'.
std::string link_name(std::string_view name) {
  if (name.empty()) return "%";
  std::string link;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '%' || c == '/' || c == '\0' || (c == '.' && i == 0)) {
      link += '%';
      link += digits[std::size_t(static_cast<unsigned char>(c) >> 4)];
      link += digits[std::size_t(c & 15)];
    } else {
      link += c;
    }
  }
  return link;
}

std::optional<std::string> name_of_link(std::string_view link) {
  if (link == "%") return "";
  std::string name;
  for (std::size_t i = 0; i < link.size(); ++i) {
    if (link[i] != '%') {
      name += link[i];
      continue;
    }
    if (i + 2 >= link.size()) return std::nullopt;
    const std::size_t high = digits.find(link[i + 1]), low = digits.find(link[i + 2]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    name += char(high * 16 + low);
    i += 2;
  }
  return name;
}

template <class Read>
void read_all(const h5::Reader& reader, const std::string& group, Read read) {
  for (const std::string& link : reader.names_in(group)) {
    const auto name = name_of_link(link);
    if (!name) reader.refuse(fmt::format("'{}/{}' is not a name", group, link));
    read(*name, group + "/" + link);
  }
}

}  // namespace

void write_arrays(const base::Arrays& arrays, const std::filesystem::path& path) {
  h5::Writer writer(kind);
  writer.group("arrays");
  writer.group("attributes");
  for (const auto& [name, array] : arrays.arrays) writer.array("arrays/" + link_name(name), array);
  for (const auto& [name, text] : arrays.attributes) writer.text("attributes/" + link_name(name), text);
  writer.commit(path);
}

base::Arrays read_arrays(const std::filesystem::path& path) {
  const h5::Reader reader(path, kind);
  base::Arrays arrays;
  read_all(reader, "arrays",
           [&](const std::string& name, const std::string& link) { arrays.arrays[name] = reader.array(link); });
  read_all(reader, "attributes",
           [&](const std::string& name, const std::string& link) { arrays.attributes[name] = reader.text(link); });
  return arrays;
}

std::string kind_of_file(const std::filesystem::path& path) {
  return h5::kind_of(path);
}

}  // namespace graft::datasets
