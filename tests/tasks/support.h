// Programs and settings that the tests of this room share.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/monitor.h"
#include "codegen/program/forms.h"
#include "codegen/schedule/lower.h"
#include "codegen/space/candidate.h"
#include "tasks/host_runner.h"
#include "tasks/measurer.h"
#include "tasks/platform.h"

namespace graft::tasks::test {

// The message of the exception that `call` throws; empty, and a failed test, when it throws none.
template <class Error>
std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

inline void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << text << "' does not contain '" << part << "'";
}

inline codegen::LoopProgram parsed(const std::string& text) {
  return codegen::parse_program(text, "test");
}

inline codegen::Workload small_matmul() {
  return codegen::parse_workload("matmul(m=8,n=8,k=8)");
}

// matmul(m=8,n=8,k=8) by hand, with `update` as its innermost statement.
inline std::string small_matmul_text(const std::string& update, const std::string& outer = "") {
  return "buffer A f32 [8,8] input\nbuffer B f32 [8,8] input\nbuffer C f32 [8,8] output\nrun\n"
         "  for i0 8\n    for j0 8\n      C[i0,j0] = 0\n" +
         (outer.empty() ? std::string("  for z 1\n") : outer) +
         "    for i 8\n      for j 8\n        for k 8\n          " + update + "\n";
}
inline codegen::LoopProgram good_matmul() {
  return parsed(small_matmul_text("C[i,j] += A[i,k] * B[k,j]"));
}
// Wrong in the fourth digit.
inline codegen::LoopProgram inexact_matmul() {
  return parsed(small_matmul_text("C[i,j] += A[i,k] * B[k,j] * 1.0001"));
}
// Stores far outside of its output.
inline codegen::LoopProgram wild_matmul() {
  codegen::LoopProgram wild = good_matmul();
  wild.stores.back().target.index[0].constant += std::int64_t(1) << 40;
  return wild;
}
// Does not end within the time limit of any test.
inline codegen::LoopProgram endless_matmul() {
  return parsed(small_matmul_text("C[i,j] += A[i,k] * B[k,j]", "  for z 1000000000000\n"));
}

// Requests a stop after `seconds`.
class StopAfterSeconds final : public base::Monitor {
 public:
  explicit StopAfterSeconds(double longest) : longest_(longest) {}
  bool stop_requested() override { return seconds() > longest_; }
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

 private:
  const double longest_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// A candidate of a sketch given as text.
inline codegen::Candidate candidate(const codegen::Workload& workload, const std::string& sketch,
                                    std::vector<std::int64_t> arguments = {}) {
  return {workload, std::make_shared<const codegen::Sketch>(codegen::parse_sketch(sketch, "test")),
          std::move(arguments)};
}

// The process number of this process's worker; -1 without one.
inline pid_t worker_process() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    pid_t number = -1;
    if (std::from_chars(name.data(), name.data() + name.size(), number).ec != std::errc()) continue;
    std::ifstream file(entry.path() / "stat");
    std::string id, program, state;
    pid_t parent = -1;
    if (file >> id >> program >> state >> parent && parent == ::getpid() && program == "(graft-worker)" &&
        state != "Z") {
      return number;
    }
  }
  return -1;
}

}  // namespace graft::tasks::test
