#include "datasets/formats/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <system_error>

#include "base/error.h"
#include "base/text.h"
#include "datasets/formats/lines.h"

namespace graft::datasets::formats {
namespace {

constexpr std::size_t most_columns = 1024;
constexpr std::size_t most_alternatives = 16384;     // of one column
constexpr std::size_t few_values = 16;               // up to this many numbers may be names as well as sizes
constexpr std::int64_t most_different = 1 << 22;     // values of all columns, which bounds memory
constexpr double largest_exact = 9007199254740992.;  // 2^53
constexpr std::size_t longest_value = 256;

// Infinite and NaN for their words.
std::optional<double> number_of(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [behind, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc::result_out_of_range) return HUGE_VAL;
  if (error != std::errc() || behind != end) return std::nullopt;
  return number;
}

bool is_integer(double number) {
  return number == std::floor(number) && std::abs(number) < largest_exact;
}

// One spelling per number.
std::string canonical(std::string_view value) {
  const std::string_view text = base::trim(value);
  const std::optional<double> number = number_of(text);
  if (!number) return std::string(text);
  return is_integer(*number) ? fmt::format("{}", std::int64_t(*number)) : fmt::format("{}", *number);
}

std::string identifier_of(std::string_view name) {
  std::string result;
  for (const char c : name) result += std::isalnum((unsigned char)(c)) || c == '.' ? c : '_';
  if (result.empty() || !(std::isalpha((unsigned char)(result.front())) || result.front() == '_'))
    result = "_" + result;
  return result;
}

}  // namespace

Columns::Columns(std::vector<std::string> names, std::string place)
    : names_(std::move(names)), place_(std::move(place)), seen_(names_.size()) {
  if (names_.size() > most_columns)
    throw base::UserError(place_, fmt::format("{} columns; at most {} are read", names_.size(), most_columns));
  std::set<std::string_view> known;
  for (const std::string& name : names_) {
    if (!known.insert(name).second) throw base::UserError(place_, fmt::format("column '{}' is there twice", name));
  }
}

int Columns::named(std::string_view name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  return found == names_.end() ? -1 : int(found - names_.begin());
}

std::string Columns::problem(int column, std::string_view value) const {
  const std::string& name = names_[std::size_t(column)];
  if (canonical(value).size() > longest_value) {
    return fmt::format("column '{}': a value of more than {} characters", name, longest_value);
  }
  const std::optional<double> number = number_of(base::trim(value));
  if (number && !std::isfinite(*number)) {
    return fmt::format("column '{}': {} is not a number of a table", name, base::trim(value));
  }
  return "";
}

void Columns::see(int column, std::string_view value) {
  Seen& seen = seen_[std::size_t(column)];
  const std::string text = canonical(value);
  if (const std::optional<double> number = number_of(text); !number) {
    seen.text = true;
  } else {
    seen.fraction = seen.fraction || !is_integer(*number);
    seen.point = seen.point || value.find('.') != std::string_view::npos || !is_integer(*number);
  }
  if (seen.too_many || !seen.values.try_emplace(text, 0).second) return;
  if (++different_ > most_different) {
    throw TooMuch(fmt::format("more than {} different values in the columns", most_different));
  }
  if (seen.values.size() > most_alternatives) {
    different_ -= std::int64_t(seen.values.size());
    seen.too_many = true;
    seen.values.clear();
  }
}

std::shared_ptr<const codegen::Sketch> Columns::sketch(std::string_view name, const std::vector<int>& chosen) {
  std::vector<codegen::Sketch::Column> columns;
  for (const int column : chosen) {
    Seen& seen = seen_[std::size_t(column)];
    codegen::Sketch::Column out{names_[std::size_t(column)], {}};
    const bool integers = !seen.text && !seen.fraction;
    if (!integers && seen.too_many) {
      throw base::UserError(place_, fmt::format("column '{}' has more than {} different values that are not all "
                                                "integers; leave it out",
                                                out.name, most_alternatives));
    }
    if (integers && (seen.too_many || seen.values.size() > few_values)) {
      seen.values.clear();
    } else {
      for (const auto& [text, argument] : seen.values) out.alternatives.push_back(text);
      if (!seen.text) {
        std::sort(out.alternatives.begin(), out.alternatives.end(),
                  [](const std::string& a, const std::string& b) { return *number_of(a) < *number_of(b); });
      }
      for (std::size_t i = 0; i < out.alternatives.size(); ++i) seen.values[out.alternatives[i]] = std::int64_t(i);
    }
    columns.push_back(std::move(out));
  }
  return std::make_shared<const codegen::Sketch>(codegen::Sketch::of_columns(name, columns));
}

std::int64_t Columns::argument(int column, std::string_view value) const {
  const Seen& seen = seen_[std::size_t(column)];
  const std::string text = canonical(value);
  const std::optional<double> number = number_of(text);
  if (seen.values.empty() && number && is_integer(*number)) return std::int64_t(*number);
  const auto found = seen.values.find(text);
  if (found == seen.values.end()) {
    throw TooMuch(
        fmt::format("column '{}': '{}' was not there when the file was gone through first; do not write to it "
                    "while it is read",
                    names_[std::size_t(column)], text.substr(0, 40)));
  }
  return found->second;
}

codegen::Workload table_workload(std::string_view name,
                                 const std::vector<std::pair<std::string, std::int64_t>>& sizes) {
  std::string text = fmt::format("table(name={}", identifier_of(name));
  for (const auto& [key, value] : sizes) text += fmt::format(",{}={}", identifier_of(key), value);
  return codegen::Workload(text + ")");
}

}  // namespace graft::datasets::formats
