#include "study/flows/tune_all.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "base/duration.h"
#include "base/error.h"
#include "base/shortened.h"
#include "base/text.h"
#include "search/scheduler.h"
#include "study/flows/kernel_answer.h"

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

constexpr double most_reserved = 0.4, most_for_later = 0.2;  // of the time

class SharedSearches {
 public:
  SharedSearches(const TuneAllRequest& request, base::Monitor& monitor)
      : request_(request), monitor_(monitor), tasks_(request.searches.size()), given_(request.deadline.left()) {
    for (std::size_t t = 0; t < tasks_.size(); ++t) {
      tasks_[t].weight = request.weights[t];
      known_.push_back(request.known.empty() ? known_result(request.searches[t], monitor) : request.known[t]);
      tasks_[t].ended = known_.back().has_value();
      if (tasks_[t].ended) {
        tasks_[t].best_seconds.push_back(known_.back()->answer->seconds());
        sessions_.emplace_back();
      } else {
        sessions_.emplace_back(std::in_place, request.searches[t], resources_, monitor);
      }
    }
    note_continued_runs();
  }

  TuneAllResult run() {
    if (request_.deadline.exists()) {
      give_each(1);
      result_.first_seconds = watch_.seconds();
    }
    if (request_.first_trials > 0) {
      const std::int64_t alive =
          std::count_if(tasks_.begin(), tasks_.end(), [](const auto& task) { return !task.ended; });
      const std::int64_t share = request_.trials / std::max<std::int64_t>(1, alive);
      give_each(std::clamp<std::int64_t>(share, 1, request_.first_trials));
    }
    search();
    result_.all_begun = std::none_of(tasks_.begin(), tasks_.end(), [](const search::SharedTask& task) {
      return !task.ended && task.best_seconds.empty();
    });
    result_.out_of_time = is_over() && trials_ < request_.trials && search::next_task(tasks_).has_value();
    name_barely_searched();
    if (!begun_) begin();
    result_.search_seconds = watch_.seconds() - result_.first_seconds;
    finish();
    result_.finish_seconds = watch_.seconds() - result_.first_seconds - result_.search_seconds;
    result_.seconds_per_trial = seconds_per_trial();
    return std::move(result_);
  }

 private:
  // One line for all of them.
  void note_continued_runs() const {
    std::int64_t trials = 0, runs = 0;
    for (const std::optional<TuneSession>& session : sessions_) {
      if (!session || session->recorded() == 0) continue;
      trials += session->recorded();
      ++runs;
    }
    if (runs > 0)
      monitor_.note(fmt::format("{} of {} continued, {} trials are recorded", base::counted(runs, "run"),
                                sessions_.size(), trials));
  }
  bool is_over() const { return request_.deadline.left() <= reserve(); }
  double seconds_per_trial() const { return trials_ > 0 ? step_seconds_ / double(trials_) : 0; }

  // Seconds for what comes after the searches.
  double reserve() const {
    if (!request_.deadline.exists()) return 0;
    double programs = later() > 0 ? request_.later_programs : 0;
    for (std::size_t t = 0; t < tasks_.size(); ++t)
      if (sessions_[t] && tasks_[t].weight > 0) programs += rebuilt(t) * trials_per_rebuilt;
    return std::min(most_reserved * given_, programs * seconds_per_trial());
  }
  // What the caller makes later takes; nothing if that would take too much of the time: then it is left out.
  double later() const {
    const double seconds = request_.later_programs * seconds_per_trial();
    return seconds <= most_for_later * given_ ? seconds : 0;
  }
  double part_of(std::size_t t) const { return request_.negligible > 0 ? part_of_average(tasks_[t], tasks_) : 1; }
  double rebuilt(std::size_t t) const { return std::ceil(double(request_.searches[t].rebuild) * part_of(t)); }

  // Trials of each search until it has this many, or one more for one without a result when the time is over.
  void give_each(std::int64_t trials) {
    for (std::size_t t = 0; t < tasks_.size(); ++t) {
      constexpr std::int64_t most_without = 8;  // for a first program that is ok
      const auto wants = [&] {
        const bool has_any = std::isfinite(best_of(tasks_[t]));
        const std::int64_t own = sessions_[t]->trials();
        return has_any ? own < trials && !is_over() : own < std::max(trials, most_without);
      };
      while (!tasks_[t].ended && !monitor_.stop_requested() && wants())
        step(t, std::max<std::int64_t>(1, trials - sessions_[t]->trials()));
    }
  }

  void search() {
    while (trials_ < request_.trials && !monitor_.stop_requested() && !is_over()) {
      const std::int64_t without = std::count_if(tasks_.begin(), tasks_.end(), [](const search::SharedTask& task) {
        return !task.ended && task.best_seconds.empty();
      });
      if (without == 0 && !begun_) begin();
      const auto next = search::next_task(tasks_);
      if (!next) break;
      // All have a first round, however few trials there are.
      std::int64_t most = request_.trials - trials_;
      if (without > 0) most = std::max<std::int64_t>(most / without, 1);
      step(*next, most);
    }
  }

  void step(std::size_t t, std::int64_t most) {
    TuneSession& session = *sessions_[t];
    const std::int64_t before = session.trials();
    const base::Stopwatch watch;
    base::QuietMonitor quiet(monitor_);
    // What has a result is not waited for.
    const bool may_end = std::isfinite(best_of(tasks_[t]));
    base::UntilMonitor until(quiet, request_.deadline, may_end ? reserve() : -std::numeric_limits<double>::infinity());
    const bool goes_on = session.step(most, until);
    tasks_[t].ended = !goes_on && !(until.stop_requested() && !monitor_.stop_requested());
    step_seconds_ += watch.seconds();
    trials_ += session.trials() - before;
    if (session.trials() > before) tasks_[t].best_seconds.push_back(session.best_seconds());
    monitor_.progress(fmt::format("trials\tsum {}, {}", base::seconds_text(sum()), base::shortened(name_of(t))),
                      trials_, request_.trials);
    if (request_.watch) request_.watch(states_of(tasks_, sessions_));
  }

  std::string name_of(std::size_t t) const {
    return request_.names.empty() ? request_.searches[t].workload.text() : request_.names[t];
  }

  double sum() const {
    double seconds = 0;
    for (const search::SharedTask& task : tasks_)
      if (task.weight > 0) seconds += task.weight * best_of(task);
    return seconds;
  }

  // All had their first trials.
  void begin() {
    begun_ = true;
    if (request_.reweigh) {
      std::vector<double> best;
      for (const search::SharedTask& task : tasks_) best.push_back(best_of(task));
      const std::vector<double> weights = request_.reweigh(best);
      for (std::size_t t = 0; t < tasks_.size(); ++t) {
        tasks_[t].weight = weights[t];
        if (weights[t] == 0) tasks_[t].ended = true;
      }
    }
    end_negligible(tasks_, request_.negligible);
  }

  void name_barely_searched() {
    if (!request_.deadline.exists()) return;
    std::vector<std::string> names;
    for (std::size_t t = 0; t < tasks_.size(); ++t) {
      if (!sessions_[t] || tasks_[t].ended ||
          sessions_[t]->trials() >= std::max<std::int64_t>(request_.first_trials, 2))
        continue;
      result_.barely.push_back(t);
      names.push_back(name_of(t));
    }
    if (names.empty() || monitor_.stop_requested()) return;
    constexpr std::size_t most_named = 8;
    const std::size_t all = names.size();
    if (all > most_named) names.resize(most_named), names.push_back(fmt::format("{} more", all - most_named));
    monitor_.note(fmt::format(
        "the time was over before the search of {} of {} kernels; they take one of their first programs: {}", all,
        tasks_.size(), fmt::join(names, "; ")));
  }

  // The search that matters most first, as long as there is time to build its best programs again.
  void finish() {
    result_.complete = !monitor_.stop_requested();
    result_.searches.resize(tasks_.size());
    std::vector<std::size_t> order;
    for (std::size_t t = 0; t < tasks_.size(); ++t) {
      order.push_back(t);
      if (tasks_[t].weight == 0) result_.searches[t].complete = true;
    }
    std::erase_if(order, [&](std::size_t t) { return tasks_[t].weight == 0; });
    if (request_.deadline.exists())
      std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return tasks_[a].weight * best_of(tasks_[a]) > tasks_[b].weight * best_of(tasks_[b]);
      });
    std::int64_t done = 0;
    for (const std::size_t t : order) {
      const double takes = rebuilt(t) * trials_per_rebuilt * seconds_per_trial();
      const bool has_time = request_.deadline.left() > later() + takes;
      result_.searches[t] = known_[t] ? std::move(*known_[t])
                                      : sessions_[t]->finish(result_.complete, monitor_, has_time ? part_of(t) : 0);
      const auto& answer = result_.searches[t].answer;
      result_.weighted_seconds +=
          tasks_[t].weight * (answer ? answer->seconds() : std::numeric_limits<double>::infinity());
      monitor_.progress("checked", ++done, std::int64_t(order.size()));
    }
  }

  const TuneAllRequest& request_;
  base::Monitor& monitor_;
  const base::Stopwatch watch_;
  SearchResources resources_;  // the model is loaded once
  std::vector<std::optional<TuneResult>> known_;
  std::vector<std::optional<TuneSession>> sessions_;
  std::vector<search::SharedTask> tasks_;
  const double given_;  // seconds
  std::int64_t trials_ = 0;
  double step_seconds_ = 0;
  bool begun_ = false;
  TuneAllResult result_;
};

}  // namespace

TuneAllResult tune_all(const TuneAllRequest& request, base::Monitor& monitor) {
  assert(!request.searches.empty() && request.weights.size() == request.searches.size());
  for (const double weight : request.weights) {
    if (!(weight > 0 || (weight == 0 && request.reweigh)))
      throw base::UserError("weights", fmt::format("expected numbers above 0, got {:g}", weight));
  }
  return SharedSearches(request, monitor).run();
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
