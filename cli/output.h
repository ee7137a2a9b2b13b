// The only place that prints. Results go to standard output, as text for people or as one JSON object; everything else
// - progress, notes, errors - goes to standard error.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "base/duration.h"
#include "base/monitor.h"

namespace graft::cli {

// Exit codes.
enum Exit { done = 0, failed = 1, wrong_use = 2, gate_not_met = 3, interrupted = 130 };

inline constexpr std::string_view interruption = "interrupted; run the same command again to continue";

// Columns of text: numbers (as their text says) to the right, words to the left. As text, long cells, such as a
// workload given as an expression, are shortened unless they are the last of their row; equal ones stay equal, others
// differ.
class Table {
 public:
  explicit Table(std::vector<std::string> head) : head_(std::move(head)) {}
  void row(std::vector<std::string> cells);  // as many as the head has
  std::string text() const;
  bool empty() const { return rows_.empty(); }
  bool has_numbers(std::size_t column) const;  // alone, "-" aside
  const std::vector<std::string>& head() const { return head_; }
  const std::vector<std::vector<std::string>>& rows() const { return rows_; }

 private:
  std::vector<std::string> head_;
  std::vector<std::vector<std::string>> rows_;
};

// A command gives its result twice: in text, and in `json()`. Only the requested one is printed.
class Output {
 public:
  // `kind`: of its result, the command's name.
  Output(bool as_json, const std::string& kind) : as_json_(as_json) { json_.set("schema", 1).set("kind", kind); }
  bool is_json() const { return as_json_; }
  // Failure if standard output cannot be written.
  void line(std::string_view text);
  void table(const Table& table);
  void text(std::string_view text);  // as it is
  base::Document& json() { return json_; }
  void add(const base::Document& result);  // a map's keys and values, to json()
  // Prints the object if it was asked for.
  void finish();

 private:
  void write(std::string_view text);
  bool as_json_;
  base::Document json_ = base::Document::map();
};

// A bar with the remaining time on a terminal, and a table above it; elsewhere a line from time to time. Requests a
// stop after SIGINT or SIGTERM (a second one kills). Thread-safe.
class Progress : public base::Monitor {
 public:
  explicit Progress(bool quiet);
  ~Progress() override;
  void progress(std::string_view what, std::int64_t done, std::int64_t total) override;
  void note(std::string_view line) override;
  bool stop_requested() override;
  // The table in place of the last one, as many of its first rows as there is room for; nothing elsewhere than on a
  // terminal.
  void show(const Table& table);
  bool is_quiet() const { return quiet_; }

 private:
  using Clock = std::chrono::steady_clock;
  void clear();

  std::mutex mutex_;
  bool quiet_, terminal_;
  bool drawn_ = false;   // there is a bar on the line
  int table_lines_ = 0;  // above it
  std::string what_;     // of the last report
  std::int64_t first_done_ = 0;
  Clock::time_point first_, last_, shown_;  // shown_: the table
};

// After this call, SIGINT and SIGTERM request a stop instead of ending the program; a second one ends it.
void catch_signals();
// After this call, the program ends with exit code 130 at most `patience` after a stop was requested, even during
// work that cannot be interrupted, such as one compilation by LLVM. Files are in the same state as after SIGKILL.
void end_when_asked(std::chrono::milliseconds patience);
bool stop_was_requested();

// "1.23 ms", "45 min"
using base::seconds_text;
// At most six significant digits; "-" if not finite.
std::string number_text(double value, int digits = 3);

}  // namespace graft::cli
