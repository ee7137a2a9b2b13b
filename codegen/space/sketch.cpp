#include "codegen/space/sketch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cctype>
#include <charconv>
#include <cmath>
#include <set>

#include "base/hash.h"
#include "base/text.h"
#include "codegen/program/forms.h"

namespace graft::codegen {
namespace {

constexpr std::string_view white_space = " \t\r\f\v";  // of one line
constexpr std::string_view columns_word = "columns";
constexpr std::string_view program_line = "\nprogram\n";  // a program's text follows it

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
    if (name.empty()) throw base::UserError(place, "expected an argument's name after '$'");
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
      throw base::UserError(place, fmt::format("expected a space after '${}'", name));
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

// Calls `visit(line, place)` for every line that holds more than a comment and belongs to no intrinsic; those are
// appended.
template <class Visit>
void for_each_line(std::string_view text, std::string_view place, std::vector<IntrinsicPointer>& intrinsics,
                   Visit visit) {
  const std::vector<std::string_view> lines = base::split(text, '\n');
  for (std::size_t number = 0; number < lines.size();) {
    const std::string here = fmt::format("{}:{}", place, number + 1);
    const std::string_view line = base::trim(lines[number].substr(0, lines[number].find('#')));
    if (line.starts_with("intrinsic ")) {
      append_intrinsic(intrinsics, parse_intrinsic(lines, number, place), here);
      continue;
    }
    ++number;
    if (!line.empty()) visit(line, here);
  }
}

std::string text_of(const Sketch::Line& line, const std::vector<Sketch::Argument>& arguments) {
  std::string text;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (i > 0) text += ' ';
    const Sketch::Token& token = line[i];
    if (token.argument < 0) {
      text += token.literal;
      continue;
    }
    text += '$';
    text += arguments[std::size_t(token.argument)].name;
    if (!token.alternatives.empty()) text += "{" + base::join(token.alternatives, "|") + "}";
  }
  return text;
}

std::string text_of(const std::string& name, const std::vector<Sketch::Argument>& arguments,
                    const std::vector<Sketch::Line>& lines, const std::vector<IntrinsicPointer>& intrinsics,
                    const Sketch::Line& columns, const LoopProgram* program) {
  std::string text = fmt::format("sketch {}\n", name);
  if (program != nullptr) return text + std::string(program_line.substr(1)) + to_text(*program);
  if (!columns.empty()) text += fmt::format("{} {}\n", columns_word, text_of(columns, arguments));
  for (const Sketch::Line& line : lines) text += text_of(line, arguments) + '\n';
  for (const IntrinsicPointer& intrinsic : intrinsics) text += to_text(*intrinsic);
  return text;
}

// `kept` says which characters the text form can hold there; others become '_'.
template <class Kept>
std::string cleaned(std::string_view text, Kept kept) {
  std::string result(base::trim(text));
  for (char& c : result) {
    if (!kept(c)) c = '_';
  }
  return result;
}

std::string cleaned_name(std::string_view text) {
  const std::string name = cleaned(text, is_name_character);
  return name.empty() ? "_" : name;
}

bool is_held(char c) {
  return (unsigned char)c >= ' ' && std::string_view("|}#").find(c) == std::string_view::npos;
}

// With what the text form cannot hold in an alternative as "%23": different words have different texts.
std::string escaped(std::string_view text) {
  const auto is_hex = [&](std::size_t at) { return at < text.size() && std::isxdigit((unsigned char)text[at]); };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool is_at_end = i == 0 || i + 1 == text.size();
    const bool stays = is_held(c) && !(c == ' ' && is_at_end) && !(c == '%' && is_hex(i + 1) && is_hex(i + 2));
    out += stays ? std::string(1, c) : fmt::format("%{:02X}", (unsigned char)c);
  }
  return out;
}

std::vector<std::string> texts_of(const std::vector<std::string>& words) {
  std::vector<std::string> texts;
  for (const std::string& word : words) texts.push_back(cleaned(word, is_held));
  if (std::set<std::string>(texts.begin(), texts.end()).size() == texts.size()) return texts;
  std::transform(words.begin(), words.end(), texts.begin(), escaped);
  return texts;
}

std::string name_of_first_line(std::string_view line, std::string_view place) {
  const auto words = base::words(line);
  if (words.size() != 2 || words[0] != "sketch") {
    throw base::UserError(place, fmt::format("expected 'sketch NAME' on the first line, got '{}'", line));
  }
  return std::string(words[1]);
}

}  // namespace

Sketch::Sketch(std::string its_name, std::vector<Argument> its_arguments, std::vector<Line> its_lines,
               std::vector<IntrinsicPointer> its_intrinsics, Line its_columns,
               std::shared_ptr<const LoopProgram> its_program)
    : name(std::move(its_name)),
      arguments(std::move(its_arguments)),
      lines(std::move(its_lines)),
      intrinsics(std::move(its_intrinsics)),
      columns(std::move(its_columns)),
      program(std::move(its_program)),
      hash(base::hash_bytes(text_of(name, arguments, lines, intrinsics, columns, program.get()))) {}

Sketch::Sketch(std::string its_name, std::vector<Argument> its_arguments, std::vector<Line> its_lines,
               std::vector<IntrinsicPointer> its_intrinsics)
    : Sketch(std::move(its_name), std::move(its_arguments), std::move(its_lines), std::move(its_intrinsics), {}, {}) {}

Sketch Sketch::of_columns(std::string_view name, const std::vector<Column>& columns) {
  assert(!columns.empty());
  std::vector<Argument> arguments;
  Line line;
  std::set<std::string> used;
  for (const Column& column : columns) {
    const std::string wanted = cleaned_name(column.name);
    std::string unique = wanted;
    for (int number = 2; !used.insert(unique).second; ++number) unique = fmt::format("{}_{}", wanted, number);
    Token token{int(arguments.size()), "", texts_of(column.alternatives)};
    arguments.push_back({std::move(unique), std::int64_t(token.alternatives.size())});
    line.push_back(std::move(token));
  }
  return Sketch(cleaned_name(name), std::move(arguments), {}, {}, std::move(line), {});
}

Sketch Sketch::of_program(std::string_view name, LoopProgram program) {
  return Sketch(cleaned_name(name), {}, {}, {}, {}, std::make_shared<const LoopProgram>(std::move(program)));
}

bool Sketch::operator==(const Sketch& other) const {
  return this == &other ||
         (hash == other.hash && name == other.name && arguments == other.arguments && lines == other.lines &&
          columns == other.columns && (program == nullptr) == (other.program == nullptr) &&
          (program == nullptr || *program == *other.program) &&
          std::equal(intrinsics.begin(), intrinsics.end(), other.intrinsics.begin(), other.intrinsics.end(),
                     [](const IntrinsicPointer& x, const IntrinsicPointer& y) { return *x == *y; }));
}

int Sketch::argument_named(std::string_view argument) const {
  for (std::size_t a = 0; a < arguments.size(); ++a) {
    if (arguments[a].name == argument) return int(a);
  }
  return -1;
}

std::optional<double> number_in(std::string_view value) {
  double number = 0;
  const char* const end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc() || rest != end || !std::isfinite(number)) return std::nullopt;
  return number;
}

std::vector<double> numbers_of(const Sketch& sketch, std::size_t argument) {
  std::vector<double> numbers;
  if (argument >= sketch.columns.size()) return numbers;
  for (const std::string& text : sketch.columns[argument].alternatives) {
    const std::optional<double> number = number_in(text);
    if (!number) return {};
    numbers.push_back(*number);
  }
  return numbers;
}

Sketch parse_sketch(std::string_view text, std::string_view place) {
  std::string name;
  std::vector<Sketch::Argument> arguments;
  std::vector<Sketch::Line> lines;
  std::vector<IntrinsicPointer> intrinsics;
  Sketch::Line columns;
  std::shared_ptr<const LoopProgram> program;
  const std::size_t program_at = text.find(program_line);
  for_each_line(text.substr(0, program_at), place, intrinsics, [&](std::string_view line, const std::string& here) {
    if (name.empty()) {
      name = name_of_first_line(line, here);
      return;
    }
    if (!columns.empty()) throw base::UserError(here, "a sketch of columns has nothing after them");
    Sketch::Line tokens = parse_line(line, arguments, here);
    if (tokens.front().literal != columns_word) {
      lines.push_back(std::move(tokens));
      return;
    }
    if (!lines.empty()) throw base::UserError(here, "columns after steps");
    columns.assign(tokens.begin() + 1, tokens.end());
    const bool only_arguments =
        std::all_of(columns.begin(), columns.end(), [](const Sketch::Token& token) { return token.argument >= 0; });
    if (!only_arguments || columns.empty() || columns.size() != arguments.size())
      throw base::UserError(here, "expected arguments after 'columns', each once");
  });
  if (name.empty()) throw base::UserError(place, "expected 'sketch NAME', got an empty text");
  if (program_at != std::string_view::npos) {
    const std::string inside = fmt::format("{}: program", place);
    if (!lines.empty() || !columns.empty() || !intrinsics.empty())
      throw base::UserError(inside, "comes after other parts of the sketch's body, but must be all of it");
    program = std::make_shared<const LoopProgram>(parse_program(text.substr(program_at + program_line.size()), inside));
  }
  return Sketch(std::move(name), std::move(arguments), std::move(lines), std::move(intrinsics), std::move(columns),
                std::move(program));
}

Sketch with_lines(const Sketch& sketch, std::string_view text, std::string_view place) {
  assert(sketch.columns.empty() && sketch.program == nullptr);
  std::vector<Sketch::Argument> arguments = sketch.arguments;
  std::vector<Sketch::Line> lines = sketch.lines;
  std::vector<IntrinsicPointer> intrinsics = sketch.intrinsics;
  for_each_line(text, place, intrinsics, [&](std::string_view line, const std::string& here) {
    lines.push_back(parse_line(line, arguments, here));
  });
  return Sketch(sketch.name, std::move(arguments), std::move(lines), std::move(intrinsics));
}

std::string to_text(const Sketch& sketch) {
  return text_of(sketch.name, sketch.arguments, sketch.lines, sketch.intrinsics, sketch.columns, sketch.program.get());
}

}  // namespace graft::codegen
