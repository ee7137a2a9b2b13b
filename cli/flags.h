// Groups of flags that several commands have, each of which fills a part of a request.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/command.h"
#include "codegen/schedule/space.h"
#include "study/data.h"
#include "study/model_choice.h"
#include "study/request.h"
#include "tasks/measurer.h"

namespace graft::cli {

// --repetitions, --minimum-ms, --timeout: how long a candidate is timed.
struct MeasureFlags : study::Timing {
  void declare(Options& options);
  void check() const;  // UserError for values that no measurer accepts
  tasks::MeasureSettings settings(double abort_factor, const Session& session) const;  // checked
};

// --space FILE: a user's space (codegen/schedule/template.h) in place of the derived one.
struct SpaceFlag {
  std::string file;
  void declare(Options& options);
  // UserError if none of its schedules is possible: before a folder is made, not in the middle of a run.
  codegen::Space space(const codegen::Workload& workload, const codegen::Target& target) const;
};

// DATA.h5..., --rows, --workloads, --sketches: the data for learning and evaluation.
struct DataFlags : study::DataSource {
  void declare(Options& options, const std::string& help);
};

// --model, --encoding, --hidden, --embedding, --units, --slots, --backend, --steps: which model is trained, on what.
struct ModelFlags {
  study::ModelChoice choice;
  std::vector<std::string> hidden;
  void declare(Options& options);  // with the choice's model as default
  study::ModelChoice chosen() const;
};

// "90s", "10m", "1.5h" in seconds; UserError naming the flag.
double seconds_of(const char* flag, const std::string& text);

// Makes the folder for several results, if its parent exists; else UserError.
void make_output_folder(const std::filesystem::path& out);

}  // namespace graft::cli
