// Searches fast schedules of one workload on one platform.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/document.h"
#include "base/monitor.h"
#include "codegen/expression/workload.h"
#include "datasets/trial.h"
#include "search/run_directory.h"
#include "search/tuning.h"
#include "study/answer.h"
#include "study/request.h"
#include "study/space.h"
#include "tasks/platform.h"

namespace graft::study {

struct TuneRequest {
  codegen::Workload workload;
  tasks::Platform platform;
  SpaceSource space;
  std::string model;  // that guides the search: a file or an untrained model's name; "": graft's own (study/prior.h)
  std::string transfer = "adapted";  // or "frozen", "global-local": how measurements are used (study/prior.h)
  std::string explorer = "evolution";
  search::SelectionSettings selection = {};    // of each batch
  std::int64_t trials = 256;                   // in total: a larger number continues a run
  std::int64_t batch = 32;                     // trials a round
  std::vector<codegen::Candidate> start = {};  // measured first; of other shapes: what is most like them
  // Earlier runs: of other workloads, or of this one on another machine (or on this one when it was another one), whose
  // best are measured first. What they measured is learnt from as an order of programs.
  std::vector<std::filesystem::path> history = {};
  // After each such number of trials the fastest are measured again. If their speed has changed, the machine
  // has: the run so far becomes history (folder OUT.before-1, ...), and the search continues in a new
  // one. 0: never.
  std::int64_t watch = 0;
  double budget_seconds = 0;      // of wall time; 0: none
  std::int64_t stop_after = 0;    // trials in a row without a gain of 1 %, after which it ends; 0: never
  std::filesystem::path library;  // of known answers (study/library.h), for the space by rule; "": none
  bool again = false;             // search even if the library has an answer
  std::int64_t rebuild = 4;       // programs to build with every pipeline at the end, chosen among four times
                                  // as many that are timed again; 0: none (native)
  Timing timing;
  std::uint64_t seed = 1;
  int threads = 1;            // no result depends on it
  std::filesystem::path out;  // the run's folder; empty: runs/tune-..., named for workload, platform and seed
  std::string command_line;   // for provenance
};

struct TuneResult {
  std::string workload, platform, source;
  std::uint64_t seed = 1;
  std::optional<Answer> answer;
  std::optional<double> peak_gflops;                   // of the platform, if there is an answer
  std::vector<datasets::Trial> trials;                 // recorded ones included, in order
  std::vector<std::pair<std::int64_t, double>> curve;  // search/tuning.h
  std::vector<search::Build> builds;                   // by every pipeline
  search::TimeSpent time;                              // of this call
  std::string model;                                   // the model that guided, for people
  std::filesystem::path folder;
  std::string known_since;            // date of the answer if it is the library's, without a search; else ""
  bool complete = false;              // false: stopped; the same request continues it
  std::string failure;                // why there is no answer, if the search is complete; else ""
  std::int64_t improvements() const;  // of the best time, in the course of the search
};

// A schedule to start from, from a text: a result of tune (best.json), an answer of a library, or a schedule's
// steps, one per line, for `workload`. UserError at the place of the text.
codegen::Candidate schedule_from(std::string_view text, const std::string& place, const codegen::Workload& workload);

// Returns the library's answer, without a search, if it has one for the workload on exactly this platform and its
// schedule still gives the recorded program (a note says so if not). Otherwise runs or continues the search, which
// begins with `start` and with the library's answers for similar shapes, and records its answer there when it is
// complete. When it returns, all results are on disk, the best as best.json. UserError for contradictory settings,
// before a folder is made, and for a folder of another request; Stopped when the monitor asks for it after the search
// itself.
TuneResult tune(const TuneRequest& request, base::Monitor& monitor);

// The search alone, round by round, to interleave several (study/tune_all.h). It does not use the library.
class TuneSession {
 public:
  // UserError and Stopped as tune.
  TuneSession(TuneRequest request, base::Monitor& monitor);
  ~TuneSession();
  TuneSession(TuneSession&&) noexcept;
  TuneSession& operator=(TuneSession&&) noexcept;

  // Runs one round, of at most `most_trials` trials; false if the search is over, or a stop was requested.
  bool step(std::int64_t most_trials, base::Monitor& monitor);
  // Runs rounds until it is over; false if a stop was requested.
  bool run(base::Monitor& monitor);
  // Measures the fastest programs again, and returns whether their speed is unchanged (TuneRequest::watch).
  bool machine_changed(base::Monitor& monitor);
  std::int64_t recorded() const;  // trials in the run's folder, more than trials() while it is continued
  std::int64_t trials() const;
  double best_seconds() const;  // infinity before the first ok trial
  // Builds and checks the result, if it is complete, and writes best.json.
  TuneResult finish(bool complete, base::Monitor& monitor);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// {"workload":...,"platform":...,"trials":...,"best":{...},"curve":[[trial,seconds],...],...}
base::Document to_document(const TuneResult& result);

}  // namespace graft::study
