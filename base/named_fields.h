// Values as maps in a document. A type names its fields once for both directions:
//   template <class Visit, class Self>
//   static void named_fields(Visit& visit, Self& self) { visit("rows", self.rows), visit("file", self.file); }
// Fields are booleans, integers, numbers, texts and lists of texts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/document.h"

namespace graft::base {

template <class T>
Document document_of(const T& value) {
  Document document = Document::map();
  const auto write = [&](const char* name, const auto& field) {
    if constexpr (std::is_same_v<std::decay_t<decltype(field)>, std::vector<std::string>>) {
      Document list = Document::list();
      for (const std::string& text : field) list.push(text);
      document.set(name, std::move(list));
    } else {
      document.set(name, field);
    }
  };
  T::named_fields(write, value);
  return document;
}

// UserError for a missing or unknown key, and for a value of another kind.
template <class T>
T value_from(const Document& document) {
  T value;
  std::vector<std::string_view> known;
  const auto read = [&](const char* name, auto& field) {
    using Field = std::decay_t<decltype(field)>;
    known.push_back(name);
    const Document& found = document.at(name);
    if constexpr (std::is_same_v<Field, std::vector<std::string>>) {
      field.clear();
      for (const Document& text : found.as_list()) field.push_back(text.as_string());
    } else if constexpr (std::is_same_v<Field, bool>) {
      field = found.as_bool();
    } else if constexpr (std::is_same_v<Field, std::uint64_t>) {
      field = found.as_u64();
    } else if constexpr (std::is_integral_v<Field>) {
      field = Field(found.as_integer());
    } else if constexpr (std::is_floating_point_v<Field>) {
      field = found.as_number();
    } else {
      field = found.as_string();
    }
  };
  T::named_fields(read, value);
  document.only_keys(known);
  return value;
}

}  // namespace graft::base
