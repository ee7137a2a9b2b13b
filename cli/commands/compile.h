// What graft compile is asked: of runs of single workloads (compile.cpp) or of a network (compile_network.cpp).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/document.h"
#include "cli/command.h"
#include "study/flows/compile.h"

namespace graft::cli {

struct CompileFlags {
  std::vector<std::string> runs, functions;
  std::string out, name, format = "library", constants;
  std::string weights = "code";
  std::int64_t variants = 1;
  bool exported = false;
};

study::CompileFormat format_of(const std::string& name);  // UserError naming the flag
base::Document names_of(const std::map<std::string, std::string>& files);

int compile_network(const CompileFlags& flags, Session& session);

}  // namespace graft::cli
