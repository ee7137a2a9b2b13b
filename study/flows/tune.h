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
#include "search/selection.h"
#include "search/tuning.h"
#include "study/flows/search_session.h"
#include "study/inputs/request.h"
#include "study/inputs/setting.h"
#include "study/inputs/space.h"
#include "study/knowledge/answer.h"
#include "tasks/platform.h"

namespace graft::study {

// Start schedules of other shapes are taken for what is most like them in the space.
struct TuneRequest {
  codegen::Workload workload;
  tasks::Platform platform;
  std::vector<codegen::Candidate> start = {};  // measured first
#include "study/inputs/settings/tune.def"
  std::string command_line;          // for provenance
  codegen::InputSource inputs = {};  // of the programs that are checked and timed
};

// What a search gives, of schedules or of a user's parameters.
struct SearchResult {
  std::string workload, platform, source;
  std::uint64_t seed = 1;
  std::vector<datasets::Trial> trials;                 // all that are recorded, in order
  std::vector<std::pair<std::int64_t, double>> curve;  // search/tuning.h
  search::TimeSpent time;                              // of this call
  std::string model;                                   // the model that guided, for people
  std::filesystem::path folder;
  std::string known_since;  // date of the answer if it is the library's, without a search; else ""
  bool complete = false;    // false: stopped; the same request continues it
  std::string failure;      // why there is no answer, if the search is complete; else ""
};

struct TuneResult : SearchResult {
  std::optional<Answer> answer;
  std::optional<double> peak_gflops;  // of the platform, if there is an answer
  std::vector<search::Build> builds;  // by every pipeline
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
// The same; its model is for others of these resources, too, and its measurer, which stops what is far slower than the
// fastest so far of the workload, unless `watch` is set.
TuneResult tune(const TuneRequest& request, SearchResources& resources, base::Monitor& monitor);

// A line for people if the workload sums products of bytes and the target has no dot products of them; "" otherwise.
std::string why_bytes_are_slow(const codegen::Workload& workload, const codegen::Target& target);
// A hash of all settings that decide what is searched.
std::string settings_hash(const TuneRequest& request);

// A result's answer, of which there is one, as a library keeps it.
struct KnownAnswer known_answer(const TuneResult& result, const TuneRequest& request);

// The library's answer alone, if there is one that tune would return.
std::optional<TuneResult> known_result(const TuneRequest& request, base::Monitor& monitor);

// The search alone, round by round, to interleave several (study/flows/tune_all.h). It does not ask the library for the
// answer itself.
class TuneSession {
 public:
  // UserError and Stopped as tune.
  TuneSession(TuneRequest request, SearchResources& resources, base::Monitor& monitor);
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
  // The part of the programs to build in the end that the rest of the budget is enough for: 0 to 1.
  double part_in_time() const;
  // Builds and checks the result, if it is complete, writes best.json, and records it in the library. `part`, 0 to 1:
  // of the programs that TuneRequest::rebuild names, rounded up, for a kernel that matters less.
  TuneResult finish(bool complete, base::Monitor& monitor, double part = 1);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// {"workload":...,"platform":...,"trials":...,"best":{...},"curve":[[trial,seconds],...],...}
base::Document to_document(const TuneResult& result);

// Parts of all searches: settings without what a search starts from; what documents of results begin with; their
// "complete" and where they are; seconds in total and by part, and the number of trials measured in them.
search::TuningSettings settings_of_search(const TuneRequest& request);
base::Document begun_document(const SearchResult& result, base::Document best);
void put_state(const SearchResult& result, base::Document& document);
base::Document time_document(const search::TimeSpent& spent);
// Writes best.json in the run's folder.
void keep(const base::Document& result, const std::filesystem::path& folder);

}  // namespace graft::study
