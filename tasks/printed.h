// What a program prints, read as a person reads it: numbers with their units after a name. What can be read in two ways
// is not read at all, and the message says what was not understood.
#pragma once

#include <cstddef>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"
#include "tasks/printed_lines.h"

namespace graft::tasks {

// Letters, digits, '_' and '.': a name does not begin or end among them.
bool is_name_character(char c);

// NAME, or /REGEX/ with its slashes, and what follows its colon. UserError at `field`.
std::pair<std::string, std::string> parted(const std::string& text, const char* field);

// A part of a line.
struct PrintedPart {
  std::size_t line = 0, begin = 0, end = 0;
};

// A name to look for, or a regular expression between slashes, for lines without entries, with what is wanted as its
// first group.
class PrintedName {
 public:
  PrintedName(const std::string& text, const char* field);  // UserError
  const std::string& text() const { return text_; }
  bool is_regex() const { return regex_.has_value(); }

  static constexpr int other_case = 2;
  struct Match {
    std::size_t line = 0, begin = 0, end = 0;  // of the name; of the whole match of an expression
    std::size_t group = 0, group_end = 0;      // of an expression
    int rank = 0;                              // 0: written so; 1: with a unit; from other_case on: in another case
    std::optional<base::Unit> unit = {};       // that is part of the name as it is printed
  };
  std::vector<Match> find(const std::vector<PrintedLine>& lines) const;
  // Where the text begins that is printed for the name.
  std::size_t value_after(const Match& match, const PrintedLine& line) const;

 private:
  std::string text_;
  std::optional<std::regex> regex_;
};

// A time, or another measure: "NAME", "NAME:UNIT", "/REGEX/" or "/REGEX/:UNIT".
class PrintedMeasure {
 public:
  // `is_time`: units are of time, and seconds are meant where none is said. Otherwise any unit is right. UserError at
  // `field` for another unit of a time, for a unit in NAME that contradicts UNIT, and as PrintedName.
  PrintedMeasure(const std::string& text, const char* field, bool is_time);

  const std::string& name() const { return name_.text(); }
  bool is_regex() const { return name_.is_regex(); }
  // That is said here, and its text.
  const std::optional<base::Unit>& unit() const { return unit_; }
  const std::string& unit_text() const { return unit_text_; }

  struct Found {
    std::vector<double> values = {};      // in the unit of `quantity`: seconds of times; each is a repetition
    std::string quantity = {};            // "" if no unit is said anywhere
    std::string problem = {};             // why nothing was read; "": it was
    bool is_missing = false;              // the name has no number anywhere
    std::string note = {};                // which of several was read; "": there was one
    std::vector<PrintedPart> parts = {};  // where it was read
  };
  Found find(const std::vector<PrintedLine>& lines) const;

 private:
  struct Candidate;
  Candidate read(const PrintedName::Match& match, const PrintedLine& line, std::size_t before) const;
  void read_values(Candidate& candidate, std::string_view text, std::size_t at, bool in_cells) const;
  void read_group(Candidate& candidate, const PrintedName::Match& match, std::string_view text) const;
  void put_unit(Candidate& candidate) const;
  std::vector<const Candidate*> chosen_of(const std::vector<Candidate>& candidates, std::string& note) const;
  Found one_of(const std::vector<Candidate>& candidates) const;

  PrintedName name_;
  bool is_time_;
  std::string unit_text_;
  std::optional<base::Unit> unit_;       // what numbers without a unit have
  std::optional<base::Unit> name_unit_;  // which printed ones may not contradict
};

}  // namespace graft::tasks
