// Private to this folder: a search that looks at intervals of some trials whether the machine is still as fast as it
// was. What another machine measured becomes history.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/monitor.h"
#include "search/run_directory.h"
#include "study/knowledge/history.h"

namespace graft::study {

struct Watched {
  std::filesystem::path out;  // of the run
  std::int64_t trials = 0;    // on all machines together
  std::int64_t watch = 0;     // trials from one look to the next
};

// begin(folders, trials): a pointer to the session in `out` with these folders as further history, as of TuneSession:
// recorded, step, machine_changed and finish; the folder is free once it is gone. Returns what `finish` does.
template <class Begin>
auto searched_and_watched(const Watched& watched, const Begin& begin, base::Monitor& monitor) {
  for (;;) {
    const std::vector<std::filesystem::path> before = folders_before(watched.out);
    std::int64_t trials = watched.trials;
    for (const std::filesystem::path& folder : before)
      trials -= std::int64_t(search::read_run(folder).journal.trials.size());
    trials = std::max<std::int64_t>(trials, 1);
    auto session = begin(before, trials);
    std::int64_t looked = 0;  // recorded trials at the last look; a continued run begins with one
    bool changed = false, over = false;
    while (!over && !monitor.stop_requested()) {
      if (session->recorded() - looked >= watched.watch) {
        looked = session->recorded();
        changed = session->machine_changed(monitor);
        if (changed) break;
      }
      over = !session->step(trials, monitor);
    }
    if (!changed) return session->finish(!monitor.stop_requested(), monitor);
    session.reset();
    const std::filesystem::path kept = next_before(watched.out);
    std::filesystem::rename(watched.out, kept);
    monitor.note(
        fmt::format("the machine is another one: programs are not as fast as they were; what was measured is "
                    "kept as {}, learnt from, and its best are measured again",
                    kept.string()));
  }
}

}  // namespace graft::study
