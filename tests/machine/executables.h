// Executables for boards, run here or under a runner.
#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/process.h"
#include "base/temporary_folder.h"
#include "codegen/expression/target.h"

namespace graft::codegen::test {

inline Target board(const std::string& triple, const std::string& cpu, const std::string& features, std::int64_t bits) {
  Target target;
  target.triple = triple, target.cpu = cpu, target.features = features;
  target.vector_bits = bits, target.vector_registers = 32;
  return target;
}

inline bool starts(const std::string& program) {
  try {
    return base::run_process({program, "--version"}, std::chrono::seconds(20)).exit_code == 0;
  } catch (const base::Failure&) {
    return false;
  }
}

inline base::Finished run_program(const std::string& executable, std::vector<std::string> prefix) {
  const base::TemporaryFolder folder;
  const std::filesystem::path path = folder / "program";
  std::ofstream(path, std::ios::binary) << executable;
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  prefix.push_back(path.string());
  return base::run_process(prefix, std::chrono::seconds(60));
}

}  // namespace graft::codegen::test
