// Groups of flags that several commands have, each of which fills a part of a request.
#pragma once

#include <filesystem>
#include <string>

#include "cli/command.h"
#include "codegen/expression/target.h"
#include "codegen/space/space.h"

namespace graft::cli {

// --space FILE: a user's space (codegen/schedule/template.h) in place of the derived one.
struct SpaceFlag {
  std::string file;
  void declare(Options& options);
  // UserError if none of its schedules is possible: before a folder is made, not in the middle of a run.
  codegen::Space space(const codegen::Workload& workload, const codegen::Target& target) const;
};

// "90s", "10m", "1.5h" in seconds; UserError naming the flag.
double seconds_of(const char* flag, const std::string& text);

// Makes the folder for several results, if its parent exists; else UserError.
void make_output_folder(const std::filesystem::path& out);

}  // namespace graft::cli
