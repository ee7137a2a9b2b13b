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

}  // namespace graft::base
