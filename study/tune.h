// Searching fast schedules of one workload on one platform.
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
  std::string model;  // what guides the search: a file or an untrained model's name; "": graft's own (study/prior.h)
  std::string transfer = "adapted";  // or "frozen", "global-local": what is made of measurements (study/prior.h)
  std::string explorer = "evolution";
  search::SelectionSettings selection = {};    // of each batch
  std::int64_t trials = 256;                   // in all: a run is continued with more
  std::int64_t batch = 32;                     // trials a round
  std::vector<codegen::Candidate> start = {};  // measured first; of other shapes: what is most like them
  // Earlier runs: of other workloads, or of this one on another machine (or on this one when it was another one), whose
  // best are measured first. What they measured is learnt from as an order of programs.
  std::vector<std::filesystem::path> history = {};
  // After so many trials the fastest are measured again. Where they are not as fast as they were, the machine is
  // another one: the run so far becomes history (folder OUT.before-1, ...), and the search goes on in a new one. 0:
  // never.
  std::int64_t watch = 0;
  double budget_seconds = 0;      // of wall time; 0: none
  std::int64_t stop_after = 0;    // trials in a row without a gain of 1 %, after which it ends; 0: never
  std::filesystem::path library;  // of known answers (study/library.h), for the space by rule; "": none
  bool again = false;             // search though the library has an answer
  std::int64_t rebuild = 4;  // programs that every pipeline builds in the end, out of four times as many that are timed
                             // again; 0: none (native)
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
  std::string model;                                   // what guided, for people
  std::filesystem::path folder;
  std::string known_since;            // date of the answer where it is the library's, and nothing was searched; else ""
  bool complete = false;              // false: stopped; the same request continues it
  std::string failure;                // why there is no answer, where the search is complete; else ""
  std::int64_t improvements() const;  // of the best time, in the course of the search
};

// A schedule to start from, of a text: a result of tune (best.json) or an answer of a library, or a schedule's steps,
// one a line, for `workload`. UserError naming the place where the text is from.
codegen::Candidate schedule_from(std::string_view text, const std::string& place, const codegen::Workload& workload);

// What the library knows, without a search, where it knows the workload on this very platform and its schedule still
// gives the recorded program (a note says so if not). Otherwise runs or continues the search, which begins with `start`
// and with what the library knows of near shapes, and records its answer there when it is complete. On disk is all that
// it found when it returns, the result as best.json. UserError for what does not go together, before there is a folder,
// and for a folder of another request; Stopped when the monitor asks for it after the search itself.
TuneResult tune(const TuneRequest& request, base::Monitor& monitor);

// The search alone, round by round, for whoever interleaves several (study/tune_all.h). Nothing of the library.
class TuneSession {
 public:
  // UserError and Stopped as tune.
  TuneSession(TuneRequest request, base::Monitor& monitor);
  ~TuneSession();
  TuneSession(TuneSession&&) noexcept;
  TuneSession& operator=(TuneSession&&) noexcept;

  // One round, of at most so many trials; false when the search is over, or a stop was asked for.
  bool step(std::int64_t most_trials, base::Monitor& monitor);
  // Rounds until it is over; false if a stop was asked for.
  bool run(base::Monitor& monitor);
  // Measures the fastest programs again, and says whether they are as fast as they were (TuneRequest::watch).
  bool machine_changed(base::Monitor& monitor);
  std::int64_t recorded() const;  // trials that the run's folder has, more than trials() while it is continued
  std::int64_t trials() const;
  double best_seconds() const;  // infinity before the first ok trial
  // Builds and checks what was found, if it is complete, and writes best.json.
  TuneResult finish(bool complete, base::Monitor& monitor);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// {"workload":...,"platform":...,"trials":...,"best":{...},"curve":[[trial,seconds],...],...}
base::Document to_document(const TuneResult& result);

}  // namespace graft::study
