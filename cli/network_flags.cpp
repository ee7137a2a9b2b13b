#include "cli/network_flags.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace graft::cli {

bool names_network(const std::string& argument) {
  return argument.ends_with(".onnx");
}

graph::Shapes shapes_of(const std::string& text) {
  graph::Shapes shapes;
  for (const std::string_view part : base::split(text, ';')) {
    const std::string_view given = base::trim(part);
    if (given.empty()) continue;
    const std::size_t equals = given.find('=');
    if (equals == std::string_view::npos || equals == 0)
      throw base::UserError("--shape", fmt::format("'{}': expected NAME=EXTENT,EXTENT,...", given));
    graph::Shape shape;
    for (const std::string_view extent : base::split(given.substr(equals + 1), ',')) {
      const std::string_view digits = base::trim(extent);
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), shape.emplace_back());
      if (error != std::errc() || end != digits.data() + digits.size() || shape.back() < 0)
        throw base::UserError("--shape", fmt::format("'{}': '{}' is not an extent", given, extent));
    }
    if (!shapes.emplace(given.substr(0, equals), std::move(shape)).second)
      throw base::UserError("--shape", fmt::format("'{}' is given twice", given.substr(0, equals)));
  }
  return shapes;
}

}  // namespace graft::cli
