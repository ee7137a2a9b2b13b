// How Python waits for a long call of graft: the call runs on a thread of its own without the interpreter's lock, and
// the thread that called looks for signals meanwhile. An interrupt, or an exception in a callback, asks the call to
// stop as graft::Watch::stop does, so that what was measured is kept, and is raised once the call has ended.
#pragma once

#include <pthread.h>
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
#include "python/given.h"

namespace graft::python {

// A part of a call that is without the interpreter's lock. Before the interpreter ends, all that run are asked to stop
// and waited for: a thread that asks for the lock later is ended by the interpreter wherever it is.
class Running {
 public:
  Running() {
    if (ending()) throw Error(Error::Kind::stopped, "the interpreter ends");
    ++count();
  }
  ~Running() { --count(); }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  static bool is_over() { return ending(); }

  // Once, with the lock held.
  static void end_with_python() {
    pthread_atfork(nullptr, nullptr, [] { count() = 0; });  // other threads are not in the child
    pybind11::module_::import("atexit").attr("register")(pybind11::cpp_function([] {
      ending() = true;
      const pybind11::gil_scoped_release release;
      while (count() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }));
  }

 private:
  static std::atomic<bool>& ending() {
    static std::atomic<bool> ending = false;
    return ending;
  }
  static std::atomic<int>& count() {
    static std::atomic<int> count = 0;
    return count;
  }
};

// For calls that are short.
struct Unlocked {
  Running running;
  pybind11::gil_scoped_release release;
};

class Waiting {
 public:
  // Callables or None: progress(what, done, total), note(line), stop() -> bool.
  Waiting(const pybind11::object& progress, const pybind11::object& note, const pybind11::object& stop)
      : progress_(callable("progress", progress)), note_(callable("note", note)), ask_(callable("stop", stop)) {}
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
      return stop_ || Running::is_over();
    };
    return watch;
  }

  // With the interpreter's lock held. Raises what a callback raised, else what the call threw.
  template <class Call>
  std::invoke_result_t<Call> run(const Call& call) {
    std::packaged_task<std::invoke_result_t<Call>()> task(call);
    auto result = task.get_future();
    const Running running;
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
  static pybind11::object callable(const char* name, const pybind11::object& given) {
    if (!given.is_none() && PyCallable_Check(given.ptr()) == 0) refuse(name, "a function, or None", given);
    return given;
  }

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
