// The one best program of a run: tune reports it, best.json stores it, inspect lists it and shows its code, report
// draws it, and bench times it. All use these functions, so all name the same program and time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "base/monitor.h"
#include "codegen/expression/workload.h"
#include "codegen/space/candidate.h"
#include "datasets/trial.h"
#include "search/run_directory.h"
#include "tasks/measurer.h"
#include "tasks/platform.h"

namespace graft::study {

struct Answer {
  std::string platform, source;  // as the run's request names them
  std::int64_t trial = 0;        // of the run's journal
  codegen::Candidate candidate;
  std::uint64_t program_hash = 0;
  std::string pipeline;  // the one of codegen::pipelines() that built it fastest; "": the target's search pipeline
  datasets::Measurement measurement;  // every repetition, and the check of its results

  const codegen::Workload& workload() const { return candidate.workload; }
  double seconds() const { return datasets::seconds_of(measurement); }
  double gflops() const;  // 0 for a workload that is only a name
};

// The fastest program of a workload that a run found. If its best programs were built by every pipeline in the end,
// the fastest of these builds: they were timed side by side, and the least of hundreds of trials, spread over minutes,
// is also the luckiest. Elsewhere the fastest `ok` trial; one whose recorded check again (checked_answer) failed is
// passed over, and a check that succeeded is the answer's. nullopt if nothing is ok.
std::optional<Answer> answer_of(const search::RunContent& run, const codegen::Workload& workload);
std::optional<Answer> answer_of(const search::RunDirectory& run, const codegen::Workload& workload);
// The answer, then the next best of distinct programs in the same order, at most `count`.
std::vector<Answer> answers_of(const search::RunContent& run, const codegen::Workload& workload, std::size_t count);

// The same, after its program has computed the right results as code of a modelled platform's cpu, under
// qemu (if qemu runs); one that does not is skipped with a note. The checks are recorded in the run, so that
// `answer_of` gives the same from then on. Times of other platforms come with their check. When the monitor asks to
// stop, the answer as far as it is checked.
std::optional<Answer> checked_answer(search::RunDirectory& run, const codegen::Workload& workload,
                                     const tasks::Platform& platform, const tasks::MeasureSettings& settings,
                                     base::Monitor& monitor);

// The steps of a candidate, a line each; of a row of a table its values.
base::Document schedule_document(const codegen::Candidate& candidate);

// {"seconds":...,"gflops":...,"schedule":[...],"sketch":...,"arguments":[...],"program":...,"measurement":{...}} and,
// if one is known, "pipeline".
base::Document to_document(const Answer& answer);

// Whether the program computes its results with less arithmetic than the definition has, as Winograd's transform does:
// its speed by the definition may be above the peak.
bool does_less_arithmetic(const codegen::Candidate& candidate);

// Whether it computes in f32 alone.
bool is_in_f32(const codegen::Workload& workload);
// The platform's peak of fp32 multiply-adds in GFLOP/s, for workloads in f32; nullopt if it is
// not known (tasks/device.h).
std::optional<double> peak_gflops(const tasks::Platform& platform, const codegen::Workload& workload);

}  // namespace graft::study
