// Private to this folder: settings of a definition by key, or their defaults.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"

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

}  // namespace graft::study
