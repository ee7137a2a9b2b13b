// A run on disk: what was asked for (run.json), what was measured (journal.jsonl), and a lock, so that two runs never
// write one directory. The same command continues it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/document.h"
#include "base/files.h"
#include "datasets/journal.h"

namespace graft::search {

class RunDirectory {
 public:
  // Opens or makes it. `request` is a flat map of what identifies the run (command, platform, workloads, seed, ...): an
  // existing run must have been made with an equal one, or UserError names the first key that differs, both values, and
  // the remedy. What may grow (the number of trials) is not part of it. `context` (versions, host) is kept from the
  // first.
  RunDirectory(const std::filesystem::path& path, const base::Document& request, const base::Document& context);

  const std::filesystem::path& path() const { return path_; }
  datasets::Journal& journal() { return journal_; }
  const datasets::Journal& journal() const { return journal_; }
  // The recorded measurement of an equal candidate.
  const datasets::Trial* recorded(std::uint64_t candidate_hash) const;
  void append(datasets::Trial trial);

 private:
  std::filesystem::path path_;
  base::FileLock lock_;
  datasets::Journal journal_;
  std::unordered_map<std::uint64_t, std::size_t> by_candidate_;  // position in the journal's trials
};

// What a run directory holds, without locking it. UserError when it is none.
struct RunContent {
  base::Document request;
  datasets::JournalContent journal;
};
RunContent read_run(const std::filesystem::path& path);

// The fastest `ok` trial of a workload; nullopt if there is none.
std::optional<datasets::Trial> best_trial(const std::vector<datasets::Trial>& trials,
                                          const codegen::Workload& workload);

}  // namespace graft::search
