#include "codegen/schedule/sketch.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "base/text.h"

namespace graft::codegen {
namespace {

constexpr std::string_view white_space = " \t\r\f\v";  // of one line

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// The tokens of one line; new arguments are appended.
Sketch::Line parse_line(std::string_view line, std::vector<Sketch::Argument>& arguments, std::string_view place) {
  Sketch::Line tokens;
  std::size_t at = 0;
  while (at < line.size()) {
    if (white_space.find(line[at]) != std::string_view::npos) {
      ++at;
      continue;
    }
    Sketch::Token token;
    if (line[at] != '$') {
      const std::size_t end = std::min(line.find_first_of(white_space, at), line.size());
      token.literal = line.substr(at, end - at);
      if (token.literal.find_first_of("${}|") != std::string::npos) {
        throw base::UserError(place, fmt::format("an argument must stand alone, as in ' $name ': '{}'", token.literal));
      }
      at = end;
      tokens.push_back(std::move(token));
      continue;
    }
    std::size_t end = ++at;
    while (end < line.size() && is_name_character(line[end])) ++end;
    const std::string name(line.substr(at, end - at));
    if (name.empty()) throw base::UserError(place, "expected an argument's name behind '$'");
    at = end;
    if (at < line.size() && line[at] == '{') {
      const std::size_t close = line.find('}', at);
      if (close == std::string_view::npos) throw base::UserError(place, fmt::format("'${}{{' is never closed", name));
      for (const std::string_view part : base::split(line.substr(at + 1, close - at - 1), '|')) {
        token.alternatives.emplace_back(base::trim(part));
      }
      at = close + 1;
    }
    if (at < line.size() && white_space.find(line[at]) == std::string_view::npos) {
      throw base::UserError(place, fmt::format("expected a space behind '${}'", name));
    }
    const auto known = std::find_if(arguments.begin(), arguments.end(),
                                    [&](const Sketch::Argument& argument) { return argument.name == name; });
    token.argument = int(known - arguments.begin());
    const std::int64_t alternatives = std::int64_t(token.alternatives.size());
    if (known == arguments.end()) {
      arguments.push_back({name, alternatives});
    } else if (known->alternatives != alternatives) {
      throw base::UserError(
          place, fmt::format("'${}' has {} alternatives here and {} before", name, alternatives, known->alternatives));
    }
    tokens.push_back(std::move(token));
  }
  return tokens;
}

// Calls `visit(line, place)` for every line that holds more than a comment.
template <class Visit>
void for_each_line(std::string_view text, std::string_view place, Visit visit) {
  int number = 0;
  for (const std::string_view raw : base::split(text, '\n')) {
    ++number;
    const std::string_view line = base::trim(raw.substr(0, raw.find('#')));
    if (!line.empty()) visit(line, fmt::format("{}:{}", place, number));
  }
}

std::string text_of(const std::string& name, const std::vector<Sketch::Argument>& arguments,
                    const std::vector<Sketch::Line>& lines) {
  std::string text = fmt::format("sketch {}\n", name);
  for (const Sketch::Line& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (i > 0) text += ' ';
      const Sketch::Token& token = line[i];
      if (token.argument < 0) {
        text += token.literal;
        continue;
      }
      text += "$" + arguments[std::size_t(token.argument)].name;
      if (!token.alternatives.empty()) text += "{" + base::join(token.alternatives, "|") + "}";
    }
    text += '\n';
  }
  return text;
}

}  // namespace

Sketch::Sketch(std::string its_name, std::vector<Argument> its_arguments, std::vector<Line> its_lines)
    : name(std::move(its_name)),
      arguments(std::move(its_arguments)),
      lines(std::move(its_lines)),
      hash(base::hash_bytes(text_of(name, arguments, lines))) {}

bool Sketch::operator==(const Sketch& other) const {
  return this == &other ||
         (hash == other.hash && name == other.name && arguments == other.arguments && lines == other.lines);
}

int Sketch::argument_named(std::string_view argument) const {
  for (std::size_t a = 0; a < arguments.size(); ++a) {
    if (arguments[a].name == argument) return int(a);
  }
  return -1;
}

Sketch parse_sketch(std::string_view text, std::string_view place) {
  std::string name;
  std::vector<Sketch::Argument> arguments;
  std::vector<Sketch::Line> lines;
  for_each_line(text, place, [&](std::string_view line, const std::string& here) {
    if (!name.empty()) {
      lines.push_back(parse_line(line, arguments, here));
      return;
    }
    const auto words = base::words(line);
    if (words.size() != 2 || words[0] != "sketch") {
      throw base::UserError(here, fmt::format("expected 'sketch NAME' on the first line, got '{}'", line));
    }
    name = words[1];
  });
  if (name.empty()) throw base::UserError(place, "expected 'sketch NAME', got an empty text");
  return Sketch(std::move(name), std::move(arguments), std::move(lines));
}

Sketch with_lines(const Sketch& sketch, std::string_view text, std::string_view place) {
  std::vector<Sketch::Argument> arguments = sketch.arguments;
  std::vector<Sketch::Line> lines = sketch.lines;
  for_each_line(text, place, [&](std::string_view line, const std::string& here) {
    lines.push_back(parse_line(line, arguments, here));
  });
  return Sketch(sketch.name, std::move(arguments), std::move(lines));
}

std::string to_text(const Sketch& sketch) {
  return text_of(sketch.name, sketch.arguments, sketch.lines);
}

base::Result<Schedule> fill(const Sketch& sketch, std::span<const std::int64_t> arguments) {
  if (arguments.size() != sketch.arguments.size()) {
    return base::Reason{
        fmt::format("sketch {}: takes {} arguments, got {}", sketch.name, sketch.arguments.size(), arguments.size())};
  }
  Schedule schedule;
  schedule.reserve(sketch.lines.size());
  std::vector<std::string> numbers;  // texts of plain numbers, kept alive for the views
  std::vector<std::string_view> words;
  for (const Sketch::Line& line : sketch.lines) {
    words.clear();
    numbers.clear();
    numbers.reserve(line.size());
    for (const Sketch::Token& token : line) {
      if (token.argument < 0) {
        words.push_back(token.literal);
        continue;
      }
      const std::int64_t value = arguments[std::size_t(token.argument)];
      if (token.alternatives.empty()) {
        numbers.push_back(std::to_string(value));
        words.push_back(numbers.back());
        continue;
      }
      if (value < 0 || value >= std::int64_t(token.alternatives.size())) {
        return base::Reason{fmt::format("sketch {}: {} has no alternative {}", sketch.name,
                                        sketch.arguments[std::size_t(token.argument)].name, value)};
      }
      for (const std::string_view word : base::words(token.alternatives[std::size_t(value)])) words.push_back(word);
    }
    if (words.empty()) continue;
    try {
      schedule.push_back(step_from_words(words, sketch.name));
    } catch (const base::UserError& error) {
      return base::Reason{error.what()};
    }
  }
  return schedule;
}

}  // namespace graft::codegen
