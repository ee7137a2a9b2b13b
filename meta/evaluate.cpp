#include "meta/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/parallel.h"
#include "base/random.h"
#include "base/shortened.h"
#include "base/statistics.h"
#include "meta/episode.h"
#include "meta/methods/known_rows.h"
#include "meta/methods/methods.h"
#include "meta/metrics.h"

namespace graft::meta {
namespace {

// What all methods are given and judged on in one draw. No support for 0 shots.
struct JudgedRows {
  std::size_t group;               // its position
  std::vector<std::int64_t> rows;  // of it
};
using Draw = Episode<std::vector<Examples>, std::vector<JudgedRows>>;

// `shots` rows of each group that supports, and the rest of those that are judged: with `judge_last`, only the last
// ones.
Draw draw_rows(const std::vector<Examples>& groups, const std::vector<char>& supports, const std::vector<char>& judged,
               SupportChoice choice, int shots, std::int64_t judge_last, int number, std::uint64_t seed) {
  Draw out;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    // One permutation for all shots: a larger support contains the smaller ones.
    base::Stream stream(seed, fmt::format("support {}", g), std::uint64_t(number));
    const std::int64_t open = groups[g].size() - judge_last;
    std::vector<std::int64_t> rows = stream.choose(open, open);
    const std::ptrdiff_t cut = supports[g] != 0 ? shots : 0;
    if (cut > 0 && choice != SupportChoice::random) {
      // From a random pool, as on a board, which does not have all programs either.
      constexpr std::int64_t most = 300;
      const std::vector<std::int64_t> pool(rows.begin(),
                                           rows.begin() + std::min(open, std::max<std::int64_t>(most, cut)));
      std::vector<char> is_support(std::size_t(groups[g].size()), 0);
      for (const std::int64_t p : chosen_support(choice, features::chosen(groups[g].features, pool), cut, stream))
        is_support[std::size_t(pool[std::size_t(p)])] = 1;
      std::stable_partition(rows.begin(), rows.end(), [&](std::int64_t r) { return is_support[std::size_t(r)] != 0; });
    }
    if (cut > 0) out.support.push_back(chosen(groups[g], {rows.begin(), rows.begin() + cut}));
    if (judged[g] != 0) {
      std::vector<std::int64_t> rest(rows.begin() + cut, rows.end());
      if (judge_last > 0) {
        rest.resize(std::size_t(judge_last));
        std::iota(rest.begin(), rest.end(), open);
      }
      std::sort(rest.begin(), rest.end());
      out.query.push_back({g, std::move(rest)});
    }
  }
  return out;
}

Draw draw_support(const std::vector<Examples>& groups, const EvaluationSettings& settings, int shots, int number) {
  const std::uint64_t seed = settings.learner.seed;
  const std::vector<char> all(groups.size(), 1);
  if (settings.regime != Regime::unseen)
    return draw_rows(groups, all, all, settings.support, shots, settings.judge_last, number, seed);
  std::vector<std::size_t> order(groups.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  base::Stream(seed, "judged workloads", std::uint64_t(number)).shuffle(order);
  std::vector<char> supports(groups.size(), 1), judged(groups.size(), 0);
  for (std::size_t i = 0; i < groups.size() / 2; ++i) {
    supports[order[i]] = 0;
    judged[order[i]] = 1;
  }
  return draw_rows(groups, supports, judged, settings.support, shots, settings.judge_last, number, seed);
}

// Which groups are of these workloads (none: all). UserError for a workload that was not measured.
std::vector<char> named(const std::vector<Examples>& groups, const std::vector<std::string>& workloads) {
  std::vector<char> out(groups.size(), workloads.empty() ? 1 : 0);
  for (const std::string& workload : workloads) {
    const auto found = std::find_if(groups.begin(), groups.end(),
                                    [&](const Examples& group) { return group.workload.text() == workload; });
    if (found == groups.end())
      throw base::UserError(fmt::format("{}: not measured on {}", base::shortened(workload), groups.front().platform));
    out[std::size_t(found - groups.begin())] = 1;
  }
  return out;
}

// What may be trained on. Workloads whose programs are all judged ones are left out.
TaskSet training_part(const TaskSet& tasks, const std::string& target, const EvaluationSettings& settings,
                      base::Monitor& monitor) {
  TaskSet out = without_platform(tasks, target);
  if (!settings.sources.empty()) {
    std::vector<std::string> names = settings.sources;
    std::erase(names, target);
    out = only_platforms(out, names);
  }
  if (settings.judge_last <= 0 || settings.sources_know_judged) return out;
  const std::size_t left_out =
      std::erase_if(out.groups, [&](const Examples& group) { return group.size() <= settings.judge_last; });
  if (left_out > 0)
    monitor.note(fmt::format("{} workloads of the sources have no program besides the {} that are judged", left_out,
                             settings.judge_last));
  if (out.groups.empty())
    throw base::UserError(fmt::format("judge-last {}: leaves no program to train on", settings.judge_last));
  for (Examples& group : out.groups) {
    std::vector<std::int64_t> open(std::size_t(group.size() - settings.judge_last));
    std::iota(open.begin(), open.end(), 0);
    group = chosen(group, open);
  }
  return out;
}

// Means over the judged workloads of one draw.
struct Quality {
  double spearman = 0, kendall = 0, spearman_best30 = 0, spearman_middle80 = 0, top1 = 0, top5 = 0;
  double best_place = 0, trials_to_95 = 0;
  std::int64_t measurements = 0;
  int workloads = 0;
};

// model_of(i): what the i-th judged workload is scored by.
template <class ModelOf>
Quality judge(const ModelOf& model_of, const std::vector<Examples>& groups, const Draw& draw) {
  Quality out;
  const double share = 1.0 / double(draw.query.size());
  double log_top1 = 0, log_top5 = 0, log_place = 0, log_trials = 0;
  for (std::size_t i = 0; i < draw.query.size(); ++i) {
    const Examples query = chosen(groups[draw.query[i].group], draw.query[i].rows);
    const std::vector<float> scores = model_of(i)->score(query.features).mean;
    out.spearman += share * rank_correlation(scores, query.log_seconds);
    out.kendall += share * rank_concordance(scores, query.log_seconds);
    log_place += share * std::log(double(trials_to(scores, query.log_seconds, 1)));
    log_trials += share * std::log(double(trials_to(scores, query.log_seconds, 0.95)));
    log_top1 += share * std::log(top_k(scores, query.log_seconds, 1));
    log_top5 += share * std::log(top_k(scores, query.log_seconds, 5));

    std::vector<std::size_t> fastest(scores.size());
    std::iota(fastest.begin(), fastest.end(), std::size_t(0));
    std::stable_sort(fastest.begin(), fastest.end(),
                     [&](std::size_t a, std::size_t b) { return query.log_seconds[a] < query.log_seconds[b]; });
    const auto within = [&](std::size_t first, std::size_t last) {
      std::vector<float> some_scores;
      std::vector<double> some_times;
      for (std::size_t place = first; place < last; ++place) {
        some_scores.push_back(scores[fastest[place]]);
        some_times.push_back(query.log_seconds[fastest[place]]);
      }
      return rank_correlation(some_scores, some_times);
    };
    const std::size_t rows = fastest.size();
    out.spearman_best30 += share * within(0, std::max<std::size_t>(2, rows * 3 / 10));
    out.spearman_middle80 += share * within(rows / 10, rows - rows / 10);
  }
  out.top1 = std::exp(log_top1);
  out.top5 = std::exp(log_top5);
  out.best_place = std::exp(log_place);
  out.trials_to_95 = std::exp(log_trials);
  out.workloads = int(draw.query.size());
  for (const Examples& group : draw.support) out.measurements += group.size();
  return out;
}

void check(const EvaluationSettings& settings) {
  if (settings.draws < 1) throw base::UserError("draws: at least 1 is needed");
  if (settings.judge_last < 0 || settings.judge_last == 1)
    throw base::UserError(fmt::format("judge-last {}: expected 2 programs or more", settings.judge_last));
  for (const int shots : settings.shots) {
    if (shots < 0) throw base::UserError(fmt::format("shots {}: expected 0 or more", shots));
  }
}

// The target's workloads with enough programs for every number of shots, so that all are judged on the same ones.
TaskSet judged_part(const TaskSet& tasks, const std::string& target, const EvaluationSettings& settings,
                    base::Monitor& monitor) {
  TaskSet own = only_platforms(tasks, {target});
  const int most = settings.shots.empty() ? 0 : *std::max_element(settings.shots.begin(), settings.shots.end());
  const std::int64_t needed = most + (settings.judge_last > 0 ? settings.judge_last : 2);
  std::int64_t all = std::int64_t(own.groups.size()), rows = 0;
  std::string first;
  std::erase_if(own.groups, [&](const Examples& group) {
    if (group.size() >= needed) return false;
    if (first.empty()) first = base::shortened(group.workload.text());
    rows += group.size();
    return true;
  });
  const std::int64_t left = std::int64_t(own.groups.size());
  if (left == 0) {
    throw base::UserError(
        fmt::format("{}: no workload has the {} programs that {} shots need; measure more or ask for "
                    "fewer shots",
                    target, needed, most));
  }
  if (left < all) {
    monitor.note(
        fmt::format("{}: {} of {} workloads ({} rows) are left out, {} first: fewer than the {} programs that "
                    "{} shots need",
                    target, all - left, all, rows, first, needed, most));
  }
  if (settings.regime == Regime::unseen && left < 2)
    throw base::UserError(fmt::format("{}: one workload only; unseen workloads need at least two", target));
  return own;
}

// Notes how many of the target's rows the sources know by their own times. UserError for a table that says nothing of
// the target's: no row is known, and no parameter tells its rows apart that a source or a support could teach.
void check_rows(const TaskSet& sources, const TaskSet& own, const std::string& target,
                const EvaluationSettings& settings, base::Monitor& monitor) {
  if (own.encoding->schema == nullptr) return;
  KnownRows known = settings.learner.known_rows == KnownRowsUse::no ? KnownRows{} : known_rows(sources.groups);
  if (!uses_known_rows(known, sources, settings.learner.known_rows)) known = {};
  std::int64_t rows = 0, with_times = 0;
  for (const Examples& group : own.groups) {
    const std::vector<char> has = known.has(group.features);
    with_times += std::count(has.begin(), has.end(), 1);
    rows += group.size();
  }
  if (with_times > 0) {
    monitor.note(
        fmt::format("{}: {} of {} rows were measured by sources, too: their times there are evidence "
                    "(known rows: {})",
                    target, with_times, rows, name_of(settings.learner.known_rows)));
    return;
  }
  const bool has_support =
      std::any_of(settings.shots.begin(), settings.shots.end(), [](int shots) { return shots > 0; });
  const std::vector<char> here = varying(own.groups), there = varying(sources.groups);
  for (std::size_t f = 0; f < here.size(); ++f) {
    const bool is_taught = there[f] != 0 && own.encoding->features[f].unit != features::hashed_unit;
    if (here[f] != 0 && (is_taught || has_support)) return;
  }
  throw base::UserError(
      fmt::format("{}: nothing can be said of its rows: {}, and no parameter of theirs says anything{}", target,
                  settings.learner.known_rows == KnownRowsUse::no ? "the sources' times of the same rows are not used"
                                                                  : "no source has measured one of them",
                  settings.learner.known_rows == KnownRowsUse::no ? "; use them (known rows: automatic)"
                                                                  : "; measure some of the same rows on the sources"));
}

// Trains what is missing on these sources.
void train_on(const TaskSet& sources, const std::string& target, const EvaluationSettings& settings,
              base::Monitor& monitor, Priors& priors) {
  if (priors.sources != platforms(sources)) priors = {platforms(sources), {}};
  std::vector<std::string> names;  // of the learners, each once
  for (const std::string& method : settings.methods) {
    const std::string learner = evaluated_method_named(method).learner;
    if (!priors.models.contains(learner) && std::find(names.begin(), names.end(), learner) == names.end())
      names.push_back(learner);
  }
  base::SharedMonitor shared(monitor);
  base::QuietMonitor quiet(shared);
  LearnerSettings alone = settings.learner;
  alone.threads = 1;  // learners run side by side instead
  std::vector<std::unique_ptr<CostModel>> models(names.size());
  std::atomic<std::int64_t> done = 0;
  base::parallel_for(std::int64_t(names.size()), settings.learner.threads, [&](std::int64_t l) {
    models[std::size_t(l)] = trained(*make_learner(names[std::size_t(l)]), sources, alone, quiet);
    shared.progress(fmt::format("{}: training", target), ++done, std::int64_t(names.size()));
  });
  for (std::size_t l = 0; l < names.size(); ++l) priors.models[names[l]] = std::move(models[l]);
}

// Rows of the table, from qualities[shots * draws + draw][method].
std::vector<EvaluationRow> table_rows(const std::string& target, const std::vector<EvaluatedMethod>& chosen,
                                      const EvaluationSettings& settings,
                                      const std::vector<std::vector<Quality>>& qualities) {
  const std::int64_t draws = settings.draws;
  std::vector<EvaluationRow> rows;
  for (std::size_t m = 0; m < chosen.size(); ++m) {
    for (std::size_t s = 0; s < settings.shots.size(); ++s) {
      EvaluationRow row;
      row.target = target;
      row.method = chosen[m].name;
      row.shots = settings.shots[s];
      row.draws = settings.draws;
      for (std::int64_t d = 0; d < draws; ++d) {
        const Quality& quality = qualities[s * std::size_t(draws) + std::size_t(d)][m];
        row.spearman_draws.push_back(quality.spearman);
        row.top1_draws.push_back(quality.top1);
        row.top5_draws.push_back(quality.top5);
        row.kendall += quality.kendall / double(draws);
        row.spearman_best30 += quality.spearman_best30 / double(draws);
        row.spearman_middle80 += quality.spearman_middle80 / double(draws);
        row.best_place += std::log(quality.best_place) / double(draws);
        row.trials_to_95 += std::log(quality.trials_to_95) / double(draws);
        row.measurements = std::max(row.measurements, quality.measurements);
        row.workloads = quality.workloads;
      }
      row.best_place = std::exp(row.best_place);
      row.trials_to_95 = std::exp(row.trials_to_95);
      row.spearman = base::bootstrap_mean(row.spearman_draws, 0.95, settings.learner.seed);
      row.top1 = base::bootstrap_mean(row.top1_draws, 0.95, settings.learner.seed);
      row.top5 = base::bootstrap_mean(row.top5_draws, 0.95, settings.learner.seed);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace

std::vector<EvaluatedMethod> evaluated_methods() {
  std::vector<EvaluatedMethod> out;
  for (const Method& method : methods()) {
    for (const Method::Use& use : method.uses) out.push_back({use.name, method.name, use.adapts});
    if (method.uses.empty()) out.push_back({method.name, method.name});
  }
  return out;
}

EvaluatedMethod evaluated_method_named(const std::string& name) {
  const std::string_view use = method_name_of(name), settings = std::string_view(name).substr(use.size());
  std::vector<std::string> names;
  for (EvaluatedMethod& method : evaluated_methods()) {
    names.push_back(method.name);
    if (method.name != use) continue;
    method.name = name;
    method.learner += settings;
    method_named(method.learner);  // whose settings are checked
    return method;
  }
  throw base::UserError(fmt::format("unknown method '{}'{}", name, base::did_you_mean(name, names)));
}

void train(const TaskSet& tasks, const std::string& target, const EvaluationSettings& settings, base::Monitor& monitor,
           Priors& priors) {
  check(settings);
  base::QuietMonitor quiet(monitor);
  train_on(training_part(tasks, target, settings, quiet), target, settings, monitor, priors);
}

std::vector<EvaluationRow> evaluate(const TaskSet& tasks, const std::string& target, const EvaluationSettings& settings,
                                    base::Monitor& monitor) {
  Priors priors;
  return evaluate(tasks, target, settings, monitor, priors);
}

std::vector<EvaluationRow> evaluate(const TaskSet& tasks, const std::string& target, const EvaluationSettings& settings,
                                    base::Monitor& monitor, Priors& priors) {
  check(settings);
  const TaskSet sources = training_part(tasks, target, settings, monitor);
  const TaskSet own = judged_part(tasks, target, settings, monitor);
  check_rows(sources, own, target, settings, monitor);
  train_on(sources, target, settings, monitor, priors);
  std::vector<EvaluatedMethod> chosen;
  for (const std::string& name : settings.methods) chosen.push_back(evaluated_method_named(name));

  base::SharedMonitor shared(monitor);
  std::atomic<std::int64_t> done = 0;
  // One piece of work is one draw for all methods, so that they see the same support.
  const std::int64_t draws = settings.draws, pieces = draws * std::int64_t(settings.shots.size());
  std::vector<std::vector<Quality>> qualities(std::size_t(pieces), std::vector<Quality>(chosen.size()));
  base::parallel_for(pieces, settings.learner.threads, [&](std::int64_t piece) {
    const int shots = settings.shots[std::size_t(piece / draws)];
    const Draw draw = draw_support(own.groups, settings, shots, int(piece % draws));
    for (std::size_t m = 0; m < chosen.size(); ++m) {
      base::check_stop(shared);
      const CostModel& prior = priors.of(chosen[m]);
      Quality& quality = qualities[std::size_t(piece)][m];
      if (!chosen[m].adapts || draw.support.empty()) {
        quality = judge([&](std::size_t) { return &prior; }, own.groups, draw);
        quality.measurements = 0;
      } else if (settings.regime == Regime::alone) {  // all workloads support and are judged
        quality = judge([&](std::size_t i) { return prior.adapted({&draw.support[i], 1}); }, own.groups, draw);
      } else {
        const auto adapted = prior.adapted(draw.support);
        quality = judge([&](std::size_t) { return adapted.get(); }, own.groups, draw);
      }
    }
    shared.progress(fmt::format("{}: judging", target), ++done, pieces);
  });

  return table_rows(target, chosen, settings, qualities);
}

std::vector<EvaluationRow> evaluate_in_domain(const TaskSet& tasks, const std::string& target,
                                              const EvaluationSettings& settings, base::Monitor& monitor) {
  const TaskSet own = only_platforms(tasks, {target});
  std::vector<EvaluatedMethod> chosen;
  for (const std::string& name : settings.methods) chosen.push_back(evaluated_method_named(name));
  const std::vector<char> trains = named(own.groups, settings.train_workloads),
                          judged = named(own.groups, settings.judge_workloads);
  for (std::size_t g = 0; g < own.groups.size(); ++g) {
    for (const int shots : settings.shots) {
      const std::int64_t size = own.groups[g].size(), left = size - (trains[g] != 0 ? shots : 0);
      if ((trains[g] != 0 && (shots < 2 || left < 0)) || (judged[g] != 0 && left < 2)) {
        throw base::UserError(
            fmt::format("{} programs to train on: {} on {} has {}; at least 2 are trained on, and 2 others judged",
                        shots, base::shortened(own.groups[g].workload.text()), target, size));
      }
    }
  }

  base::SharedMonitor shared(monitor);
  base::QuietMonitor quiet(shared);
  const std::int64_t draws = settings.draws, pieces = draws * std::int64_t(settings.shots.size());
  std::vector<std::vector<Quality>> qualities(std::size_t(pieces), std::vector<Quality>(chosen.size()));
  std::atomic<std::int64_t> done = 0;
  base::parallel_for(pieces, settings.learner.threads, [&](std::int64_t piece) {
    LearnerSettings learner = settings.learner;
    learner.threads = 1;                    // draws run side by side instead
    learner.known_rows = KnownRowsUse::no;  // there are no other platforms
    learner.seed += std::uint64_t(piece % draws);
    const Draw draw =
        draw_rows(own.groups, trains, judged, SupportChoice::random, settings.shots[std::size_t(piece / draws)], 0,
                  int(piece % draws), settings.learner.seed);
    TaskSet known = own;
    known.groups = draw.support;
    for (std::size_t m = 0; m < chosen.size(); ++m) {
      base::check_stop(shared);
      std::unique_ptr<CostModel> model = trained(*make_learner(chosen[m].learner), known, learner, quiet);
      if (!model->is_informed()) model = model->adapted(draw.support);
      qualities[std::size_t(piece)][m] = judge([&](std::size_t) { return model.get(); }, own.groups, draw);
    }
    shared.progress(fmt::format("{}: training and judging", target), ++done, pieces);
  });
  return table_rows(target, chosen, settings, qualities);
}

}  // namespace graft::meta
