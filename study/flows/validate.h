// Compares modelled times of this host with measured ones of the same machine code.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/document.h"
#include "base/monitor.h"
#include "codegen/expression/workload.h"
#include "codegen/space/candidate.h"
#include "datasets/trial.h"
#include "study/flows/agreement.h"
#include "study/inputs/request.h"
#include "study/inputs/setting.h"
#include "study/inputs/space.h"
#include "tasks/platform.h"

namespace graft::study {

struct ValidateRequest {
  std::vector<tasks::Platform> platforms;  // native ones: the code that is measured and modelled
  std::vector<codegen::Workload> workloads;
  std::filesystem::path out;  // the folder of the measurements
#include "study/inputs/settings/validate.def"
  std::string command_line;  // for provenance
};

// The programs of one workload on one platform, both ways.
struct Comparison {
  std::string platform, workload;
  std::vector<codegen::Candidate> candidates;
  std::vector<double> measured, modelled;  // measured: the fastest of all passes
  Agreement agreement;
  std::optional<Agreement> repeated;  // of the odd passes with the even ones: the most that noise permits
};

struct ValidateResult {
  std::vector<Comparison> comparisons;  // by platform, then workload
  std::string profile;                  // its description
  bool complete = false;                // false: stopped; the same request continues
};

// Measures and models programs that the folder does not have yet. UserError for platforms without a modelled twin, a
// space that has no schedule, an opcode that the core's model lacks, and a folder of another request; Failure if no
// program of a workload is ok.
ValidateResult validate(const ValidateRequest& request, base::Monitor& monitor);

// `ok` measurements by program (its hash).
using Pass = std::map<std::uint64_t, datasets::Trial>;
// The programs that were ok in all passes, at least one; not modelled yet.
Comparison comparison_of(const std::string& platform, const std::string& workload, const std::vector<Pass>& passes);

// [{"platform":...,"workload":...,"programs":...,"spearman":...},...]
base::Document to_document(const std::vector<Comparison>& comparisons);

}  // namespace graft::study
