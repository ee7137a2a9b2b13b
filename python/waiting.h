// How Python waits for a long call of graft: the call runs on a thread of its own without the interpreter's lock, and
// the thread that called looks for signals meanwhile. An interrupt, or an exception in a callback, asks the call to stop
// as graft::Watch::stop does, so that what was measured is kept, and is raised once the call has ended.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <future>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>

#include "graft/graft.h"

namespace graft::python {

class Waiting {
 public:
  // Callables or None: progress(what, done, total), note(line), stop() -> bool.
  Waiting(pybind11::object progress, pybind11::object note, pybind11::object stop)
      : progress_(std::move(progress)), note_(std::move(note)), ask_(std::move(stop)) {}
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  // For the settings of the call. Refers to this.
  Watch watch() {
    Watch watch;
    if (!progress_.is_none()) {
      watch.progress = [this](std::string_view what, std::int64_t done, std::int64_t total) {
        with_python([&] { progress_(what, done, total); });
      };
    }
    if (!note_.is_none()) {
      watch.note = [this](std::string_view line) { with_python([&] { note_(line); }); };
    }
    watch.stop = [this] {
      if (!stop_ && !ask_.is_none()) {
        with_python([&] {
          if (ask_().cast<bool>()) stop_ = true;
        });
      }
      return bool(stop_);
    };
    return watch;
  }

  // With the interpreter's lock held. Raises what a callback raised, else what the call threw.
  template <class Call>
  std::invoke_result_t<Call> run(const Call& call) {
    std::packaged_task<std::invoke_result_t<Call>()> task(call);
    auto result = task.get_future();
    {
      const pybind11::gil_scoped_release release;
      std::thread thread(std::move(task));
      while (result.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready)
        with_python([] {
          if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
        });
      thread.join();
    }
    if (raised_) std::rethrow_exception(raised_);
    return result.get();
  }

 private:
  template <class Action>
  void with_python(const Action& action) {
    const pybind11::gil_scoped_acquire acquire;
    try {
      action();
    } catch (...) {
      if (!raised_) raised_ = std::current_exception();
      stop_ = true;
    }
  }

  pybind11::object progress_, note_, ask_;
  std::exception_ptr raised_;  // under the interpreter's lock
  std::atomic<bool> stop_ = false;
};

}  // namespace graft::python
