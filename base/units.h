// Units of what programs print, by their names as people write them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace graft::base {

struct Unit {
  // What it measures: "s", "B", "J", "FLOP/s"; numbers of one quantity can be compared.
  std::string quantity;
  double scale = 1;  // what one of it is in that quantity
  bool operator==(const Unit&) const = default;
};

// Times ("ms", "usec", "Milliseconds", "ns/op"), work and sizes ("FLOP", "cycles", "kB", "GiB"), energy, power,
// frequency, "%", and rates: "GFLOPS", "GB/s", "img/s", "fps". nullopt for other words; "min" is one of them, since it
// mostly says minimum.
std::optional<Unit> unit_named(std::string_view name);

// Seconds of one unit: s, ms, us, ns, or these in words as programs write them ("Milliseconds", "sec"). UserError (did
// you mean) at `place` for another word.
double seconds_per(std::string_view unit, std::string_view place);
bool is_unit_of_time(std::string_view word);

// The words of a name, in lower case: "execTime (ms)", "exec_time_ms" and "exec-time.ms" have the same ones.
std::vector<std::string> words_of_name(std::string_view name);
bool has_word(const std::vector<std::string>& words, std::span<const std::string_view> known);

// The unit that the name of a column or measure says, as it is written: "duration (us)", "time[ms]", "exec_time_ms",
// "time_ms_mean", "GFLOPS", "seconds". Of `quantity` alone, or of any if that is "". `is_sure`: it is known that the
// name is of such a measure; otherwise abbreviations count only if they are the whole name: "ms" may be a part of
// something else.
std::optional<std::string> unit_in_name(std::string_view name, std::string_view quantity, bool is_sure);
// What is in brackets at the end of a name; "" if nothing is.
std::string_view in_brackets(std::string_view name);

// Whether the name of a column or measure says that more of it is better.
bool says_more_is_better(std::string_view name);

}  // namespace graft::base
