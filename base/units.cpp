#include "base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/letters.h"
#include "base/text.h"

namespace graft::base {
namespace {

struct Name {
  std::string_view name, quantity;
  double scale = 1;
};

// As they are written; upper and lower case are different units.
constexpr Name symbols[] = {{"s", "s", 1},
                            {"ms", "s", 1e-3},
                            {"us", "s", 1e-6},
                            {"\xc2\xb5s", "s", 1e-6},  // the micro sign, and below the Greek letter
                            {"\xce\xbcs", "s", 1e-6},
                            {"ns", "s", 1e-9},
                            {"ps", "s", 1e-12},
                            {"h", "s", 3600},
                            {"%", "%", 1}};

// In any case, with or without a plural's s. Kernel Tuner spells one so.
constexpr Name words[] = {{"second", "s", 1},
                          {"sec", "s", 1},
                          {"millisecond", "s", 1e-3},
                          {"milisecond", "s", 1e-3},
                          {"millis", "s", 1e-3},
                          {"msec", "s", 1e-3},
                          {"microsecond", "s", 1e-6},
                          {"micros", "s", 1e-6},
                          {"usec", "s", 1e-6},
                          {"nanosecond", "s", 1e-9},
                          {"nanos", "s", 1e-9},
                          {"nsec", "s", 1e-9},
                          {"picosecond", "s", 1e-12},
                          {"psec", "s", 1e-12},
                          {"minute", "s", 60},
                          {"mins", "s", 60},
                          {"hour", "s", 3600},
                          {"hr", "s", 3600},
                          {"day", "s", 86400},
                          {"cycle", "cycle", 1},
                          {"clocks", "cycle", 1},
                          {"ticks", "tick", 1},
                          {"jiffies", "tick", 1},
                          {"percent", "%", 1},
                          // The singular of the others is mostly another name.
                          {"iterations", "iteration", 1},
                          {"iters", "iteration", 1},
                          {"runs", "run", 1},
                          {"loops", "loop", 1},
                          {"reps", "repetition", 1},
                          {"repetitions", "repetition", 1},
                          {"calls", "call", 1},
                          {"steps", "step", 1},
                          {"threads", "thread", 1}};

// With prefixes of the SI.
constexpr Name prefixed[] = {{"B", "B", 1},     {"byte", "B", 1},   {"Byte", "B", 1},  {"bit", "bit", 1},
                             {"b", "bit", 1},   {"J", "J", 1},      {"joule", "J", 1}, {"Joule", "J", 1},
                             {"Wh", "J", 3600}, {"W", "W", 1},      {"watt", "W", 1},  {"Watt", "W", 1},
                             {"Hz", "Hz", 1},   {"FLOP", "FLOP", 1}};
constexpr std::pair<std::string_view, double> prefixes[] = {
    {"", 1},     {"k", 1e3},  {"K", 1e3},         {"M", 1e6},         {"G", 1e9},         {"T", 1e12},
    {"P", 1e15}, {"E", 1e18}, {"Ki", 1024},       {"Mi", 1048576},    {"Gi", 1073741824}, {"Ti", 1099511627776},
    {"m", 1e-3}, {"u", 1e-6}, {"\xc2\xb5", 1e-6}, {"\xce\xbc", 1e-6}, {"n", 1e-9},        {"p", 1e-12}};

std::optional<Unit> found(std::span<const Name> names, std::string_view name) {
  const auto at = std::find_if(names.begin(), names.end(), [&](const Name& each) { return each.name == name; });
  if (at == names.end()) return std::nullopt;
  return Unit{std::string(at->quantity), at->scale};
}

std::optional<Unit> with_prefix(std::string_view name) {
  for (const auto& [prefix, scale] : prefixes) {
    if (!name.starts_with(prefix)) continue;
    std::optional<Unit> unit = found(prefixed, name.substr(prefix.size()));
    const bool is_part = scale < 1;  // there are no millibytes
    if (!unit || (is_part && unit->quantity != "J" && unit->quantity != "W")) continue;
    unit->scale *= scale;
    return unit;
  }
  return std::nullopt;
}

std::optional<Unit> simple(std::string_view name) {
  if (std::optional<Unit> unit = found(symbols, name)) return unit;
  if (std::optional<Unit> unit = with_prefix(name)) return unit;
  const std::string word = lower_case(name);
  if (std::optional<Unit> unit = found(words, word)) return unit;
  if (name.size() < 4 || !word.ends_with('s')) return std::nullopt;
  name.remove_suffix(1);
  if (std::optional<Unit> unit = found(words, lower_case(name))) return unit;
  return with_prefix(name);
}

// The rate of what is counted, such as the "GFLOP" of "GFLOP/s".
Unit rate_of(std::string_view what) {
  std::string word = lower_case(what);
  if (word.size() > 1 && word.ends_with('s')) word.pop_back();
  // Their case says nothing: "mflop" is not a thousandth.
  for (const auto& [base, quantity] :
       {std::pair("flop", "FLOP/s"), std::pair("op", "op/s"), std::pair("lup", "LUP/s")}) {
    const std::size_t size = std::string_view(base).size();
    if (!word.ends_with(base) || word.size() > size + 1) continue;
    const std::string prefix(1, char(std::toupper((unsigned char)word.front())));
    for (const auto& [each, scale] : prefixes) {
      if (word.size() == size ? each.empty() : each == prefix && scale > 1) return {quantity, scale};
    }
  }
  std::optional<Unit> unit = simple(what);
  if (!unit) unit = Unit{word, 1};
  unit->quantity += "/s";
  return *unit;
}

// "GFLOPS", "TOPS", "MLUPs", "fps", "kbps": what they count; "" for other words.
std::string_view counted_per_second(std::string_view name) {
  const std::string word = lower_case(name);
  for (const std::string_view end : {"flops", "lups", "ops"}) {
    const bool has_prefix = word.size() == end.size() + 1 && std::string_view("kmgtpe").find(word.front()) < 6;
    if (word.ends_with(end) && (has_prefix || word.size() == end.size())) return name.substr(0, name.size() - 1);
  }
  if (word == "fps") return "frame";
  return (name.ends_with("bps") || name.ends_with("Bps")) && name.size() < 6 ? name.substr(0, name.size() - 2) : "";
}

constexpr std::string_view of_more_is_better[] = {"percent",    "pct",   "flops", "mflops",     "gflops",    "tflops",
                                                  "mflop",      "gflop", "tflop", "throughput", "bandwidth", "speedup",
                                                  "efficiency", "score", "fps",   "gbps",       "qps",       "ops",
                                                  "gops",       "tops",  "reward"};

bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return std::isalpha((unsigned char)c); });
}

}  // namespace

std::optional<Unit> unit_named(std::string_view name) {
  name = trim(name);
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos) {
    const std::string_view what = counted_per_second(name);
    return what.empty() ? simple(name) : rate_of(what);
  }
  const std::string_view what = trim(name.substr(0, slash)), each = trim(name.substr(slash + 1));
  const std::optional<Unit> above = simple(what), below = simple(each);
  const bool is_time = above && above->quantity == "s";
  if (below && below->quantity == "s")  // of a time per time no one knows what it is
    return is_word(what) && !is_time && below->scale == 1 ? std::optional(rate_of(what)) : std::nullopt;
  return is_time && is_word(each) ? above : std::nullopt;  // of each call
}

namespace {

// Seconds of a unit's name in any of its spellings; 0 for another word. Longer ones are something else in a table.
double seconds_of_unit(std::string_view unit) {
  const std::optional<Unit> named = unit_named(unit);
  return named && named->quantity == "s" && named->scale <= 1 ? named->scale : 0;
}

}  // namespace

std::vector<std::string> words_of_name(std::string_view name) {
  std::vector<std::string> words{""};
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto c = (unsigned char)name[i];
    const bool is_letter = std::isalnum(c) != 0 || c >= 0x80;  // the sign for micro is beyond ASCII
    const bool begins = std::isupper(c) != 0 && i > 0 && std::islower((unsigned char)name[i - 1]) != 0;
    if ((!is_letter || begins) && !words.back().empty()) words.emplace_back();
    if (is_letter) words.back() += char(std::tolower(c));
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

bool has_word(const std::vector<std::string>& words, std::span<const std::string_view> known) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return std::find(known.begin(), known.end(), word) != known.end();
  });
}

std::string_view in_brackets(std::string_view name) {
  name = trim(name);
  const std::size_t open = name.find_last_of("([");
  if (open == std::string_view::npos || !(name.ends_with(')') || name.ends_with(']'))) return "";
  return trim(name.substr(open + 1, name.size() - open - 2));
}

std::optional<std::string> unit_in_name(std::string_view name, std::string_view quantity, bool is_sure) {
  name = trim(name);
  const auto fits = [&](std::string_view word) {
    const std::optional<Unit> unit = unit_named(word);
    const bool is_letter = word.size() == 1 && word != "s" && word != "J" && word != "W";
    return unit && !is_letter && (quantity.empty() || unit->quantity == quantity);
  };
  if (const std::string_view inside = in_brackets(name); fits(inside)) return std::string(inside);
  std::vector<std::string> words = words_of_name(name);
  const auto is_said = [&](std::string_view word) {
    const bool is_abbreviation = word == "s" || (word.ends_with('s') && word.size() <= 3);
    const bool is_alone = words.size() == 1;
    return fits(word) && (!is_abbreviation || (is_alone ? word != "s" : is_sure));
  };
  const std::string_view last = fits(name) ? name : name.substr(name.find_last_of("_ -([.") + 1);
  if (is_said(last)) return std::string(last);
  // Words are in lower case, which units other than those of times are not. "second" before others is a number.
  std::reverse(words.begin(), words.end());
  for (const std::string& word : words) {
    if (quantity == "s" && is_said(word) && (word != "second" || &word == &words.front())) return word;
  }
  return std::nullopt;
}

bool says_more_is_better(std::string_view name) {
  return name.find('%') != std::string_view::npos || name.find("/s") != std::string_view::npos ||
         name.find("per_s") != std::string_view::npos || has_word(words_of_name(name), of_more_is_better);
}

bool is_unit_of_time(std::string_view word) {
  return seconds_of_unit(word) > 0;
}

double seconds_per(std::string_view unit, std::string_view place) {
  if (const double seconds = seconds_of_unit(unit); seconds > 0) return seconds;
  const std::vector<std::string> names = {"s",       "ms",           "us",           "ns",
                                          "seconds", "milliseconds", "microseconds", "nanoseconds"};
  throw UserError(place, fmt::format("unknown unit '{}'{}", unit, did_you_mean(unit, names)));
}

}  // namespace graft::base
