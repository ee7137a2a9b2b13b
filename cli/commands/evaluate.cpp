#include "meta/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "base/statistics.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/commands/common.h"
#include "study/evaluate.h"

namespace graft::cli {
namespace {

struct Flags {
  DataFlags data;
  std::vector<std::string> methods{"zero-shot", "scratch",  "nearest", "finetune",
                                   "ridge",     "residual", "maml",    "reptile"},
      shots{"0", "5", "10", "20", "32", "64"}, train_workloads, judge_workloads, targets{"all"}, sources, misleading;
  std::string regime = "seen", out, support = "random", against;
  std::int64_t draws = 20, judge_last = 0, folds = 0;
  NetworkFlags network;
};

base::Document numbers(const std::vector<double>& values) {
  base::Document out = base::Document::list();
  for (const double value : values) out.push(value);
  return out;
}

base::Document row_document(const meta::EvaluationRow& row, const std::string& source) {
  base::Document by_draw = base::Document::map();
  by_draw.set("spearman", numbers(row.spearman_draws))
      .set("top1", numbers(row.top1_draws))
      .set("top5", numbers(row.top5_draws));
  base::Document out = base::Document::map();
  return out.set("target", row.target)
      .set("source", source)
      .set("method", row.method)
      .set("shots", row.shots)
      .set("measurements", row.measurements)
      .set("draws", row.draws)
      .set("workloads", row.workloads)
      .set("spearman", interval_document(row.spearman))
      .set("top1", interval_document(row.top1))
      .set("top5", interval_document(row.top5))
      .set("kendall", row.kendall)
      .set("spearman_best30", row.spearman_best30)
      .set("spearman_middle80", row.spearman_middle80)
      .set("best_place", row.best_place)
      .set("trials_to_95", row.trials_to_95)
      .set("by_draw", std::move(by_draw));
}

// What decides every number: results of an equal request are taken over from --out when the command is run again.
base::Document request_of(const Flags& flags, const Session& session) {
  base::Document files = base::Document::list();
  for (const std::string& file : flags.data.files) files.push(file_hash(file));
  const auto words = [](const std::vector<std::string>& values) { return base::join(values, ","); };
  base::Document request = base::Document::map();
  request.set("command", "evaluate")
      .set("datasets", std::move(files))
      .set("methods", words(flags.methods))
      .set("shots", words(flags.shots))
      .set("draws", flags.draws)
      .set("regime", flags.regime)
      .set("train_workloads", words(flags.train_workloads))
      .set("judge_workloads", words(flags.judge_workloads))
      .set("seed", std::int64_t(session.seed));
  if (!flags.sources.empty()) request.set("sources", words(flags.sources));
  if (!flags.misleading.empty()) request.set("misleading", words(flags.misleading));
  if (flags.folds > 0) request.set("folds", flags.folds);
  if (flags.support != "random") request.set("support", flags.support);
  if (flags.judge_last > 0) request.set("judge_last", flags.judge_last);
  flags.data.put(request);
  flags.network.put(request);
  return request;
}

// Rows of an earlier, interrupted run of the same request, by target.
base::Document::List known_rows(const std::string& out, const base::Document& request) {
  if (out.empty() || !std::filesystem::exists(out)) return {};
  try {
    const base::Document earlier = base::parse_json(base::read_file(out), out);
    const base::Document* asked = earlier.find("request");
    if (asked == nullptr || asked->to_json() != request.to_json()) return {};
    const base::Document::List& rows = earlier.at("rows").as_list();
    if (!rows.empty()) rows.front().at("by_draw");  // of an earlier graft: not known
    return rows;
  } catch (const base::UserError&) {
    return {};  // some other file: it is replaced
  }
}

struct Metric {
  const char* key;
  const char* title;
};
constexpr Metric kMetrics[] = {{"spearman", "Spearman (1 is a perfect ranking)"},
                               {"top1", "top-1 (best time / time of the program predicted fastest; 1 is perfect)"},
                               {"top5", "top-5 (best time / best time among the 5 predicted fastest)"}};

const base::Document* row_of(const base::Document::List& rows, const std::string& target, const std::string& method,
                             std::int64_t shots) {
  for (const base::Document& row : rows) {
    if (row.at("target").as_string() == target && row.at("method").as_string() == method &&
        row.at("shots").as_integer() == shots)
      return &row;
  }
  return nullptr;
}

double mean_of(const base::Document& row, const char* metric) {
  const base::Document& value = row.at(metric).at("mean");
  return value.is_null() ? -2 : value.as_number();
}

// Method with the best mean at this number of shots.
std::string winner(const base::Document::List& rows, const std::string& target, const Flags& flags, std::int64_t shots,
                   const char* metric) {
  std::string best;
  double most = -3;
  for (const std::string& method : flags.methods) {
    const base::Document* row = row_of(rows, target, method, shots);
    if (row == nullptr || mean_of(*row, metric) <= most) continue;
    most = mean_of(*row, metric);
    best = method;
  }
  return best;
}

std::vector<double> draws_of(const base::Document& row, const char* metric) {
  std::vector<double> out;
  for (const base::Document& value : row.at("by_draw").at(metric).as_list()) out.push_back(value.as_number());
  return out;
}

// Rows of the mean over all targets, draw by draw (top-k: geometric).
base::Document::List mean_rows(const base::Document::List& rows, const std::vector<std::string>& targets,
                               const Flags& flags, const std::vector<std::int64_t>& shots, std::uint64_t seed) {
  base::Document::List out;
  for (const std::string& method : flags.methods) {
    for (const std::int64_t k : shots) {
      base::Document row = base::Document::map(), by_draw = base::Document::map();
      std::int64_t measurements = 0, workloads = 0;
      for (const std::string& target : targets) {
        const base::Document& own = *row_of(rows, target, method, k);
        measurements += own.at("measurements").as_integer();
        workloads += own.at("workloads").as_integer();
      }
      row.set("target", fmt::format("mean of {}", targets.size()))
          .set("method", method)
          .set("shots", k)
          .set("measurements", measurements)
          .set("draws", flags.draws)
          .set("workloads", workloads);
      for (const Metric& metric : kMetrics) {
        std::vector<double> mean(std::size_t(flags.draws), 0);
        const bool geometric = metric.key != std::string_view("spearman");
        for (const std::string& target : targets) {
          const std::vector<double> values = draws_of(*row_of(rows, target, method, k), metric.key);
          for (std::size_t d = 0; d < mean.size(); ++d)
            mean[d] += (geometric ? std::log(values[d]) : values[d]) / double(targets.size());
        }
        if (geometric) {
          for (double& value : mean) value = std::exp(value);
        }
        row.set(metric.key, interval_document(base::bootstrap_mean(mean, 0.95, seed)));
        by_draw.set(metric.key, numbers(mean));
      }
      row.set("by_draw", std::move(by_draw));
      out.push_back(std::move(row));
    }
  }
  return out;
}

// Each method less the one that it is held against, over the same draws.
base::Document::List differences(const base::Document::List& rows, const std::string& against, std::uint64_t seed) {
  base::Document::List out;
  for (const base::Document& row : rows) {
    const std::string &target = row.at("target").as_string(), &method = row.at("method").as_string();
    const std::int64_t k = row.at("shots").as_integer();
    if (method == against) continue;
    base::Document difference = base::Document::map();
    difference.set("target", target).set("method", method).set("against", against).set("shots", k);
    const base::Document& other = *row_of(rows, target, against, k);
    for (const Metric& metric : kMetrics) {
      difference.set(metric.key, interval_document(base::bootstrap_paired_difference(
                                     draws_of(row, metric.key), draws_of(other, metric.key), 0.95, seed)));
    }
    out.push_back(std::move(difference));
  }
  return out;
}

// One row a method, one column a number of shots.
void print_table(const std::string& title, const std::string& target, const base::Document::List& rows,
                 const Flags& flags, const std::vector<std::int64_t>& shots,
                 const std::function<std::string(const base::Document&)>& cell, Output& out) {
  std::vector<std::string> head{"method"};
  for (const std::int64_t k : shots) head.push_back(fmt::format("{} shots", k));
  Table table(head);
  for (const std::string& method : flags.methods) {
    std::vector<std::string> cells{method};
    for (const std::int64_t k : shots) {
      const base::Document* row = row_of(rows, target, method, k);
      cells.push_back(row == nullptr ? "-" : cell(*row));
    }
    table.row(std::move(cells));
  }
  out.line(fmt::format("\n{}", title));
  out.table(table);
}

void print_metrics(const std::string& target, const base::Document::List& rows, const Flags& flags,
                   const std::vector<std::int64_t>& shots, Output& out) {
  std::vector<std::string> totals;
  for (const std::int64_t k : shots) {
    std::int64_t most = 0;
    for (const base::Document& row : rows) {
      if (row.at("target").as_string() == target && row.at("shots").as_integer() == k)
        most = std::max(most, row.at("measurements").as_integer());
    }
    totals.push_back(fmt::format("{} at {} shots", most, k));
  }
  out.line("target measurements in all: " + base::join(totals, ", "));
  for (const Metric& metric : kMetrics) {
    const auto cell = [&](const base::Document& row) {
      const base::Interval value = interval_from(row.at(metric.key));
      const std::string mean = number_text(value.mean);
      return std::isfinite(value.low) ? fmt::format("{} ±{:.3f}", mean, (value.high - value.low) / 2) : mean;
    };
    print_table(metric.title, target, rows, flags, shots, cell, out);
  }
}

void print_differences(const std::string& target, const base::Document::List& rows, const Flags& flags,
                       const std::vector<std::int64_t>& shots, Output& out) {
  for (const char* metric : {"spearman", "top1"}) {
    const auto cell = [&](const base::Document& row) {
      return interval_text(interval_from(row.at(metric)), "{:+.3f}");
    };
    print_table(fmt::format("{} less that of {}, paired by draw", metric, flags.against), target, rows, flags, shots,
                cell, out);
  }
}

std::string draws_text(std::int64_t draws) {
  if (draws >= std::int64_t(base::least_for_interval)) return fmt::format("{} draws, 95 % intervals over draws", draws);
  return fmt::format("{} draw{}, no intervals (they need {})", draws, draws == 1 ? "" : "s", base::least_for_interval);
}

std::string said(const std::string& regime) {
  if (regime == "in-domain") return "trained on it alone";
  if (regime == "alone") return "trained on other platforms, each workload by its own support";
  return fmt::format("trained on other platforms, {} workloads", regime);
}

void print_target(const std::string& target, const std::string& source, const base::Document::List& rows,
                  const Flags& flags, const std::vector<std::int64_t>& shots, Output& out) {
  out.line(fmt::format("\n{} ({}), {}; {} workloads judged, {}", target, source, said(flags.regime),
                       row_of(rows, target, flags.methods[0], shots[0])->at("workloads").as_integer(),
                       draws_text(flags.draws)));
  print_metrics(target, rows, flags, shots, out);
  Table best({"winner by", "shots", "method"});
  for (const char* metric : {"spearman", "top1"}) {
    for (const std::int64_t k : shots) best.row({metric, std::to_string(k), winner(rows, target, flags, k, metric)});
  }
  out.line("");
  out.table(best);
}

meta::Regime regime_of(const Flags& flags) {
  if (flags.regime == "seen") return meta::Regime::seen;
  if (flags.regime == "alone") return meta::Regime::alone;
  if (flags.regime == "unseen") return meta::Regime::unseen;
  if (flags.regime == "in-domain") return meta::Regime::in_domain;
  throw base::UserError("--regime", fmt::format("expected seen, alone, unseen or in-domain, got '{}'", flags.regime));
}

int evaluate(Flags flags, Session& session) {
  if (!flags.out.empty()) check_output_folder(flags.out);
  meta::EvaluationSettings settings;
  settings.methods = flags.methods;
  for (const std::string& method : flags.methods)
    flags.network.check_learner(meta::evaluated_method_named(method).learner);
  const auto among = [&](const std::string& method) {
    return std::find(flags.methods.begin(), flags.methods.end(), method) != flags.methods.end();
  };
  if (!flags.against.empty() && !among(flags.against))
    throw base::UserError("--against", fmt::format("{} is none of --methods", flags.against));
  if (flags.against.empty()) flags.against = among("scratch") ? "scratch" : flags.methods.front();
  const std::vector<std::int64_t> shots = integers_of("--shots", flags.shots, 0);
  for (const std::int64_t k : shots) settings.shots.push_back(int(std::min<std::int64_t>(k, 1 << 30)));
  settings.draws = int(std::min<std::int64_t>(flags.draws, 1 << 30));
  settings.regime = regime_of(flags);
  const bool in_domain = settings.regime == meta::Regime::in_domain;
  if (in_domain && (flags.judge_last > 0 || !flags.sources.empty() || flags.folds > 0 || !flags.misleading.empty() ||
                    flags.support != "random"))
    throw base::UserError("--judge-last, --sources, --folds, --misleading, --support", "not with --regime in-domain");
  const bool all_targets = flags.targets == std::vector<std::string>{"all"};
  if (flags.folds > 0 && !(flags.sources.empty() && all_targets))
    throw base::UserError("--folds", "says what the targets and their sources are: not with --target or --sources");
  if (!in_domain && !(flags.train_workloads.empty() && flags.judge_workloads.empty()))
    throw base::UserError("--train-workloads, --judge-workloads", "only with --regime in-domain");
  for (const codegen::Workload& workload : workloads_of(flags.train_workloads))
    settings.train_workloads.push_back(workload.text);
  for (const codegen::Workload& workload : workloads_of(flags.judge_workloads))
    settings.judge_workloads.push_back(workload.text);
  settings.learner = flags.network.settings(session);
  settings.sources = flags.sources;
  settings.judge_last = flags.judge_last;
  settings.support = meta::support_choice_named(flags.support);

  flags.network.used_encoding();  // refuses one that does not fit before anything is read
  const std::vector<datasets::Dataset> data = flags.data.read(session);
  flags.network.fit(data);
  const meta::TaskSet tasks = meta::with_reversed_labels(
      meta::make_task_set(data, flags.network.used_encoding(), session.threads, nullptr, &session.progress),
      flags.misleading);
  note_left_out(tasks, session.progress);
  const std::vector<std::string> platforms = meta::platforms(tasks);
  if (platforms.size() < 2 && !in_domain) {
    throw base::UserError(
        base::join(flags.data.files, ", "),
        fmt::format("only platform {}; training needs datasets of at least one other platform", platforms[0]));
  }
  std::vector<std::string> targets = platforms;
  if (!all_targets) targets = flags.targets;
  std::map<std::string, std::vector<std::string>> beside;  // target -> those of other folds
  if (flags.folds > 0) {
    targets.clear();
    for (const std::vector<std::string>& fold : study::folds_of(platforms, flags.folds, session.seed)) {
      for (const std::string& target : fold) {
        targets.push_back(target);
        for (const std::string& platform : platforms) {
          if (std::find(fold.begin(), fold.end(), platform) == fold.end()) beside[target].push_back(platform);
        }
      }
    }
  }
  meta::only_platforms(tasks, targets);  // refuses unknown ones
  for (const std::string& name : flags.misleading) {
    if (std::find(targets.begin(), targets.end(), name) != targets.end())
      throw base::UserError("--misleading", fmt::format("{} is judged itself: name the others by --target", name));
  }
  meta::only_platforms(tasks, flags.sources);

  const base::Document request = request_of(flags, session);
  const base::Document::List earlier = known_rows(flags.out, request);
  base::Document::List rows;
  base::Document& json = session.output.json();
  json.set("request", request).set("context", context_of(session));
  const auto save = [&](bool complete) {
    json.set("rows", base::Document(rows)).set("complete", complete);
    if (!flags.out.empty()) base::replace_file(flags.out, json.to_pretty_json() + "\n");
  };
  meta::Priors priors;
  for (const std::string& target : targets) {
    base::Document::List own;
    for (const base::Document& row : earlier) {
      if (row.at("target").as_string() == target) own.push_back(row);
    }
    if (own.size() != flags.methods.size() * shots.size()) {
      own.clear();
      if (flags.folds > 0) settings.sources = beside.at(target);
      const auto table = in_domain ? meta::evaluate_in_domain(tasks, target, settings, session.progress)
                                   : meta::evaluate(tasks, target, settings, session.progress, priors);
      for (const meta::EvaluationRow& row : table) {
        own.push_back(row_document(row, tasks.sources.at(target)));
      }
    }
    rows.insert(rows.end(), own.begin(), own.end());
    save(target == targets.back());
    print_target(target, tasks.sources.at(target), rows, flags, shots, session.output);
  }

  base::Document::List compared = rows;
  std::string judged = targets[0];
  if (targets.size() > 1) {
    const base::Document::List means = mean_rows(rows, targets, flags, shots, session.seed);
    json.set("means", base::Document(means));
    judged = means.front().at("target").as_string();
    session.output.line(fmt::format("\n{} targets; {}", judged, draws_text(flags.draws)));
    print_metrics(judged, means, flags, shots, session.output);
    compared.insert(compared.end(), means.begin(), means.end());
  }
  const base::Document::List less = differences(compared, flags.against, session.seed);
  json.set("differences", base::Document(less));
  if (!less.empty()) print_differences(judged, less, flags, shots, session.output);

  base::Document winners = base::Document::list();
  for (const std::string& target : targets) {
    for (const std::int64_t k : shots) {
      base::Document entry = base::Document::map();
      winners.push(entry.set("target", target)
                       .set("shots", k)
                       .set("by_spearman", winner(rows, target, flags, k, "spearman"))
                       .set("by_top1", winner(rows, target, flags, k, "top1")));
    }
  }
  json.set("winners", std::move(winners));
  save(true);
  return done;
}

std::string method_names() {
  std::vector<std::string> names;
  for (const meta::EvaluatedMethod& method : meta::evaluated_methods()) names.push_back(method.name);
  return base::join(names, " ");
}

}  // namespace

Command evaluate_command() {
  return {
      .name = "evaluate",
      .help = "leave-one-platform-out tables: methods, shots, metrics, with intervals",
      .examples = {"graft evaluate data/*.h5 --methods zero-shot,scratch,ridge,maml --shots 0,10,50 --draws 20",
                   "graft evaluate data/*.h5 --target model:sifive-p450 --out p450.json",
                   "graft evaluate data/*.h5 --folds 5 --methods scratch,ridge,residual --shots 0,8,32 --out cv.json",
                   "graft evaluate data/*.h5 --regime alone --methods residual,scratch --shots 8,16,32",
                   "graft evaluate v3.h5 --regime in-domain --methods gbt-zero-shot,zero-shot --shots 300 --loss rank"},
      .declare = [](Options& options) -> Action {
        const auto flags = std::make_shared<Flags>();
        flags->data.declare(options, "datasets of at least two platforms");
        options.list("target", flags->targets, "platforms to judge on, or all: each in turn");
        options.text("support", flags->support,
                     "how the support is chosen from 300 random programs a workload: random, kmeans, d_optimal (a "
                     "linear model's "
                     "uncertainty) or uncertain (a Gaussian process's)");
        options.list("sources", flags->sources, "platforms to train on; default: all but the target");
        options.list("misleading", flags->misleading,
                     "source platforms whose times are reversed within each workload, to see what such a source costs");
        options.integer(
            "folds", flags->folds, 0,
            "cross-validation: platforms dealt out to so many folds, each judged by what was trained on the "
            "other folds; 0: each platform by all others");
        options.integer(
            "judge-last", flags->judge_last, 0,
            "judge on the last so many programs of each workload, which no platform's training or support has "
            "seen; 0: on all that are no support");
        options.list("methods", flags->methods, method_names());
        options.list("shots", flags->shots, "support programs per workload");
        options.text("against", flags->against,
                     "the method that the others' differences are taken to; default: scratch, else the first");
        options.integer("draws", flags->draws, 1,
                        "support draws, the same for all methods; fewer than 3 have no interval");
        options.text(
            "regime", flags->regime,
            "seen: support from the judged workloads; alone: for each its own only, as a search has it; unseen: "
            "from others only; in-domain: no other platform, trained on "
            "--shots programs of each workload of the target and judged on the rest");
        options.list("train-workloads", flags->train_workloads, "in-domain: train on these only; default: all");
        options.list("judge-workloads", flags->judge_workloads, "in-domain: judge on these only; default: all");
        flags->network.declare(options);
        options.text("out", flags->out, "also save the JSON there; run again to continue");
        return [flags](Session& session) { return evaluate(*flags, session); };
      },
      .stops = true};
}

}  // namespace graft::cli
