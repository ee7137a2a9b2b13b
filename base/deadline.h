// Time that is given to a task: how much of it is left, and a request to stop when it is over.
#pragma once

#include <chrono>
#include <limits>
#include <string_view>

#include "base/monitor.h"

namespace graft::base {

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

class Deadline {
 public:
  Deadline() = default;  // never
  // From now on; 0 or less: never.
  explicit Deadline(double seconds) {
    if (seconds > 0) seconds_ = seconds;
  }
  bool exists() const { return seconds_ < std::numeric_limits<double>::infinity(); }
  double left() const { return seconds_ - since_.seconds(); }  // seconds; infinite without an end
  bool is_over() const { return exists() && left() <= 0; }

 private:
  Stopwatch since_;
  double seconds_ = std::numeric_limits<double>::infinity();
};

// Asks to stop when the time is over, too, less a reserve in seconds.
class UntilMonitor final : public Monitor {
 public:
  UntilMonitor(Monitor& to, const Deadline& deadline, double reserve = 0)
      : to_(to), deadline_(deadline), reserve_(reserve) {}
  void progress(std::string_view what, std::int64_t done, std::int64_t total) override {
    to_.progress(what, done, total);
  }
  void note(std::string_view line) override { to_.note(line); }
  bool stop_requested() override { return to_.stop_requested() || deadline_.left() <= reserve_; }

 private:
  Monitor& to_;
  const Deadline& deadline_;
  const double reserve_;
};

}  // namespace graft::base
