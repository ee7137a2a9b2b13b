#include "cli/report/excerpt.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/text.h"

namespace graft::cli {
namespace {

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '$';
}

// "name:" at the begin of a line; "" for other lines.
std::string_view label_of(std::string_view line) {
  std::size_t end = 0;
  while (end < line.size() && is_name(line[end])) ++end;
  return end > 0 && end < line.size() && line[end] == ':' ? line.substr(0, end) : std::string_view();
}

// Multiplications and multiply-adds by name: vfmadd231ps, fmla, vfmacc.vf, xvmaddasp, vpdpbusd, mulps.
bool is_arithmetic(std::string_view line) {
  const std::vector<std::string_view> words = base::words(line);
  if (words.empty()) return false;
  constexpr std::array<std::string_view, 6> parts{"mul", "fma", "fmla", "madd", "macc", "dp"};
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return words[0].find(part) != std::string_view::npos; });
}

struct Loop {
  std::size_t begin = 0, end = 0;  // lines [begin, end): from its label to the branch back
  std::int64_t arithmetic = 0;
};

// Ranges from a label to a later line that names it.
std::vector<Loop> loops_in(const std::vector<std::string_view>& lines) {
  std::unordered_map<std::string_view, std::size_t> labels;
  std::vector<Loop> loops;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (const std::string_view label = label_of(lines[i]); !label.empty()) {
      labels.emplace(label, i);
      continue;
    }
    for (const std::string_view word : base::words(lines[i])) {
      const auto target = labels.find(word.substr(0, word.find(',')));
      if (target != labels.end() && target->first.starts_with(".L")) loops.push_back({target->second, i + 1, 0});
    }
  }
  return loops;
}

}  // namespace

Excerpt busiest_loop(const std::string& assembly, std::size_t most) {
  std::vector<std::string_view> lines;
  for (const std::string_view line : base::split(base::trim(assembly), '\n')) lines.push_back(line);
  std::vector<Loop> loops = loops_in(lines);
  std::erase_if(loops, [loops](const Loop& outer) {
    return std::any_of(loops.begin(), loops.end(), [&](const Loop& inner) {
      return (inner.begin > outer.begin && inner.end <= outer.end) ||
             (inner.begin == outer.begin && inner.end < outer.end);
    });
  });
  for (Loop& loop : loops)
    loop.arithmetic = std::count_if(lines.begin() + std::ptrdiff_t(loop.begin),
                                    lines.begin() + std::ptrdiff_t(loop.end), is_arithmetic);
  const auto busiest = std::max_element(loops.begin(), loops.end(),
                                        [](const Loop& a, const Loop& b) { return a.arithmetic < b.arithmetic; });
  const Loop shown = busiest == loops.end() ? Loop{0, lines.size(), 0} : *busiest;
  Excerpt excerpt;
  excerpt.of = lines.size();
  excerpt.lines = std::min(most, shown.end - shown.begin);
  for (std::size_t i = 0; i < excerpt.lines; ++i) excerpt.text += std::string(lines[shown.begin + i]) + "\n";
  return excerpt;
}

}  // namespace graft::cli
