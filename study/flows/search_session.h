// A search of one space by rounds, in a run's folder: of tune, tune-all, adapt, collect and validate alike. It makes
// what candidates come to, and borrows the rest, so that several searches share a model and a measurer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/monitor.h"
#include "codegen/space/space.h"
#include "search/explorer.h"
#include "search/programs.h"
#include "search/run_directory.h"
#include "search/tuning.h"
#include "study/knowledge/search_resources.h"
#include "tasks/measurer.h"
#include "tasks/platform.h"

namespace graft::study {

// What requests of searches and of replays have in common.
template <class Request>
search::TuningSettings settings_of_explorer(const Request& request) {
  search::TuningSettings settings;
  settings.explorer = request.explorer;
  settings.selection = request.selection;
  settings.trials = request.trials;
  settings.batch = int(request.batch);
  settings.seed = request.seed;
  settings.threads = request.threads;
  return settings;
}

class SearchSession {
 public:
  struct Borrowed {
    const tasks::Platform& platform;
    tasks::Measurer& measurer;
    search::RunDirectory& run;
    // What guides the search, and what it sees of programs; null: nothing does.
    const meta::CostModel* model = nullptr;
    const features::Encoding* encoding = nullptr;
  };
  // All that is borrowed must outlive the session.
  SearchSession(codegen::Space space, const Borrowed& borrowed)
      : borrowed_(borrowed), space_(std::move(space)), programs_(borrowed.platform.target, borrowed.encoding) {}
  SearchSession(const SearchSession&) = delete;
  SearchSession& operator=(const SearchSession&) = delete;

  const codegen::Space& space() const { return space_; }
  search::Programs& programs() { return programs_; }

  // Once, before what follows. `explorer`: instead of the one that the settings name.
  void begin(const search::TuningSettings& settings, std::unique_ptr<search::Explorer> explorer = nullptr);
  search::Tuning& tuning() { return *tuning_; }
  const search::Tuning& tuning() const { return *tuning_; }
  // Rounds until there are this many trials in all, or the search is over (study/flows/rounds.h); false if a stop was
  // asked for.
  bool run(std::int64_t trials, base::Monitor& monitor);
  // Measures the fastest again, and returns whether the machine is another one now (study/knowledge/history.h).
  bool machine_changed(base::Monitor& monitor);
  // The fastest trial. Failure with the remedy if none was ok.
  datasets::Trial best() const;

 private:
  Borrowed borrowed_;
  codegen::Space space_;
  search::Programs programs_;
  std::optional<search::Tuning> tuning_;
};

}  // namespace graft::study
