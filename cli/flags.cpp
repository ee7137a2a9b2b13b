#include "cli/flags.h"

#include <fmt/format.h>

#include "base/duration.h"
#include "base/error.h"
#include "study/inputs/space.h"

namespace graft::cli {

void SpaceFlag::declare(Options& options) {
  options.text("space", file, "file with sketches, domains and conditions (examples/matmul.space); default: by rule");
}

codegen::Space SpaceFlag::space(const codegen::Workload& workload, const codegen::Target& target) const {
  return study::space_of({.file = file}, workload, target);
}

double seconds_of(const char* flag, const std::string& text) {
  try {
    return base::seconds_from(text);
  } catch (const base::UserError& error) {
    throw base::UserError(flag, error.what());
  }
}

void make_output_folder(const std::filesystem::path& out) {
  std::error_code error;
  std::filesystem::create_directory(out, error);
  if (std::filesystem::is_directory(out)) return;
  throw base::UserError("--out", fmt::format("several platforms need a folder, and {} cannot be made one: {}",
                                             out.string(), error ? error.message() : "it is a file"));
}

}  // namespace graft::cli
