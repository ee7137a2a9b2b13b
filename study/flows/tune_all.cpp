#include "study/flows/tune_all.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <limits>

#include "base/duration.h"
#include "base/error.h"
#include "search/scheduler.h"

namespace graft::study {

TuneAllResult tune_all(const TuneAllRequest& request, base::Monitor& monitor) {
  assert(!request.searches.empty() && request.weights.size() == request.searches.size());
  for (const double weight : request.weights) {
    if (!(weight > 0)) throw base::UserError("weights", fmt::format("expected numbers above 0, got {:g}", weight));
  }
  SearchResources resources;  // the model is loaded once
  std::vector<TuneSession> sessions;
  for (const TuneRequest& search : request.searches) sessions.emplace_back(search, resources, monitor);
  std::vector<search::SharedTask> tasks(sessions.size());
  for (std::size_t t = 0; t < tasks.size(); ++t) tasks[t].weight = request.weights[t];

  std::int64_t trials = 0;
  const auto sum = [&] {
    double seconds = 0;
    for (std::size_t t = 0; t < sessions.size(); ++t) seconds += tasks[t].weight * sessions[t].best_seconds();
    return seconds;
  };
  while (trials < request.trials && !monitor.stop_requested()) {
    const auto next = search::next_task(tasks);
    if (!next) break;
    TuneSession& session = sessions[*next];
    const std::int64_t before = session.trials();
    // All have a first round, however few trials there are.
    std::int64_t most = request.trials - trials;
    const std::int64_t without = std::count_if(tasks.begin(), tasks.end(), [](const search::SharedTask& task) {
      return !task.ended && task.best_seconds.empty();
    });
    if (without > 0) most = std::max<std::int64_t>(most / without, 1);
    base::QuietMonitor quiet(monitor);
    tasks[*next].ended = !session.step(most, quiet);
    trials += session.trials() - before;
    if (session.trials() > before) tasks[*next].best_seconds.push_back(session.best_seconds());
    monitor.progress(
        fmt::format("trials\t{}, sum {}", request.searches[*next].workload.text(), base::seconds_text(sum())), trials,
        request.trials);
  }
  TuneAllResult result;
  result.complete = !monitor.stop_requested();
  for (std::size_t t = 0; t < sessions.size(); ++t) {
    result.searches.push_back(sessions[t].finish(result.complete, monitor));
    const auto& answer = result.searches.back().answer;
    result.weighted_seconds +=
        request.weights[t] * (answer ? answer->seconds() : std::numeric_limits<double>::infinity());
  }
  return result;
}

base::Document to_document(const TuneAllResult& result, const TuneAllRequest& request) {
  base::Document searches = base::Document::list();
  std::int64_t trials = 0;
  for (std::size_t t = 0; t < result.searches.size(); ++t) {
    base::Document search = base::Document::map().set("weight", request.weights[t]);
    for (const auto& [key, value] : to_document(result.searches[t]).as_map()) search.set(key, value);
    if (!result.searches[t].failure.empty()) search.set("failure", result.searches[t].failure);
    searches.push(std::move(search));
    trials += std::int64_t(result.searches[t].trials.size());
  }
  return base::Document::map()
      .set("weighted_seconds", result.weighted_seconds)
      .set("trials", trials)
      .set("complete", result.complete)
      .set("searches", std::move(searches));
}

}  // namespace graft::study
