#include "study/experiments/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/process.h"
#include "search/comparison.h"
#include "study/experiments/runs.h"
#include "study/experiments/settings.h"
#include "study/flows/shared_work.h"
#include "study/flows/tune.h"
#include "study/inputs/request.h"
#include "tasks/rebuild.h"

namespace graft::study {
namespace {

constexpr int retiming_repetitions = 5;

using Models = std::map<std::string, std::filesystem::path>;

// Keys of a search's definition that this file reads itself.
constexpr std::string_view keys_besides[] = {"workloads", "before", "before_trials", "history", "library"};

// What a search is given for a method. UserError for a key that no search has.
TuneRequest search_request(const Experiment::Method& method, const Models& models, const codegen::Workload& workload,
                           const tasks::Platform& platform, std::int64_t seed, const ExperimentRequest& request) {
  TuneRequest search;
  search.workload = workload;
  search.platform = platform;
  set_all(method.settings, settings_of(search), keys_besides);
  search.trials = method.trials;
  if (const auto own = models.find(search.model); own != models.end()) search.model = own->second.string();
  // Searches are compared by their curves; layers by their final kernels.
  if (request.experiment.kind == Experiment::Kind::search) search.rebuild = 0;
  search.seed = std::uint64_t(seed);
  search.threads = request.threads;
  search.out = request.work / short_name(method.name) /
               fmt::format("{}-{}-s{}", short_name(workload.text()), short_name(platform.name), seed);
  search.command_line = request.command_line;
  return search;
}

// What the machine was before it became the platform: a search there, whose run is history of the one here.
void add_history(const Experiment::Method& method, const tasks::Platform& platform, TuneRequest& search,
                 base::Monitor& monitor) {
  const base::Document* const before = method.settings.find("before");
  if (before == nullptr) return;
  const base::Document* const name = before->find(platform.name);
  if (name == nullptr)
    throw base::UserError(before->place(), fmt::format("does not say what '{}' was before", platform.name));
  TuneRequest earlier = search;
  earlier.platform = tasks::platform_named(name->as_string());
  earlier.trials = method.settings.at("before_trials").as_integer();
  earlier.out += ".before";
  if (!tune(earlier, monitor).complete) throw base::Stopped();
  search.history = {earlier.out};
}

// Searches of other workloads, {"workloads", "trials"}: as a library of their answers, which is this search's own (a
// search records what it finds, and no other one is to know that), or as history that a model learns from.
void add_known(const Experiment::Method& method, std::string_view key, TuneRequest& search, base::Monitor& monitor) {
  const base::Document* const known = method.settings.find(key);
  if (known == nullptr) return;
  known->only_keys({"workloads", "trials"});
  const bool is_library = key == "library";
  TuneRequest earlier = search;
  if (is_library) earlier.library = search.out.string() + ".library";
  earlier.again = is_library;
  for (const base::Document& text : known->at("workloads").as_list()) {
    earlier.workload = codegen::parse_workload(text.as_string());
    earlier.trials = known->at("trials").as_integer();
    earlier.out = search.out.parent_path() / fmt::format("known-{}-{}-s{}", short_name(earlier.workload.text()),
                                                         short_name(search.platform.name), search.seed);
    if (!tune(earlier, monitor).complete) throw base::Stopped();
    if (!is_library) search.history.push_back(earlier.out);
  }
  search.library = earlier.library;
  search.again = is_library;
}

// Methods that take long may search some of the workloads only.
bool has(const Experiment::Method& method, const codegen::Workload& workload) {
  const base::Document* const own = method.settings.find("workloads");
  if (own == nullptr) return true;
  return std::any_of(own->as_list().begin(), own->as_list().end(),
                     [&](const base::Document& name) { return codegen::parse_workload(name.as_string()) == workload; });
}

// New times of candidates, kept in a file.
search::Retimed timed_again(const std::vector<codegen::Candidate>& candidates, const tasks::Platform& platform,
                            const std::filesystem::path& file, const ExperimentRequest& request,
                            base::Monitor& monitor) {
  search::Retimed times;
  if (std::filesystem::exists(file)) {
    const base::Document known = base::parse_json(base::read_file(file), file.string());
    for (const auto& [hash, seconds] : known.as_map())
      times[base::from_hex(hash)] = seconds.is_null() ? std::numeric_limits<double>::infinity() : seconds.as_number();
  }
  std::vector<codegen::Candidate> unknown;
  for (const codegen::Candidate& candidate : candidates) {
    if (!times.contains(codegen::hash(candidate))) unknown.push_back(candidate);
  }
  if (unknown.empty()) return times;
  Timing timing;
  timing.repetitions = retiming_repetitions;
  const auto again = tasks::timed_in_turn(platform, candidates, int(request.experiment.again),
                                          timing.settings(0, request.threads), monitor);
  base::Document document = base::Document::map();
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    const bool ok = again[c].status == datasets::Status::ok;
    const double seconds = ok ? datasets::seconds_of(again[c]) : std::numeric_limits<double>::infinity();
    times[codegen::hash(candidates[c])] = seconds;
    document.set(base::to_hex(codegen::hash(candidates[c])), seconds);
  }
  base::replace_file(file, document.to_json());
  return times;
}

// One search's trials, and whose they are.
struct SearchTrials {
  std::string method;
  std::int64_t seed = 0;
  std::vector<datasets::Trial> trials;
};

// One search, after those that it learns from.
TuneResult searched(const Experiment::Method& method, const Models& models, const codegen::Workload& workload,
                    const tasks::Platform& platform, std::int64_t seed, const ExperimentRequest& request,
                    base::Monitor& monitor) {
  base::QuietMonitor quiet(monitor);
  TuneRequest search = search_request(method, models, workload, platform, seed, request);
  add_history(method, platform, search, quiet);
  add_known(method, "library", search, quiet);
  add_known(method, "history", search, quiet);
  return tune(search, quiet);
}

void add(const search::TimeSpent& spent, MethodTime& time) {
  time.measured += spent.measured;
  time.proposing += spent.proposing;
  time.learning += spent.learning;
  time.measuring += spent.measuring;
}

// All searches of one workload on one platform; fewer when the monitor asked to stop.
std::vector<search::Searched> searches_of(const codegen::Workload& workload, const tasks::Platform& platform,
                                          const ExperimentRequest& request, const Models& models, std::int64_t& done,
                                          std::int64_t all, std::map<std::string, MethodTime>& times,
                                          base::Monitor& monitor) {
  const Experiment& experiment = request.experiment;
  std::vector<SearchTrials> made;
  for (std::int64_t seed = 1; seed <= experiment.seeds; ++seed) {
    for (const Experiment::Method& method : experiment.methods) {
      ++done;
      if (!has(method, workload)) continue;
      monitor.progress(fmt::format("searches\t{}, {}, seed {}", method.name, workload.text(), seed), done - 1, all);
      TuneResult result = searched(method, models, workload, platform, seed, request, monitor);
      add(result.time, times[method.name]);
      if (!result.complete) return {};
      made.push_back({method.name, seed, std::move(result.trials)});
    }
  }
  search::Retimed again;
  const bool retimed = experiment.again > 0 && !platform.device->is_exact();
  if (retimed) {
    std::vector<codegen::Candidate> finalists;
    std::set<std::uint64_t> known;
    for (const SearchTrials& search : made) {
      for (codegen::Candidate& candidate : search::finalists(search.trials)) {
        if (known.insert(codegen::hash(candidate)).second) finalists.push_back(std::move(candidate));
      }
    }
    again = timed_again(
        finalists, platform,
        request.work / fmt::format("again-{}-{}.json", short_name(workload.text()), short_name(platform.name)), request,
        monitor);
  }
  std::vector<search::Searched> searches;
  for (const SearchTrials& search : made)
    searches.push_back(
        search::searched(search.method, platform.name, search.seed, search.trials, retimed ? &again : nullptr));
  return searches;
}

// The layers of one platform: each method's searches, then everything timed.
std::vector<search::Searched> layers_of(const tasks::Platform& platform, const ExperimentRequest& request,
                                        const Models& models, base::Monitor& monitor) {
  const Experiment& experiment = request.experiment;
  const std::int64_t all = std::int64_t(experiment.workloads.size() * experiment.methods.size());
  std::int64_t done = 0;
  std::vector<search::Searched> searches;
  for (const Experiment::Method& method : experiment.methods) {
    std::vector<std::filesystem::path> runs;
    for (const std::string& text : experiment.workloads) {
      monitor.progress(fmt::format("searches\t{}, {}", method.name, text), done++, all);
      const TuneRequest search = search_request(method, models, codegen::parse_workload(text), platform, 1, request);
      base::QuietMonitor quiet(monitor);
      if (!tune(search, quiet).complete) throw base::Stopped();
      runs.push_back(search.out);
    }
    const auto timed = timed_layers(experiment, method.name, platform.name, runs, monitor);
    searches.insert(searches.end(), timed.begin(), timed.end());
  }
  return searches;
}

// Adds all of one platform, measured or modelled by this process, to the results. Stopped with what there is when the
// monitor asks for it.
void search_on(const tasks::Platform& platform, const ExperimentRequest& request, const Models& models,
               std::int64_t& done, ExperimentResults& results, base::Monitor& monitor) {
  const Experiment& experiment = request.experiment;
  if (experiment.kind == Experiment::Kind::layers) {
    const auto layers = layers_of(platform, request, models, monitor);
    results.searches.insert(results.searches.end(), layers.begin(), layers.end());
    return;
  }
  const std::int64_t all =
      std::int64_t(experiment.platforms.size() * experiment.workloads.size() * experiment.methods.size()) *
      experiment.seeds;
  for (const std::string& text : experiment.workloads) {
    const auto searches =
        searches_of(codegen::parse_workload(text), platform, request, models, done, all, results.times, monitor);
    results.searches.insert(results.searches.end(), searches.begin(), searches.end());
    base::check_stop(monitor);
  }
}

// A part of the results, with its times.
void append(ExperimentResults& results, ExperimentResults part) {
  std::move(part.searches.begin(), part.searches.end(), std::back_inserter(results.searches));
  for (const auto& [method, spent] : part.times) {
    MethodTime& time = results.times[method];
    time.measured += spent.measured;
    time.proposing += spent.proposing;
    time.learning += spent.learning;
    time.measuring += spent.measuring;
  }
}

// All searches on a modelled platform, shared among ranks: all workloads of a method and seed are one rank's, because
// they may learn from the same earlier runs. The order of the result is that of one process.
ExperimentResults shared_searches(const tasks::Platform& platform, const ExperimentRequest& request,
                                  const Models& models, base::Team& team, base::Monitor& monitor) {
  const Experiment& experiment = request.experiment;
  const std::int64_t methods = std::ssize(experiment.methods), pieces = methods * experiment.seeds;
  const std::vector<std::string> parts =
      shared_work(team, pieces, monitor, [&](std::int64_t piece, base::Monitor& own) {
        const Experiment::Method& method = experiment.methods[std::size_t(piece % methods)];
        const std::int64_t seed = 1 + piece / methods;
        ExperimentResults part;
        for (const std::string& text : experiment.workloads) {
          const codegen::Workload workload = codegen::parse_workload(text);
          if (!has(method, workload)) continue;
          own.progress(fmt::format("searches\t{}, {}, seed {}", method.name, text, seed), piece, pieces);
          const TuneResult result = searched(method, models, workload, platform, seed, request, own);
          if (!result.complete) throw base::Stopped();
          add(result.time, part.times[method.name]);
          part.searches.push_back(search::searched(method.name, platform.name, seed, result.trials, nullptr));
        }
        return to_document(part).to_json();
      });
  ExperimentResults made, results;
  for (const std::string& part : parts) append(made, results_from(base::parse_json(part, "searches")));
  results.times = std::move(made.times);
  for (const std::string& text : experiment.workloads) {
    const std::string workload = codegen::parse_workload(text).text();
    std::copy_if(made.searches.begin(), made.searches.end(), std::back_inserter(results.searches),
                 [&](const search::Searched& search) { return search.workload == workload; });
  }
  return results;
}

std::string commit_of(const std::filesystem::path& folder) {
  try {
    const base::Finished git =
        base::run_process({"git", "-C", folder.string(), "rev-parse", "--short", "HEAD"}, std::chrono::seconds(10));
    if (git.exit_code == 0) return git.out.substr(0, git.out.find('\n'));
  } catch (const base::Failure&) {
  }
  return "";
}

// Wall time over all runs of the experiment, kept in the work folder.
double seconds_with_earlier(const std::filesystem::path& file, double now) {
  double before = 0;
  if (std::filesystem::exists(file)) before = base::parse_json(base::read_file(file), file.string()).as_number();
  base::replace_file(file, base::Document(before + now).to_json());
  return before + now;
}

}  // namespace

base::Document context_of_run(const Experiment& experiment) {
  base::Document context =
      context_of(fmt::format("graft experiment run {}{}{}", experiment.name, experiment.quick ? " --quick" : "",
                             experiment.kind == Experiment::Kind::peers ? " --from FILE,..." : ""));
  return context.set("commit", commit_of(std::filesystem::current_path()));
}

ExperimentResults run(const ExperimentRequest& request, base::Team& team, base::Monitor& monitor) {
  const auto begin = std::chrono::steady_clock::now();
  const Experiment& experiment = request.experiment;
  const bool has_peers = experiment.kind == Experiment::Kind::peers;
  if (has_peers != !request.from.empty())
    throw base::UserError(experiment.name, has_peers
                                               ? "compares with programs of others: `from` names the files that the "
                                                 "script in its protocol wrote"
                                               : "`from` is only of an experiment with peers");
  if (has_peers) return gathered(experiment, request.from);
  // Another definition's runs are others.
  ExperimentRequest own = request;
  own.work = request.work / experiment.definition;
  std::filesystem::create_directories(own.work);
  ExperimentResults results;
  results.experiment = experiment.name;
  results.definition = experiment.definition;
  results.quick = experiment.quick;
  if (experiment.kind == Experiment::Kind::evaluate) {
    results.evaluation = evaluated(own, team, monitor);
    results.complete = !results.evaluation.is_null();
  } else {
    results.complete = true;
    try {
      const Models models = train_models(own, team, monitor);
      std::int64_t done = 0;
      for (const std::string& name : experiment.platforms) {
        const tasks::Platform platform = tasks::platform_named(name);
        const bool shares =
            team.size() > 1 && experiment.kind == Experiment::Kind::search && platform.device->is_exact();
        if (shares) {
          append(results, shared_searches(platform, own, models, team, monitor));
          continue;
        }
        if (team.size() == 1) {
          search_on(platform, own, models, done, results, monitor);
          continue;
        }
        const std::string part = work_of_first(team, monitor, [&](base::Monitor& its_monitor) {
          ExperimentResults measured;
          search_on(platform, own, models, done, measured, its_monitor);
          return to_document(measured).to_json();
        });
        append(results, results_from(base::parse_json(part, "searches")));
      }
    } catch (const base::Stopped&) {
      results.complete = false;
    }
  }
  const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  results.context = context_of_run(experiment);
  results.context.set("seconds", std::round(seconds_with_earlier(own.work / "seconds.json", took)));
  return results;
}

}  // namespace graft::study
