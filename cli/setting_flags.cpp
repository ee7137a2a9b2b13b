#include "cli/setting_flags.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <filesystem>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

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
          options.list(name, *place, help);
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

void declare_some(Options& options, const study::Settings& settings, std::initializer_list<std::string_view> keys,
                  const std::string& help) {
  for (const std::string_view key : keys) {
    const study::Setting* const setting = study::setting_of(settings, key);
    assert(setting != nullptr);
    declare(options, *setting, help.empty() ? with_flags(setting->help) : help);
  }
}

}  // namespace graft::cli
