// Clocks in seconds. Only differences have a meaning.
#pragma once

namespace graft::base {

double thread_seconds();  // CPU time of the calling thread: pre-emption by others does not count
double wall_seconds();    // steady

// Adds the thread's time since the last lap to one of the phases, if phases are wanted.
template <class Phases>
class Laps {
 public:
  explicit Laps(Phases* phases) : phases_(phases) {}
  void end(double Phases::*phase) {
    const double now = thread_seconds();
    if (phases_ != nullptr) phases_->*phase += now - begin_;
    begin_ = now;
  }

 private:
  Phases* phases_;
  double begin_ = thread_seconds();
};

}  // namespace graft::base
