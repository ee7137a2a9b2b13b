#include "study/flows/rounds.h"

#include <fmt/format.h>

#include <map>

#include "datasets/failures.h"

namespace graft::study {

void note_continued(const std::filesystem::path& run, std::int64_t trials, base::Monitor& monitor) {
  if (trials > 0) monitor.note(fmt::format("{}: continues, {} trials are recorded", run.string(), trials));
}

bool run_rounds(search::Tuning& tuning, std::int64_t trials, base::Monitor& monitor) {
  while (tuning.step(monitor)) {
  }
  if (std::int64_t(tuning.trials().size()) >= trials) return true;
  if (monitor.stop_requested()) return false;
  if (tuning.hopeless()) return true;
  if (tuning.settled() || tuning.out_of_time()) {
    monitor.note(fmt::format("{} after {} of {} trials",
                             tuning.settled() ? "nothing has become faster for long: ended" : "the time is up",
                             tuning.trials().size(), trials));
    return true;
  }
  monitor.note(fmt::format("the space has no more candidates after {} of {} trials", tuning.trials().size(), trials));
  return true;
}

namespace {

// What may help where most programs end so.
std::string remedy_for(datasets::Status status, const tasks::Platform& platform) {
  const bool on_board = platform.device->place() == tasks::Place::elsewhere;
  switch (status) {
    case datasets::Status::wrong_result:
    case datasets::Status::crashed:
      if (on_board)
        return "compare the platform's cpu, features and vector_bits with the machine's (graft platform probe)";
      return "check this machine with graft doctor";
    case datasets::Status::does_not_compile:
      return "check this machine with graft doctor";
    case datasets::Status::does_not_lower:
      return "check the space (graft inspect WORKLOAD --space)";
    case datasets::Status::timed_out:
    case datasets::Status::slower_than_limit:
      return "allow more time (`timeout`) or choose a smaller workload";
    case datasets::Status::out_of_memory:
      return "choose a smaller workload";
    case datasets::Status::unsupported:
    case datasets::Status::no_time:
    case datasets::Status::not_allowed:
    case datasets::Status::ok:
      break;
  }
  return "choose another platform (graft platform list)";
}

// `remedy`: by the status of the most frequent failure.
template <class Remedy>
std::string nothing_ok(std::span<const datasets::Trial> trials, const std::string& platform, const char* what,
                       const std::filesystem::path& run, Remedy remedy) {
  if (trials.empty())
    return fmt::format("{}: nothing was measured: the budget ended before, or the space has no candidate", platform);
  datasets::FailureCounts failures;
  for (const datasets::Trial& trial : trials) failures.add(trial.measurement);
  const datasets::FailureKind most = failures.kinds().front();
  return fmt::format("{}: no {} was ok, {} of {} ended as {}; {}, see graft inspect {}", platform, what, most.count,
                     trials.size(), datasets::to_text(most), remedy(most.status), run.string());
}

}  // namespace

std::string nothing_ok_text(std::span<const datasets::Trial> trials, const tasks::Platform& platform,
                            const std::filesystem::path& run) {
  return nothing_ok(trials, platform.name, "program", run,
                    [&](datasets::Status status) { return remedy_for(status, platform); });
}

std::string no_configuration_ok_text(std::span<const datasets::Trial> trials, const std::string& platform,
                                     const std::filesystem::path& run) {
  return nothing_ok(trials, platform, "configuration", run, [](datasets::Status) { return "run the command by hand"; });
}

base::Document status_counts(std::span<const datasets::Trial> trials) {
  std::map<datasets::Status, std::int64_t> counts;
  for (const datasets::Trial& trial : trials) ++counts[trial.measurement.status];
  base::Document out = base::Document::map();
  for (const auto& [status, count] : counts) out.set(std::string(datasets::name_of(status)), count);
  return out;
}

}  // namespace graft::study
