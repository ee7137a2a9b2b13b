// docs/reference/json-output.md as the test of --json reads it: for each heading the keys of its table, with what a
// script may rely on.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "base/files.h"
#include "base/text.h"

namespace graft::cli {

class JsonTables {
 public:
  explicit JsonTables(const std::string& file) {
    std::string heading;
    const std::string text = base::read_file(file);
    for (const std::string_view line : base::split(text, '\n')) {
      if (line.starts_with("### "))
        heading = line.substr(4);
      else if (line.starts_with("#"))
        heading.clear();
      else if (line.starts_with("| `"))
        row(heading, line);
      else if (line.starts_with("The keys of "))
        tables_[heading].also.push_back(link_in(line));
    }
  }
  // Those of the page.
  static const JsonTables& of_the_project() {
    static const JsonTables all((std::filesystem::path(GRAFT_SOURCE_DIR) / "docs/reference/json-output.md").string());
    return all;
  }
  bool has(const std::string& heading) const { return tables_.contains(heading); }

  // Every key is in the table, and the table's keys that are always there are.
  void check(const std::string& heading, const base::Document& result) const {
    ASSERT_TRUE(has(heading)) << heading << " has no table";
    ASSERT_TRUE(result.is_map()) << heading;
    EXPECT_EQ(result.at("schema").as_integer(), 1) << heading;
    // graft-bench writes its own.
    if (heading.find("bench") == std::string::npos) {
      EXPECT_FALSE(result.at("kind").as_string().empty()) << heading;
    }
    base::Document rest = base::Document::map();
    for (const auto& [key, value] : result.as_map())
      if (key != "schema" && (key != "kind" || tables_.at(heading).keys.contains("kind"))) rest.set(key, value);
    check_map(rest, places_of(heading, ""), heading);
  }

 private:
  struct Key {
    bool always = false, list = false, free = false;
    std::string part;  // heading of the part that describes the value; "": none
  };
  struct Keys {
    std::map<std::string, Key> keys;  // by path: "rows[].name"
    std::vector<std::string> also;    // headings of parts whose keys it has, too
  };
  struct Place {  // keys of a table below a path
    const Keys* table;
    std::string path;
  };

  static std::string link_in(std::string_view text) {
    const std::size_t to = text.find("](#");
    if (to == std::string_view::npos) return "";
    const std::size_t from = text.rfind('[', to);
    return std::string(text.substr(from + 1, to - from - 1));
  }

  void row(const std::string& heading, std::string_view line) {
    const std::vector<std::string_view> cells = base::split(line, '|');
    ASSERT_EQ(cells.size(), 5u) << line;
    const std::string_view names = cells[1];
    for (std::size_t at = names.find('`'); at != std::string_view::npos; at = names.find('`', at + 1)) {
      const std::size_t end = names.find('`', at + 1);
      std::string path(names.substr(at + 1, end - at - 1));
      Key key{base::trim(cells[2]).empty(), path.ends_with("[]"), path.ends_with("{}"), link_in(cells[3])};
      if (key.list || key.free) path.resize(path.size() - 2);
      EXPECT_TRUE(tables_[heading].keys.emplace(path, key).second) << heading << ": " << path << " stands there twice";
      at = end;
    }
  }

  std::vector<Place> places_of(const std::string& heading, const std::string& path) const {
    const auto found = tables_.find(heading);
    if (found == tables_.end()) {
      ADD_FAILURE() << "no part '" << heading << "'";
      return {};
    }
    std::vector<Place> places{{&found->second, path}};
    for (const std::string& also : found->second.also)
      for (Place& place : places_of(also, path)) places.push_back(std::move(place));
    return places;
  }

  void check_map(const base::Document& map, const std::vector<Place>& places, const std::string& where) const {
    for (const auto& [name, value] : map.as_map()) {
      bool documented = false;
      for (const Place& place : places) {
        auto key = place.table->keys.find(place.path + name);
        if (key == place.table->keys.end()) key = place.table->keys.find(place.path + "*");  // any name
        if (key == place.table->keys.end()) continue;
        documented = true;
        check_value(value, *place.table, key->first, key->second, where + "." + name);
      }
      EXPECT_TRUE(documented) << where << "." << name << " is not documented";
    }
    for (const Place& place : places) {
      for (const auto& [path, key] : place.table->keys) {
        if (!key.always || !path.starts_with(place.path)) continue;
        const std::string name = path.substr(place.path.size());
        if (name == "*" || name.find('.') != std::string::npos) continue;
        EXPECT_NE(map.find(name), nullptr) << where << "." << name << " is documented, and missing";
      }
    }
  }

  void check_value(const base::Document& value, const Keys& table, const std::string& path, const Key& key,
                   const std::string& where) const {
    if (value.is_null() || key.free) return;
    EXPECT_EQ(value.is_list(), key.list) << where << " is " << (key.list ? "documented as" : "not documented as")
                                         << " a list";
    if (value.is_list() != key.list) return;
    const std::string below = path + (key.list ? "[]." : ".");
    std::vector<Place> places{{&table, below}};
    if (!key.part.empty())
      for (Place& place : places_of(key.part, "")) places.push_back(std::move(place));
    const auto check_one = [&](const base::Document& one) {
      if (one.is_map())
        check_map(one, places, where);
      else
        EXPECT_TRUE(key.part.empty() || one.is_null()) << where << " is not a " << key.part;
    };
    if (!key.list) return check_one(value);
    for (const base::Document& one : value.as_list()) check_one(one);
  }

  std::map<std::string, Keys> tables_;
};

}  // namespace graft::cli
