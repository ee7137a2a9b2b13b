// Private to this folder: settings of a definition by key, or their defaults.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "study/flows/settings.h"

namespace graft::study {

inline std::vector<std::string> texts_of(const base::Document& list) {
  std::vector<std::string> texts;
  for (const base::Document& each : list.as_list()) texts.push_back(each.as_string());
  return texts;
}

inline std::vector<std::string> texts_at(const base::Document& document, std::string_view key) {
  const base::Document* const list = document.find(key);
  return list == nullptr ? std::vector<std::string>() : texts_of(*list);
}

inline std::string text_at(const base::Document& document, std::string_view key, std::string otherwise = "") {
  const base::Document* const value = document.find(key);
  return value == nullptr ? otherwise : value->as_string();
}

inline std::int64_t integer_at(const base::Document& document, std::string_view key, std::int64_t otherwise) {
  const base::Document* const value = document.find(key);
  return value == nullptr ? otherwise : value->as_integer();
}

inline double number_at(const base::Document& document, std::string_view key, double otherwise) {
  const base::Document* const value = document.find(key);
  return value == nullptr ? otherwise : value->as_number();
}

// Gives a request the settings of a definition, {key: value}; null gives none. UserError at the value's place for a key
// that is neither a setting of experiments nor one of `besides`, which are left to the caller.
inline void set_all(const base::Document& definition, const Settings& settings,
                    std::span<const std::string_view> besides = {}) {
  if (definition.is_null()) return;
  std::vector<std::string_view> known(besides.begin(), besides.end());
  for (const Setting& setting : settings) {
    if (setting.is(in_experiments)) known.push_back(setting.key);
  }
  definition.only_keys(known);
  for (const Setting& setting : settings) {
    if (!setting.is(in_experiments)) continue;
    if (std::find(besides.begin(), besides.end(), setting.key) != besides.end()) continue;
    if (const base::Document* const value = definition.find(setting.key)) setting.set(*value);
  }
}

}  // namespace graft::study
