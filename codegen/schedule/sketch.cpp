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

// The tokens of one line; new arguments are appended to the sketch's.
std::vector<Sketch::Token> parse_line(std::string_view line, Sketch& sketch, std::string_view place) {
  std::vector<Sketch::Token> tokens;
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
    const auto known = std::find_if(sketch.arguments.begin(), sketch.arguments.end(),
                                    [&](const Sketch::Argument& argument) { return argument.name == name; });
    token.argument = int(known - sketch.arguments.begin());
    const std::int64_t alternatives = std::int64_t(token.alternatives.size());
    if (known == sketch.arguments.end()) {
      sketch.arguments.push_back({name, alternatives});
    } else if (known->alternatives != alternatives) {
      throw base::UserError(
          place, fmt::format("'${}' has {} alternatives here and {} before", name, alternatives, known->alternatives));
    }
    tokens.push_back(std::move(token));
  }
  return tokens;
}

}  // namespace

Sketch parse_sketch(std::string_view text, std::string_view place) {
  Sketch sketch;
  int number = 0;
  for (const std::string_view raw : base::split(text, '\n')) {
    ++number;
    const std::string_view line = base::trim(raw.substr(0, raw.find('#')));
    if (line.empty()) continue;
    const std::string here = fmt::format("{}:{}", place, number);
    if (sketch.name.empty()) {
      const auto words = base::words(line);
      if (words.size() != 2 || words[0] != "sketch") {
        throw base::UserError(here, fmt::format("expected 'sketch NAME' on the first line, got '{}'", line));
      }
      sketch.name = words[1];
      continue;
    }
    sketch.lines.push_back(parse_line(line, sketch, here));
  }
  if (sketch.name.empty()) throw base::UserError(place, "expected 'sketch NAME', got an empty text");
  return sketch;
}

std::string to_text(const Sketch& sketch) {
  std::string text = fmt::format("sketch {}\n", sketch.name);
  for (const std::vector<Sketch::Token>& line : sketch.lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (i > 0) text += ' ';
      const Sketch::Token& token = line[i];
      if (token.argument < 0) {
        text += token.literal;
        continue;
      }
      text += "$" + sketch.arguments[std::size_t(token.argument)].name;
      if (!token.alternatives.empty()) text += "{" + base::join(token.alternatives, "|") + "}";
    }
    text += '\n';
  }
  return text;
}

std::uint64_t hash(const Sketch& sketch) {
  return base::hash_bytes(to_text(sketch));
}

base::Result<Schedule> fill(const Sketch& sketch, std::span<const std::int64_t> arguments) {
  if (arguments.size() != sketch.arguments.size()) {
    return base::Reason{
        fmt::format("sketch {}: takes {} arguments, got {}", sketch.name, sketch.arguments.size(), arguments.size())};
  }
  Schedule schedule;
  std::vector<std::string> numbers;  // texts of plain numbers, kept alive for the views
  for (const std::vector<Sketch::Token>& line : sketch.lines) {
    std::vector<std::string_view> words;
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
