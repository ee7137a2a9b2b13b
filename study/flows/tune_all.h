// Searches several workloads with one budget, such as the layers of a network: each round goes to the search where it
// lowers the weighted sum of times most (search/scheduler.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/document.h"
#include "base/monitor.h"
#include "study/flows/tune.h"

namespace graft::study {

// How a search is while all of them run.
struct SearchState {
  std::int64_t trials = 0;
  std::vector<double> best_seconds;  // after each of its rounds; one if it was known
  bool known = false;
};

struct TuneAllRequest {
  std::vector<TuneRequest> searches;  // their own `trials` are upper bounds
  // What is known of each without a search, if the caller has asked (known_result); empty: it is asked here.
  std::vector<std::optional<TuneResult>> known = {};
  std::vector<double> weights;  // one for each: how often the kernel runs; above 0 (0 goes with `reweigh`)
  // Called once all have had their first trials, with their best times (infinite: none yet): the weights from then on.
  // Searches of weight 0 get no more trials, and their results have no answer.
  std::function<std::vector<double>(const std::vector<double>& best_seconds)> reweigh;
  std::int64_t trials = 0;  // in total
  // For the searches and what follows them; without: no end. Every search gets its first program, however long that
  // takes. So much is left as the programs are expected to take that are built when the searches are over, and
  // `later_programs` more, which the caller makes; fewer of the best are built again if that was too little.
  base::Deadline deadline = {};
  double later_programs = 0;
  std::int64_t first_trials = 0;  // that each gets before any gets more; 0: an even share of all, at most a round
  // Searches whose weighted times are together this share of the sum or less after their first trials get no more. If
  // it is not 0, fewer programs are rebuilt of a search with less than an average part of the sum
  // (TuneRequest::rebuild).
  double negligible = 0;
  std::vector<std::string> names;  // of the searches, for people; empty: their workloads
  // Called with all searches, in their order, after each round.
  std::function<void(const std::vector<SearchState>&)> watch;
};

struct TuneAllResult {
  std::vector<TuneResult> searches;  // in the request's order
  double weighted_seconds = 0;       // sum of weight * time; infinite if a search found nothing
  bool complete = false;             // false: stopped; the same request continues it
  bool all_begun = false;            // all searches had their first trials
  bool out_of_time = false;          // the deadline ended them before all trials were spent
  std::vector<std::size_t> barely;   // searches that the time ended before they had these
  double first_seconds = 0, search_seconds = 0, finish_seconds = 0;  // until all had one, all searched, all were built
  double seconds_per_trial = 0;
};

// Errors as tune. What a search's library knows is answered without trials, and what is found is recorded there. A
// search that finds nothing does not end the others: its result has the reason.
TuneAllResult tune_all(const TuneAllRequest& request, base::Monitor& monitor);

// {"weighted_seconds":...,"trials":...,"complete":...,"searches":[{"weight":...,...}]}
base::Document to_document(const TuneAllResult& result, const TuneAllRequest& request);

}  // namespace graft::study
