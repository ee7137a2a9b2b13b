// Runs of the built program.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "base/document.h"
#include "base/files.h"
#include "base/process.h"
#include "tests/base/support.h"

namespace graft::cli {

inline base::Finished graft(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), GRAFT_PROGRAM);
  return base::run_process(arguments, std::chrono::minutes(2));
}

// Standard output of a run that must succeed, as JSON.
inline base::Document json_of(std::vector<std::string> arguments) {
  arguments.push_back("--json");
  const base::Finished finished = graft(arguments);
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  return base::parse_json(finished.out, "standard output");
}

inline std::size_t lines_in(const std::string& text) {
  return std::size_t(std::count(text.begin(), text.end(), '\n'));
}

// Two workloads that take microseconds, and flags that keep their timing short.
inline const std::string small = "matmul(m=24,n=32,k=16)";
inline const std::string other = "matmul(m=16,n=48,k=24)";
inline std::vector<std::string> quick(std::vector<std::string> arguments) {
  for (const char* flag : {"--minimum-ms", "0.1", "--repetitions", "2"}) arguments.push_back(flag);
  return arguments;
}

}  // namespace graft::cli
