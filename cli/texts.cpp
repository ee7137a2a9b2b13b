#include "cli/texts.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "base/duration.h"
#include "base/text.h"

namespace graft::cli {

std::string_view measured_word(std::string_view source) {
  return source == "modelled" || source == "emulated" ? source : "measured";
}

std::string kind_of_times(std::string_view source) {
  const std::string_view word = measured_word(source);
  return word == "measured" ? "" : std::string(word) + " ";
}

std::string seconds_word(std::string_view source) {
  return kind_of_times(source) + "seconds";
}

std::string time_text(double seconds, std::string_view source) {
  const std::string_view word = measured_word(source);
  return base::seconds_text(seconds) + (word == "measured" ? "" : fmt::format(" ({})", word));
}

std::string times_note(std::string_view source) {
  const std::string kind = kind_of_times(source);
  return kind.empty() ? "" : fmt::format(": {}times, not measurements of a device", kind);
}

std::string layer_name(std::string_view label) {
  constexpr std::size_t most_of_name = 32, most_of_operators = 24;
  const std::size_t open = std::min(label.rfind(" ("), label.size());
  std::string name(label.substr(0, open)), operators(label.substr(open));
  const auto begins_character = [](char byte) { return (byte & 0xc0) != 0x80; };
  if (name.size() > most_of_name) {
    std::size_t from = name.find('/', name.size() - most_of_name);
    if (from == std::string::npos) from = name.size() - most_of_name;
    while (from < name.size() && !begins_character(name[from])) ++from;
    name = "..." + name.substr(from);
  }
  if (operators.size() > most_of_operators) {
    std::size_t to = operators.rfind(',', most_of_operators);
    if (to == std::string::npos) to = most_of_operators;
    while (!begins_character(operators[to])) --to;
    operators = operators.substr(0, to) + ", ...)";
  }
  return name + operators;
}

void print_failures(const datasets::FailureCounts& failures, Output& out) {
  constexpr std::size_t most_shown = 10;
  const std::vector<datasets::FailureKind> kinds = failures.kinds();
  base::Document list = base::Document::list();
  Table table({"failed", "reason"});
  for (const datasets::FailureKind& kind : kinds) {
    base::Document entry = base::Document::map();
    entry.set("count", kind.count)
        .set("status", std::string(datasets::name_of(kind.status)))
        .set("reason", kind.reason);
    list.push(std::move(entry));
    if (table.rows().size() < most_shown) table.row({std::to_string(kind.count), datasets::to_text(kind)});
  }
  out.json().set("failures", std::move(list));
  if (table.empty()) return;
  out.line("");
  out.table(table);
  if (kinds.size() > most_shown) out.line(fmt::format("and {} more reasons (--json)", kinds.size() - most_shown));
}

std::string status_line(const base::Document& counts) {
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts.as_map()) parts.push_back(fmt::format("{} {}", count.as_integer(), name));
  return parts.empty() ? "none" : base::join(parts, ", ");
}

std::string interval_text(const base::Interval& value, std::string_view number) {
  const auto text = [&](double each) { return fmt::format(fmt::runtime(number), each); };
  if (!std::isfinite(value.mean)) return "-";
  if (!std::isfinite(value.low)) return text(value.mean);
  return fmt::format("{} [{}, {}]", text(value.mean), text(value.low), text(value.high));
}

std::string shell_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string shell_word(std::string_view text) {
  const bool plain = !text.empty() && text.find_first_of(" \t\n'\"()[]*?$;&|<>\\`!#~") == std::string_view::npos;
  return plain ? std::string(text) : shell_quoted(text);
}

std::string gates_text(const datasets::Quality& quality) {
  return quality.missed.empty() ? "passed" : "missed: " + base::join(quality.missed, ", ");
}

std::string share_text(double share) {
  return std::isfinite(share) ? fmt::format("{:.1f} %", 100 * share) : "-";
}

std::pair<double, const char*> unit_of(double seconds) {
  if (seconds < 1e-6) return {1e-9, "ns"};
  if (seconds < 1e-3) return {1e-6, "µs"};
  if (seconds < 1) return {1e-3, "ms"};
  return {1, "s"};
}

std::string count_text(double value, std::string_view unit) {
  const char* const prefixes[] = {"", "K", "M", "G", "T"};
  std::size_t p = 0;
  for (; value >= 1000 && p + 1 < std::size(prefixes); ++p) value /= 1000;
  return fmt::format("{:.3g} {}{}", value, prefixes[p], unit);
}

}  // namespace graft::cli
