// What a long call says while it runs, and how it is asked to stop. The program (cli) implements it; libraries never
// print.
#pragma once

#include <cstdint>
#include <string_view>

namespace graft::base {

class Monitor {
 public:
  virtual ~Monitor() = default;
  virtual void progress(std::string_view /*what*/, std::int64_t /*done*/, std::int64_t /*total*/) {}
  virtual void note(std::string_view /*line*/) {}
  virtual bool stop_requested() { return false; }
};

// Says nothing, passes the wish to stop on: for parts of a whole that run side by side.
class QuietMonitor final : public Monitor {
 public:
  explicit QuietMonitor(Monitor& to) : to_(to) {}
  bool stop_requested() override { return to_.stop_requested(); }

 private:
  Monitor& to_;
};

}  // namespace graft::base
