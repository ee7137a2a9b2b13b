#include "study/flows/tune_all.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "base/duration.h"
#include "base/error.h"
#include "base/shortened.h"
#include "search/scheduler.h"

namespace graft::study {

namespace {

// Ends those that matter least: together a share of the sum that is negligible.
void end_negligible(std::vector<search::SharedTask>& tasks, double share) {
  std::vector<std::size_t> order;
  double sum = 0;
  const auto seconds = [&](std::size_t t) { return tasks[t].weight * tasks[t].best_seconds.back(); };
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    if (tasks[t].weight == 0 || tasks[t].best_seconds.empty() || !std::isfinite(seconds(t))) continue;
    order.push_back(t);
    sum += seconds(t);
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return seconds(a) < seconds(b); });
  double left = share * sum;
  for (const std::size_t t : order) {
    left -= seconds(t);
    if (left < 0) return;
    tasks[t].ended = true;
  }
}

double best_of(const search::SharedTask& task) {
  return task.best_seconds.empty() ? std::numeric_limits<double>::infinity() : task.best_seconds.back();
}

// The task's time by that of an average one, at most 1; 1 if one of them is not known.
double part_of_average(const search::SharedTask& task, const std::vector<search::SharedTask>& tasks) {
  double sum = 0, count = 0;
  for (const search::SharedTask& each : tasks) {
    if (each.weight == 0) continue;
    sum += each.weight * best_of(each);
    ++count;
  }
  return std::isfinite(sum) ? std::min(1.0, task.weight * best_of(task) * count / sum) : 1;
}

std::vector<SearchState> states_of(const std::vector<search::SharedTask>& tasks,
                                   const std::vector<std::optional<TuneSession>>& sessions) {
  std::vector<SearchState> states;
  for (std::size_t t = 0; t < tasks.size(); ++t)
    states.push_back({sessions[t] ? sessions[t]->trials() : 0, tasks[t].best_seconds, !sessions[t].has_value()});
  return states;
}

}  // namespace

TuneAllResult tune_all(const TuneAllRequest& request, base::Monitor& monitor) {
  assert(!request.searches.empty() && request.weights.size() == request.searches.size());
  for (const double weight : request.weights) {
    if (!(weight > 0 || (weight == 0 && request.reweigh)))
      throw base::UserError("weights", fmt::format("expected numbers above 0, got {:g}", weight));
  }
  const auto begin = std::chrono::steady_clock::now();
  SearchResources resources;  // the model is loaded once
  std::vector<std::optional<TuneResult>> known;
  std::vector<std::optional<TuneSession>> sessions;
  std::vector<search::SharedTask> tasks(request.searches.size());
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    tasks[t].weight = request.weights[t];
    known.push_back(known_result(request.searches[t], monitor));
    tasks[t].ended = known.back().has_value();
    if (tasks[t].ended) {
      tasks[t].best_seconds.push_back(known.back()->answer->seconds());
      sessions.emplace_back();
    } else {
      sessions.emplace_back(std::in_place, request.searches[t], resources, monitor);
    }
  }

  std::int64_t trials = 0;
  const auto sum = [&] {
    double seconds = 0;
    for (const search::SharedTask& task : tasks)
      if (task.weight > 0) seconds += task.weight * best_of(task);
    return seconds;
  };
  bool all_begun = false;
  const auto begun = [&] {
    all_begun = true;
    if (request.reweigh) {
      std::vector<double> best;
      for (const search::SharedTask& task : tasks) best.push_back(best_of(task));
      const std::vector<double> weights = request.reweigh(best);
      for (std::size_t t = 0; t < tasks.size(); ++t) {
        tasks[t].weight = weights[t];
        if (weights[t] == 0) tasks[t].ended = true;
      }
    }
    end_negligible(tasks, request.negligible);
  };
  while (trials < request.trials && !monitor.stop_requested()) {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    if (request.budget_seconds > 0 && spent.count() > request.budget_seconds) break;
    const std::int64_t without = std::count_if(tasks.begin(), tasks.end(), [](const search::SharedTask& task) {
      return !task.ended && task.best_seconds.empty();
    });
    if (without == 0 && !all_begun) begun();
    const auto next = search::next_task(tasks);
    if (!next) break;
    TuneSession& session = *sessions[*next];
    const std::int64_t before = session.trials();
    // All have a first round, however few trials there are.
    std::int64_t most = request.trials - trials;
    if (without > 0) most = std::max<std::int64_t>(most / without, 1);
    if (without > 0 && request.first_trials > 0) most = std::min(most, request.first_trials);
    base::QuietMonitor quiet(monitor);
    tasks[*next].ended = !session.step(most, quiet);
    trials += session.trials() - before;
    if (session.trials() > before) tasks[*next].best_seconds.push_back(session.best_seconds());
    const std::string name = request.names.empty() ? request.searches[*next].workload.text() : request.names[*next];
    monitor.progress(fmt::format("trials\tsum {}, {}", base::seconds_text(sum()), base::shortened(name)), trials,
                     request.trials);
    if (request.watch) request.watch(states_of(tasks, sessions));
  }
  TuneAllResult result;
  result.all_begun = std::none_of(tasks.begin(), tasks.end(), [](const search::SharedTask& task) {
    return !task.ended && task.best_seconds.empty();
  });
  if (!all_begun) begun();
  result.complete = !monitor.stop_requested();
  for (std::size_t t = 0; t < sessions.size(); ++t) {
    if (tasks[t].weight == 0) {
      result.searches.emplace_back().complete = true;
      continue;
    }
    const double part = request.negligible > 0 ? part_of_average(tasks[t], tasks) : 1;
    result.searches.push_back(known[t] ? std::move(*known[t]) : sessions[t]->finish(result.complete, monitor, part));
    const auto& answer = result.searches.back().answer;
    result.weighted_seconds += tasks[t].weight * (answer ? answer->seconds() : std::numeric_limits<double>::infinity());
    monitor.progress("checked", std::int64_t(t) + 1, std::int64_t(sessions.size()));
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
