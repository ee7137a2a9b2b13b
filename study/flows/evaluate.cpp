#include "study/flows/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/random.h"
#include "base/text.h"
#include "codegen/expression/suites.h"
#include "meta/methods/methods.h"
#include "search/programs.h"
#include "study/flows/guided_searches.h"
#include "study/flows/settings.h"
#include "study/flows/shared_work.h"
#include "study/inputs/field_error.h"
#include "study/inputs/output.h"
#include "study/inputs/request.h"

namespace graft::study {
namespace {

struct NamedRegime {
  std::string_view name;
  meta::Regime regime;
};
constexpr std::array regimes = {NamedRegime{"seen", meta::Regime::seen}, NamedRegime{"alone", meta::Regime::alone},
                                NamedRegime{"unseen", meta::Regime::unseen},
                                NamedRegime{"in-domain", meta::Regime::in_domain}};

bool among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void check(const EvaluateRequest& request) {
  check_settings(request);
  if (request.methods.empty()) throw FieldError("methods", "there is none");
  if (request.shots.empty()) throw FieldError("shots", "there is none");
  if (!request.against.empty() && !among(request.methods, request.against))
    throw FieldError("against", fmt::format("{} is none of `methods`", request.against));
  const bool in_domain = request.regime == meta::Regime::in_domain;
  if (in_domain && (request.judge_last > 0 || !request.sources.empty() || request.folds > 0 ||
                    !request.misleading.empty() || request.support != "random"))
    throw FieldError("judge_last, sources, folds, misleading, support", "cannot be combined with `regime` in-domain");
  if (request.folds > 0 && !(request.sources.empty() && request.targets.empty()))
    throw FieldError("folds", "decides targets and sources; cannot be combined with `target` or `sources`");
  if (request.sources_know_judged && request.judge_last == 0)
    throw FieldError("sources_know_judged", "says which rows sources learn from, and only with `judge_last`");
  if (in_domain && request.search) throw FieldError("search", "cannot be combined with `regime` in-domain");
  if (request.search &&
      (request.search_counts.empty() || std::adjacent_find(request.search_counts.begin(), request.search_counts.end(),
                                                           std::greater_equal()) != request.search_counts.end()))
    throw FieldError("search_counts", "expected numbers of trials that rise");
  if (!in_domain && !(request.train_workloads.empty() && request.judge_workloads.empty()))
    throw FieldError("train_workloads, judge_workloads", "only with `regime` in-domain");
}

std::vector<std::string> texts_of(const std::vector<codegen::Workload>& workloads) {
  std::vector<std::string> texts;
  for (const codegen::Workload& workload : workloads) texts.push_back(workload.text());
  return texts;
}

// Each once.
std::vector<std::string> joined(std::vector<std::string> methods, const std::vector<std::string>& others) {
  for (const std::string& method : others) {
    if (!among(methods, method)) methods.push_back(method);
  }
  return methods;
}

// Those that are judged, and those that guide searches.
std::vector<std::string> all_methods(const EvaluateRequest& request) {
  return joined(request.methods, searched_methods(request));
}

meta::EvaluationSettings settings_of(const EvaluateRequest& request, const ModelPlan& plan) {
  constexpr std::int64_t most = 1 << 30;
  meta::EvaluationSettings settings;
  settings.methods = request.methods;
  for (const std::int64_t shots : request.shots) settings.shots.push_back(int(std::min(shots, most)));
  settings.draws = int(std::min(request.draws, most));
  settings.regime = request.regime;
  settings.train_workloads = texts_of(workloads_of(request.train_workloads));
  settings.judge_workloads = texts_of(workloads_of(request.judge_workloads));
  settings.learner = plan.settings();
  settings.sources = request.sources;
  settings.judge_last = request.judge_last;
  settings.sources_know_judged = request.sources_know_judged;
  settings.support = meta::support_choice_named(request.support);
  return settings;
}

// What decides every number: results of an equal request are taken over when it is asked again.
base::Document identity_of(const EvaluateRequest& request, const ModelPlan& plan) {
  base::Document files = base::Document::list();
  for (const std::string& file : request.data.files) files.push(file_hash(file));
  Request identity("evaluate");
  identity.set("datasets", std::move(files));
  put_settings(request, identity.fields());
  request.data.put(identity.fields());
  plan.put(identity.fields());
  return identity.document();
}

// A target and the sources of its methods (none: those of the settings).
struct Judged {
  std::string target;
  std::vector<std::string> sources;
};

std::vector<Judged> targets_of(const EvaluateRequest& request, const meta::TaskSet& tasks) {
  const std::vector<std::string> platforms = meta::platforms(tasks);
  std::vector<Judged> all;
  if (request.folds == 0) {
    for (const std::string& target : request.targets.empty() ? platforms : request.targets)
      all.push_back({target, request.sources});
    return all;
  }
  for (const std::vector<std::string>& fold : folds_of(platforms, request.folds, request.seed)) {
    std::vector<std::string> others;
    std::copy_if(platforms.begin(), platforms.end(), std::back_inserter(others),
                 [&](const std::string& platform) { return !among(fold, platform); });
    for (const std::string& target : fold) all.push_back({target, others});
  }
  return all;
}

// UserError for platforms that the tasks lack, and for a contradictory source that is judged itself.
void check(const EvaluateRequest& request, const std::vector<std::string>& targets, const meta::TaskSet& tasks) {
  meta::only_platforms(tasks, targets);
  for (const std::string& name : request.misleading) {
    if (among(targets, name))
      throw FieldError("misleading", fmt::format("{} is judged itself: name the others by `target`", name));
  }
  meta::only_platforms(tasks, request.sources);
}

Rows of_target(const Rows& rows, const std::string& target) {
  Rows own;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(own),
               [&](const auto& row) { return row.target == target; });
  return own;
}

// Whether the table has all rows and searches of the target.
bool is_complete(const EvaluationTable& table, const std::string& target, const EvaluateRequest& request) {
  const std::vector<std::string> searched = searched_methods(request);
  const bool has_searches = std::all_of(searched.begin(), searched.end(), [&](const std::string& method) {
    return std::all_of(request.search_counts.begin(), request.search_counts.end(), [&](std::int64_t trials) {
      return search_of(table.searches, target, method, trials) != nullptr;
    });
  });
  const Rows rows = of_target(table.rows, target);
  if (!has_searches || rows.size() != request.methods.size() * request.shots.size()) return false;
  return std::all_of(request.methods.begin(), request.methods.end(), [&](const std::string& method) {
    return std::all_of(request.shots.begin(), request.shots.end(),
                       [&](std::int64_t shots) { return row_of(rows, target, method, shots) != nullptr; });
  });
}

EvaluationTable::Row row_from(meta::EvaluationRow row, const std::string& source) {
  EvaluationTable::Row out;
  out.target = std::move(row.target);
  out.method = std::move(row.method);
  out.source = source;
  out.shots = row.shots;
  out.measurements = row.measurements;
  out.draws = row.draws;
  out.workloads = row.workloads;
  out.means.values = {row.spearman, row.top1, row.top5};
  out.by_draw = {{std::move(row.spearman_draws), std::move(row.top1_draws), std::move(row.top5_draws)}};
  out.others = {{"kendall", row.kendall},
                {"spearman_best30", row.spearman_best30},
                {"spearman_middle80", row.spearman_middle80},
                {"best_place", row.best_place},
                {"trials_to_95", row.trials_to_95}};
  return out;
}

void store(const EvaluationTable& table, const std::filesystem::path& out) {
  if (out.empty()) return;
  base::Document stored = base::Document::map().set("schema", 1).set("kind", "evaluate");
  for (const auto& [key, value] : to_document(table).as_map()) stored.set(key, value);
  base::replace_file(out, stored.to_pretty_json() + "\n");
}

}  // namespace

std::string_view name_of(meta::Regime regime) {
  return std::find_if(regimes.begin(), regimes.end(), [&](const auto& each) { return each.regime == regime; })->name;
}

meta::Regime regime_named(std::string_view name) {
  const auto* const found =
      std::find_if(regimes.begin(), regimes.end(), [&](const auto& each) { return each.name == name; });
  if (found == regimes.end())
    throw base::UserError(fmt::format("expected seen, alone, unseen or in-domain, got '{}'", name));
  return found->regime;
}

std::vector<std::vector<std::string>> folds_of(std::vector<std::string> platforms, std::int64_t folds,
                                               std::uint64_t seed) {
  if (folds < 2 || folds > std::int64_t(platforms.size()))
    throw FieldError("folds",
                     fmt::format("expected 2 to {}, the number of platforms, got {}", platforms.size(), folds));
  base::Stream(seed, "folds").shuffle(platforms);
  std::vector<std::vector<std::string>> out(static_cast<std::size_t>(folds));
  for (std::size_t p = 0; p < platforms.size(); ++p) out[p % out.size()].push_back(platforms[p]);
  return out;
}

EvaluationTable known_results(const std::filesystem::path& file, const base::Document& request) {
  EvaluationTable known;
  if (file.empty() || !std::filesystem::exists(file)) return known;
  try {
    EvaluationTable earlier = evaluation_table_from(base::parse_json(base::read_file(file), file.string()));
    if (Request::hash_of(earlier.request) != Request::hash_of(request)) return known;
    std::erase_if(earlier.rows, [](const auto& row) { return !row.by_draw; });  // of an earlier graft
    known.rows = std::move(earlier.rows);
    known.searches = std::move(earlier.searches);
  } catch (const base::UserError&) {
    // some other file: it is replaced
  }
  return known;
}

std::vector<std::string> searched_methods(const EvaluateRequest& request) {
  if (!request.search) return {};
  if (!request.search_methods.empty()) return request.search_methods;
  return joined(request.methods, {"random", "scratch", "gbt-scratch"});
}

std::string against_of(const EvaluateRequest& request) {
  if (!request.against.empty()) return request.against;
  return among(request.methods, "scratch") ? "scratch" : request.methods.front();
}

std::string search_against_of(const EvaluateRequest& request) {
  const std::vector<std::string> searched = searched_methods(request);
  if (among(searched, request.against)) return request.against;
  return among(searched, "scratch") ? "scratch" : searched.front();
}

Compared compared_in(const EvaluateRequest& request, std::vector<std::string> targets) {
  return {std::move(targets), request.methods, request.shots};
}

namespace {

// A piece of an evaluation: these methods, and searches by these, on these targets, which have the same sources.
struct Piece {
  std::vector<Judged> judged;
  std::vector<std::string> methods, searched;
};

// The first targets of those that are left, as pieces for all ranks: groups of targets that share sources, whose
// learners are then trained once, as long as there is a group for each rank; else one piece for each method.
std::vector<Piece> next_pieces(std::span<const Judged>& left, const EvaluateRequest& request, int ranks) {
  std::vector<Piece> pieces;
  while (!left.empty() && std::ssize(pieces) < ranks) {
    std::size_t size = 1;
    // One process stores its table after each target, and keeps what it trained.
    if (ranks > 1 && !left.front().sources.empty() && request.folds > 0) {
      while (size < left.size() && left[size].sources == left.front().sources) ++size;
    }
    pieces.push_back({{left.begin(), left.begin() + std::ptrdiff_t(size)}, request.methods, searched_methods(request)});
    left = left.subspan(size);
  }
  if (std::ssize(pieces) == ranks) return pieces;
  std::vector<Piece> by_method;
  const auto only = [](const std::vector<std::string>& methods, const std::string& method) {
    return among(methods, method) ? std::vector{method} : std::vector<std::string>();
  };
  const std::vector<std::string> searched = searched_methods(request);
  for (const std::string& method : all_methods(request)) {
    for (const Piece& piece : pieces)
      by_method.push_back({piece.judged, only(request.methods, method), only(searched, method)});
  }
  return by_method;
}

// The rows of targets and methods in the order of the request, whoever made them.
Rows in_order(const Rows& rows, std::span<const Judged> judged, const EvaluateRequest& request) {
  Rows ordered;
  for (const Judged& each : judged) {
    for (const std::string& method : request.methods) {
      for (const std::int64_t shots : request.shots) {
        if (const EvaluationTable::Row* const row = row_of(rows, each.target, method, shots)) ordered.push_back(*row);
      }
    }
  }
  return ordered;
}

Searches in_order(const Searches& searches, std::span<const Judged> judged, const EvaluateRequest& request) {
  Searches ordered;
  for (const Judged& each : judged) {
    for (const std::string& method : searched_methods(request)) {
      for (const std::int64_t trials : request.search_counts) {
        if (const auto* const search = search_of(searches, each.target, method, trials)) ordered.push_back(*search);
      }
    }
  }
  return ordered;
}

void append(EvaluationTable& table, EvaluationTable part) {
  std::move(part.rows.begin(), part.rows.end(), std::back_inserter(table.rows));
  std::move(part.searches.begin(), part.searches.end(), std::back_inserter(table.searches));
}

// The target's recorded programs, those that are judged, and the workloads that have any.
struct Judgeable {
  datasets::Dataset recorded;
  std::vector<codegen::Workload> workloads;
};

Judgeable judgeable(const std::vector<datasets::Dataset>& data, const meta::TaskSet& tasks, const std::string& target,
                    const EvaluateRequest& request) {
  Judgeable out;
  std::vector<datasets::Dataset> own;
  std::copy_if(data.begin(), data.end(), std::back_inserter(own),
               [&](const datasets::Dataset& dataset) { return dataset.platform == target; });
  out.recorded = datasets::by_platform(own).front();
  std::set<std::uint64_t> judged;  // programs, with `judge_last`
  for (const meta::Examples& group : meta::only_platforms(tasks, {target}).groups) {
    if (group.size() < std::max<std::int64_t>(request.judge_last, 1)) continue;
    out.workloads.push_back(group.workload);
    judged.insert(group.program_hashes.end() - request.judge_last, group.program_hashes.end());
  }
  if (request.judge_last == 0) return out;
  search::Programs programs(out.recorded.target);
  std::erase_if(out.recorded.rows, [&](const datasets::Dataset::Row& row) {
    const codegen::Candidate candidate = out.recorded.candidate(row);
    const base::Result<std::uint64_t> identity = programs.identity(candidate);
    return !(identity && judged.contains(*identity)) && !judged.contains(codegen::hash(candidate));
  });
  return out;
}

// Searches on the target, guided by what was trained.
Searches searches_of(const std::vector<datasets::Dataset>& data, const meta::TaskSet& tasks, const std::string& target,
                     const std::vector<std::string>& methods, const meta::Priors& priors,
                     const EvaluateRequest& request, base::Monitor& monitor) {
  const Judgeable own = judgeable(data, tasks, target, request);
  std::vector<std::unique_ptr<meta::CostModel>> fixed;  // of methods that do not adapt
  std::vector<Guide> guides;
  for (const std::string& name : methods) {
    const meta::EvaluatedMethod method = meta::evaluated_method_named(name);
    const meta::CostModel* model = &priors.of(method);
    if (name == "random") {
      model = nullptr;
    } else if (!method.adapts) {
      fixed.push_back(meta::with_transfer(model->clone(), "frozen", *tasks.encoding));
      model = fixed.back().get();
    }
    guides.push_back({name, model});
  }
  GuidedSearchSettings settings;
  settings.counts = request.search_counts;
  settings.seeds = request.search_seeds > 0 ? request.search_seeds : request.draws;
  settings.batch = request.search_batch;
  settings.seed = request.seed;
  settings.threads = request.threads;
  return guided_searches(own.recorded, own.workloads, *tasks.encoding, guides, settings, monitor);
}

// An earlier table of the same request, for all ranks as rank 0 sees it.
EvaluationTable earlier_results(const EvaluateRequest& request, const base::Document& identity, base::Team& team,
                                base::Monitor& monitor) {
  const std::string known = work_of_first(
      team, monitor, [&](base::Monitor&) { return to_document(known_results(request.out, identity)).to_json(); });
  return evaluation_table_from(base::parse_json(known, request.out.string()));
}

// One evaluation by all ranks of a team: what is read at first, and the table that grows by targets.
class Evaluation {
 public:
  Evaluation(const EvaluateRequest& request, base::Team& team, base::Monitor& monitor, const TargetDone& target_done)
      : request_(request),
        team_(team),
        monitor_(monitor),
        target_done_(target_done),
        plan_(request.model, meta::evaluated_method_named(request.methods.front()).learner, request.seed,
              request.threads) {
    for (const std::string& method : all_methods(request)) plan_.check(meta::evaluated_method_named(method).learner);
    settings_ = settings_of(request, plan_);
    read();
    if (const auto platforms = meta::platforms(tasks_); platforms.size() < 2 && !is_in_domain()) {
      throw base::UserError(
          base::join(request.data.files, ", "),
          fmt::format("only platform {}; training needs datasets of at least one other platform", platforms[0]));
    }
    judged_ = targets_of(request, tasks_);
    for (const Judged& each : judged_) targets_.push_back(each.target);
    check(request, targets_, tasks_);
    table_.request = identity_of(request, plan_);
    table_.context = context_of(request.command_line);
    known_ = earlier_results(request, table_.request, team, monitor);
  }

  EvaluationTable run() {
    const std::vector<Judged> missing = without_complete();
    tell();
    for (std::span<const Judged> left = missing; !left.empty(); tell()) {
      const std::vector<Piece> pieces = next_pieces(left, request_, team_.size());
      if (team_.size() == 1) {
        append(known_, results_of(pieces.front(), monitor_));
        continue;
      }
      const std::vector<std::string> parts =
          shared_work(team_, std::ssize(pieces), monitor_, [&](std::int64_t p, base::Monitor& its_monitor) {
            return to_document(results_of(pieces[std::size_t(p)], its_monitor)).to_json();
          });
      for (const std::string& part : parts) append(known_, evaluation_table_from(base::parse_json(part, "rows")));
    }
    add_statistics();
    table_.complete = true;
    if (team_.rank() == 0) store(table_, request_.out);
    return std::move(table_);
  }

 private:
  bool is_in_domain() const { return request_.regime == meta::Regime::in_domain; }

  void read() {
    base::TeamMonitor monitor(team_, monitor_);  // for what all ranks do equally
    data_ = request_.data.read(request_.seed, monitor);
    plan_.fit(data_);
    settings_.learner = plan_.settings();
    tasks_ = meta::with_reversed_labels(
        meta::make_task_set(data_, plan_.encoding(), request_.threads, team_.size() > 1 ? &team_ : nullptr, &monitor),
        request_.misleading);
    note_doubts(tasks_, monitor);
  }

  // Those of an earlier run stay where they are complete.
  std::vector<Judged> without_complete() {
    std::vector<Judged> missing;
    for (const Judged& each : judged_) {
      if (is_complete(known_, each.target, request_)) continue;
      std::erase_if(known_.rows, [&](const auto& row) { return row.target == each.target; });
      std::erase_if(known_.searches, [&](const auto& search) { return search.target == each.target; });
      missing.push_back(each);
    }
    return missing;
  }

  EvaluationTable results_of(const Piece& piece, base::Monitor& monitor) {
    meta::EvaluationSettings own = settings_;
    meta::Priors own_priors;
    meta::Priors& kept = piece.methods == request_.methods ? priors_ : own_priors;
    EvaluationTable part;
    for (const Judged& each : piece.judged) {
      own.sources = each.sources;
      if (!piece.searched.empty()) {
        own.methods = joined(piece.methods, piece.searched);
        meta::train(tasks_, each.target, own, monitor, kept);
      }
      own.methods = piece.methods;
      std::vector<meta::EvaluationRow> rows;
      if (!own.methods.empty()) {
        rows = is_in_domain() ? meta::evaluate_in_domain(tasks_, each.target, own, monitor)
                              : meta::evaluate(tasks_, each.target, own, monitor, kept);
      }
      for (meta::EvaluationRow& row : rows)
        part.rows.push_back(row_from(std::move(row), tasks_.sources.at(each.target)));
      if (piece.searched.empty()) continue;
      Searches searches = searches_of(data_, tasks_, each.target, piece.searched, kept, request_, monitor);
      std::move(searches.begin(), searches.end(), std::back_inserter(part.searches));
    }
    return part;
  }

  // Stores the table as far as targets are complete, in their order, and tells the caller of each.
  void tell() {
    for (; told_ < judged_.size(); ++told_) {
      const std::string& target = judged_[told_].target;
      if (!is_complete(known_, target, request_)) return;
      table_.rows = in_order(known_.rows, std::span(judged_).first(told_ + 1), request_);
      table_.searches = in_order(known_.searches, std::span(judged_).first(told_ + 1), request_);
      if (team_.rank() == 0) store(table_, request_.out);
      if (target_done_) target_done_(table_, target);
    }
  }

  void add_statistics() {
    const Compared compared = compared_in(request_, targets_);
    const bool has_means = targets_.size() > 1;
    Rows all = table_.rows;
    if (has_means) table_.means = means_over_targets(table_.rows, compared, request_.seed);
    all.insert(all.end(), table_.means.begin(), table_.means.end());
    table_.differences = differences_to(against_of(request_), all, request_.seed);
    table_.winners = winners_of(table_.rows, compared);
    if (!request_.search) return;
    if (has_means) table_.search_means = search_means_over_targets(table_.searches, targets_, request_.seed);
    Searches searches = table_.searches;
    searches.insert(searches.end(), table_.search_means.begin(), table_.search_means.end());
    table_.search_differences = search_differences_to(search_against_of(request_), searches, request_.seed);
  }

  const EvaluateRequest& request_;
  base::Team& team_;
  base::Monitor& monitor_;
  const TargetDone& target_done_;
  ModelPlan plan_;
  meta::EvaluationSettings settings_;
  std::vector<datasets::Dataset> data_;
  meta::TaskSet tasks_;
  std::vector<Judged> judged_;
  std::vector<std::string> targets_;
  EvaluationTable table_, known_;  // as told so far; all rows that there are
  meta::Priors priors_;            // of whole methods
  std::size_t told_ = 0;           // targets
};

}  // namespace

EvaluationTable evaluate(const EvaluateRequest& request, base::Monitor& monitor, const TargetDone& target_done) {
  base::Team alone;
  return evaluate(request, alone, monitor, target_done);
}

EvaluationTable evaluate(const EvaluateRequest& request, base::Team& team, base::Monitor& monitor,
                         const TargetDone& target_done) {
  if (!request.out.empty()) check_output("out", request.out, Writes::text, request.data.files);
  check(request);
  return Evaluation(request, team, monitor, target_done).run();
}

}  // namespace graft::study
