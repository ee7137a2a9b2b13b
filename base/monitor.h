// What a long call says while it runs, and how it is asked to stop. The program (cli) implements it; libraries never
// print. docs/reference/stop-requests.md says which phase of which command looks at it, and how often.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace graft::base {

class Monitor {
 public:
  virtual ~Monitor() = default;
  virtual void progress(std::string_view /*what*/, std::int64_t /*done*/, std::int64_t /*total*/) {}  // after a tab in `what`: a detail that changes
  virtual void note(std::string_view /*line*/) {}
  virtual bool stop_requested() { return false; }
};

// What a call throws that ends early because its monitor asked for it.
class Stopped : public Failure {
 public:
  Stopped() : Failure("stopped by request") {}
};

// Throws Stopped if the monitor asks to stop.
inline void check_stop(Monitor& monitor) {
  if (monitor.stop_requested()) throw Stopped();
}

// Reports nothing, passes on requests to stop: for parts of one task that run in parallel.
class QuietMonitor final : public Monitor {
 public:
  explicit QuietMonitor(Monitor& to) : to_(to) {}
  bool stop_requested() override { return to_.stop_requested(); }

 private:
  Monitor& to_;
};

// Lets several threads report to a monitor that need not expect that.
class SharedMonitor final : public Monitor {
 public:
  explicit SharedMonitor(Monitor& to) : to_(to) {}
  void progress(std::string_view what, std::int64_t done, std::int64_t total) override {
    const std::lock_guard lock(mutex_);
    to_.progress(what, done, total);
  }
  void note(std::string_view line) override {
    const std::lock_guard lock(mutex_);
    to_.note(line);
  }
  bool stop_requested() override {
    const std::lock_guard lock(mutex_);
    return to_.stop_requested();
  }

 private:
  Monitor& to_;
  std::mutex mutex_;
};

// Between threads that work and one that waits for them: reports are kept until the waiting thread passes
// it on, and its answer is what the workers see.
class RelayMonitor final : public Monitor {
 public:
  void progress(std::string_view what, std::int64_t done, std::int64_t total) override {
    const std::lock_guard lock(mutex_);
    what_ = what, done_ = done, total_ = total;
    reported_ = true;
  }
  void note(std::string_view line) override {
    const std::lock_guard lock(mutex_);
    notes_.emplace_back(line);
  }
  bool stop_requested() override { return stop_; }

  // Called by the waiting thread: passes to `to` what was reported since the last call, and asks it whether to stop.
  // True once it has said so.
  bool pass_on(Monitor& to) {
    {
      const std::lock_guard lock(mutex_);
      for (const std::string& line : notes_) to.note(line);
      notes_.clear();
      if (reported_) to.progress(what_, done_, total_);
      reported_ = false;
    }
    if (to.stop_requested()) stop_ = true;
    return stop_;
  }
  void stop() { stop_ = true; }

 private:
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;  // of all below
  std::string what_;
  std::int64_t done_ = 0, total_ = 0;
  bool reported_ = false;
  std::vector<std::string> notes_;
};

}  // namespace graft::base
