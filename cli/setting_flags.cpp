#include "cli/setting_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "study/inputs/field_error.h"

namespace graft::cli {
namespace {

std::string shown(const base::Document& value) {
  if (!value.is_list()) return value.as_string();
  std::vector<std::string> words;
  for (const base::Document& each : value.as_list())
    words.push_back(each.is_string() ? each.as_string() : std::to_string(each.as_integer()));
  return base::join(words, ",");
}

// "x=1,3,224,224;batch=1|4", in one text or several: lists of numbers by name, of which some may be separated by '|'.
template <class Number>
std::map<std::string, std::vector<Number>> lists_of(const std::vector<std::string>& texts, const std::string& flag,
                                                    Number least) {
  const std::string_view what = std::is_integral_v<Number> ? "EXTENT" : "NUMBER";
  std::map<std::string, std::vector<Number>> lists;
  const std::string text = base::join(texts, ";");
  for (const std::string_view part : base::split(text, ';')) {
    const std::string_view given = base::trim(part);
    if (given.empty()) continue;
    const std::size_t equals = given.find('=');
    if (equals == std::string_view::npos || equals == 0)
      throw base::UserError(flag, fmt::format("'{0}': expected NAME={1},{1},...", given, what));
    std::vector<Number> list;
    std::string numbers(given.substr(equals + 1));
    if (std::is_integral_v<Number>) std::replace(numbers.begin(), numbers.end(), '|', ',');
    for (const std::string_view each : base::split(numbers, ',')) {
      const std::string_view digits = base::trim(each);
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), list.emplace_back());
      if (error != std::errc() || end != digits.data() + digits.size() || !(list.back() >= least))
        throw base::UserError(flag, fmt::format("'{}': '{}' is not {}", given, each,
                                                std::is_integral_v<Number> ? "an extent" : "a number"));
    }
    if (!lists.emplace(given.substr(0, equals), std::move(list)).second)
      throw base::UserError(flag, fmt::format("'{}' is given twice", given.substr(0, equals)));
  }
  return lists;
}

template <class Number>
void declare_lists(Options& options, const std::string& name, std::map<std::string, std::vector<Number>>& lists,
                   double least, const std::string& help) {
  options.texts(
      name,
      [&lists, name, least](const std::vector<std::string>& texts) {
        lists = lists_of<Number>(texts, "--" + name,
                                 Number(std::max(least, double(std::numeric_limits<Number>::lowest()))));
      },
      help + "; several separated by ';', or the flag repeated");
}

void declare(Options& options, const study::Setting& setting, const std::string& help) {
  const std::string name = setting.flag_name();
  std::visit(
      [&](auto place) {
        using Place = decltype(place);
        if constexpr (std::is_same_v<Place, bool*>) {
          options.flag(name, *place, help);
        } else if constexpr (std::is_same_v<Place, std::int64_t*>) {
          options.integer(name, *place, std::int64_t(setting.least), help);
        } else if constexpr (std::is_same_v<Place, double*>) {
          options.number(name, *place, setting.least, help);
        } else if constexpr (std::is_same_v<Place, std::string*>) {
          options.text(name, *place, help);
        } else if constexpr (std::is_same_v<Place, std::vector<std::string>*>) {
          if (!setting.repeats) return options.list(name, *place, help);
          options.texts(
              name, [place](const std::vector<std::string>& texts) { *place = texts; }, help);
        } else if constexpr (std::is_same_v<Place, std::vector<std::int64_t>*>) {
          options.list(
              name, shown(setting.value()),
              [place, name, least = std::int64_t(setting.least)](const std::vector<std::string>& words) {
                *place = integers_of("--" + name, words, least);
              },
              help);
        } else if constexpr (std::is_same_v<Place, std::vector<std::filesystem::path>*>) {
          options.list(
              name, shown(setting.value()),
              [place](const std::vector<std::string>& words) { place->assign(words.begin(), words.end()); }, help);
        } else if constexpr (std::is_same_v<Place, std::map<std::string, std::vector<std::int64_t>>*> ||
                             std::is_same_v<Place, std::map<std::string, std::vector<double>>*>) {
          declare_lists(options, name, *place, setting.least, help);
        } else {
          options.text(
              name, shown(setting.value()), [setting](const std::string& text) { setting.set(text); }, help);
        }
      },
      setting.place);
}

}  // namespace

std::string flag_of(std::string field) {
  std::replace(field.begin(), field.end(), '_', '-');
  return "--" + field;
}

std::string with_flags(std::string_view text) {
  std::string out;
  for (std::size_t open; (open = text.find('`')) != text.npos;) {
    const std::size_t close = text.find('`', open + 1);
    if (close == text.npos) break;
    const std::string_view quoted = text.substr(open + 1, close - open - 1);
    const bool is_field = !quoted.empty() && quoted.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == quoted.npos;
    out += text.substr(0, open);
    out += is_field ? flag_of(std::string(quoted)) : std::string(text.substr(open, close + 1 - open));
    text.remove_prefix(close + 1);
  }
  return out += text;
}

void declare(Options& options, const study::Settings& settings) {
  for (const study::Setting& setting : settings) {
    if (setting.is(study::as_flag)) declare(options, setting, with_flags(setting.help));
  }
}

void refuse_given(const study::Settings& settings, const std::string& goes_with) {
  for (const study::Setting& setting : settings) {
    if (setting.is(study::as_flag) && !setting.is_usual())
      throw base::UserError("--" + setting.flag_name(), "goes with " + goes_with);
  }
}

void declare_some(Options& options, const study::Settings& settings, std::initializer_list<std::string_view> keys,
                  const std::string& help) {
  for (const std::string_view key : keys) {
    const study::Setting* const setting = study::setting_of(settings, key);
    assert(setting != nullptr);
    declare(options, *setting, help.empty() ? with_flags(setting->help) : help);
  }
}

}  // namespace graft::cli
