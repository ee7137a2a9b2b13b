// Comments, messages and documents are plain English (docs/explanation/style.md): a few words and forms that are not,
// and that have no other use here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/text.h"

namespace {

struct Slip {
  std::string_view words, instead;
};
constexpr Slip slips[] = {
    {"so many", "a number by its name"},
    {"beside", "next to, compared with"},
    {"tell apart", "distinguish"},
    {"tells apart", "distinguishes"},
    {"told apart", "distinguished"},
    {"anew", "again"},
    {"counts nothing", "is ignored, has weight 0"},
    {"count nothing", "are ignored, have weight 0"},
    {"held against", "compared with"},
    {"holds against", "compares with"},
    {"one after the other", "in order, consecutive"},
    {"is what is", "the noun"},
    {"hands over", "passes, returns"},
    {"handed over", "passed, returned"},
};

bool is_letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0;
}

// Whether the line, of any case, has the words as such, not within other words.
bool has(const std::string& line, std::string_view words) {
  const auto is_end = [&](std::size_t at) { return at >= line.size() || (!is_letter(line[at]) && line[at] != '_'); };
  for (std::size_t at = line.find(words); at != std::string::npos; at = line.find(words, at + 1)) {
    if ((at == 0 || is_end(at - 1)) && is_end(at + words.size())) return true;
  }
  return false;
}

// A number that begins with its point, such as one half written without the 0.
bool has_bare_fraction(std::string_view line) {
  for (std::size_t i = 0; i + 1 < line.size(); ++i) {
    if (line[i] != '.' || std::isdigit(static_cast<unsigned char>(line[i + 1])) == 0) continue;
    const char before = i == 0 ? ' ' : line[i - 1];
    const std::size_t end = line.find_first_not_of("0123456789", i + 1);
    const bool ends = end == std::string_view::npos || (!is_letter(line[end]) && line[end] != '_' && line[end] != '.');
    if (ends && std::string_view(" ([~,=").find(before) != std::string_view::npos) return true;
  }
  return false;
}

// "is no number" for "is not a number". Right are "there is no number" and comparisons, such as "is no longer".
bool denies_a_noun(std::string_view line) {
  constexpr std::string_view right[] = {"longer", "shorter", "more",   "less",   "fewer",  "better",
                                        "worse",  "faster",  "slower", "larger", "higher", "smaller",
                                        "lower",  "greater", "later",  "earlier"};
  for (const std::string_view verb : {"is no ", "are no ", "was no ", "were no "}) {
    for (std::size_t at = line.find(verb); at != std::string_view::npos; at = line.find(verb, at + 1)) {
      if (at > 0 && (is_letter(line[at - 1]) || line[at - 1] == '_')) continue;
      if (line.substr(0, at).ends_with("there ")) continue;
      const std::string_view rest = line.substr(at + verb.size());
      const std::string_view next(rest.begin(), std::find_if_not(rest.begin(), rest.end(), is_letter));
      if (std::find(std::begin(right), std::end(right), next) == std::end(right)) return true;
    }
  }
  return false;
}

// ", say" for "such as" at the end of a clause; an argument of a call may have this name.
bool ends_with_say(std::string_view line) {
  constexpr std::string_view words = ", say";
  for (std::size_t at = line.find(words); at != std::string_view::npos; at = line.find(words, at + 1)) {
    const std::string_view rest = line.substr(at + words.size());
    if (rest.empty() || std::string_view(".,;:\"").find(rest[0]) != std::string_view::npos) return true;
    if (rest[0] != ')') continue;
    const std::size_t open = line.rfind('(', at);
    if (open == std::string_view::npos || open == 0 || !(is_letter(line[open - 1]) || line[open - 1] == '_'))
      return true;
  }
  return false;
}

// What is wrong with the line, and what to write; "" for nothing.
std::string slip_of(std::string_view line) {
  std::string lower(line);
  for (char& c : lower) c = char(std::tolower(static_cast<unsigned char>(c)));
  for (const Slip& slip : slips) {
    if (has(lower, slip.words)) return "'" + std::string(slip.words) + "'; write: " + std::string(slip.instead);
  }
  if (denies_a_noun(lower)) return "'is no' before a noun; write: is not a";
  if (ends_with_say(lower)) return "', say'; write: such as, for example";
  if (has_bare_fraction(line)) return "a number without its 0; write: 0.5";
  const std::size_t begin = line.find_first_not_of(' ');
  if (begin != std::string_view::npos && line.substr(begin).starts_with("// Of "))
    return "a sentence that begins with 'Of'; write: For ..., or the noun";
  return "";
}

TEST(Words, SlipsAreThoseOfTheList) {
  for (const char* line :
       {"// waits so many seconds", "// Of each workload, the best", "a mean of .84", "(.5, 1)",
        "it is what is cleaned", "The run Beside it", "told apart.", "\"'{}' is no number\"", "\"'{}' is no {}\"",
        "names in it are no paths", "a row of a table, say, or one", "expected 90s, say\"", "blocks (of 64, say)"})
    EXPECT_NE(slip_of(line), "") << line;
  for (const char* line : {"x.5", "a[1].2", "workloads.0 .. 4 and 0.84", "a .5x", "besides", "renewal", "// of the run",
                           "../0.1", "\"v0.6\"", "There is no number", "it is no longer there",
                           "they are no faster than", "this no-op", "what runs say, and", "text_of(arguments, say);"})
    EXPECT_EQ(slip_of(line), "") << line;
}

TEST(Words, CommentsMessagesAndDocumentsHaveNone) {
  const std::filesystem::path root = GRAFT_SOURCE_DIR;
  const std::set<std::string> types = {".h", ".cpp", ".c", ".md", ".cmake", ".txt", ".py", ".space", ".sh", ""};
  // Notes of their day, pages made of experiments' own texts, files in others' formats, what the shipped model's file
  // holds, and the list itself.
  const std::set<std::string> left_out = {
      "docs/notebook",         "experiments",      "build", "runs", "datasets/shipped", "tests/datasets/cases",
      "tests/datasets/frozen", "tests/fuzz/corpus"};
  const std::set<std::string> lists = {"docs/explanation/style.md", "tests/layers/words_test.cpp", "models/base.md"};
  std::size_t read = 0;
  for (auto entry = std::filesystem::recursive_directory_iterator(root); entry != std::filesystem::end(entry);
       ++entry) {
    const std::string file = entry->path().lexically_relative(root).generic_string();
    if (entry->is_directory()) {
      if (entry->path().filename().string().starts_with(".") || left_out.count(file) != 0)
        entry.disable_recursion_pending();
      continue;
    }
    if (!entry->is_regular_file() || types.count(entry->path().extension().string()) == 0 || lists.count(file) != 0)
      continue;
    const std::string text = graft::base::read_file(entry->path(), 1 << 24);
    if (text.find('\0') != std::string::npos) continue;
    int number = 0;
    for (const std::string_view line : graft::base::split(text, '\n')) {
      ++number;
      const std::string slip = slip_of(line);
      EXPECT_EQ(slip, "") << file << ":" << number;
    }
    ++read;
  }
  EXPECT_GT(read, 700u) << "the walk found too few files to mean anything";
}

}  // namespace
