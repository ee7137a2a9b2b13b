#include <fmt/format.h>

#include <chrono>

#include "base/error.h"
#include "base/installation.h"
#include "base/process.h"
#include "study/experiments/runs.h"

namespace graft::study {
namespace {

constexpr std::chrono::minutes most_time{60};  // of one timing of all layers

// What graft bench kernels says of runs: graft's and the baselines' best times, as the searches of one trial. A
// baseline that does not fit a workload, or is wrong there, is not in it.
std::vector<search::Searched> timed(const std::vector<std::filesystem::path>& runs, const std::string& method,
                                    const std::string& platform, std::int64_t timing,
                                    const std::vector<std::string>& baselines) {
  const auto list = [](const auto& values) {
    base::Document out = base::Document::list();
    for (const auto& value : values) out.push(std::string(value));
    return out;
  };
  base::Document request = base::Document::map();
  request.set("runs", list(runs)).set("baselines", list(baselines)).set("repetitions", 10).set("threads", 1);
  request.set("trials", 0).set("rebuild", false).set("minimum_seconds", 5e-3).set("slow_seconds", 0.2);
  request.set("what", "kernels").set("json", true).set("quiet", true).set("seed", timing);
  const std::string program = base::own_program("graft-bench");
  const base::Finished finished = base::run_process({program, request.to_json()}, most_time);
  if (finished.exit_code != 0) throw base::Failure(fmt::format("{}: {}", program, finished.err));
  const base::Document document = base::parse_json(finished.out, "graft-bench");
  std::vector<search::Searched> searches;
  for (const base::Document& row : document.at("rows").as_list()) {
    for (const auto& [name, times] : row.at("timings").as_map()) {
      if (name == "peak" || !times.at("right").as_bool()) continue;
      searches.push_back({name == "graft" ? method : name,
                          row.at("name").as_string(),
                          platform,
                          timing,
                          {times.at("best_seconds").as_number()}});
    }
  }
  return searches;
}

}  // namespace

std::vector<search::Searched> timed_layers(const Experiment& experiment, const std::string& method,
                                           const std::string& platform, const std::vector<std::filesystem::path>& runs,
                                           base::Monitor& monitor) {
  std::vector<search::Searched> all;
  for (std::int64_t timing = 1; timing <= experiment.seeds; ++timing) {
    base::check_stop(monitor);
    monitor.progress("timing layers", timing - 1, experiment.seeds);
    const bool first = experiment.methods.front().name == method;
    // Baselines are timed next to the first method alone.
    std::vector<search::Searched> of_one = timed(runs, method, platform, timing, experiment.baselines);
    if (!first) std::erase_if(of_one, [&](const search::Searched& search) { return search.method != method; });
    all.insert(all.end(), of_one.begin(), of_one.end());
  }
  return all;
}

}  // namespace graft::study
