// Markdown of the reference pages, a part at a time.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace graft::cli {

class Page {
 public:
  explicit Page(std::string_view title) {
    text_ = fmt::format(
        "# {}\n\nWritten by `graft reference --out docs/reference` from the program's own lists; do not edit.\n",
        title);
  }
  Page& heading(std::string_view text) { return add(fmt::format("\n## {}\n", text)); }
  Page& paragraph(std::string_view text) { return add(fmt::format("\n{}\n", text)); }
  Page& code(std::string_view text) { return add(fmt::format("\n```\n{}\n```\n", text)); }
  Page& table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows) {
    add("\n");
    row(head);
    row(std::vector<std::string>(head.size(), "---"));
    for (const auto& cells : rows) row(cells);
    return *this;
  }
  std::string take() { return std::move(text_); }

 private:
  Page& add(std::string_view text) {
    text_ += text;
    return *this;
  }
  void row(const std::vector<std::string>& cells) {
    for (const std::string& cell : cells) {
      text_ += "| ";
      for (const char c : cell) {  // what would end the cell, or begin a tag
        if (c == '|' || c == '<') text_ += '\\';
        text_ += c;
      }
      text_ += cell.empty() ? "" : " ";
    }
    text_ += "|\n";
  }
  std::string text_;
};

inline std::string code(std::string_view text) {
  return text.empty() ? "" : fmt::format("`{}`", text);
}

}  // namespace graft::cli
