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

// One of the best trials as built by one of LLVM's pipelines, measured in turn with the others at the end of the run.
struct Build {
  datasets::Trial trial;  // of the journal, but with this build's measurement
  // A name in codegen::pipelines(); "": the target's pipeline to search with. Recorded with "", it is a repeated
  // check of the trial, which replaces the trial's own outcome.
  std::string pipeline;
};

// What a search's model said of a candidate before it was measured.
struct Prediction {
  double score = 0;               // higher is faster; comparable among the candidates of one round
  std::optional<double> seconds;  // the time that goes with it, where times were known to tell by
};
using Predictions = std::map<std::uint64_t, Prediction>;  // by codegen::hash of the candidate

// How two requests, flat maps, differ, by the first key that does: "with shots 20, not 1", "without space; now it is of
// the contents 300fafcab5457e13"; "" if they are equal.
std::string difference(const base::Document& known, const base::Document& asked);

class RunDirectory {
 public:
  // Opens or makes it. `request` is a flat map of what identifies the run (command, platform, workloads, seed, ...): an
  // existing run must have been made with an equal one, or UserError names the first key that differs, both values, and
  // the remedy. Settings that may grow (the number of trials) are not part of it. `context` (versions, host) and the
  // platform's description are kept from the first call.
  RunDirectory(const std::filesystem::path& path, const base::Document& request, const base::Document& context,
               const std::string& platform_yaml = {});

  const std::filesystem::path& path() const { return path_; }
  const base::Document& request() const { return request_; }
  datasets::Journal& journal() { return journal_; }
  const datasets::Journal& journal() const { return journal_; }
  // The recorded measurement of an equal candidate.
  const datasets::Trial* recorded(std::uint64_t candidate_hash) const;
  void append(datasets::Trial trial);
  // The builds recorded last; none at first.
  const std::vector<Build>& builds() const { return builds_; }
  // Replaces those recorded before; on disk when it returns. They must be of trials of this run's journal.
  void record(std::vector<Build> builds);
  // Besides those recorded before, in place of those of the same candidates; on disk when it returns. Nothing that a
  // search does depends on them.
  void record_predictions(const Predictions& predictions);

 private:
  std::filesystem::path path_;
  base::Document request_;
  base::FileLock lock_;
  datasets::Journal journal_;
  std::unordered_map<std::uint64_t, std::size_t> by_candidate_;  // position in the journal's trials
  std::vector<Build> builds_;
  Predictions predictions_;
};

// The request of the run there; nullopt if there is no run.
std::optional<base::Document> recorded_request(const std::filesystem::path& path);

// The contents of a run directory, without locking it. UserError if it is not one.
struct RunContent {
  base::Document request;
  base::Document platform_yaml;  // the platform's description, verbatim; null: the run has none (earlier versions)
  datasets::JournalContent journal;
  std::vector<Build> builds;
  Predictions predictions;  // of candidates; none where no model was asked, and in runs of earlier versions
};
RunContent read_run(const std::filesystem::path& path);

// Whether a command of the user's measured (tasks/command.h): its points are rows of a table.
bool is_of_command(const base::Document& request);

// The platform as the run describes it (one of a command by its name alone), independent of later changes to its YAML
// file; by its name if the run has no description. UserError if this host cannot provide it (tasks/platform.h).
tasks::Platform platform_of(const RunContent& run);

// A whole run as one text, and a folder made from such a text: so that a team's ranks begin with the same one.
std::string packed_run(const std::filesystem::path& path);
void unpack_run(std::string_view text, const std::filesystem::path& path);

// The fastest `ok` trials of a workload with distinct programs, fastest first, at most `count`.
std::vector<datasets::Trial> best_trials(const std::vector<datasets::Trial>& trials, const codegen::Workload& workload,
                                         std::size_t count);
// How to build the fastest kernels known of a workload, distinct programs, at most `count`: the `ok` builds, fastest
// first, then the trials (pipeline ""). A trial never beats a build: builds were timed side by side, and the least of
// hundreds of trials, spread over minutes, is also the luckiest.
std::vector<Build> best_builds(const std::vector<Build>& builds, const std::vector<datasets::Trial>& trials,
                               const codegen::Workload& workload, std::size_t count);
// The fastest `ok` trial of a workload; nullopt if there is none.
std::optional<datasets::Trial> best_trial(const std::vector<datasets::Trial>& trials,
                                          const codegen::Workload& workload);

}  // namespace graft::search
