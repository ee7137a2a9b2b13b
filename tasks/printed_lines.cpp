#include "tasks/printed_lines.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/document.h"
#include "base/error.h"
#include "base/one_line.h"
#include "base/text.h"

namespace graft::tasks {
namespace {

// What a terminal shows of a line.
std::string shown(std::string_view line) {
  while (line.ends_with('\r')) line.remove_suffix(1);
  if (const std::size_t again = line.rfind('\r'); again != std::string_view::npos) line.remove_prefix(again + 1);
  std::string text(line);
  for (char& c : text) {
    if (((unsigned char)c < ' ' && c != '\t') || c == '\x7f') c = ' ';
  }
  return text;
}

bool is_scalar(const base::Document& value) {
  return !value.is_map() && !value.is_list();
}

std::string scalar_text(const base::Document& value) {
  return value.is_string() ? shown(value.as_string()) : value.to_json();
}

// The keys and values of a document, those of maps in it too.
class Entries {
 public:
  Entries(std::size_t origin, std::vector<PrintedLine>& lines) : origin_(origin), lines_(lines) {}

  void add(const base::Document& value, const std::string& path) {
    if (value.is_map()) {
      for (const auto& [key, inner] : value.as_map()) add_value(value, key, inner, path);
    } else if (value.is_list()) {
      std::size_t position = 0;
      for (const base::Document& each : value.as_list()) {
        const base::Document* const name = each.is_map() ? each.find("name") : nullptr;
        const bool is_named = name != nullptr && name->is_string();
        add(each, fmt::format("{}{}.", path, is_named ? shown(name->as_string()) : std::to_string(position)));
        ++position;
      }
    }
  }

 private:
  void add_value(const base::Document& map, const std::string& key, const base::Document& value,
                 const std::string& path) {
    std::string text;
    bool is_leaf = is_scalar(value);
    if (value.is_list()) {
      is_leaf = true;
      for (const base::Document& each : value.as_list()) {
        is_leaf = is_leaf && is_scalar(each);
        if (is_leaf) text += (text.empty() ? "[" : ", ") + scalar_text(each);
      }
      text += text.empty() ? "[]" : "]";
    } else if (is_leaf) {
      text = scalar_text(value);
    }
    if (!is_leaf) return add(value, path + shown(key) + ".");
    PrintedLine line{path, origin_, path.size(), 0};
    line.text += shown(key) + ": ";
    line.value = line.text.size();
    line.text += text;
    if (const std::optional<std::string> unit = unit_beside(map, key)) line.text += " " + *unit;
    lines_.push_back(std::move(line));
  }

  static std::optional<std::string> unit_beside(const base::Document& map, const std::string& key) {
    for (const std::string& name : {key + "_unit", key + "_units", std::string("time_unit"), std::string("unit")}) {
      const base::Document* const unit = map.find(name);
      if (name == "time_unit" && key.find("time") == std::string::npos) continue;
      if (unit != nullptr && unit->is_string() && key.find("unit") == std::string::npos)
        return shown(unit->as_string());
    }
    return std::nullopt;
  }

  std::size_t origin_;
  std::vector<PrintedLine>& lines_;
};

// Whether the text is JSON, with its entries.
bool add_entries(std::string_view text, std::size_t origin, std::vector<PrintedLine>& lines) {
  text = base::trim(text);
  if (!text.starts_with('{') && !text.starts_with('[')) return false;
  try {
    const base::Document document = base::parse_json(text, "output");
    if (document.is_list() && (document.as_list().empty() || is_scalar(document.as_list().front()))) return false;
    Entries(origin, lines).add(document, "");
    return true;
  } catch (const base::UserError&) {
    return false;
  }
}

}  // namespace

std::vector<PrintedLine> printed_lines(std::string_view output, bool with_entries) {
  std::vector<PrintedLine> lines;
  if (with_entries && add_entries(output, 0, lines)) {
    for (std::size_t i = 0; i < lines.size(); ++i) lines[i].origin = i;
    return lines;
  }
  const std::string plain = base::without_escapes(output);
  std::size_t origin = 0;
  for (const std::string_view each : base::split(plain, '\n')) {
    std::string text = shown(each);
    ++origin;
    if (!with_entries || !add_entries(text, origin, lines)) lines.push_back({std::move(text), origin});
  }
  return lines;
}

}  // namespace graft::tasks
