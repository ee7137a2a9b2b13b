#include "datasets/formats/table_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "datasets/formats/configurations.h"
#include "datasets/formats/json.h"
#include "datasets/formats/lines.h"
#include "datasets/formats/text_file.h"

namespace graft::datasets::formats {
namespace {

using Kind = JsonReader::Kind;

constexpr std::size_t most_cells = std::size_t(1) << 24;  // of a table, which bounds memory
constexpr std::size_t most_columns = 1024, most_cells_of_record = 4096, most_items = 16;

using Cells = std::vector<std::pair<std::string, std::string>>;  // column, text

void put(JsonReader& reader, std::string name, std::string text, Cells& cells) {
  if (cells.size() == most_cells_of_record)
    reader.fail(fmt::format("a record of more than {} values", most_cells_of_record));
  cells.emplace_back(std::move(name), std::move(text));
}

void flatten(JsonReader& reader, const std::string& name, Cells& cells, bool by_number);

// A list of numbers and words as one cell, unless it is too long for a parameter: then only if all items are equal.
// Other lists, and all if `by_number`, are a column for each of the first items.
void flatten_list(JsonReader& reader, const std::string& name, Cells& cells, bool by_number) {
  std::vector<std::string> items;
  std::size_t count = 0;
  bool is_plain = true, are_equal = true;
  for (reader.begin_list(); reader.next_item(); ++count) {
    const bool is_scalar = !reader.at(Kind::map) && !reader.at(Kind::list);
    if (by_number || !is_scalar) {
      is_plain = false;
      const std::string inner = fmt::format("{}{}{}", name, name.empty() ? "" : ".", count);
      if (count < most_items)
        flatten(reader, inner, cells, by_number);
      else
        reader.skip();
      continue;
    }
    std::string item = scalar_text(reader);
    are_equal = are_equal && (items.empty() || items.front() == item);
    if (items.size() < most_items) items.push_back(std::move(item));
  }
  if (!is_plain) return;
  const bool is_short = count <= most_items;
  if (is_short)
    put(reader, name, fmt::format("[{}]", base::join(items, ", ")), cells);
  else
    put(reader, name, are_equal ? items.front() : "...", cells);
}

// The values of the next one by their paths.
void flatten(JsonReader& reader, const std::string& name, Cells& cells, bool by_number) {
  switch (reader.kind()) {
    case Kind::map:
      reader.begin_map();
      for (std::string_view key; reader.next_key(key);)
        flatten(reader, name.empty() ? std::string(key) : fmt::format("{}.{}", name, key), cells, by_number);
      return;
    case Kind::list:
      return flatten_list(reader, name, cells, by_number);
    case Kind::null:
      reader.null();
      return put(reader, name, "", cells);
    default:
      return put(reader, name, scalar_text(reader), cells);
  }
}

class Builder {
 public:
  explicit Builder(std::string file) : file_(std::move(file)) {}

  void add(const Cells& cells, std::int64_t line) {
    std::vector<std::string> row(table_.head.size());
    for (const auto& [name, text] : cells) {
      const auto [known, is_new] = columns_.try_emplace(name, columns_.size());
      if (is_new) {
        if (columns_.size() > most_columns)
          throw TooMuch(file_, fmt::format("more than {} different columns", most_columns));
        table_.head.push_back(name);
        std::replace(table_.head.back().begin(), table_.head.back().end(), '\n', ' ');
      }
      if (row.size() <= known->second) row.resize(known->second + 1);
      row[known->second] = text;
    }
    table_.rows.push_back(std::move(row));
    table_.lines.push_back(line);
    if (table_.rows.size() * table_.head.size() > most_cells)
      throw TooMuch(file_, fmt::format("more than {} values; write the columns that matter as CSV", most_cells));
  }
  TableRecords table(std::vector<std::string> keys) {
    for (std::vector<std::string>& row : table_.rows) row.resize(table_.head.size());
    table_.keys = std::move(keys);
    return std::move(table_);
  }

 private:
  std::string file_;
  TableRecords table_;
  std::map<std::string, std::size_t> columns_;
};

class Document {
 public:
  Document(Import& import, const std::filesystem::path& path)
      : import_(import), path_(path.string()), text_(read_document(import, path)), to_(path_) {}

  TableRecords records() {
    if (is_lines()) {
      read_lines();
      return to_.table({});
    }
    JsonReader reader(text_, path_);
    if (reader.at(Kind::list)) {
      read_items(reader);
      return to_.table({});
    }
    read_map(reader);
    return to_.table(std::move(keys_));
  }

 private:
  // Whether a map is followed by another one.
  bool is_lines() const {
    JsonReader reader(text_, path_);
    if (!reader.at(Kind::map)) return false;
    try {
      reader.raw();
    } catch (const base::UserError&) {
      return text_.find("\n{") != std::string::npos;
    }
    try {
      reader.end();
    } catch (const base::UserError&) {
      return true;
    }
    return false;
  }

  void read_lines() {
    LineReader lines(path_, largest_document);
    while (import_.next_record(lines)) {
      import_.record(lines, [&] {
        JsonReader reader = lines.json();
        if (!reader.at(Kind::map)) reader.fail("expected a map of a configuration and its time");
        Cells cells;
        flatten(reader, "", cells, false);
        reader.end();
        to_.add(cells, lines.number());
      });
    }
  }

  // The longest list of maps or lists in the outermost map.
  void read_map(JsonReader reader) {
    std::string longest;
    std::size_t most = 0;
    reader.begin_map();
    for (std::string_view key; reader.next_key(key);) {
      keys_.emplace_back(key.substr(0, 100));
      const std::string name(key);
      JsonReader value = reader.apart();
      if (name == "configs" && value.at(Kind::map)) read_configurations(value);
      if (!value.at(Kind::list)) continue;
      std::size_t count = 0;
      for (value.begin_list(); value.next_item(); value.skip())
        count += value.at(Kind::map) || (name == "data" && value.at(Kind::list));
      if (count <= most) continue;
      most = count;
      longest = name;
    }
    if (most == 0) return;
    JsonReader again(text_, path_);
    again.begin_map();
    for (std::string_view key; again.next_key(key);) {
      if (key == longest)
        read_items(again);
      else
        again.skip();
    }
  }

  void read_configurations(JsonReader reader) {
    reader.begin_map();
    for (std::string_view key; reader.next_key(key);) {
      const std::string name(key);
      flatten(reader, "config", configurations_[name], false);
    }
  }

  void read_items(JsonReader& reader) {
    for (reader.begin_list(); reader.next_item();) {
      JsonReader item = reader.apart();
      const std::int64_t line = item.line();
      try {
        Cells cells;
        flatten(item, "", cells, item.at(Kind::list));
        join(cells);
        to_.add(cells, line);
      } catch (const TooMuch&) {
        throw;
      } catch (const base::UserError& error) {
        import_.skip(error, path_);
      }
    }
  }

  void join(Cells& cells) const {
    if (configurations_.empty()) return;
    for (const std::string_view id : {"config_id", "0", "0.0"}) {
      const auto found = std::find_if(cells.begin(), cells.end(), [&](const auto& cell) { return cell.first == id; });
      if (found == cells.end()) continue;
      const auto configuration = configurations_.find(found->second);
      if (configuration != configurations_.end())
        cells.insert(cells.end(), configuration->second.begin(), configuration->second.end());
      return;
    }
  }

  Import& import_;
  std::string path_, text_;
  Builder to_;
  std::vector<std::string> keys_;
  std::map<std::string, Cells> configurations_;
};

}  // namespace

int TableRecords::named(std::string_view column) const {
  const auto found = std::find(head.begin(), head.end(), column);
  return found == head.end() ? -1 : int(found - head.begin());
}

bool is_json(const std::filesystem::path& path) {
  std::string begin(bytes_of_kind, '\0');
  TextFile file(path);
  try {
    begin.resize(file.read(begin));
  } catch (const base::UserError&) {  // said when the table is read
    return false;
  }
  const std::string_view text = base::trim(begin);
  if (text.empty()) return false;
  const std::string_view inside = base::trim(text.substr(1));
  return (text.front() == '{' && (inside.starts_with('"') || inside.starts_with('}'))) ||
         (text.front() == '[' && inside.starts_with('{'));
}

TableRecords json_records(Import& import, const std::filesystem::path& path) {
  return Document(import, path).records();
}

}  // namespace graft::datasets::formats
