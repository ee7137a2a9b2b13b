// A run on disk: what was asked for and on which platform (run.json), what was measured (journal.jsonl), what a model
// expected of it (predictions.json), how the best was built in the end (builds.json), and a lock, so that two runs
// never write one directory. The same command continues it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/document.h"
#include "base/files.h"
#include "datasets/journal.h"
#include "tasks/platform.h"

namespace graft::search {

// One of the best trials as one of LLVM's pipelines builds it, measured beside the others at the end of the run.
struct Build {
  datasets::Trial trial;  // of the journal, but with this build's measurement
  // A name in codegen::pipelines(); "": the target's pipeline to search with. Recorded with "", it is the trial checked
  // again: what its program did then, in place of what the trial did.
  std::string pipeline;
};

// What a search's model said of a candidate before it was measured.
struct Prediction {
  double score = 0;               // higher is faster; comparable among the candidates of one round
  std::optional<double> seconds;  // the time that goes with it, where times were known to tell by
};
using Predictions = std::map<std::uint64_t, Prediction>;  // by codegen::hash of the candidate

class RunDirectory {
 public:
  // Opens or makes it. `request` is a flat map of what identifies the run (command, platform, workloads, seed, ...): an
  // existing run must have been made with an equal one, or UserError names the first key that differs, both values, and
  // the remedy. What may grow (the number of trials) is not part of it. `context` (versions, host) and the platform's
  // description are kept from the first.
  RunDirectory(const std::filesystem::path& path, const base::Document& request, const base::Document& context,
               const std::string& platform_yaml = {});

  const std::filesystem::path& path() const { return path_; }
  const base::Document& request() const { return request_; }
  datasets::Journal& journal() { return journal_; }
  const datasets::Journal& journal() const { return journal_; }
  // The recorded measurement of an equal candidate.
  const datasets::Trial* recorded(std::uint64_t candidate_hash) const;
  void append(datasets::Trial trial);
  // Those recorded last; none at first.
  const std::vector<Build>& builds() const { return builds_; }
  // In place of those recorded before; on disk when it returns. They must be of trials of this run's journal.
  void record(std::vector<Build> builds);
  // Besides those recorded before, in place of those of the same candidates; on disk when it returns. Nothing that a
  // search does depends on them.
  void record(const Predictions& predictions);

 private:
  std::filesystem::path path_;
  base::Document request_;
  base::FileLock lock_;
  datasets::Journal journal_;
  std::unordered_map<std::uint64_t, std::size_t> by_candidate_;  // position in the journal's trials
  std::vector<Build> builds_;
  Predictions predictions_;
};

// What the run there was asked for; nullopt where there is no run.
std::optional<base::Document> recorded_request(const std::filesystem::path& path);

// What a run directory holds, without locking it. UserError when it is none.
struct RunContent {
  base::Document request;
  base::Document platform_yaml;  // the platform's description, verbatim; null: the run keeps none (of earlier versions)
  datasets::JournalContent journal;
  std::vector<Build> builds;
  Predictions predictions;  // of candidates; none where no model was asked, and in runs of earlier versions
};
RunContent read_run(const std::filesystem::path& path);

// The platform as the run describes it, whatever became of its YAML file since; by its name where the run keeps no
// description. UserError when this host cannot have it (tasks/platform.h).
tasks::Platform platform_of(const RunContent& run);

// All of a run in one text, and a folder made of such a text: how a team's ranks begin with the same one.
std::string packed_run(const std::filesystem::path& path);
void unpack_run(std::string_view text, const std::filesystem::path& path);

// The fastest `ok` trials of a workload with distinct programs, fastest first, at most `count`.
std::vector<datasets::Trial> best_trials(const std::vector<datasets::Trial>& trials, const codegen::Workload& workload,
                                         std::size_t count);
// How to build the fastest kernel known of a workload: the fastest `ok` build; where there is none, the fastest trial
// (pipeline ""). A trial never beats a build: builds were timed side by side, and the least of hundreds of trials,
// spread over minutes, is also the luckiest. nullopt if there is neither.
std::optional<Build> best_build(const std::vector<Build>& builds, const std::vector<datasets::Trial>& trials,
                                const codegen::Workload& workload);
// The fastest `ok` trial of a workload; nullopt if there is none.
std::optional<datasets::Trial> best_trial(const std::vector<datasets::Trial>& trials,
                                          const codegen::Workload& workload);

}  // namespace graft::search
