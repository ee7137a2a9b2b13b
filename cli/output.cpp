#include "cli/output.h"

#include <fmt/format.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdio>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/hash.h"
#include "base/one_line.h"
#include "base/shortened.h"
#include "base/text.h"
#include "cli/setting_flags.h"

namespace graft::cli {
namespace {

volatile sig_atomic_t signals_seen = 0;
sem_t stop_asked;  // posted with the first signal

void on_signal(int signal) {
  if (signals_seen == 0) {
    signals_seen = 1;
    ::sem_post(&stop_asked);
    return;
  }
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

// Characters, not bytes: multiplication signs and dashes are one column wide.
std::size_t width(std::string_view text) {
  return std::size_t(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

// As many whole characters as have room.
std::string cut(std::string_view text, std::size_t columns) {
  std::size_t end = 0;
  for (std::size_t used = 0; end < text.size(); ++end)
    if ((text[end] & 0xc0) != 0x80 && used++ == columns) break;
  return std::string(text.substr(0, end));
}

struct Size {
  int columns, lines;
};
Size terminal_size() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0) size = {};
  return {size.ws_col > 40 ? size.ws_col : 80, size.ws_row > 5 ? size.ws_row : 24};
}

bool is_number(std::string_view text) {
  return !text.empty() && (text == "-" || text.find_first_of("0123456789") == 0 ||
                           ((text[0] == '-' || text[0] == '+') && text.size() > 1 && text[1] >= '0' && text[1] <= '9'));
}

constexpr std::size_t longest_cell = 80, shown_of_longer = 60;

std::string shortened_cell(const std::string& cell) {
  if (width(cell) <= longest_cell) return cell;
  return fmt::format("{} ... #{}", cut(cell, shown_of_longer), base::to_hex(base::hash_bytes(cell)).substr(0, 4));
}

std::string padded(const std::string& cell, std::size_t columns, bool right) {
  const std::string space(columns - std::min(columns, width(cell)), ' ');
  return right ? space + cell : cell + space;
}

}  // namespace

void Table::row(std::vector<std::string> cells) {
  assert(cells.size() == head_.size());
  rows_.push_back(std::move(cells));
}

bool Table::has_numbers(std::size_t column) const {
  return !rows_.empty() &&
         std::all_of(rows_.begin(), rows_.end(), [&](const auto& cells) { return is_number(cells[column]); });
}

std::string Table::text() const {
  std::vector<std::vector<std::string>> rows = rows_;
  for (auto& cells : rows)
    for (std::size_t c = 0; c + 1 < cells.size(); ++c) cells[c] = shortened_cell(cells[c]);
  std::vector<std::size_t> columns;
  std::vector<bool> right;
  for (std::size_t c = 0; c < head_.size(); ++c) {
    std::size_t widest = width(head_[c]);
    for (const auto& cells : rows) widest = std::max(widest, width(cells[c]));
    columns.push_back(widest);
    right.push_back(has_numbers(c));
  }
  std::string out;
  const auto add = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (std::size_t c = 0; c < cells.size(); ++c) line += (c ? "  " : "") + padded(cells[c], columns[c], right[c]);
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  };
  add(head_);
  std::vector<std::string> rule;
  for (const std::size_t c : columns) rule.emplace_back(c, '-');
  add(rule);
  for (const auto& cells : rows) add(cells);
  return out;
}

void Output::write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) {
    throw base::Failure("standard output cannot be written");
  }
}

void Output::text(std::string_view text) {
  if (!as_json_) write(text);
}

void Output::line(std::string_view text) {
  if (!as_json_) write(fmt::format("{}\n", text));
}

void Output::table(const Table& table) {
  text(table.text());
}

void Output::add(const base::Document& result) {
  for (const auto& [key, value] : result.as_map()) json_.set(key, value);
}

void Output::finish() {
  if (as_json_) write(json_.to_json() + "\n");
}

Progress::Progress(bool quiet) : quiet_(quiet), terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  clear();
}

void Progress::clear() {
  if (drawn_) fmt::print(stderr, "\r\x1b[K");
  drawn_ = false;
  if (table_lines_ > 0) fmt::print(stderr, "\x1b[{}A\x1b[J", table_lines_);
  table_lines_ = 0;
}

void Progress::show(const Table& table) {
  if (quiet_ || !terminal_) return;
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  if (now - shown_ < std::chrono::milliseconds(250)) return;
  shown_ = now;
  clear();
  const Size room = terminal_size();
  const std::string text = table.text();
  for (const std::string_view line : base::split(base::trim(text), '\n')) {
    if (table_lines_ + 2 >= room.lines) break;  // the bar, and a line to spare
    fmt::print(stderr, "{}\n", cut(line, std::size_t(room.columns) - 1));
    ++table_lines_;
  }
}

void Progress::progress(std::string_view what, std::int64_t done, std::int64_t total) {
  if (quiet_) return;
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  const std::size_t tab = what.find('\t');
  const std::string_view subject = what.substr(0, tab);
  const bool fresh = subject != what_ || done < first_done_;
  if (fresh) {
    what_ = subject;
    first_done_ = done;
    first_ = last_ = now;
  }
  const bool finished = total > 0 && done >= total;
  const std::chrono::milliseconds pause(terminal_ ? 100 : 10000);
  if (!finished && !(fresh && terminal_) && now - last_ < pause) return;
  last_ = now;
  const double passed = std::chrono::duration<double>(now - first_).count();
  std::string rest;
  if (finished) {
    rest = passed >= 1 ? fmt::format(", {}", seconds_text(passed)) : "";
  } else if (done > first_done_ && total > 0) {
    const double each = passed / double(done - first_done_);
    if (tab != std::string_view::npos && each > 0) rest = fmt::format(", {:.3g} a second", 1 / each);
    rest += fmt::format(", {} left", seconds_text(each * double(total - done)));
  }
  const std::string detail = tab == std::string_view::npos ? "" : fmt::format(", {}", what.substr(tab + 1));
  if (!terminal_) {
    const std::string of = total > 0 ? fmt::format(" of {}", total) : "";
    fmt::print(stderr, "{}: {}{}{}{}\n", base::shortened(subject), done, of, rest, detail);
    return;
  }
  if (finished) clear();
  const auto columns = std::size_t(terminal_size().columns);
  const std::string count = total > 0 ? fmt::format(" {}/{}{}", done, total, rest) : fmt::format(" {}", done);
  constexpr std::size_t bar = 20;
  const std::size_t filled = total > 0 ? std::min(bar, std::size_t(double(bar) * double(done) / double(total))) : 0;
  const std::size_t room = columns - 1 - std::min(columns - 1, bar + 3 + width(count));
  std::string label(subject);
  if (width(label) > room) label = cut(label, room > 1 ? room - 1 : 0) + (room > 0 ? "~" : "");
  const std::string line =
      fmt::format("{} [{}{}]{}{}", label, std::string(filled, '#'), std::string(bar - filled, '.'), count, detail);
  fmt::print(stderr, "\r\x1b[K{}", cut(line, columns - 1));
  drawn_ = true;
  if (finished) {
    fmt::print(stderr, "\n");
    drawn_ = false;
  }
}

void Progress::note(std::string_view line) {
  if (quiet_) return;
  const std::lock_guard lock(mutex_);
  clear();
  fmt::print(stderr, "{}\n", base::one_line(with_flags(line), std::string::npos));
}

bool Progress::stop_requested() {
  return stop_was_requested();
}

void catch_signals() {
  ::sem_init(&stop_asked, 0, 0);
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

void end_when_asked(std::chrono::milliseconds patience) {
  std::thread([patience] {
    while (::sem_wait(&stop_asked) != 0) {
    }
    std::this_thread::sleep_for(patience);
    const std::string line = fmt::format("{}error: {}\n", ::isatty(STDERR_FILENO) == 1 ? "\r\x1b[K" : "", interruption);
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
    ::_exit(interrupted);
  }).detach();
}

bool stop_was_requested() {
  return signals_seen != 0;
}

std::string number_text(double value, int digits) {
  return std::isfinite(value) ? fmt::format("{:.{}f}", value, digits) : "-";
}

}  // namespace graft::cli
