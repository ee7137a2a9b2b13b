#include "study/experiments/results.h"

#include <cmath>
#include <limits>

#include "base/error.h"

namespace graft::study {
namespace {

// Changes of the best time, [trial, seconds], and the number of trials. Null: no program was ok.
base::Document curve_of(const search::Searched& search) {
  base::Document changes = base::Document::list();
  double before = std::numeric_limits<double>::infinity();
  for (std::size_t t = 0; t < search.best_seconds.size(); ++t) {
    const double now = search.best_seconds[t];
    if (now == before) continue;
    base::Document change = base::Document::list();
    change.push(t + 1).push(now);
    changes.push(std::move(change));
    before = now;
  }
  return changes;
}

search::Searched search_from(const base::Document& document) {
  document.only_keys({"method", "workload", "platform", "seed", "trials", "best"});
  search::Searched search;
  search.method = document.at("method").as_string();
  search.workload = document.at("workload").as_string();
  search.platform = document.at("platform").as_string();
  search.seed = document.at("seed").as_integer();
  const std::int64_t trials = document.at("trials").as_integer();
  constexpr std::int64_t most_trials = 1'000'000;
  if (trials < 1 || trials > most_trials) throw base::UserError(document.place(), "trials: expected 1 to 1,000,000");
  search.best_seconds.assign(std::size_t(trials), std::numeric_limits<double>::infinity());
  for (const base::Document& change : document.at("best").as_list()) {
    const base::Document::List& pair = change.as_list();
    if (pair.size() != 2 || pair[0].as_integer() < 1 || pair[0].as_integer() > trials)
      throw base::UserError(change.place(), "expected [trial, seconds]");
    const double seconds = pair[1].is_null() ? std::numeric_limits<double>::infinity() : pair[1].as_number();
    for (std::size_t t = std::size_t(pair[0].as_integer() - 1); t < search.best_seconds.size(); ++t)
      search.best_seconds[t] = seconds;
  }
  return search;
}

}  // namespace

base::Document to_document(const ExperimentResults& results) {
  base::Document document = base::Document::map();
  document.set("kind", "experiment")
      .set("experiment", results.experiment)
      .set("definition", results.definition)
      .set("quick", results.quick)
      .set("complete", results.complete)
      .set("context", results.context);
  if (!results.evaluation.is_null()) return document.set("evaluation", results.evaluation);
  base::Document searches = base::Document::list();
  for (const search::Searched& search : results.searches) {
    searches.push(base::Document::map()
                      .set("method", search.method)
                      .set("workload", search.workload)
                      .set("platform", search.platform)
                      .set("seed", search.seed)
                      .set("trials", search.best_seconds.size())
                      .set("best", curve_of(search)));
  }
  document.set("searches", std::move(searches));
  if (results.times.empty()) return document;
  base::Document times = base::Document::map();
  for (const auto& [method, time] : results.times) {
    times.set(method, base::Document::map()
                          .set("measured", time.measured)
                          .set("proposing", time.proposing)
                          .set("learning", time.learning)
                          .set("measuring", time.measuring));
  }
  return document.set("times", std::move(times));
}

std::vector<search::Searched> searches_from(const base::Document& list) {
  std::vector<search::Searched> searches;
  for (const base::Document& search : list.as_list()) searches.push_back(search_from(search));
  return searches;
}

ExperimentResults results_from(const base::Document& document) {
  document.only_keys(
      {"kind", "experiment", "definition", "quick", "complete", "context", "searches", "times", "evaluation"});
  ExperimentResults results;
  results.experiment = document.at("experiment").as_string();
  results.definition = document.at("definition").as_string();
  results.quick = document.at("quick").as_bool();
  results.complete = document.at("complete").as_bool();
  results.context = document.at("context");
  if (const base::Document* const evaluation = document.find("evaluation")) results.evaluation = *evaluation;
  if (const base::Document* const searches = document.find("searches")) results.searches = searches_from(*searches);
  if (const base::Document* const times = document.find("times")) {
    for (const auto& [method, time] : times->as_map()) {
      time.only_keys({"measured", "proposing", "learning", "measuring"});
      results.times[method] = {time.at("measured").as_integer(), time.at("proposing").as_number(),
                               time.at("learning").as_number(), time.at("measuring").as_number()};
    }
  }
  return results;
}

}  // namespace graft::study
