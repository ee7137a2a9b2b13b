#include "cli/network_flags.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <limits>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace graft::cli {
namespace {

// "x=1,3,224,224;batch=1", in one text or several: lists of numbers by name. `what` is a number of them, for messages.
template <class Number>
std::map<std::string, std::vector<Number>> lists_of(const std::vector<std::string>& texts, std::string_view flag,
                                                    std::string_view what, Number least) {
  std::map<std::string, std::vector<Number>> lists;
  const std::string text = base::join(texts, ";");
  for (const std::string_view part : base::split(text, ';')) {
    const std::string_view given = base::trim(part);
    if (given.empty()) continue;
    const std::size_t equals = given.find('=');
    if (equals == std::string_view::npos || equals == 0)
      throw base::UserError(flag, fmt::format("'{0}': expected NAME={1},{1},...", given, what));
    std::vector<Number> list;
    for (const std::string_view each : base::split(given.substr(equals + 1), ',')) {
      const std::string_view digits = base::trim(each);
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), list.emplace_back());
      if (error != std::errc() || end != digits.data() + digits.size() || !(list.back() >= least))
        throw base::UserError(flag,
                              fmt::format("'{}': '{}' is not {} {}", given, each, what.front() == 'E' ? "an" : "a",
                                          what == "EXTENT" ? "extent" : "number"));
    }
    if (!lists.emplace(given.substr(0, equals), std::move(list)).second)
      throw base::UserError(flag, fmt::format("'{}' is given twice", given.substr(0, equals)));
  }
  return lists;
}

}  // namespace

bool names_network(const std::string& argument) {
  return argument.ends_with(".onnx");
}

void NetworkFlags::declare(Options& options) {
  options.texts("shape", shape,
                "of an ONNX file: extents that it leaves open, of an input (x=1,3,224,224) or a named dimension "
                "(batch=1); several separated by ';', or the flag repeated");
  options.texts("constant", constant,
                "of an ONNX file: inputs that are always the same: 'rate=16000;gain=0.5,2', or the flag repeated");
  options.text(
      "storage", storage,
      "of an ONNX file: how f32 numbers between kernels, and weights, are stored: f32, f16 or bf16; sums are f32, "
      "inputs and outputs as they are");
}

study::NetworkOptions NetworkFlags::options() const {
  return {lists_of<std::int64_t>(shape, "--shape", "EXTENT", 0),
          lists_of<double>(constant, "--constant", "NUMBER", std::numeric_limits<double>::lowest()),
          study::storage_named(storage)};
}

void NetworkFlags::refuse_for_others() const {
  if (!shape.empty()) throw base::UserError("--shape", "goes with an ONNX file");
  if (!constant.empty()) throw base::UserError("--constant", "goes with an ONNX file");
  if (storage != "f32") throw base::UserError("--storage", "goes with an ONNX file");
}

}  // namespace graft::cli
